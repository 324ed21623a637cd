/**
 * How many blocks an endpoint accepts in one request for logs, learned from its answers: it grows while they are quick,
 * and shrinks when the endpoint refuses.
 */

export interface RangeLimits {
  /** The longest range that is worth asking for now. */
  readonly nextBlocks: number;
  /** Marks a range as asked for: only one that is longer than what was accepted is under way at a time. */
  begin(blocks: number): void;
  accept(blocks: number, elapsedMs: number): void;
  /** `acceptedBlocks`: what the endpoint says it would accept. */
  refuse(blocks: number, acceptedBlocks: number | undefined): void;
  /** It failed for another reason. */
  abandon(blocks: number): void;
}

const FIRST_BLOCKS = 1_000;
/** Ranges that are read before a longer one than was refused is tried again; doubled with every refusal. */
const RANGES_BEFORE_GROWTH = 16;
const MAX_RANGES_BEFORE_GROWTH = 4_096;
/** A longer range would take longer still. */
const SLOW_MS = 5_000;

export function createRangeLimits(maxBlocks: number): RangeLimits {
  let acceptedBlocks = Math.min(FIRST_BLOCKS, maxBlocks);
  let rangesBeforeGrowth = 0;
  let patience = RANGES_BEFORE_GROWTH;
  let isTryingLonger = false;
  return {
    get nextBlocks() {
      const mayGrow = rangesBeforeGrowth === 0 && !isTryingLonger;
      return Math.min(maxBlocks, mayGrow ? acceptedBlocks * 2 : acceptedBlocks);
    },
    begin(blocks) {
      if (blocks > acceptedBlocks) isTryingLonger = true;
    },
    accept(blocks, elapsedMs) {
      if (elapsedMs > SLOW_MS) rangesBeforeGrowth = Math.max(rangesBeforeGrowth, RANGES_BEFORE_GROWTH);
      if (blocks > acceptedBlocks) {
        acceptedBlocks = blocks;
        isTryingLonger = false;
        patience = Math.max(RANGES_BEFORE_GROWTH, patience >> 1);
      } else if (blocks === acceptedBlocks && rangesBeforeGrowth > 0) {
        // Only a range of full length shows that a longer one might be accepted.
        rangesBeforeGrowth--;
      }
    },
    refuse(blocks, accepted) {
      const isLonger = blocks > acceptedBlocks;
      if (isLonger) isTryingLonger = false;
      const shorter = Math.max(1, Math.min(maxBlocks, accepted ?? (isLonger ? acceptedBlocks : blocks >> 1)));
      // Others of this length may have been under way when the first of them was refused: they say nothing new.
      if (!isLonger && shorter >= acceptedBlocks) return;
      acceptedBlocks = shorter;
      rangesBeforeGrowth = patience;
      patience = Math.min(MAX_RANGES_BEFORE_GROWTH, patience * 2);
    },
    abandon(blocks) {
      if (blocks > acceptedBlocks) isTryingLonger = false;
    },
  };
}
