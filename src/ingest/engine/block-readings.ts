/** What blocks said: the result of reading them, before it is recorded. */
import type { LogLineLevel } from '../../base/log.ts';
import type { Fact } from '../../domain/facts.ts';
import type {
  Anchor,
  BlockId,
  IndexStep,
  RegisteredContract,
  UnreadableLog,
} from '../../store/ledger/index-ledger.ts';

export interface Reading {
  readonly facts: readonly Fact[];
  /** Contracts registered in these blocks that were not known before. */
  readonly contracts: readonly RegisteredContract[];
  readonly unreadable: readonly UnreadableLog[];
  /** How many events came from contracts that no trusted contract registered. */
  readonly untrusted: number;
  /** The earliest block with an event of a router. */
  readonly routerBlock: number | undefined;
  /** Descriptions of registered contracts that were rejected as untrusted. */
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
  /** Blocks whose events only one endpoint has shown, and why: they are read again until a second one can be asked. */
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

/** Logs contracts that a reading does not trust, and events that it could not decode. */
export function logProblemsOf(
  { rejected, unreadable = [] }: Pick<Reading, 'rejected'> & Partial<Reading>,
  log: (line: string, level?: LogLineLevel) => void,
): void {
  for (const contract of rejected) log(`${contract}; it is not trusted`, 'warn');
  const [first, ...more] = unreadable;
  if (!first) return;
  const { blockNumber, logIndex, reason } = first;
  const others = more.length > 0 ? ` (and ${more.length} more)` : '';
  log(`Log ${logIndex} of block ${blockNumber} cannot be decoded and is kept: ${reason}${others}`, 'warn');
}
