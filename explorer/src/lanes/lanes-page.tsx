/** The lanes page: a matrix of volumes, and a table with delivery times and stuck messages. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { CSSProperties, ReactNode } from 'react';
import type { Lane } from '../../../src/client/api-types.ts';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { compact, counted, duration, grouped } from '../../../src/text/format.ts';
import { laneWords, networkName } from '../../../src/text/message-words.ts';
import { NetworkLabel, NetworkMark } from '../parts/icons.tsx';
import { Card, Loaded, Notice, RowsSkeleton, useTitle } from '../parts/page.tsx';
import { LaneLink } from '../parts/statistics.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Ago } from '../parts/text.tsx';
import { lanesQuery } from '../server/api-client.ts';

export function LanesPage() {
  useTitle('Lanes');
  const query = useQuery(lanesQuery());
  const { data, total = 0 } = query.data ?? {};
  return (
    <div className="page">
      <header className="page-head flow spread baseline">
        <h1>Lanes</h1>
        {data && (
          <p className="muted">
            {counted(total, 'lane')}
            {total > data.length && `, the ${grouped(data.length)} busiest are shown`}. Delivery times of the
            last 30 days.
          </p>
        )}
      </header>
      <Loaded
        query={query}
        skeleton={
          <div className="card">
            <RowsSkeleton rows={8} />
          </div>
        }
      >
        {({ data: lanes }) =>
          lanes.length === 0 ? (
            <Notice title="No lanes yet">
              <p>A lane appears with its first message.</p>
            </Notice>
          ) : (
            <>
              <LaneMatrix lanes={lanes} />
              <LaneTable lanes={lanes} />
            </>
          )
        }
      </Loaded>
    </div>
  );
}

// ---- The matrix

function LaneMatrix({ lanes }: { readonly lanes: readonly Lane[] }) {
  const sources = busiestFirst(lanes, ({ sourceNetworkInfo }) => sourceNetworkInfo);
  const dests = busiestFirst(lanes, ({ destNetworkInfo }) => destNetworkInfo);
  const most = Math.max(1, ...lanes.map(({ messages }) => messages));
  const cells = new Map(lanes.map((lane) => [laneKey(lane.sourceNetworkInfo, lane.destNetworkInfo), lane]));
  return (
    <Card title="Messages by lane" about="Messages from the row’s network to the column’s">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <section className="matrix-scroll" tabIndex={0} aria-label="Messages from each network to each other">
        <table className="matrix">
          <thead>
            <tr>
              <th scope="col">
                <span className="visually-hidden">From</span>
              </th>
              {dests.map((dest) => (
                <th key={dest.chainSelector} scope="col" title={networkName(dest)}>
                  <NetworkMark name={networkName(dest)} selector={dest.chainSelector} />
                  <span className="matrix-dest muted tiny">{networkName(dest)}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sources.map((source) => (
              <tr key={source.chainSelector}>
                <th scope="row">
                  <NetworkLabel network={source} />
                </th>
                {dests.map((dest) => (
                  <td key={dest.chainSelector}>
                    <MatrixCell lane={cells.get(laneKey(source, dest))} most={most} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </Card>
  );
}

function MatrixCell({ lane, most }: { readonly lane: Lane | undefined; readonly most: number }) {
  if (!lane) return null;
  const { sourceNetworkInfo: source, destNetworkInfo: dest, messages, readyForManualExecution } = lane;
  // Logarithmic: a lane with a hundredth of the traffic must still differ from one without.
  const strength = Math.log(messages + 1) / Math.log(most + 1);
  return (
    <Link
      to="/lane/$source/$dest"
      params={{ source: source.name, dest: dest.name }}
      className="matrix-cell"
      style={{ '--strength': `${Math.round(6 + strength ** 3 * 64)}%` } as CSSProperties}
      title={`${laneWords(lane)}: ${counted(messages, 'message')}${readyForManualExecution > 0 ? `, ${readyForManualExecution} need action` : ''}`}
      aria-label={`${laneWords(lane)}: ${counted(messages, 'message')}`}
    >
      {compact(messages)}
    </Link>
  );
}

const laneKey = (source: NetworkInfo, dest: NetworkInfo) => `${source.chainSelector} ${dest.chainSelector}`;

function busiestFirst(lanes: readonly Lane[], end: (lane: Lane) => NetworkInfo): readonly NetworkInfo[] {
  const totals = new Map<string, { network: NetworkInfo; messages: number }>();
  for (const lane of lanes) {
    const network = end(lane);
    const known = totals.get(network.chainSelector);
    totals.set(network.chainSelector, { network, messages: (known?.messages ?? 0) + lane.messages });
  }
  return [...totals.values()].sort((a, b) => b.messages - a.messages).map(({ network }) => network);
}

// ---- The table

const noticeable = (count: number) => <span className={count > 0 ? 'action bold' : ''}>{count}</span>;

const ago = (at: number) => <Ago at={new Date(at).toISOString()} />;

interface LaneColumn extends Column<Lane> {
  /** The lanes with the highest come first. */
  readonly order: (lane: Lane) => number;
}

function column(
  key: string,
  heading: string,
  read: (lane: Lane) => number | null,
  show: (value: number) => ReactNode,
  name = heading,
): LaneColumn {
  const cell = (lane: Lane) => {
    const value = read(lane);
    return value === null ? <span className="muted">–</span> : show(value);
  };
  return { key, heading, name, order: (lane) => read(lane) ?? -1, cell };
}

const columns: readonly [LaneColumn, ...LaneColumn[]] = [
  column('messages', 'Messages', ({ messages }) => messages, grouped),
  column('inFlight', 'In flight', ({ inFlight }) => inFlight, String),
  column('overdue', 'Overdue', ({ overdue }) => overdue, noticeable),
  column('action', 'Need action', ({ readyForManualExecution: ready }) => ready, noticeable),
  column('p50', '50 %', ({ delivery }) => delivery.p50Ms, duration, 'Half within'),
  column('p90', '90 %', ({ delivery }) => delivery.p90Ms, duration, '90 % within'),
  column('p99', '99 %', ({ delivery }) => delivery.p99Ms, duration, '99 % within'),
  column('last', 'Last sent', ({ lastSentAt }) => Date.parse(lastSentAt), ago),
];

const laneColumn: Column<Lane> = {
  key: 'lane',
  heading: 'Lane',
  cell: (lane) => (
    <span className="flow">
      <LaneLink lane={lane} />
      {lane.onramps.some(({ completeness }) => !completeness.isComplete) && (
        <span className="tag tag-problem">numbers missing</span>
      )}
    </span>
  ),
};

function LaneTable({ lanes }: { readonly lanes: readonly Lane[] }) {
  const { sort } = useSearch({ from: '/lane' });
  const [first] = columns;
  const { key: sorted, order } = columns.find(({ key }) => key === sort) ?? first;
  return (
    <section className="card stack" aria-label="How they do">
      <h2>How they do</h2>
      <Table
        columns={[laneColumn, ...columns]}
        items={[...lanes].sort((a, b) => order(b) - order(a))}
        keyOf={(lane) => laneKey(lane.sourceNetworkInfo, lane.destNetworkInfo)}
        sorted={sorted}
        headingOf={({ key, heading }) =>
          key === laneColumn.key ? (
            heading
          ) : (
            <Link
              to="/lane"
              search={key === first.key ? {} : { sort: key }}
              className="plain"
              resetScroll={false}
              replace
            >
              {heading}
            </Link>
          )
        }
      />
    </section>
  );
}
