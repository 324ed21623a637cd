/** The overview page: totals, messages by day, statuses, the busiest lanes. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Stats, StatusCounts } from '../../../src/client/api-types.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { dayName, grouped, percent } from '../../../src/text/format.ts';
import { type Bar, BarChart, ShareBar } from '../parts/charts.tsx';
import { FailureReasons } from '../parts/failure-reasons.tsx';
import { Figure, Figures, FiguresSkeleton, NeedActionFigure } from '../parts/figures.tsx';
import { LaneLabel } from '../parts/network.tsx';
import { FailureNotice } from '../parts/notices.tsx';
import { useTitle } from '../parts/page-title.ts';
import { Segments } from '../parts/segments.tsx';
import { StatusBadge, statusTones } from '../parts/status.tsx';
import { failuresQuery, statsQuery } from '../server/api-client.ts';

const windows = { 7: '7 days', 30: '30 days', 90: '90 days' } as const;
type Window = `${keyof typeof windows}`;

export function OverviewPage() {
  useTitle('Overview');
  const [days, setDays] = useState<Window>('30');
  const { data, error, refetch, isPlaceholderData } = useQuery(statsQuery(Number(days)));
  return (
    <div className="page">
      <header className="page-head">
        <h1>Overview</h1>
      </header>
      {error && !data && <FailureNotice error={error} onRetry={() => void refetch()} />}
      {!error && !data && <FiguresSkeleton names={['Messages', 'Delivered', 'In flight', 'Need action']} />}
      {data && (
        <>
          <Totals stats={data} />
          <section className="panel">
            <header className="panel-head">
              <h2>Messages by day</h2>
              <Segments
                legend="How many days"
                options={windows as Record<Window, string>}
                chosen={days}
                onChoose={setDays}
              />
            </header>
            <div data-stale={isPlaceholderData} className="fades">
              <BarChart
                label="Messages sent each day (UTC), by what has become of them"
                bars={data.days.map(dayBar)}
              />
            </div>
          </section>
          <div className="panels">
            <StatusPanel counts={data.totals.byStatus} total={data.totals.messages} />
            <BusiestLanes lanes={data.topLanes} />
          </div>
          <WhyTheyFailed days={days} />
        </>
      )}
    </div>
  );
}

function Totals({ stats: { totals } }: { readonly stats: Stats }) {
  const { messages, byStatus, inFlight, readyForManualExecution } = totals;
  return (
    <Figures>
      <Figure name="Messages" value={grouped(messages)} about="of all time" />
      <Figure
        name="Delivered"
        value={percent(byStatus.SUCCESS, messages)}
        about={`${grouped(byStatus.SUCCESS)} messages`}
      />
      <Figure name="In flight" value={grouped(inFlight)} about={percent(inFlight, messages)} />
      <NeedActionFigure count={readyForManualExecution} />
    </Figures>
  );
}

function dayBar({ day, messages, byStatus }: Stats['days'][number], index: number, all: Stats['days']): Bar {
  const isLabelled = index % Math.ceil(all.length / 7) === 0;
  return {
    key: day,
    name: dayName(day),
    ...(isLabelled && { tick: dayName(day) }),
    parts: [
      { series: 'Delivered', tone: 'done', value: byStatus.SUCCESS },
      { series: 'In flight', tone: 'moving', value: messages - byStatus.SUCCESS - byStatus.FAILED },
      { series: 'Failed', tone: 'failed', value: byStatus.FAILED },
    ],
  };
}

function StatusPanel({ counts, total }: { readonly counts: StatusCounts; readonly total: number }) {
  const shown = [...statuses].reverse();
  return (
    <section className="panel">
      <header className="panel-head">
        <h2>Statuses</h2>
      </header>
      <ShareBar
        parts={shown.map((status) => ({ key: status, tone: statusTones[status], value: counts[status] }))}
      />
      <ul className="tally">
        {shown.map((status) => (
          <li key={status}>
            <Link to="/" search={{ status }}>
              <StatusBadge status={status} />
            </Link>
            <span>{grouped(counts[status])}</span>
            <span className="muted">{percent(counts[status], total)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function BusiestLanes({ lanes }: { readonly lanes: Stats['topLanes'] }) {
  const most = Math.max(1, ...lanes.map(({ messages }) => messages));
  return (
    <section className="panel">
      <header className="panel-head">
        <h2>Busiest lanes</h2>
        <Link to="/lane">All lanes</Link>
      </header>
      {lanes.length === 0 && <p className="muted">No lane has a message yet.</p>}
      <ol className="busiest">
        {lanes.map(({ sourceNetworkInfo: source, destNetworkInfo: dest, messages }) => (
          <li key={`${source.chainSelector} ${dest.chainSelector}`}>
            <Link to="/lane/$source/$dest" params={{ source: source.name, dest: dest.name }}>
              <LaneLabel source={source} dest={dest} />
              <span>{grouped(messages)}</span>
            </Link>
            <span
              className="busiest-bar"
              style={{ width: `${(messages / most) * 100}%` }}
              aria-hidden="true"
            />
          </li>
        ))}
      </ol>
    </section>
  );
}

const SHOWN_REASONS = 5;

function WhyTheyFailed({ days }: { readonly days: Window }) {
  const { data } = useQuery(failuresQuery(Number(days)));
  if (!data) return null;
  return (
    <section className="panel">
      <header className="panel-head">
        <h2>Why messages failed</h2>
        <Link to="/failure">All reasons</Link>
      </header>
      {data.failed === 0 ? (
        <p className="muted">No message of the last {days} days has failed.</p>
      ) : (
        <FailureReasons failures={data} shown={SHOWN_REASONS} />
      )}
    </section>
  );
}
