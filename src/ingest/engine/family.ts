/**
 * The seam between the indexing engine and a family of chains (EVM, Solana).
 *
 * The engine (this folder) owns what is the same for every chain: the lease on a network, the follow loop and the
 * history loop, retries with backoff, the ledger of failures, and the progress that others see. A family owns what only
 * it knows: its configuration, its endpoints, whom to trust, how to read, and what has to be asked beside reading.
 *
 * The engine counts in block numbers, which are slots on a chain that has slots. Numbers may be skipped. It knows
 * nothing of logs, topics, bloom filters or parent hashes, and a family that reads only final data never reports
 * abandoned blocks. A step of any family is one `IndexStep`, recorded through `Progress.record` in one transaction.
 */

import type { Notice } from '../../base/notice.ts';
import type { Fact } from '../../domain/facts.ts';
import type { DestinationCalls } from '../../domain/manual-execution/diagnosis.ts';
import type { Network } from '../../domain/networks/networks.ts';
import type {
  Anchor,
  BlockId,
  BlockRange,
  IndexState,
  IndexStep,
  RegisteredContract,
  UnreadableLog,
} from '../../store/ledger/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import type { EndpointTiming } from './json-rpc/endpoint.ts';
import type { EndpointHealth } from './json-rpc/endpoint-pool.ts';
import type { Progress } from './progress.ts';
import type { WorkerTiming } from './timing.ts';

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
  readonly notice: Notice;
}

export interface ConnectOptions {
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly progress: Progress;
  readonly timing: WorkerTiming;
  readonly endpointTiming?: Partial<EndpointTiming>;
  readonly userAgent: string;
  readonly signal: AbortSignal;
  readonly notice: Notice;
}

/** One network through its endpoints. Failures of an endpoint are thrown as a NodeError; the engine tries again. */
export interface NetworkReader {
  /** Takes in the trusted contracts (or programs) that are stored. Called once, first. */
  load(state: IndexState): void;
  /** Where the chain stands, and whom the configuration trusts beyond what is stored. */
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
   * how far it came. With `whole` it reads all of it, or throws a RangeTooLargeError where the range has to be split. Of the
   * contracts that the range names, it has read what they said in it, unless `contracts` names those to read.
   */
  readHistory(range: BlockRange, extent: 'part' | 'whole'): Promise<HistoryReading>;
  /** What no event tells and has to be asked or computed, such as when manual execution opens. */
  readonly tasks: BackgroundTasks;
  health(): readonly EndpointHealth[];
  close(): void;
}

export interface NetworkStart {
  /** The newest final block. */
  readonly final: BlockId;
  /** The first block of the configured history; undefined where it begins with the routers. */
  readonly start: number | undefined;
  /** The block that the first router came with; undefined where that cannot be found out, or was not asked for. */
  readonly deployed: number | undefined;
  /** Routers of the configuration that were not known before: their whole history is pending. */
  readonly newRouters: readonly string[];
  /** The new routers, and the contracts that they name at present. */
  readonly contracts: readonly RegisteredContract[];
  /** Contracts that were named and are not believed, in words. */
  readonly rejected: readonly string[];
  /** Trusted contracts whose events say more to this version than to the one that has read them: all are read again. */
  readonly readAgain: readonly string[];
}

/** What some blocks said. */
export interface Reading {
  readonly facts: readonly Fact[];
  /** Contracts that were named in these blocks and were not known before. */
  readonly contracts: readonly RegisteredContract[];
  readonly unreadable: readonly UnreadableLog[];
  /** How many events came from contracts that no trusted contract named. */
  readonly untrusted: number;
  /** The earliest block with an event of a router. */
  readonly routerBlock: number | undefined;
  /** Contracts that were named and are not believed, in words. */
  readonly rejected: readonly string[];
  /** Transactions from which a family that reads lists can continue them. */
  readonly anchors?: readonly Anchor[];
}

export interface HistoryReading extends Reading {
  /** The lowest block that was read. */
  readonly from: number;
  /** Whether all of its blocks were final when they were read. */
  readonly isFinal: boolean;
  /** Blocks that are not final and in which something was found: they are held, so that a fork takes it back. */
  readonly blocks: readonly BlockId[];
  /** Blocks whose events one endpoint alone has shown, and why: they are read again until a second one can be asked. */
  readonly unconfirmed?: readonly { readonly number: number; readonly reason: string }[];
  /** Hashes of blocks whose events are all in this reading, as two endpoints agree: other events are retracted. */
  readonly replaced?: readonly string[];
  /** How many events it holds in memory. */
  readonly items: number;
}

/** The part of a reading that is recorded as it is. */
export function stepOf({ facts, contracts, unreadable, untrusted, anchors = [] }: Reading): IndexStep {
  return { facts, contracts, unreadable, untrusted, anchors };
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
