import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { missingNumbers } from '../../src/domain/missing-numbers.ts';

const run = (from: number, to: number) => ({ from: String(from), to: String(to) });

describe('missing numbers', () => {
  test.each([
    ['nothing is there', [], true, '5', { count: 5n, lowest: 1n, highest: 5n, ranges: [run(1, 5)] }],
    [
      'the beginning is missing',
      [run(4, 5)],
      true,
      '5',
      { count: 3n, lowest: 1n, highest: 3n, ranges: [run(1, 3)] },
    ],
    [
      'the end is missing',
      [run(1, 3)],
      true,
      '5',
      { count: 2n, lowest: 4n, highest: 5n, ranges: [run(4, 5)] },
    ],
    [
      'the beginning, a gap and the end are missing',
      [run(2, 2), run(4, 4)],
      true,
      '6',
      { count: 4n, lowest: 1n, highest: 6n, ranges: [run(1, 1), run(3, 3), run(5, 6)] },
    ],
    ['all are there', [run(1, 5)], true, '5', undefined],
    ['more are there than were counted', [run(1, 9)], true, '5', undefined],
    ['nothing is expected before the start', [run(4, 5)], false, '5', undefined],
    [
      'the end is missing behind a start',
      [run(4, 4)],
      false,
      '5',
      { count: 1n, lowest: 5n, highest: 5n, ranges: [run(5, 5)] },
    ],
    ['nothing is known behind a start', [], false, '5', undefined],
    ['nothing was counted', [], true, '0', undefined],
  ])('%s', (_, runs, isWhole, lastNumber, missing) => {
    expect(missingNumbers(runs, { lastNumber, isWhole })).toEqual(missing);
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
