/** What commands print: the table of messages, the progress of an import, and that of an index. */
import { describe, expect, test } from 'vitest';
import { describeStatus } from '../../src/cli/output/index-progress.ts';
import { createMessageTable } from '../../src/cli/output/message-table.ts';
import { createProgress } from '../../src/cli/output/progress-bar.ts';
import type { Message } from '../../src/domain/message.ts';
import { createNames, type NamedToken } from '../../src/domain/names/message-names.ts';
import { network } from '../chain/faulty-node.ts';
import { fuji, makeMessage, makeToken, sepolia } from '../fixtures.ts';

const messages = ['real', 'hostile'].map((name, number) =>
  makeMessage({
    number,
    tokenAmounts: [{ ...makeToken(sepolia, fuji, name), amount: '5000000', extraData: null }],
  }),
);
const [real = '', hostile = ''] = messages.map(({ tokenAmounts }) => tokenAmounts[0]?.sourceTokenAddress);
const named = (address: string, symbol: string): NamedToken => ({
  chainSelector: sepolia.chainSelector,
  address,
  symbol,
  name: null,
  decimals: 6,
  source: 'chain',
});
const names = createNames([named(real, 'USDC'), named(hostile, 'USDC')], []);

function rowsAt(width: number | null, page: readonly Message[] = messages, shown = names): readonly string[] {
  const table = createMessageTable({
    width,
    paint: (text) => text,
    now: Date.parse('2026-02-01T00:00:00Z'),
    isOpenEnded: false,
  });
  return table(page, shown).trimEnd().split('\n').slice(1);
}

describe('two tokens with the same symbol', () => {
  test('are told apart by their addresses, whole in a pipe', () => {
    const [first, second] = rowsAt(null);
    expect(first).toContain(`5 USDC ${real}`);
    expect(second).toContain(`5 USDC ${hostile}`);
  });

  test.each([60, 80, 100, 120, 160, 200])(
    'and on a terminal of %i columns, which no row exceeds',
    (width) => {
      for (const [index, row] of rowsAt(width).entries()) {
        const address = [real, hostile][index] ?? real;
        if (row.includes('USDC')) expect(row).toContain(`5 USDC ${address.slice(0, 6)}…${address.slice(-4)}`);
        expect([...row].length).toBeLessThanOrEqual(width);
      }
      if (width >= 120) expect(rowsAt(width)[0]).toContain('USDC');
    },
  );
});

test('a long symbol is cut off, its address is not', () => {
  const long = createNames([named(real, 'USDC'.repeat(20))], []);
  const [row] = rowsAt(200, messages.slice(0, 1), long);
  expect(row).toMatch(/5 USDC\w+… 0x\w{4}…\w{4} /);
});

function progressOf(total: number | null) {
  const lines: string[] = [];
  const clock = { ms: 0 };
  const progress = createProgress({ write: (text) => lines.push(text) > 0 }, 'Importing', total, {
    now: () => clock.ms,
  });
  const advance = (atMs: number, bytes: number, note = '') => {
    clock.ms = atMs;
    progress.advance(bytes);
    if (note) progress.note(note);
    return lines.at(-1);
  };
  return { advance, lines };
}

test('progress elsewhere than on a terminal is a line every five seconds, with the time left', () => {
  const { advance, lines } = progressOf(2_000_000);
  for (let second = 1; second <= 11; second++) advance(second * 1_000, 100_000, `${second} records`);
  expect(lines).toEqual([
    'Importing: 25% · 4 records · 0.1 MB/s · about 15 s left\n',
    'Importing: 50% · 9 records · 0.1 MB/s · about 10 s left\n',
  ]);
});

test('estimates nothing for a pipe, whose end is unknown, and at the end', () => {
  expect(progressOf(null).advance(10_000, 5_000_000)).toBe('Importing: 5.0 MB · 0.5 MB/s\n');
  expect(progressOf(5_000_000).advance(10_000, 5_000_000)).toBe('Importing: 100% · 0.5 MB/s\n');
});

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
