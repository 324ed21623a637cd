/** Reads of statistics, of lanes and networks, and of how far indexers and mirrors are. */
import type { ExecutionTerms } from '../../domain/attempts.ts';
import type { Layout } from '../cluster/layout.ts';
import { statementForms } from '../cluster/statement-forms.ts';
import { type MirrorState, readMirrors } from '../ledger/mirror-ledger.ts';
import { createSingleFlight, type Reads } from '../reads/reads.ts';
import { type CountedLane, countUnconfirmed, readCountedLanes } from '../write/lane-counters.ts';
import {
  type FailedMessage,
  type FailureDay,
  type FailureDaysSelection,
  type LaneNetworks,
  readExecutionTerms,
  readFailedMessages,
  readFailureDays,
  readLaneNetworks,
} from './failed-messages.ts';
import {
  type DeliveryBounds,
  type DeliverySelection,
  type LaneEnds,
  type LaneIdentity,
  type LanePage,
  type LaneSelection,
  readLaneIdentity,
  readLanes,
  readRecentDeliveries,
  readStats,
  type Stats,
  type StatsSelection,
} from './lanes.ts';
import {
  type NetworkProgress,
  type NetworkTraffic,
  readNetworkProgress,
  readNetworkTraffic,
} from './network-progress.ts';
import { readStoreMetrics, type StoreMetrics } from './store-metrics.ts';
import { readTokens, type TokenPage, type TokenSelection } from './tokens.ts';

export interface StatisticsReads {
  lanes(selection: LaneSelection): Promise<LanePage>;
  /** What contracts have counted of each lane, with what the records have. */
  countedLanes(ends: LaneEnds): Promise<readonly CountedLane[]>;
  /** Messages of indexed networks that no chain has confirmed; null where none is indexed. Reads all messages. */
  countUnconfirmed(ends: LaneEnds): Promise<number | null>;
  /** The description of a lane; undefined where it has no message. */
  laneIdentity(lane: Required<LaneEnds>): Promise<LaneIdentity | undefined>;
  recentDeliveries(lane: DeliverySelection, bounds: DeliveryBounds): Promise<readonly number[]>;
  /** Counts of all messages, of the lanes with the most, and by the day they were sent, from one snapshot. */
  stats(selection: StatsSelection): Promise<Stats>;
  /** The newest messages whose status is FAILED, with what their last attempt left behind. */
  failedMessages(limit: number): Promise<readonly FailedMessage[]>;
  /** By message id. */
  executionTerms(messageIds: readonly string[]): Promise<ReadonlyMap<string, ExecutionTerms>>;
  failureDays(selection: FailureDaysSelection): Promise<readonly FailureDay[]>;
  /** By the two selectors of a lane, in decimal and separated by a comma. */
  laneNetworks(): Promise<ReadonlyMap<string, LaneNetworks>>;
  networkTraffic(): Promise<readonly NetworkTraffic[]>;
  /** How far networks are indexed; empty where records come from imports only. */
  networkProgress(): Promise<readonly NetworkProgress[]>;
  /** Mirrors that follow a source. */
  mirrors(): Promise<readonly MirrorState[]>;
  tokens(selection: TokenSelection): Promise<TokenPage>;
  /** What the metrics show. */
  metrics(): Promise<StoreMetrics>;
}

export function createStatisticsReads(reads: Reads, layout: Layout): StatisticsReads {
  const forms = statementForms[layout];
  return {
    lanes: (selection) => readLanes(reads.readAs('lanes'), forms, selection),
    countedLanes: (ends) => readCountedLanes(reads.readAs('other'), ends),
    countUnconfirmed: (ends) => countUnconfirmed(reads.readAs('other'), ends),
    laneIdentity: (lane) => readLaneIdentity(reads.readAs('laneIdentity'), lane),
    recentDeliveries: (lane, bounds) => readRecentDeliveries(reads.readAs('deliveries'), forms, lane, bounds),
    stats: (selection) => readStats(reads.readAs('stats'), selection),
    failedMessages: (limit) => readFailedMessages(reads.readAs('failures'), limit),
    executionTerms: (messageIds) => readExecutionTerms(reads.readAs('executionTerms'), messageIds),
    failureDays: (selection) => readFailureDays(reads.readAs('failureDays'), selection),
    laneNetworks: () => readLaneNetworks(reads.readAs('laneNetworks')),
    // Single-flight: every tab of the explorer and every probe of /readyz asks for these again and again.
    networkTraffic: createSingleFlight(() => readNetworkTraffic(reads.readAs('networkTraffic'))),
    networkProgress: createSingleFlight(() => readNetworkProgress(reads.readAs('networkProgress'))),
    mirrors: createSingleFlight(() => readMirrors(reads.readAs('mirrors'))),
    tokens: (selection) => readTokens(reads.readAs('tokens'), selection),
    metrics: () => readStoreMetrics(reads.readOnPrimaryAs('figures')),
  };
}
