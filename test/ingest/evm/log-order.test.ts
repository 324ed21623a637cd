/** The order of logs: brought to one form, or rejected where it contradicts itself. */
import { expect, test } from 'vitest';
import { orderLogs } from '../../../src/ingest/evm/rpc/answers.ts';
import type { ChainLog, Hex } from '../../../src/ingest/evm/rpc/chain.ts';
import { hashOf } from '../../fixtures.ts';

const log = (blockNumber: number, logIndex: number, given: Partial<ChainLog> = {}): ChainLog => ({
  address: `0x${'aa'.repeat(20)}`,
  topics: [],
  data: '0x',
  blockNumber,
  blockHash: hashOf('block', blockNumber) as Hex,
  transactionHash: hashOf('transaction', blockNumber) as Hex,
  logIndex,
  ...given,
});

test('logs in any order come out by block and index', () => {
  const logs = [log(1, 0), log(1, 3), log(2, 1), log(7, 0)];
  expect(orderLogs(logs.toReversed())).toEqual({ logs });
});

test('indexes that count anew in each transaction are no contradiction', () => {
  const other = { transactionHash: hashOf('another') as Hex };
  const logs = [log(1, 0), log(1, 0, other), log(1, 1), log(1, 1, other)];
  expect(orderLogs(logs)).toEqual({ logs });
});

test.each([
  ['the same log twice', [log(1, 0), log(1, 0)], /log 0 of block 1 twice/],
  ['two hashes for a block', [log(1, 0), log(1, 1, { blockHash: hashOf('fork') as Hex })], /two hashes/],
  [
    'a hash for two blocks',
    [log(1, 0), log(2, 0, { blockHash: log(1, 0).blockHash })],
    /or one for two blocks/,
  ],
])('%s is rejected', (_, logs, problem) => {
  expect(orderLogs(logs)).toEqual({ problem: expect.stringMatching(problem) });
});
