/** What is learned of an endpoint's longest range. */
import { describe, expect, test } from 'vitest';
import { createRangeLimits, type RangeLimits } from '../../../src/ingest/evm/rpc/range-limits.ts';

const QUICK_MS = 10;

/** Reads one piece as the history reader does; the lengths that were asked for, the last of them accepted. */
function read(limits: RangeLimits, accepts: (blocks: number) => boolean, stated?: number): readonly number[] {
  const asked: number[] = [];
  for (let longest = Number.POSITIVE_INFINITY; ; ) {
    const blocks = Math.min(longest, limits.nextBlocks);
    asked.push(blocks);
    limits.begin(blocks);
    if (accepts(blocks)) {
      limits.accept(blocks, QUICK_MS);
      return asked;
    }
    if (blocks === 1) {
      limits.abandon(blocks);
      return asked;
    }
    longest = limits.reject(blocks, stated);
  }
}

const readMany = (
  limits: RangeLimits,
  count: number,
  accepts: (blocks: number) => boolean,
  stated?: number,
) => Array.from({ length: count }, () => read(limits, accepts, stated)).flat();

describe('the range of an endpoint', () => {
  test('grows to what is configured', () => {
    expect(readMany(createRangeLimits(10_000), 5, () => true)).toEqual([2_000, 4_000, 8_000, 10_000, 10_000]);
  });

  test('settles at the limit that the endpoint states, at once', () => {
    const asked = readMany(createRangeLimits(10_000), 100, (blocks) => blocks <= 300, 300);
    expect(asked.slice(0, 4)).toEqual([2_000, 300, 300, 300]);
    expect(asked.filter((blocks) => blocks > 300).length).toBeLessThan(6);
  });

  test('settles near a limit that the endpoint does not state, with few rejections', () => {
    const asked = readMany(createRangeLimits(10_000), 1_000, (blocks) => blocks <= 700);
    const rejected = asked.filter((blocks) => blocks > 700).length;
    expect(rejected).toBeLessThan(10);
    const total = asked.filter((blocks) => blocks <= 700).reduce((sum, blocks) => sum + blocks, 0);
    expect(total).toBeGreaterThan(1_000 * 350);
  });

  test('stays long where one block cannot be read', () => {
    const limits = createRangeLimits(10_000);
    readMany(limits, 10, () => true);
    read(limits, () => false);
    read(limits, () => false);
    read(limits, () => false);
    expect(limits.nextBlocks).toBe(10_000);
  });

  test('is found again after a first range with a block that cannot be read', () => {
    const limits = createRangeLimits(10_000);
    read(limits, () => false);
    readMany(limits, 60, () => true);
    expect(limits.nextBlocks).toBe(10_000);
  });

  test('shrinks where an endpoint accepts less than before', () => {
    const limits = createRangeLimits(10_000);
    readMany(limits, 10, () => true);
    const asked = readMany(limits, 100, (blocks) => blocks <= 500);
    expect(asked.filter((blocks) => blocks > 500).length).toBeLessThan(60);
    expect(read(limits, (blocks) => blocks <= 500).length).toBeLessThan(3);
  });

  test('is tried longer by one piece at a time', () => {
    const limits = createRangeLimits(10_000);
    limits.begin(limits.nextBlocks);
    expect(limits.nextBlocks).toBe(1_000);
    limits.abandon(2_000);
    expect(limits.nextBlocks).toBe(2_000);
  });
});
