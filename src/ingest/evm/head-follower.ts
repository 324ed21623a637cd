/**
 * Reads new blocks of an EVM chain as they come, across forks, and reports when they have become final. Blocks that may
 * still be abandoned come from one endpoint; what is hard to take back needs a second one (`agreement.ts`).
 *
 * A block that cannot be read goes to the ledger of failures on its own, and a long gap goes to the history loop:
 * nothing holds up the head.
 */
import type { BlockId } from '../../store/ledger/index-ledger.ts';
import { logProblemsOf, stepOf } from '../engine/block-readings.ts';
import { NodeError, RangeTooLargeError, reasonOf } from '../engine/faults.ts';
import { historyRange } from '../engine/pending-ranges.ts';
import type { Progress, ReadMark } from '../engine/progress.ts';
import type { Agreement, Disagreement } from './agreement.ts';
import type { BlockReader, LogReading } from './reading.ts';
import type { Block, Chain, ChainNode } from './rpc/chain.ts';

const MAX_NEW_BLOCKS = 256;
/** Further behind than this, the head comes first and the gap goes to the history loop. */
const MAX_GAP = 4 * MAX_NEW_BLOCKS;
/** How often the next blocks are tried before they are taken one by one, and the one at fault is left out. */
const ATTEMPTS = 3;

/** What a look at the head has found. */
interface Found {
  readonly view: HeadView & { readonly base: BlockId };
  /** New ones, above the view's base. */
  readonly headers: readonly Block[];
  /** What these say; undefined where there are none, or they are left out. */
  readonly reading: LogReading | undefined;
  /** The head is too far away: reading goes on behind this block, and the gap is left to the history loop. */
  readonly landing: Block | undefined;
  /** The newest block that two endpoints call final; undefined where that is nothing new. */
  readonly settled: BlockId | undefined;
  readonly disagreement: Disagreement | undefined;
}

/** A chain without the final block that was recorded. */
interface Replacement extends Fork {
  readonly final: BlockId;
}

