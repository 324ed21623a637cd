/** Reads of statistics, of lanes and networks, and of how far indexers and mirrors are. */
import type { Layout } from '../cluster/layout.ts';
import { statementForms } from '../cluster/statement-forms.ts';
import { type MirrorState, readMirrors } from '../ledger/mirror-ledger.ts';
import { createSingleFlight, type Read, type Reads } from '../reads/reads.ts';
import {
  readExecutionTerms,
  readFailedMessages,
  readFailureDays,
  readLaneNetworks,
} from './failed-messages.ts';
import {
  countsOf,
  countUnconfirmed,
  readCountedLanes,
  readLaneIdentity,
  readLanes,
  readRecentDeliveries,
  readStats,
  type StatusCounts,
} from './lanes.ts';
import { type NetworkProgress, readNetworkProgress, readNetworkTraffic } from './network-progress.ts';
import { readTokens } from './tokens.ts';

export function createStatisticsReads(reads: Reads, layout: Layout) {
  const forms = statementForms[layout];
  const read =
    <Args extends readonly unknown[], T>(label: string, query: (read: Read, ...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> =>
      query(reads.readAs(label), ...args);
  return {
    lanes: read('lanes', readLanes.bind(null, forms)),
    countedLanes: read('other', readCountedLanes),
    countUnconfirmed: read('other', countUnconfirmed),
    laneIdentity: read('laneIdentity', readLaneIdentity),
    recentDeliveries: read('deliveries', readRecentDeliveries.bind(null, forms)),
    stats: read('stats', readStats),
    failedMessages: read('failures', readFailedMessages),
    executionTerms: read('executionTerms', readExecutionTerms),
    failureDays: read('failureDays', readFailureDays),
    laneNetworks: read('laneNetworks', readLaneNetworks),
    // Single-flight: every tab of the explorer and every probe of /readyz asks for these again and again.
    networkTraffic: createSingleFlight(read('networkTraffic', readNetworkTraffic)),
    networkProgress: createSingleFlight(read('networkProgress', readNetworkProgress)),
    mirrors: createSingleFlight(read('mirrors', readMirrors)),
    tokens: read('tokens', readTokens),
    /** What the metrics show. */
    metrics: () => readStoreMetrics(reads.readOnPrimaryAs('figures')),
  };
}

/** What an operator watches, from the statistics that every write keeps: nothing here counts messages. */
export interface StoreMetrics {
  /** Position of the latest change. */
  readonly position: number;
  readonly byStatus: StatusCounts;
  readonly inFlight: number;
  readonly readyForManualExecution: number;
  readonly lanes: number;
  /** Sequence numbers that are missing between the first and the last of their on-ramps. */
  readonly missingSequenceNumbers: number;
  readonly onrampsWithHoles: number;
  readonly networks: readonly NetworkProgress[];
  readonly mirrors: readonly MirrorState[];
}

async function readStoreMetrics(read: Read): Promise<StoreMetrics> {
  const totals = await read(
    `select status, ready, sum(messages)::bigint as messages from lane_total group by 1, 2`,
    [],
  );
  const [rest] = await read(
    `with onramp as (
       select runs, (select to_sequence from lane_run r
                     where (r.source_selector, r.dest_selector, r.onramp) = (o.source_selector, o.dest_selector, o.onramp)
                     order by from_sequence desc limit 1)
                  - (select from_sequence from lane_run r
                     where (r.source_selector, r.dest_selector, r.onramp) = (o.source_selector, o.dest_selector, o.onramp)
                     order by from_sequence limit 1) + 1 - present as missing
       from lane_onramp o)
     select (select position from store)::text as position,
            (select count(*) from (select distinct source_selector, dest_selector from lane_onramp) l)::int as lanes,
            coalesce(sum(missing), 0)::text as missing,
            (count(*) filter (where runs > 1))::int as holed
     from onramp`,
    [],
  );
  const networks = await readNetworkProgress(read);
  const mirrors = await readMirrors(read);
  const { byStatus, inFlight, readyForManualExecution } = countsOf(totals);
  return {
    position: Number(rest?.position ?? 0),
    byStatus,
    inFlight,
    readyForManualExecution,
    lanes: (rest?.lanes as number | undefined) ?? 0,
    missingSequenceNumbers: Number(rest?.missing ?? 0),
    onrampsWithHoles: (rest?.holed as number | undefined) ?? 0,
    networks,
    mirrors,
  };
}
