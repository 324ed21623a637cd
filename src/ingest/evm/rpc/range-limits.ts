/**
 * How many blocks an endpoint accepts in one request for logs, learned from its answers: it grows while they are quick,
 * and shrinks when the endpoint rejects.
 *
 * An RPC error is not always about the length. A range that was accepted elsewhere is rejected where it has too many logs, or
 * a block that the endpoint cannot read: then only this range is shortened, unless it happens again and again.
 */

export type RangeLimits = ReturnType<typeof createRangeLimits>;

const FIRST_BLOCKS = 1_000;
/** Ranges that are read before a longer one than was rejected is tried again; doubled each time that is rejected too. */
const RANGES_BEFORE_GROWTH = 16;
const MAX_RANGES_BEFORE_GROWTH = 4_096;
/** So many ranges in a row that were rejected at a length that was once accepted: the limit has changed. */
const MAX_LOCAL_REJECTIONS = 4;
/** A longer range would take longer still. */
const SLOW_MS = 5_000;

export function createRangeLimits(maxBlocks: number) {
  let limitBlocks = Math.min(FIRST_BLOCKS, maxBlocks);
  /** The longest range that was accepted. */
  let provenBlocks = 0;
  let localRejections = 0;
  let rangesBeforeGrowth = 0;
  let patience = RANGES_BEFORE_GROWTH;
  let isTryingLonger = false;

  const shrinkTo = (blocks: number) => {
    limitBlocks = Math.min(limitBlocks, blocks);
    provenBlocks = Math.min(provenBlocks, blocks);
    rangesBeforeGrowth = RANGES_BEFORE_GROWTH;
    localRejections = 0;
  };

  return {
    /** The longest range that is worth asking for now. */
    get nextBlocks() {
      const mayGrow = rangesBeforeGrowth === 0 && !isTryingLonger;
      return Math.min(maxBlocks, mayGrow ? limitBlocks * 2 : limitBlocks);
    },
    /** Marks a range as asked for: only one that is longer than what was accepted is under way at a time. */
    begin(blocks: number): void {
      if (blocks > limitBlocks) isTryingLonger = true;
    },
    accept(blocks: number, elapsedMs: number): void {
      provenBlocks = Math.max(provenBlocks, blocks);
      if (elapsedMs > SLOW_MS) rangesBeforeGrowth = Math.max(rangesBeforeGrowth, RANGES_BEFORE_GROWTH);
      if (blocks > limitBlocks) {
        limitBlocks = blocks;
        isTryingLonger = false;
        patience = RANGES_BEFORE_GROWTH;
      } else if (blocks === limitBlocks) {
        // Only a range of full length shows that a longer one might be accepted.
        localRejections = 0;
        if (rangesBeforeGrowth > 0) rangesBeforeGrowth--;
      }
    },
    /**
     * Returns how many blocks to ask for instead.
     *
     * @param statedBlocks what the endpoint says it would accept
     */
    reject(blocks: number, statedBlocks: number | undefined): number {
      const shorter = Math.max(1, Math.min(statedBlocks ?? blocks >> 1, blocks - 1));
      if (blocks > limitBlocks) {
        isTryingLonger = false;
        limitBlocks = Math.max(limitBlocks, Math.min(statedBlocks ?? 0, shorter));
        rangesBeforeGrowth = patience;
        patience = Math.min(MAX_RANGES_BEFORE_GROWTH, patience * 2);
      }
      if (blocks > provenBlocks && shorter < limitBlocks) shrinkTo(Math.max(shorter, provenBlocks));
      else if (blocks === limitBlocks && ++localRejections >= MAX_LOCAL_REJECTIONS) shrinkTo(shorter);
      return shorter;
    },
    /** It failed for another reason. */
    abandon(blocks: number): void {
      if (blocks > limitBlocks) isTryingLonger = false;
    },
  };
}
