/** Ranges that are pending: no block is lost when they are put together, and none is read twice for one contract. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mergePending, without } from '../../../src/ingest/engine/pending-ranges.ts';
import type { BlockRange, PendingRange } from '../../../src/store/ledger/index-ledger.ts';

const span = fc
  .tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 12 }))
  .map(([from, length]) => ({ from, to: from + length }));
const contractRange = fc
  .tuple(span, fc.subarray(['a', 'b', 'c', 'd'], { minLength: 1 }))
  .map(([{ from, to }, contracts]): BlockRange => ({ from, to, purpose: 'contracts', contracts }));

const blocksOf = ({ from, to }: { from: number; to: number }) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
/** Every block with every contract that it is to be read for. */
const pairsOf = (ranges: readonly BlockRange[]) =>
  ranges.flatMap((range) =>
    blocksOf(range).flatMap((block) => range.contracts?.map((name) => `${block} ${name}`)),
  );

describe('a span without others', () => {
  test('has exactly the blocks that none of them has', () => {
    fc.assert(
      fc.property(span, fc.array(span, { maxLength: 6 }), (whole, others) => {
        const taken = new Set(others.flatMap(blocksOf));
        const left = blocksOf(whole).filter((block) => !taken.has(block));
        expect(
          without(whole, others)
            .flatMap(blocksOf)
            .sort((a, b) => a - b),
        ).toEqual(left);
      }),
    );
  });

  test('that is empty stays empty', () => {
    expect(without({ from: 5, to: 4 }, [])).toEqual([]);
  });
});

describe('ranges that are pending for single contracts', () => {
  test('are put together so that every block is read once, for all contracts that want it', () => {
    fc.assert(
      fc.property(
        fc.array(contractRange, { maxLength: 6 }),
        fc.array(contractRange, { minLength: 1, maxLength: 4 }),
        (given, added) => {
          // As the store holds them: put together before.
          const backlog = mergePending([], given).pending.map(
            (range, index): PendingRange => ({ ...range, id: `${index}` }),
          );
          const { pending, replaced } = mergePending(backlog, added);
          const after = [...backlog.filter(({ id }) => !replaced.includes(id)), ...pending];
          expect(new Set(pairsOf(after))).toEqual(new Set(pairsOf([...backlog, ...added])));
          const blocks = after.flatMap(blocksOf);
          expect(new Set(blocks).size).toBe(blocks.length);
        },
      ),
    );
  });

  test('leave ranges of other purposes alone', () => {
    const history: PendingRange = { id: '1', from: 0, to: 99, purpose: 'history', contracts: null };
    const addition: BlockRange = { from: 10, to: 20, purpose: 'contracts', contracts: ['a'] };
    expect(mergePending([history], [addition])).toEqual({ pending: [addition], replaced: [] });
  });
});
