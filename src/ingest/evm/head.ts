/**
 * Where the chain goes on: from the blocks that were read to those that are new, across forks.
 *
 * The blocks that may still be abandoned are held by hash. Before anything new is read, the node's chain is compared
 * with them; where it has forked off, those above the fork are orphans, and reading goes on from the fork.
 */
import type { BlockId } from '../../store/ledger/index-ledger.ts';
import { NodeError } from '../engine/faults.ts';
import type { Block, ChainNode } from './rpc/chain.ts';

export interface HeadView {
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
export async function viewHead(
  node: ChainNode,
  held: readonly BlockId[],
  isNewer: (head: Block) => boolean,
): Promise<HeadView> {
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

export interface Fork {
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
export async function findFork(
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
export async function readHeaders(node: ChainNode, base: BlockId, count: number): Promise<readonly Block[]> {
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
