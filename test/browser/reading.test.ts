/** What the explorer makes of what people type and of what messages carry, without a browser. */
import { describe, expect, test } from 'vitest';
import { forecast, stepsOf } from '../../explorer/src/message/outlook.ts';
import { meaningsOf } from '../../src/domain/filters/search-text.ts';
import { transferredAmount } from '../../src/domain/names/message-names.ts';
import { shortInteger } from '../../src/text/format.ts';
import { evmAddress, fuji, hashOf, makeToken, sepolia, svmAddress, svmSignature } from '../fixtures.ts';

const kinds = (text: string) => meaningsOf(text).map(({ kind }) => kind);
const word = (digits: string) => digits.padStart(64, '0');

describe('the box takes', () => {
  test.each([
    [hashOf(1), ['hash', 'address']],
    [svmSignature(1), ['transaction']],
    [evmAddress(1), ['address', 'terms']],
    [`  ${evmAddress(1).toUpperCase().replace('0X', '0x')} `, ['address', 'terms']],
    [svmAddress(1), ['address', 'transaction', 'terms']],
    [`${evmAddress(1)}, ${hashOf(1)}`, ['terms']],
    ['sepolia > fuji', ['lane']],
    ['16015286601757825753', ['network', 'source', 'dest']],
    ['success', ['status']],
    ['solana-devnet', ['network', 'source', 'dest']],
    [hashOf(1).slice(2), ['hash', 'address']],
    [evmAddress(1).slice(2), ['address', 'terms']],
    [`https://sepolia.etherscan.io/tx/${hashOf(1)}#eventlog`, ['hash', 'address']],
    [`https://ccip.chain.link/#/side-drawer/msg/${hashOf(1)}`, ['hash', 'address']],
    [`https://testnet.snowtrace.io/token/${evmAddress(1)}?a=1`, ['address', 'terms']],
    [`https://explorer.solana.com/tx/${svmSignature(1)}?cluster=devnet`, ['transaction']],
    ['0x2f63…aa14', ['shortened']],
    ['2f63...aa14', ['shortened']],
    ['0x2f63d1', ['shortened']],
    ['11155111', ['network', 'source', 'dest', 'shortened']],
    ['', []],
    ['what is this', []],
    [`${evmAddress(1)}, nonsense`, []],
    ['0x12', []],
  ])('%s', (text, expected) => {
    expect(kinds(text).slice(0, expected.length || 1)).toEqual(expected);
  });
});

test('amounts have a point where their decimals are known, and are whole numbers where not', () => {
  const token = { ...makeToken(sepolia, fuji, 'LINK'), amount: '1500000000000000000' };
  const extraData = `0x${word('12')}`;
  expect(transferredAmount({ ...token, extraData }, undefined)).toMatchObject({
    short: '1.5',
    source: 'pool',
  });
  expect(transferredAmount({ ...token, amount: '1', extraData }, undefined)?.short).toBe('< 0.000001');
  expect(transferredAmount({ ...token, extraData: null }, undefined)).toBeNull();
  expect(shortInteger('5527000')).toBe('5,527,000');
});

test('a forecast follows the lane’s percentiles', () => {
  const delivery = { windowDays: 30, messages: 100, p50Ms: 60_000, p90Ms: 90_000, p99Ms: 300_000 };
  expect([0, 61_000, 100_000, 300_001].map((elapsed) => forecast(elapsed, delivery)?.kind)).toEqual([
    'on-time',
    'soon',
    'slow',
    'overdue',
  ]);
  expect(forecast(0, { ...delivery, p50Ms: null, p90Ms: null, p99Ms: null })).toBeNull();
});

test('steps are those that were reached, then those that are still to come', () => {
  const stage = { network: null, networkName: null, blockNumber: null, transactionHash: null };
  const stages = [
    { ...stage, status: 'SENT' as const, at: '2026-01-01T00:00:00.000Z', dwellMs: 5_000 },
    { ...stage, status: 'COMMITTED' as const, at: '2026-01-01T00:00:05.000Z', dwellMs: null },
  ];
  const shown = (version: string) =>
    stepsOf({ version, status: 'COMMITTED' }, stages).map(({ status, state, tookMs }) => [
      status,
      state,
      tookMs,
    ]);
  expect(shown('1.5.0')).toEqual([
    ['SENT', 'reached', null],
    ['COMMITTED', 'current', 5_000],
    ['BLESSED', 'ahead', null],
    ['SUCCESS', 'ahead', null],
  ]);
});
