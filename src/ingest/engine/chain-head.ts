/** Where a network stands: the newest block, the blocks that may still be abandoned, and where its history begins. */
import type { Observation, SourceFinalized } from '../../domain/facts.ts';
import type { BlockId, HeadStats, IndexState, IndexStep } from '../../store/ledger/index-ledger.ts';
import { MAX_AHEAD_MS } from './timing.ts';

export type ChainHead = ReturnType<typeof createChainHead>;

/** @param network selector */
export function createChainHead(network: string) {
  let stats: HeadStats | null = null;
  let latestAt = Date.now() + MAX_AHEAD_MS;
  let held: readonly BlockId[] = [];
  let startBlock: number | null = null;
  /** Change whenever blocks, or blocks that were final, are abandoned. */
  let forks = 0;
  let finalForks = 0;
  const mark = () => ({ forks, finalForks });

  /** An observation that is not an event of the chain: it depends on a block, and was made at the head's time. */
  const observedAt = (block: BlockId): Observation => ({
    network,
    blockNumber: block.number,
    blockHash: block.hash,
    transactionHash: null,
    logIndex: null,
    at: new Date(stats?.headAt ?? 0).toISOString(),
  });

  return {
    /** Of the newest block; null until the chain was asked. */
    get stats() {
      return stats;
    },
    /** No block that was read has a later time, in milliseconds since 1970. */
    get latestAt() {
      return latestAt;
    },
    /**
     * Blocks that may be abandoned, by height, above the newest that is final. The newest blocks are all there; further
     * down, where history is read above the final block, only those in which something was found. Empty where nothing has
     * been read.
     */
    get held() {
      return held;
    },
    get final() {
      return held[0];
    },
    get tip() {
      return held.at(-1);
    },
    /** The first block of the history; null until it is known. */
    get startBlock() {
      return startBlock;
    },
    load({ blocks, startBlock: stored, head }: IndexState): void {
      held = blocks;
      startBlock = stored;
      // What was read after the head was published is not known to be earlier.
      if (head && head.number >= (held.at(-1)?.number ?? 0)) latestAt = head.at;
    },
    set(newStats: HeadStats): void {
      stats = newStats;
      latestAt = newStats.headAt;
    },
    /** Repeats in memory what the store has recorded. */
    apply({ orphaned = [], blocks = [], forgetBelow = 0, startBlock: newStart }: IndexStep): void {
      const gone = new Set(orphaned);
      if (gone.size > 0) forks++;
      if (held[0] && gone.has(held[0].hash)) finalForks++;
      const stays = new Map(held.filter(({ hash }) => !gone.has(hash)).map((block) => [block.number, block]));
      for (const { number, hash } of blocks) stays.set(number, { number, hash });
      held = [...stays.values()]
        .filter(({ number }) => number >= forgetBelow)
        .sort((a, b) => a.number - b.number);
      startBlock = newStart ?? startBlock;
    },
    /** A moment before blocks are read: blocks abandoned since then decide whether the reading holds. */
    mark,
    /** Whether blocks that were read since the mark may have been abandoned meanwhile. */
    isStale: (since: ReturnType<typeof mark>, isFinal: boolean) =>
      since.finalForks !== finalForks || (!isFinal && since.forks !== forks),
    /** Finality depends on the block of the send: it is taken back together with it. */
    sourceFinalized: (messageId: string, sentIn: BlockId): SourceFinalized => ({
      kind: 'SourceFinalized',
      messageId,
      seen: observedAt(sentIn),
    }),
    observedAt,
  };
}
