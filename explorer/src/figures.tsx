/** A row of numbers that are read at a glance. */
import type { ReactNode } from 'react';

export function Figures({ children }: { readonly children: ReactNode }) {
  return <dl className="figures">{children}</dl>;
}

export function Figure({
  name,
  value,
  about,
  tone,
}: {
  readonly name: string;
  readonly value: ReactNode;
  readonly about?: ReactNode;
  readonly tone?: 'action' | undefined;
}) {
  return (
    <div className="figure" data-tone={tone}>
      <dt>{name}</dt>
      <dd className="figure-value">{value}</dd>
      {about !== undefined && <dd className="figure-about">{about}</dd>}
    </div>
  );
}
