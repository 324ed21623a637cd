/** The table of messages: a symbol is the claim of a token's contract, so that its address stands beside it. */
import { describe, expect, test } from 'vitest';
import { createMessageTable } from '../../src/cli/output/message-table.ts';
import type { Message } from '../../src/domain/message.ts';
import { createNames, type NamedToken } from '../../src/domain/names/message-names.ts';
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
