/** What reading history changes: the step that records pieces which follow each other downwards. */
import type { Fact } from '../../domain/facts.ts';
import type { BlockRange, NewFailure } from '../../store/ledger/index-ledger.ts';
import { type HistoryReading, stepOf } from './block-readings.ts';
import { historyRange, type Span } from './pending-ranges.ts';
import type { Progress } from './progress.ts';
import type { ReadMark, Step } from './recorder.ts';

/** A piece of a range, and what was read in it. */
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
      const isWhole = range.purpose === 'history';
      const covered = { from, to };
      const own = new Set(reading.contracts.map(({ address }) => address));
      const unknown = reading.contracts.filter(({ address }) => !registry.contracts.has(address));
      const readTo = tip?.number ?? to;
      return [
        ...recorder.rescansFor(
          unknown.map(({ address }) => address),
          readTo,
          isWhole ? covered : undefined,
        ),
        ...(isWhole
          ? recorder.rescansSince(mark, covered).map(({ contracts, spans }) => ({
              contracts: contracts.filter((address) => !own.has(address)),
              spans,
            }))
          : []
        ).filter(({ contracts }) => contracts.length > 0),
      ];
    }),
  };
}

/** Blocks that are recorded and have to be read again, with a second endpoint. */
export function unconfirmedOf(
  { unconfirmed = [] }: HistoryReading,
  progress: Progress,
): readonly NewFailure[] {
  return unconfirmed.map(({ number, reason }) =>
    progress.recorder.failureOf(historyRange(number, number), reason),
  );
}

/** Messages in blocks up to the final one are final when they are read. */
export function withFinality(
  facts: readonly Fact[],
  finalBlock: number,
  progress: Progress,
): readonly Fact[] {
  return facts.flatMap((fact) => {
    if (fact.kind !== 'Sent' || fact.seen.blockNumber > finalBlock) return [fact];
    const sentIn = { number: fact.seen.blockNumber, hash: fact.seen.blockHash };
    return [fact, progress.head.sourceFinalized(fact.message.messageId, sentIn)];
  });
}
