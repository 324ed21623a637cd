import { expect, test } from 'vitest';
import { describeStatus } from '../../src/cli/output/index-progress.ts';
import { network } from '../chain/faulty-node.ts';

const now = Date.parse('2026-01-01T00:00:00Z');

const progressAt = (indexedAt: number) =>
  describeStatus(
    {
      network,
      isOurs: true,
      isTaken: false,
      worker: {
        network,
        head: { headBlock: 1999, headAt: indexedAt, finalizedBlock: 1990, indexedBlock: 1999, indexedAt },
        startBlock: 0,
        owedBlocks: 500,
        isSearchingRouters: false,
        created: 1,
        updated: 0,
        removed: 0,
        failedRanges: 0,
        problem: null,
        isHistoryRead: false,
        isUpToDate: false,
        stuckBecause: null,
        tasksStartedAt: 0,
      },
    },
    now,
  );

test.each([
  ['12 s old', now - 12_345],
  ['0 s old', now + 900],
  ['7 min ahead of this clock', now + 7.5 * 60_000],
])('a network is told of in one line, its newest block %s', (words, indexedAt) => {
  expect(progressAt(indexedAt)).toBe(`75.0% · 500 blocks to go · 1 new message · block 1,999, ${words}`);
});
