/**
 * The seam between the indexing engine (this folder), which owns what is the same for every chain, and a family of chains
 * (EVM, Solana): its configuration, its endpoints, which contracts to trust, how to read, and what to poll.
 *
 * The engine counts in block numbers, which are slots on a chain that has slots. Numbers may be skipped. A family that reads
 * only final data never reports abandoned blocks. A step of any family is one `IndexStep`, recorded in one transaction.
 */

import type { WriteLog } from '../../base/log.ts';
import type { DestinationCalls } from '../../domain/manual-execution/diagnosis.ts';
import type { Network } from '../../domain/networks/networks.ts';
import type {
  BlockId,
  BlockRange,
  IndexState,
  IndexStep,
  RegisteredContract,
} from '../../store/ledger/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import type { HistoryReading } from './block-readings.ts';
import type { EndpointTiming } from './json-rpc/endpoint.ts';
import type { EndpointHealth } from './json-rpc/endpoint-pool.ts';
import type { Progress, ProgressOptions } from './progress.ts';

/** A network to index, as lanescan.yaml declares it. A family adds settings of its own. */
export interface NetworkSource {
  readonly network: Network;
  /** JSON-RPC over HTTP, in order of preference. They may hold credentials: never shown. */
  readonly rpc: readonly URL[];
  /** Where to begin, `time` in milliseconds since 1970; null: as far back as the routers go. */
  readonly start: { readonly block: number } | { readonly time: number } | null;
  /** Of each endpoint. */
  readonly requestsPerSecond: number;
  /** Calls in one HTTP request, at most. */
  readonly batchSize: number;
  /** Milliseconds between looks at the head. */
  readonly pollEvery: number;
}

/** What a family does. `Source` is its configuration. */
export interface ChainFamily<Source extends NetworkSource> {
  /** Connects to a network, on behalf of the worker that holds its lease. */
  connect(source: Source, options: ConnectOptions): NetworkReader;
  /** Tries every endpoint with the requests that indexing makes. For `lanescan doctor`. */
  probe(source: Source, options: ProbeOptions): Promise<NetworkReport>;
  /** Opens the endpoints for simulated calls, where the family has them. */
  openCalls?(source: Source, options: DestinationCallsOptions): DestinationCalls;
}

export interface DestinationCallsOptions {
  readonly userAgent: string;
  readonly signal: AbortSignal;
  readonly writeLog: WriteLog;
}

export interface ConnectOptions {
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  /** The family creates the progress, with its contract registry. */
  readonly progress: ProgressOptions;
  readonly endpointTiming?: Partial<EndpointTiming>;
  readonly userAgent: string;
  readonly signal: AbortSignal;
}

/** One network through its endpoints. Failures of an endpoint are thrown as a NodeError; the engine tries again. */
export interface NetworkReader {
  readonly progress: Progress;
  /** Loads the stored trusted contracts (or programs). Called once, before anything else. */
  load(state: IndexState): void;
  /** The newest final block, and the contracts that the configuration trusts beyond what is stored. */
  readStart(): Promise<NetworkStart>;
  /** Reads what is new at the head and records it; true where there is more. */
  follow(): Promise<boolean>;
  /**
   * The upper part of a pending range that is to be read next, as one piece. The engine reads many pieces at once; a family
   * that can only go through a range page by page returns the whole of it.
   */
  nextPiece(pending: BlockRange): BlockRange;
  /**
   * Reads history, from the upper end of the range down. With `part` the family may stop early; the reading then says
   * how far it came. With `whole` it reads all of it, or throws a RangeTooLargeError where the range has to be split. Contracts
   * registered in the range are read in it too, unless `contracts` lists those to read.
   */
  readHistory(range: BlockRange, extent: 'part' | 'whole'): Promise<HistoryReading>;
  /** State that no event carries and that must be polled or derived, e.g. when manual execution becomes possible. */
  readonly tasks: BackgroundTasks;
  health(): readonly EndpointHealth[];
  close(): void;
}

export interface NetworkStart {
  readonly final: BlockId;
  /** The first block of the configured history; undefined where it begins with the routers. */
  readonly start: number | undefined;
  /** The block that the first router came with; undefined where that cannot be found out, or was not asked for. */
  readonly deployed: number | undefined;
  /** Routers of the configuration that were not known before: their whole history is pending. */
  readonly newRouters: readonly string[];
  /** The new routers, and the contracts that they name at present. */
  readonly contracts: readonly RegisteredContract[];
  /** Descriptions of registered contracts that were rejected as untrusted. */
  readonly rejected: readonly string[];
  /** Trusted contracts whose events say more to this version than to the one that has read them: all are read again. */
  readonly readAgain: readonly string[];
}

export interface BackgroundTasks {
  /** Does what is due; undefined where nothing is. */
  work(): Promise<IndexStep | undefined>;
  /** Whether the latest call has left something for the next one. */
  readonly isBehind: boolean;
}

export interface ProbeOptions {
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface NetworkReport {
  readonly endpoints: readonly EndpointReport[];
  /** What the endpoints say of the configured routers. */
  readonly routers: readonly ProbeFinding[];
}

export interface EndpointReport {
  readonly name: string;
  /** Null where it cannot be used at all; `findings` say why. */
  readonly head: { readonly number: number; readonly timestamp: number } | null;
  /** What it offers, each in a few words such as `batches of 50`. */
  readonly capabilities: readonly string[];
  readonly findings: readonly ProbeFinding[];
}

export interface ProbeFinding {
  readonly severity: 'ok' | 'warning' | 'error';
  readonly text: string;
  readonly remedy?: string;
}
