/** The lanes page: a matrix of volumes, and a table with delivery times and stuck messages. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { CSSProperties } from 'react';
import type { Lane } from '../../../src/client/api-types.ts';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { compact, counted, duration, grouped } from '../../../src/text/format.ts';
import { laneWords, networkName } from '../../../src/text/message-words.ts';
import { LaneLabel, NetworkMark } from '../parts/network.tsx';
import { FailureNotice, Notice, Skeleton } from '../parts/notices.tsx';
import { useTitle } from '../parts/page-title.ts';
import { Ago } from '../parts/time.tsx';
import { lanesQuery } from '../server/api-client.ts';
import { type LaneOrder, laneOrders } from './lane-order.ts';

export function LanesPage() {
  useTitle('Lanes');
  const { sort = 'messages' } = useSearch({ from: '/lane' });
  const { data, error, refetch } = useQuery(lanesQuery());
  const lanes = data?.data ?? [];
  return (
    <div className="page">
      <header className="page-head">
        <h1>Lanes</h1>
        {data && (
          <p className="muted">
            {counted(data.total, 'lane')}
            {data.total > lanes.length && `, the ${grouped(lanes.length)} busiest are shown`}. Delivery times
            of the last 30 days.
          </p>
        )}
      </header>
      {error && !data && <FailureNotice error={error} onRetry={() => void refetch()} />}
      {!error && !data && <LanesSkeleton />}
      {data && lanes.length === 0 && (
        <Notice title="No lanes yet">
          <p>A lane appears with its first message.</p>
        </Notice>
      )}
      {lanes.length > 0 && (
        <>
          <LaneMatrix lanes={lanes} />
          <LaneTable lanes={lanes} sort={sort} />
        </>
      )}
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
    <section className="panel" aria-labelledby="matrix-title">
      <header className="panel-head">
        <h2 id="matrix-title">Messages by lane</h2>
        <p className="muted">Messages from the row’s network to the column’s</p>
      </header>
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
                  <NetworkMark name={networkName(dest)} seed={dest.chainSelector} />
                  <span className="matrix-dest">{networkName(dest)}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sources.map((source) => (
              <tr key={source.chainSelector}>
                <th scope="row">
                  <span className="network">
                    <NetworkMark name={networkName(source)} seed={source.chainSelector} />
                    <bdi className="network-name">{networkName(source)}</bdi>
                  </span>
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
    </section>
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

function LaneTable({ lanes, sort }: { readonly lanes: readonly Lane[]; readonly sort: LaneOrder }) {
  const { value } = laneOrders[sort];
  const sorted = [...lanes].sort((a, b) => value(b) - value(a));
  return (
    <section className="panel" aria-labelledby="lanes-title">
      <h2 id="lanes-title">How they do</h2>
      <table className="ledger">
        <thead>
          <tr>
            <th scope="col">Lane</th>
            {(Object.keys(laneOrders) as LaneOrder[]).map((order) => (
              <th
                key={order}
                scope="col"
                aria-sort={order === sort ? 'descending' : undefined}
                className={`column-${order}`}
              >
                <Link
                  to="/lane"
                  search={order === 'messages' ? {} : { sort: order }}
                  resetScroll={false}
                  replace
                >
                  {laneOrders[order].name}
                </Link>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((lane) => (
            <LaneRow key={laneKey(lane.sourceNetworkInfo, lane.destNetworkInfo)} lane={lane} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

const timeOr = (ms: number | null) => (ms === null ? <span className="muted">–</span> : duration(ms));

function LaneRow({ lane }: { readonly lane: Lane }) {
  const {
    sourceNetworkInfo: source,
    destNetworkInfo: dest,
    delivery,
    overdue,
    readyForManualExecution,
  } = lane;
  const missing = lane.onramps.some(({ completeness }) => !completeness.isComplete);
  return (
    <tr>
      <th scope="row">
        <Link to="/lane/$source/$dest" params={{ source: source.name, dest: dest.name }}>
          <LaneLabel source={source} dest={dest} />
        </Link>
        {missing && <span className="tag tag-problem">numbers missing</span>}
      </th>
      <td className="column-messages" data-name="Messages">
        {grouped(lane.messages)}
      </td>
      <td className="column-inFlight" data-name="In flight">
        {lane.inFlight}
      </td>
      <td className="column-overdue" data-name="Overdue">
        {overdue === null ? (
          <span className="muted">–</span>
        ) : (
          <span className={overdue > 0 ? 'worth-a-look' : ''}>{overdue}</span>
        )}
      </td>
      <td className="column-action" data-name="Need action">
        <span className={readyForManualExecution > 0 ? 'worth-a-look' : ''}>{readyForManualExecution}</span>
      </td>
      <td className="column-p50" data-name="Half within">
        {timeOr(delivery.p50Ms)}
      </td>
      <td className="column-p90" data-name="90 % within">
        {timeOr(delivery.p90Ms)}
      </td>
      <td className="column-p99" data-name="99 % within">
        {timeOr(delivery.p99Ms)}
      </td>
      <td className="column-last" data-name="Last sent">
        <Ago at={lane.lastSentAt} />
      </td>
    </tr>
  );
}

const skeletons = Array.from({ length: 8 }, (_, index) => index);

function LanesSkeleton() {
  return (
    <section className="panel" aria-busy="true">
      <div className="skeletons">
        {skeletons.map((skeleton) => (
          <Skeleton key={skeleton} width="100%" />
        ))}
      </div>
    </section>
  );
}