export function createHeadFollower(
  progress: Progress,
  chain: Chain,
  agreement: Agreement,
  reader: BlockReader,
) {
  const { selector, ledger, recorder, timing } = progress;
  let newBlocks = MAX_NEW_BLOCKS;
  /** How often in a row the next blocks could not be read although the node has shown them, and why. */
  let unread = { times: 0, reason: '' };

  /** The hash of the final block that a second endpoint has confirmed. */
  let confirmed = '';
  /** When a second endpoint is asked again for what is final, on performance.now()'s clock. At once on the way to the head. */
  let settleDueAt = 0;

  /** Blocks of a chain never go back in time: a lower head that is of a later time is not merely behind. */
  const isNewer = ({ number, timestamp }: Block): boolean =>
    number > (progress.head.tip?.number ?? 0) || timestamp * 1000 > progress.head.latestAt;

  /** Where to go on when the head is far away: near it, and not below what is final. */
  const landingOf = async (node: ChainNode, { head, final, base }: Found['view']) => {
    const number = Math.max(Math.min(final.number, head.number), head.number - MAX_NEW_BLOCKS);
    if (number - base.number <= MAX_GAP) return undefined;
    if (number === final.number) return final;
    const [block] = await node.blocks([number]);
    return block;
  };

  const land = async (node: ChainNode, view: Found['view'], landing: Block): Promise<Found> => {
    const { head, final, base } = view;
    const agreed = await agreement.on(node, landing, final, ({ common }) => common.number > base.number);
    if ('reason' in agreed) throw new NodeError(agreed.reason);
    const { common } = agreed;
    if (common.number <= base.number)
      throw new NodeError(
        `${node.name} shows block ${head.number}, and no other endpoint is beyond ${base.number}`,
      );
    const isLower = common.hash !== landing.hash;
    const [lower] = isLower ? await node.blocks([common.number]) : [];
    return {
      view: lower ? { ...view, head: lower } : view,
      headers: [],
      reading: undefined,
      landing: lower ?? landing,
      ...(await settle(node, final.number <= common.number ? final : common)),
    };
  };

  /** @param candidate a block that the node calls final and that has been read, or is about to be */
  const settle = async (node: ChainNode, candidate: BlockId) => {
    const nothing: Pick<Found, 'settled' | 'disagreement'> = { settled: undefined, disagreement: undefined };
    const { final: known } = progress.head;
    const isNew = known !== undefined && candidate.number > known.number;
    if (!known || (confirmed === known.hash && (!isNew || performance.now() < settleDueAt))) return nothing;
    const block = isNew ? candidate : known;
    const agreed = await agreement.on(
      node,
      block,
      block,
      ({ common, final }) => common.number >= known.number && (!isNew || final.number > known.number),
    );
    if ('reason' in agreed)
      return isNew || agreed.isContradicted ? { ...nothing, disagreement: agreed } : nothing;
    const { common, final, isAlone } = agreed;
    if (!isAlone && common.number >= known.number) {
      confirmed = final.number > known.number ? final.hash : known.hash;
      settleDueAt = performance.now() + timing.settleEveryMs;
    }
    return { ...nothing, settled: final };
  };

  const look = async (skip: boolean): Promise<Found | Replacement> => {
    let isReading = false;
    try {
      return await chain.run(async (node) => {
        isReading = false;
        const seen = await viewHead(node, progress.head.held, isNewer);
        const { base } = seen;
        if (!base) return await findReplacement(node, seen);
        const view = { ...seen, base };
        const landing = await landingOf(node, view);
        if (landing) return await land(node, view, landing);
        const count = Math.min(view.head.number - base.number, skip ? 1 : newBlocks);
        const headers = count > 0 ? await readHeaders(node, base, count) : [];
        rejectOtherFinal(node, view.final, headers);
        const [first, last] = [headers[0], headers.at(-1)];
        const tip = last ?? base;
        const settlement = await settle(node, view.final.number <= tip.number ? view.final : tip);
        isReading = true;
        const reading =
          first && last && !skip
            ? await reader.read(node, {
                from: first.number,
                to: last.number,
                contracts: null,
                headers,
                mayBeAbandoned: true,
                orphaned: view.orphans.map(({ hash }) => hash),
              })
            : undefined;
        return { view, headers, reading, landing, ...settlement };
      });
    } catch (error) {
      if (isReading && !(error instanceof RangeTooLargeError))
        unread = { times: unread.times + 1, reason: reasonOf(error) };
      throw error;
    }
  };

  const recordFound = async (found: Found, mark: ReadMark, skip: boolean): Promise<void> => {
    const { view, headers, reading, landing, settled } = found;
    const { base } = view;
    const orphaned = view.orphans.map(({ hash }) => hash);
    if (orphaned.length > 0) progress.log(`${orphaned.length} blocks above ${base.number} were abandoned`);
    const [skipped] = skip ? headers : [];
    if (skipped) progress.log(`Block ${skipped.number} cannot be read yet: ${unread.reason}`, 'warn');
    if (headers.length === 0 && orphaned.length === 0 && !landing) return;
    const [first, last] = [headers[0], headers.at(-1)];
    const isFinalNew =
      settled !== undefined && settled.number > base.number && settled.number !== landing?.number;
    await recorder.record(() => ({
      ...(reading && stepOf(reading)),
      orphaned,
      blocks: landing ? [...(isFinalNew ? [settled] : []), landing] : headers,
      pending: landing ? [historyRange(base.number + 1, landing.number)] : [],
      rescans: [
        ...recorder.rescansFor(reading?.contracts.map(({ address }) => address) ?? [], base.number),
        ...(first && last ? recorder.rescansSince(mark, { from: first.number, to: last.number }) : []),
      ],
      failed: skipped
        ? [recorder.failureOf(historyRange(skipped.number, skipped.number), unread.reason)]
        : [],
    }));
    if (reading) logProblemsOf(reading, progress.log);
  };

  /** Reports messages in blocks that have become final, and forgets those blocks. `final` is one that was read. */
  const finalize = async (final: BlockId): Promise<void> => {
    const { held, final: anchor } = progress.head;
    if (!anchor || final.number <= anchor.number) return;
    const settled = held.filter(({ number }) => number > anchor.number && number <= final.number);
    const numbers = new Map(settled.map(({ hash, number }) => [hash, number]));
    await recorder.record(async () => {
      // Asked when nothing else is recorded: a message of these blocks that is read late, because its range had
      // failed, is either among these or final when it is read.
      const sent = await ledger.sentIn(selector, [...numbers.keys()]);
      const facts = sent.map(({ messageId, blockHash }) =>
        progress.head.sourceFinalized(`0x${messageId}`, {
          number: numbers.get(blockHash) ?? 0,
          hash: blockHash,
        }),
      );
      return { facts, blocks: [{ number: final.number, hash: final.hash }], forgetBelow: final.number };
    });
  };

  /**
   * Blocks that were final are gone. The fork is below the lowest block with facts that the node's chain does not have,
   * and above the highest that it has: everything above that one is read again, for a message may have moved down.
   */
  const findReplacement = async (node: ChainNode, view: HeadView): Promise<Replacement> => {
    const [lost] = progress.head.held;
    if (!lost) throw new Error('A chain can only replace one that was read');
    const final = await agreement.onOtherChain(node, view.final, lost, isNewer);
    const blocksBelow = (below: number, limit: number) => ledger.factBlocks(selector, below, limit);
    return { final, ...(await findFork(node, final, blocksBelow)) };
  };

  const recordReplacement = async ({ final, fork, orphaned }: Replacement): Promise<void> => {
    const from = fork === undefined ? (progress.head.startBlock ?? 0) : fork.number + 1;
    await recorder.record(() => ({
      orphaned: [...new Set([...progress.head.held.map(({ hash }) => hash), ...orphaned])],
      blocks: [final],
      endsAt: final.number,
      pending: from <= final.number ? [historyRange(from, final.number)] : [],
    }));
    progress.log(
      `The chain abandoned blocks that it had called final; everything from block ${from} on is read again. ` +
        'Consider a greater depth for `finality`.',
      'error',
    );
  };

  /** In milliseconds, of a tip that did not move: as before, or the head's where it is the head. */
  const timeOf = (indexedBlock: number, headTime: number): number => {
    const { stats } = progress.head;
    return stats?.indexedBlock === indexedBlock ? stats.indexedAt : headTime * 1000;
  };

  /** Reads what is new; true where there is more. `skip`: the next block is left to the ledger of failures. */
  const followOnce = async (skip: boolean): Promise<boolean> => {
    const mark = recorder.mark();
    const found = await look(skip);
    if ('fork' in found) {
      await recordReplacement(found);
      return true;
    }
    const { view, settled, disagreement } = found;
    const { head, base } = view;
    await recordFound(found, mark, skip);
    const newTip = found.landing ?? found.headers.at(-1);
    const indexedBlock = newTip?.number ?? base.number;
    progress.head.set({
      headBlock: head.number,
      headAt: head.timestamp * 1000,
      finalizedBlock: Math.max(settled?.number ?? 0, progress.head.final?.number ?? 0),
      indexedBlock,
      indexedAt: newTip ? newTip.timestamp * 1000 : timeOf(indexedBlock, head.timestamp),
    });
    if (settled) await finalize(settled);
    // What is not final yet was read all the same.
    if (disagreement) {
      const { reason, isContradicted } = disagreement;
      throw new NodeError(reason, isContradicted ? 'bad-answer' : 'unreachable');
    }
    const hasMore = indexedBlock < head.number;
    if (hasMore) settleDueAt = 0;
    return hasMore;
  };

  /** Reads what is new; true where there is more. After a few failures the block at fault is left out. */
  return async (): Promise<boolean> => {
    try {
      const hasMore = await followOnce(unread.times >= ATTEMPTS);
      unread = { times: 0, reason: '' };
      newBlocks = Math.min(MAX_NEW_BLOCKS, newBlocks * 2);
      return hasMore;
    } catch (error) {
      if (error instanceof RangeTooLargeError) {
        newBlocks = Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, newBlocks >> 1));
        if (newBlocks > 1) return true;
      }
      // One block at a time shows which of them cannot be read.
      if (unread.times >= ATTEMPTS - 1) newBlocks = 1;
      throw error;
    }
  };
}

