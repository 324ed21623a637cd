/** The overview page: totals, messages by day, statuses, the busiest lanes. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Stats, StatusCounts } from '../../../src/client/api-types.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { grouped, percent } from '../../../src/text/format.ts';
import { laneWords } from '../../../src/text/message-words.ts';
import { BarChart, ShareBar } from '../parts/charts.tsx';
import { Segments } from '../parts/controls.tsx';
import { StatusBadge, statusTones } from '../parts/icons.tsx';
import { Loaded, useTitle } from '../parts/page.tsx';
import {
  dayBars,
  FailureReasons,
  Figures,
  FiguresSkeleton,
  LaneLink,
  needActionFigure,
  Panel,
} from '../parts/statistics.tsx';
import { failuresQuery, statsQuery } from '../server/api-client.ts';
import { type DayWindow, dayWindows } from '../server/search-view.ts';

export function OverviewPage() {
  useTitle('Overview');
  const [days, setDays] = useState<DayWindow>('30');
  const query = useQuery(statsQuery(Number(days)));
  const skeleton = <FiguresSkeleton names={['Messages', 'Delivered', 'In flight', 'Need action']} />;
  const choice = <Segments legend="How many days" options={dayWindows} chosen={days} onChoose={setDays} />;
  return (
    <div className="page">
      <header className="page-head">
        <h1>Overview</h1>
      </header>
      <Loaded query={query} skeleton={skeleton}>
        {(stats) => (
          <>
            <Totals stats={stats} />
            <Panel title="Messages by day" about={choice}>
              <div data-stale={query.isPlaceholderData} className="fades">
                <BarChart
                  label="Messages sent each day (UTC), by what has become of them"
                  bars={dayBars(stats.days, ({ messages, byStatus: { SUCCESS, FAILED } }) => ({
                    parts: [
                      { series: 'Delivered', tone: 'done', value: SUCCESS },
                      { series: 'In flight', tone: 'moving', value: messages - SUCCESS - FAILED },
                      { series: 'Failed', tone: 'failed', value: FAILED },
                    ],
                  }))}
                />
              </div>
            </Panel>
            <div className="panels">
              <StatusPanel counts={stats.totals.byStatus} total={stats.totals.messages} />
              <BusiestLanes lanes={stats.topLanes} />
            </div>
            <WhyTheyFailed days={days} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function Totals({ stats: { totals } }: { readonly stats: Stats }) {
  const { messages, byStatus, inFlight, readyForManualExecution } = totals;
  return (
    <Figures
      figures={[
        { name: 'Messages', value: grouped(messages), about: 'of all time' },
        {
          name: 'Delivered',
          value: percent(byStatus.SUCCESS, messages),
          about: `${grouped(byStatus.SUCCESS)} messages`,
        },
        { name: 'In flight', value: grouped(inFlight), about: percent(inFlight, messages) },
        needActionFigure(readyForManualExecution),
      ]}
    />
  );
}

function StatusPanel({ counts, total }: { readonly counts: StatusCounts; readonly total: number }) {
  const shown = [...statuses].reverse();
  return (
    <Panel title="Statuses">
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
    </Panel>
  );
}

function BusiestLanes({ lanes }: { readonly lanes: Stats['topLanes'] }) {
  const most = Math.max(1, ...lanes.map(({ messages }) => messages));
  return (
    <Panel title="Busiest lanes" about={<Link to="/lane">All lanes</Link>}>
      {lanes.length === 0 && <p className="muted">No lane has a message yet.</p>}
      <ol className="busiest stack gap-4">
        {lanes.map((lane) => (
          <li key={laneWords(lane)}>
            <LaneLink lane={lane}>
              <span>{grouped(lane.messages)}</span>
            </LaneLink>
            <span
              className="busiest-bar"
              style={{ width: `${(lane.messages / most) * 100}%` }}
              aria-hidden="true"
            />
          </li>
        ))}
      </ol>
    </Panel>
  );
}

const SHOWN_REASONS = 5;

function WhyTheyFailed({ days }: { readonly days: DayWindow }) {
  const { data } = useQuery(failuresQuery(Number(days)));
  if (!data) return null;
  return (
    <Panel title="Why messages failed" about={<Link to="/failure">All reasons</Link>}>
      <FailureReasons
        failures={data}
        none={`No message of the last ${days} days has failed.`}
        shown={SHOWN_REASONS}
      />
    </Panel>
  );
}
