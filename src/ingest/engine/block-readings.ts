/** What blocks said: the result of reading them, and the step that records it. */
import type { LogLineLevel } from '../../base/log.ts';
import type { Fact } from '../../domain/facts.ts';
import type {
  Anchor,
  BlockId,
  BlockRange,
  IndexStep,
  RegisteredContract,
  UnreadableLog,
} from '../../store/ledger/index-ledger.ts';
import { historyRange, type Span } from './pending-ranges.ts';
import type { Progress, ReadMark, Step } from './progress.ts';

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

export interface ReadPiece extends Span {
  readonly reading: HistoryReading;
  /** Of the moment before it was read. */
  readonly mark: ReadMark;
}

/** Blocks were abandoned while these were being read: they are read again. */
export class StaleReadingError extends Error {
  override readonly name = 'StaleReadingError';
}

/**
 * The step that records pieces of one range, from the highest down. Of these only the last may name contracts: what the
 * others were read without would be missed.
 *
 * @param startsWithRouters whether history begins with the routers, not at a configured block or time
 */
export function historyStep(
  range: BlockRange,
  pieces: readonly ReadPiece[],
  progress: Progress,
  startsWithRouters: boolean,
): Step {
  const { head, recorder, registry } = progress;
  const { startBlock, final, tip } = head;
  if (pieces.some(({ mark, reading }) => head.isStale(mark, reading.isFinal)))
    throw new StaleReadingError('blocks were abandoned meanwhile');
  const steps = pieces.map(({ reading }) => stepOf(reading));
  const span = { from: Math.min(...pieces.map(({ from }) => from)), to: pieces[0]?.to ?? range.to };
  const routerBlocks = pieces.flatMap(({ reading }) => reading.routerBlock ?? []);
  const routerBlock = routerBlocks.length > 0 ? Math.min(...routerBlocks) : undefined;
  // A router was added, or the beginning of its history could not be read until now.
  const isEarlier =
    startsWithRouters && routerBlock !== undefined && startBlock !== null && routerBlock < startBlock;
  return {
    facts: steps.flatMap(({ facts = [] }) => withFinality(facts, final?.number ?? -1, progress)),
    contracts: steps.flatMap(({ contracts = [] }) => contracts),
    unreadable: steps.flatMap(({ unreadable = [] }) => unreadable),
    orphaned: pieces.flatMap(({ reading: { replaced = [] } }) => replaced),
    failed: pieces.flatMap(({ reading }) => unconfirmedOf(reading, progress)),
    anchors: steps.flatMap(({ anchors = [] }) => anchors),
    untrusted: steps.reduce((sum, { untrusted = 0 }) => sum + untrusted, 0),
    blocks: pieces.flatMap(({ reading }) =>
      reading.blocks.filter(({ number }) => final !== undefined && number > final.number),
    ),
    ...(routerBlock !== undefined && { routerBlock }),
    ...(isEarlier && { startBlock: routerBlock }),
    read: { ...range, ...span },
    pending: isEarlier ? [historyRange(routerBlock, startBlock - 1)] : [],
    rescans: pieces.flatMap(({ reading, mark, from, to }) => {
      const own = reading.contracts.map(({ address }) => address);
      const unknown = own.filter((address) => !registry.contracts.has(address));
      const readTo = tip?.number ?? to;
      if (range.purpose !== 'history') return recorder.rescansFor(unknown, readTo);
      const meanwhile = recorder.rescansSince(mark, { from, to }).map(({ contracts, spans }) => ({
        contracts: contracts.filter((address) => !own.includes(address)),
        spans,
      }));
      return [
        ...recorder.rescansFor(unknown, readTo, { from, to }),
        ...meanwhile.filter(({ contracts }) => contracts.length > 0),
      ];
    }),
  };
}

/** Blocks that are recorded and have to be read again, with a second endpoint. */
export function unconfirmedOf({ unconfirmed = [] }: HistoryReading, { recorder }: Progress) {
  return unconfirmed.map(({ number, reason }) => recorder.failureOf(historyRange(number, number), reason));
}

/** Messages in blocks up to the final one are final when they are read. */
export function withFinality(facts: readonly Fact[], finalBlock: number, progress: Progress) {
  return facts.flatMap((fact) => {
    if (fact.kind !== 'Sent' || fact.seen.blockNumber > finalBlock) return [fact];
    const sentIn = { number: fact.seen.blockNumber, hash: fact.seen.blockHash };
    return [fact, progress.head.sourceFinalized(fact.message.messageId, sentIn)];
  });
}
