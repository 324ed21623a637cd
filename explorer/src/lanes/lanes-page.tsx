/** The lanes page: a matrix of volumes, and a table with delivery times and stuck messages. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { CSSProperties } from 'react';
import type { Lane } from '../../../src/client/api-types.ts';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { compact, counted, duration, grouped } from '../../../src/text/format.ts';
import { laneWords, networkName } from '../../../src/text/message-words.ts';
import { NetworkLabel, NetworkMark } from '../parts/icons.tsx';
import { Loaded, Notice, RowsSkeleton, useTitle } from '../parts/page.tsx';
import { LaneLink, Panel } from '../parts/statistics.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Ago } from '../parts/text.tsx';
import { lanesQuery } from '../server/api-client.ts';

export function LanesPage() {
  useTitle('Lanes');
  const query = useQuery(lanesQuery());
  const { data, total = 0 } = query.data ?? {};
  return (
    <div className="page">
      <header className="page-head">
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
          <section className="panel stack gap-16">
            <RowsSkeleton rows={8} />
          </section>
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
    <Panel title="Messages by lane" about="Messages from the row’s network to the column’s">
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
                  <span className="matrix-dest">{networkName(dest)}</span>
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
    </Panel>
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

const none = <span className="muted">–</span>;
const timeOr = (ms: number | null) => (ms === null ? none : duration(ms));
const noticeable = (count: number) => <span className={count > 0 ? 'worth-a-look' : ''}>{count}</span>;

interface LaneColumn extends Column<Lane> {
  /** The lanes with the highest come first. */
  readonly order: (lane: Lane) => number;
}

const columns: readonly [LaneColumn, ...LaneColumn[]] = [
  {
    key: 'messages',
    heading: 'Messages',
    order: ({ messages }) => messages,
    cell: ({ messages }) => grouped(messages),
  },
  {
    key: 'inFlight',
    heading: 'In flight',
    order: ({ inFlight }) => inFlight,
    cell: ({ inFlight }) => inFlight,
  },
  {
    key: 'overdue',
    heading: 'Overdue',
    order: ({ overdue }) => overdue ?? -1,
    cell: ({ overdue }) => (overdue === null ? none : noticeable(overdue)),
  },
  {
    key: 'action',
    heading: 'Need action',
    order: ({ readyForManualExecution }) => readyForManualExecution,
    cell: ({ readyForManualExecution }) => noticeable(readyForManualExecution),
  },
  deliveryColumn('p50', '50 %', 'Half within'),
  deliveryColumn('p90', '90 %', '90 % within'),
  deliveryColumn('p99', '99 %', '99 % within'),
  {
    key: 'last',
    heading: 'Last sent',
    order: ({ lastSentAt }) => Date.parse(lastSentAt),
    cell: ({ lastSentAt }) => <Ago at={lastSentAt} />,
  },
];

function deliveryColumn(key: 'p50' | 'p90' | 'p99', heading: string, name: string): LaneColumn {
  return {
    key,
    heading,
    name,
    order: ({ delivery }) => delivery[`${key}Ms`] ?? -1,
    cell: ({ delivery }) => timeOr(delivery[`${key}Ms`]),
  };
}

const laneColumn: Column<Lane> = {
  key: 'lane',
  heading: 'Lane',
  cell: (lane) => (
    <>
      <LaneLink lane={lane} />
      {lane.onramps.some(({ completeness }) => !completeness.isComplete) && (
        <span className="tag tag-problem">numbers missing</span>
      )}
    </>
  ),
};

function LaneTable({ lanes }: { readonly lanes: readonly Lane[] }) {
  const { sort } = useSearch({ from: '/lane' });
  const [first] = columns;
  const { key: sorted, order } = columns.find(({ key }) => key === sort) ?? first;
  return (
    <section className="panel stack gap-16" aria-label="How they do">
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
            <Link to="/lane" search={key === first.key ? {} : { sort: key }} resetScroll={false} replace>
              {heading}
            </Link>
          )
        }
      />
    </section>
  );
}
