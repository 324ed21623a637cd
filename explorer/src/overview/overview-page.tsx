/** The overview page (totals, messages by day, statuses, the busiest lanes), and the page of failed messages behind it. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Failures, Stats, StatusCounts } from '../../../src/client/api-types.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { grouped, percent } from '../../../src/text/format.ts';
import { laneWords } from '../../../src/text/message-words.ts';
import { BarChart, ShareBar } from '../parts/charts.tsx';
import { Segments } from '../parts/controls.tsx';
import { StatusBadge, statusTones } from '../parts/icons.tsx';
import { BackLink, Card, Loaded, MessagesLink, useTitle } from '../parts/page.tsx';
import {
  dayBars,
  FailureReasons,
  FailureShareChart,
  Figures,
  FiguresSkeleton,
  LaneLink,
  needActionFigure,
  outcomeParts,
} from '../parts/statistics.tsx';
import { basePath, failuresQuery, statsQuery } from '../server/api-client.ts';
import { type DayWindow, dayWindows } from '../server/search-view.ts';

export function OverviewPage() {
  useTitle('Overview');
  const [days, setDays] = useState<DayWindow>('30');
  const query = useQuery(statsQuery(Number(days)));
  const skeleton = <FiguresSkeleton names={['Messages', 'Delivered', 'In flight', 'Need action']} />;
  const choice = <Segments legend="How many days" options={dayWindows} chosen={days} onChoose={setDays} />;
  return (
    <div className="page">
      <header className="page-head flow spread baseline">
        <h1>Overview</h1>
      </header>
      <Loaded query={query} skeleton={skeleton}>
        {(stats) => (
          <>
            <Totals stats={stats} />
            <Card title="Messages by day" about={choice}>
              <div data-stale={query.isPlaceholderData} className="fades">
                <BarChart
                  label="Messages sent each day (UTC), by what has become of them"
                  bars={dayBars(stats.days, ({ messages, byStatus }) => ({
                    parts: outcomeParts(messages, byStatus.SUCCESS, byStatus.FAILED),
                  }))}
                />
              </div>
            </Card>
            <div className="columns">
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
    <Card title="Statuses">
      <ShareBar
        parts={shown.map((status) => ({
          key: status,
          colour: `var(--fill-${statusTones[status]})`,
          value: counts[status],
        }))}
      />
      <ul className="tally">
        {shown.map((status) => (
          <li key={status}>
            <Link to="/" search={{ status }} className="plain">
              <StatusBadge status={status} />
            </Link>
            <span>{grouped(counts[status])}</span>
            <span className="muted">{percent(counts[status], total)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function BusiestLanes({ lanes }: { readonly lanes: Stats['topLanes'] }) {
  const most = Math.max(1, ...lanes.map(({ messages }) => messages));
  return (
    <Card title="Busiest lanes" about={<Link to="/lane">All lanes</Link>}>
      {lanes.length === 0 && <p className="muted">No lane has a message yet.</p>}
      <ol className="busiest stack gap-4">
        {lanes.map((lane) => (
          <li key={laneWords(lane)}>
            <LaneLink lane={lane} className="line spread">
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
    </Card>
  );
}

const SHOWN_REASONS = 5;

function WhyTheyFailed({ days }: { readonly days: DayWindow }) {
  const { data } = useQuery(failuresQuery(Number(days)));
  if (!data) return null;
  return (
    <Card title="Why messages failed" about={<Link to="/failure">All reasons</Link>}>
      <FailureReasons
        failures={data}
        none={`No message of the last ${days} days has failed.`}
        shown={SHOWN_REASONS}
      />
    </Card>
  );
}

// ---- Failed messages: how many, since when, and why

export function FailuresPage() {
  useTitle('Failed messages');
  const { days = '30' } = useSearch({ from: '/failure' });
  const navigate = useNavigate();
  const query = useQuery(failuresQuery(Number(days)));
  const links = (
    <p className="flow">
      <MessagesLink search={{ status: 'FAILED' }} words="Show the messages" />
      <a href={`${basePath}/v2/messages/export?format=csv&status=FAILED&attempts=true`} download>
        Export with reasons
      </a>
    </p>
  );
  return (
    <div className="page">
      <BackLink to="/overview" name="Overview" />
      <header className="page-head flow spread baseline">
        <h1>Failed messages</h1>
        <Segments
          legend="How many days"
          options={dayWindows}
          chosen={days}
          onChoose={(chosen) =>
            void navigate({ to: '/failure', search: chosen === '30' ? {} : { days: chosen }, replace: true })
          }
        />
      </header>
      <Loaded
        query={query}
        skeleton={<FiguresSkeleton names={['Failed', 'Share', 'Need action', 'Reasons']} />}
      >
        {(failures) => (
          <div data-stale={query.isPlaceholderData} className="fades">
            <FailureTotals failures={failures} />
            <Card
              title="Share of failures by day"
              about="by the day a message was sent; one that was rescued no longer counts"
            >
              <FailureShareChart days={failures.days} />
            </Card>
            <Card title="Why they failed" about={links}>
              <FailureReasons
                failures={failures}
                none={`No message of these ${days} days has failed.`}
                withMessages
              />
            </Card>
          </div>
        )}
      </Loaded>
    </div>
  );
}

function FailureTotals({
  failures: { failed, days, reasons, otherReasons },
}: {
  readonly failures: Failures;
}) {
  const messages = days.reduce((sum, day) => sum + day.messages, 0);
  const ready = reasons.reduce((sum, { readyForManualExecution }) => sum + readyForManualExecution, 0);
  const canFix = reasons
    .filter(({ fixableBy }) => fixableBy === 'anyone')
    .reduce((sum, group) => sum + group.messages, 0);
  return (
    <Figures
      figures={[
        { name: 'Failed', value: grouped(failed), about: `of ${grouped(messages)} messages` },
        { name: 'Share', value: percent(failed, messages), about: 'of the messages of this time' },
        needActionFigure(ready, { status: 'FAILED' }),
        {
          name: 'Reasons',
          value: grouped(reasons.length + (otherReasons?.reasons ?? 0)),
          about: `${grouped(canFix)} messages that anyone can fix`,
        },
      ]}
    />
  );
}
