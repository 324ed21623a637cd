/** What the /v2 API answers, as far as the explorer reads it. The record itself is the domain's. */
import type { Status } from '../../../src/domain/lifecycle.ts';
import type { Message, NetworkInfo } from '../../../src/domain/message.ts';

export interface MessagePage {
  readonly data: readonly Message[];
  readonly pagination: {
    readonly limit: number;
    readonly hasNextPage: boolean;
    readonly cursor: string | null;
  };
}

export interface Stage {
  readonly status: Status;
  readonly at: string | null;
  readonly network: string | null;
  readonly networkName: string | null;
  readonly blockNumber: number | null;
  readonly transactionHash: string | null;
  readonly dwellMs: number | null;
}

export interface Change {
  readonly position: string;
  readonly change: 'created' | 'updated' | 'removed';
  readonly status: Status;
  readonly previousStatus: Status | null;
  readonly reorg: boolean;
  readonly recordedAt: string;
}

export interface MessageHistory {
  readonly messageId: string;
  readonly status: Status | null;
  readonly stages: readonly Stage[];
  readonly changes: readonly Change[];
}

/** An event of the stream. */
export interface LiveChange {
  readonly change: Change['change'];
  readonly status: Status;
  readonly message: Message;
}

export type StatusCounts = Readonly<Record<Status, number>>;

export interface MessageCounts {
  readonly messages: number;
  readonly byStatus: StatusCounts;
  readonly inFlight: number;
  readonly readyForManualExecution: number;
}

export interface LaneEnds {
  readonly sourceNetworkInfo: NetworkInfo;
  readonly destNetworkInfo: NetworkInfo;
}

export interface Completeness {
  readonly first: string;
  readonly last: string;
  readonly present: string;
  readonly missing: string;
  readonly missingRangeCount: number;
  readonly missingRanges: readonly { readonly from: string; readonly to: string }[];
  readonly isComplete: boolean;
}

export interface Delivery {
  readonly windowDays: number;
  readonly messages: number;
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p99Ms: number | null;
}

export interface Lane extends LaneEnds, MessageCounts {
  readonly routerAddress: string | null;
  readonly version: string | null;
  readonly overdue: number | null;
  readonly lastSentAt: string;
  readonly delivery: Delivery;
  readonly onramps: readonly {
    readonly onramp: string;
    readonly version: string | null;
    readonly completeness: Completeness;
  }[];
}

export interface LaneList {
  readonly data: readonly Lane[];
  readonly total: number;
}

export interface Indexing {
  readonly headBlock: number | null;
  readonly finalizedBlock: number | null;
  readonly indexedBlock: number | null;
  /** Blocks of the history that are still to be read. */
  readonly owedBlocks: number;
  /** Ranges that could not be read and are tried again. */
  readonly failedRanges: number;
  readonly failedBlocks: number;
  readonly oldestFailureAt: string | null;
  /** Logs of genuine contracts that could not be understood. */
  readonly unreadableLogs: number;
  readonly lagBlocks: number | null;
  readonly lagSeconds: number | null;
  /** When an indexer was last alive. */
  readonly lastSeenAt: string;
  readonly health: 'ok' | 'lagging' | 'stale' | 'failing' | 'stopped';
  readonly problem: string | null;
}

export interface NetworkEntry extends NetworkInfo {
  readonly sent: number;
  readonly received: number;
  readonly indexing: Indexing | null;
}

export interface MirrorEntry {
  readonly health: 'ok' | 'behind' | 'stopped';
  readonly lastSeenAt: string;
}

export interface NetworkList {
  readonly simulated: boolean;
  /** When the latest change was recorded. */
  readonly lastChangeAt: string | null;
  readonly mirrors: readonly MirrorEntry[];
  readonly data: readonly NetworkEntry[];
}

export interface Stats {
  readonly simulated: boolean;
  readonly totals: MessageCounts;
  readonly days: readonly {
    readonly day: string;
    readonly messages: number;
    readonly byStatus: StatusCounts;
  }[];
  readonly topLanes: readonly (LaneEnds & MessageCounts)[];
}

export interface Readiness {
  readonly simulated: boolean;
}
