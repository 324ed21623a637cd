/** What the explorer makes of what people type and of what messages carry, without a browser. */
import { expect, test } from 'vitest';
import { forecast, stepsOf } from '../../explorer/src/message/outlook.ts';
import { meaningsOf } from '../../src/domain/filters/search-text.ts';
import { transferredAmount } from '../../src/domain/names/message-names.ts';
import { shortInteger } from '../../src/text/format.ts';
import { evmAddress, fuji, hashOf, makeToken, sepolia, svmAddress, svmSignature } from '../fixtures.ts';

const word = (digits: string) => digits.padStart(64, '0');

/** Further meanings, and what is none; test/domain/filters/search-text.test.ts has the likeliest of each text. */
test.each([
  [hashOf(1), ['hash', 'address']],
  [svmSignature(1), ['transaction']],
  [`https://explorer.solana.com/tx/${svmSignature(1)}?cluster=devnet`, ['transaction']],
  [`  ${evmAddress(1).toUpperCase().replace('0X', '0x')} `, ['address', 'terms']],
  [svmAddress(1), ['address', 'transaction', 'terms']],
  ['16015286601757825753', ['network', 'source', 'dest']],
  ['11155111', ['network', 'source', 'dest', 'shortened']],
  ['what is this', []],
  ['0x12', []],
])('the box takes %s', (text, expected) => {
  const kinds = meaningsOf(text).map(({ kind }) => kind);
  expect(kinds.slice(0, expected.length || 1)).toEqual(expected);
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
  const kinds = [0, 61_000, 100_000, 300_001].map((elapsed) => forecast(elapsed, delivery)?.kind);
  expect(kinds).toEqual(['on-time', 'soon', 'slow', 'overdue']);
  expect(forecast(0, { ...delivery, p50Ms: null, p90Ms: null, p99Ms: null })).toBeNull();
});

test('steps are those that were reached, then those that are still to come', () => {
  const stage = { network: null, networkName: null, blockNumber: null, transactionHash: null };
  const stages = [
    { ...stage, status: 'SENT' as const, at: '2026-01-01T00:00:00.000Z', dwellMs: 5_000 },
    { ...stage, status: 'COMMITTED' as const, at: '2026-01-01T00:00:05.000Z', dwellMs: null },
  ];
  const steps = stepsOf({ version: '1.5.0', status: 'COMMITTED' }, stages);
  expect(steps.map(({ status, state, tookMs }) => [status, state, tookMs])).toEqual([
    ['SENT', 'reached', null],
    ['COMMITTED', 'current', 5_000],
    ['BLESSED', 'ahead', null],
    ['SUCCESS', 'ahead', null],
  ]);
});