// ---- Where the chain goes on: from the blocks that were read, which are held by hash, to those that are new, across forks

interface HeadView {
  readonly head: Block;
  readonly final: Block;
  /** The newest block that we have read and that the node's chain has too; undefined where it lacks even the final one. */
  readonly base: BlockId | undefined;
  /** Blocks that we have read and the node's chain has abandoned. */
  readonly orphans: readonly BlockId[];
}

const COMPARED_AT_ONCE = 32;
const FACT_BLOCKS_AT_ONCE = 100;

/**
 * Compares the node's chain with the blocks that are held (by height, at least one).
 *
 * A node whose head is below ours on the same chain is merely behind, which is its own fault.
 *
 * @param isNewer whether a head is newer than what was read, by its height or by its time
 */
async function viewHead(node: ChainNode, held: readonly BlockId[], isNewer: (head: Block) => boolean) {
  const tip = held.at(-1);
  if (!tip) throw new Error('A view needs blocks to compare with');
  const { head, final, block } = await node.tips(tip.number);
  const within = held.filter(({ number }) => number <= head.number);
  const highest = within.at(-1);
  const rejectBehind = (base: BlockId | undefined): void => {
    if (isNewer(head) || (base && (base !== highest || head.number >= tip.number))) return;
    const how = base
      ? `${tip.number - head.number} blocks behind what was read already`
      : highest
        ? 'behind what was read already, and on another branch'
        : 'far behind what was read already';
    throw new NodeError(`${node.name} is ${how}`, 'behind');
  };
  const goOnFrom = (base: BlockId): HeadView => {
    rejectOtherFinal(
      node,
      final,
      held.filter(({ number }) => number <= base.number),
    );
    return { head, final, base, orphans: held.filter(({ number }) => number > base.number) };
  };
  // As a rule there is no fork.
  if (tip.number <= head.number && block?.hash === tip.hash) return goOnFrom(tip);
  if (highest?.hash === head.hash) rejectBehind(highest);
  for (let end = within.length; end > 0; end -= COMPARED_AT_ONCE) {
    const some = within.slice(Math.max(0, end - COMPARED_AT_ONCE), end);
    const blocks = await node.blocks(some.map(({ number }) => number));
    const base = some.findLast(({ hash }, index) => blocks[index]?.hash === hash);
    if (base) {
      rejectBehind(base);
      return goOnFrom(base);
    }
  }
  rejectBehind(undefined);
  return { head, final, base: undefined, orphans: held };
}

