import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { missingNumbers } from '../../src/domain/missing-numbers.ts';

const run = (from: number, to: number) => ({ from: String(from), to: String(to) });

describe('missing numbers', () => {
  test.each([
    ['nothing is there', [], true, 5, [run(1, 5)]],
    ['the beginning is missing', [run(4, 5)], true, 5, [run(1, 3)]],
    ['the end is missing', [run(1, 3)], true, 5, [run(4, 5)]],
    ['both ends and a gap are missing', [run(2, 2), run(4, 4)], true, 6, [run(1, 1), run(3, 3), run(5, 6)]],
    ['all are there', [run(1, 5)], true, 5, []],
    ['more are there than were counted', [run(1, 9)], true, 5, []],
    ['nothing is expected before the start', [run(4, 5)], false, 5, []],
    ['the end is missing behind a start', [run(4, 4)], false, 5, [run(5, 5)]],
    ['nothing is known behind a start', [], false, 5, []],
    ['nothing was counted', [], true, 0, []],
  ])('%s', (_, runs, isWhole, last, ranges) => {
    const sizes = ranges.map(({ from, to }) => BigInt(to) - BigInt(from) + 1n);
    const [lowest, highest] = [BigInt(ranges[0]?.from ?? 0), BigInt(ranges.at(-1)?.to ?? 0)];
    const count = sizes.reduce((sum, size) => sum + size, 0n);
    const missing = ranges.length > 0 ? { count, lowest, highest, ranges } : undefined;
    expect(missingNumbers(runs, { lastNumber: String(last), isWhole })).toEqual(missing);
  });

  it('and those that are there make up all', () => {
    const sets = fc.uniqueArray(fc.integer({ min: 1, max: 40 }));
    fc.assert(
      fc.property(sets, fc.integer({ min: 0, max: 40 }), (numbers, last) => {
        const sorted = [...numbers].sort((a, b) => a - b);
        const found = missingNumbers(
          sorted.map((number) => run(number, number)),
          { lastNumber: String(last), isWhole: true },
        );
        const expected = Array.from({ length: last }, (_, i) => i + 1).filter((n) => !numbers.includes(n));
        expect(Number(found?.count ?? 0)).toBe(expected.length);
        expect(found?.lowest).toBe(expected[0] === undefined ? undefined : BigInt(expected[0]));
      }),
    );
  });
});
