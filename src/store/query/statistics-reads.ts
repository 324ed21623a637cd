/** Reads of statistics, of lanes and networks, and of how far indexers and mirrors are. */
import type { Layout } from '../cluster/layout.ts';
import { statementForms } from '../cluster/statement-forms.ts';
import { readMirrors } from '../ledger/mirror-ledger.ts';
import { createSingleFlight, type Read, type Reads } from '../reads/reads.ts';
import {
  readExecutionTerms,
  readFailedMessages,
  readFailureDays,
  readLaneNetworks,
} from './failed-messages.ts';
import { countUnconfirmed, readCountedLanes } from './lane-counters.ts';
import { readLaneIdentity, readLanes, readRecentDeliveries, readStats } from './lanes.ts';
import { readNetworkProgress, readNetworkTraffic } from './network-progress.ts';
import { readStoreMetrics } from './store-metrics.ts';
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