/**
 * A node cannot call a block final that is not in its own chain. Several nodes behind one address can, when each answers a part
 * of the questions.
 *
 * @param chain blocks that the node has shown, or has in common with us
 */
export function rejectOtherFinal(node: ChainNode, final: Block, chain: readonly BlockId[]): void {
  const same = chain.find(({ number }) => number === final.number);
  if (same && same.hash !== final.hash) {
    throw new NodeError(`${node.name} calls a block final that is not in its own chain (${final.number})`);
  }
}

interface Fork {
  /** The highest block with facts that the node's chain has; undefined where it has none of them. */
  readonly fork: BlockId | undefined;
  /** Hashes of the blocks with facts that it does not have. */
  readonly orphaned: readonly string[];
}

/**
 * Where the node's chain leaves the one that was read, by the blocks in which facts were seen.
 *
 * @param final the newest final block of the node; what is above it is read again in any case
 * @param blocksBelow at most so many blocks with facts below a height, from the highest down
 */
async function findFork(
  node: ChainNode,
  final: BlockId,
  blocksBelow: (below: number, limit: number) => Promise<readonly BlockId[]>,
): Promise<Fork> {
  const orphaned: string[] = [];
  for (let below = Number.MAX_SAFE_INTEGER; ; ) {
    const seen = await blocksBelow(below, FACT_BLOCKS_AT_ONCE);
    const within = seen.filter(({ number }) => number <= final.number);
    const blocks = await node.blocks(within.map(({ number }) => number));
    const fork = within.find(({ hash }, index) => blocks[index]?.hash === hash);
    // Of one height there may be several.
    const gone = seen.filter((block) => block !== fork && block.number >= (fork?.number ?? 0));
    orphaned.push(...gone.map(({ hash }) => hash));
    const last = seen.at(-1);
    if (fork || !last || seen.length < FACT_BLOCKS_AT_ONCE) return { fork, orphaned };
    // Two blocks of one height may stand on either side of a page's end.
    below = last.number + 1;
  }
}

/** New headers above `base`, each the child of the one before. */
async function readHeaders(node: ChainNode, base: BlockId, count: number): Promise<readonly Block[]> {
  const numbers = Array.from({ length: count }, (_, index) => base.number + 1 + index);
  const headers = await node.blocks(numbers);
  requireChain(node, headers, base.hash);
  return headers;
}

/** Throws unless each header is the parent of the next. */
export function requireChain(node: ChainNode, headers: readonly Block[], hashBelow?: string): void {
  let parent = hashBelow;
  for (const { number, hash, parentHash } of headers) {
    if (parent !== undefined && parentHash !== parent) {
      throw new NodeError(`${node.name} shows block ${number}, which is not the child of the one below it`);
    }
    parent = hash;
  }
}
