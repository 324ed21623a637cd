/** Gas of a manual execution: what is computed, and how far an endpoint's estimate is believed. */
import { describe, expect, test } from 'vitest';
import { computedGas, transactionGas } from '../../../src/domain/manual-execution/transaction-gas.ts';
import { findNetwork } from '../../../src/domain/networks/networks.ts';

const demand = { data: `0x${'ab'.repeat(1_000)}`, receiver: 200_000n, others: 0n, transfers: 0 } as const;

test('every limit that the off-ramp hands on is covered, with what calls keep back', () => {
  const base = computedGas(demand);
  expect(base).toBeGreaterThan((200_000n * 64n ** 3n) / 63n ** 3n + 21_000n + 16_000n);
  const more = (changed: Partial<Parameters<typeof computedGas>[0]>) =>
    computedGas({ ...demand, ...changed }) - base;
  expect(more({ receiver: 3_200_000n })).toBeGreaterThan(3_000_000n + 3_000_000n / 63n);
  expect(more({ others: 90_000n, transfers: 1 })).toBeGreaterThan(90_000n + 90_000n);
  // The price of call data alone, at the least that is charged.
  const large = `0x${'ab'.repeat(100_000)}` as const;
  expect(computedGas({ ...demand, data: large, receiver: 0n })).toBeGreaterThanOrEqual(21_000n + 4_000_000n);
});

describe('an estimate', () => {
  const COMPUTED = 600_000n;
  const on = (network: string, tellsTokenGas = true) => ({
    destChainSelector: BigInt(findNetwork(network)?.selector ?? ''),
    tellsTokenGas,
    computedGas: () => COMPUTED,
  });
  const gasOf = (network: string, estimate: bigint | null, tellsTokenGas?: boolean) =>
    transactionGas(on(network, tellsTokenGas), undefined, estimate);

  test('raises the gas, and never lowers it', () => {
    expect(gasOf('ethereum-mainnet', 700_000n)).toEqual({ gas: 700_000n, note: null });
    expect(gasOf('ethereum-mainnet', 21_000n)).toEqual({ gas: COMPUTED, note: null });
    expect(gasOf('ethereum-mainnet-arbitrum-1', 21_000n)).toEqual({ gas: COMPUTED, note: null });
  });

  test('beyond all measure is not believed', () => {
    const absurd = BigInt(Number.MAX_SAFE_INTEGER);
    const { gas, note } = gasOf('ethereum-mainnet', absurd);
    expect(gas).toBe(COMPUTED);
    expect(note).toContain('not credible');
    expect(gasOf('ethereum-mainnet-zksync-1', absurd)).toMatchObject({
      gas: null,
      note: expect.stringContaining('not credible'),
    });
  });

  test('is needed where the gas cannot be computed: there is none without it, and words say why', () => {
    expect(gasOf('ethereum-testnet-sepolia-base-1', null)).toMatchObject({ gas: COMPUTED });
    expect(gasOf('ethereum-mainnet-arbitrum-1', null)).toMatchObject({
      gas: null,
      note: expect.stringMatching(/arbitrum-1 may count gas otherwise .* Do not let a wallet estimate/),
    });
    expect(gasOf('ethereum-mainnet-arbitrum-1', 5_000_000n)).toEqual({ gas: 5_000_000n, note: null });
    expect(gasOf('ethereum-mainnet', null, false)).toMatchObject({
      gas: null,
      note: expect.stringContaining('do not tell how much gas their token pools get'),
    });
    expect(gasOf('ethereum-mainnet', 700_000n, false)).toEqual({ gas: 700_000n, note: null });
  });
});
