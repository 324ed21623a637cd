/** A row of key figures. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { grouped } from '../../../src/text/format.ts';
import type { Filters } from '../server/search-view.ts';
import { Skeleton } from './notices.tsx';

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

/** In place of figures and the chart below them, while they are loaded. */
export function FiguresSkeleton({ names }: { readonly names: readonly string[] }) {
  return (
    <div aria-busy="true">
      <Figures>
        {names.map((name) => (
          <Figure
            key={name}
            name={name}
            value={<Skeleton width="96px" />}
            about={<Skeleton width="64px" />}
          />
        ))}
      </Figures>
      <section className="panel chart-place" />
    </div>
  );
}
