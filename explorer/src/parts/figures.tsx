/** A row of key figures. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Filters } from '../server/search-view.ts';
import { grouped } from './format.ts';

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

/** The count of messages that are ready for manual execution, with a link to them. */
export function NeedActionFigure({
  count,
  within = {},
}: {
  readonly count: number;
  readonly within?: Filters;
}) {
  return (
    <Figure
      name="Need action"
      value={grouped(count)}
      tone={count > 0 ? 'action' : undefined}
      about={
        count > 0 ? (
          <Link to="/" search={{ ...within, readyForManualExecOnly: 'true' }}>
            Show them
          </Link>
        ) : (
          'nothing to do'
        )
      }
    />
  );
}
