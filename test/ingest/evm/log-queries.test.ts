/** Limits of an endpoint are learned from its RPC errors; what was a passing fault is forgotten. */
import { expect, test } from 'vitest';
import { NodeError } from '../../../src/ingest/engine/faults.ts';
import type { RpcAnswer } from '../../../src/ingest/engine/json-rpc/endpoint.ts';
import { rejectOtherFinal } from '../../../src/ingest/evm/head-follower.ts';
import type { Hex } from '../../../src/ingest/evm/rpc/chain.ts';
import { createLogQueries } from '../../../src/ingest/evm/rpc/log-queries.ts';
import { hashOf } from '../../fixtures.ts';
import { answeringNode } from './answering-node.ts';

const blockHash = (number: number) => hashOf('block', number) as Hex;

/** An endpoint without receipts that rejects every query for logs while `isRejecting`. */
function rejectingEndpoint() {
  const state = { isRejecting: true, nowMs: 1_000_000, calls: 0 };
  const rpcError = { kind: 'other', code: -32000, message: 'nope' } as const;
  const queries = createLogQueries({
    ask: async (filters) => {
      state.calls += filters.length;
      return filters.map((): RpcAnswer => (state.isRejecting ? { error: rpcError } : { result: [] }));
    },
    isAlive: async () => true,
    parse: () => [],
    receiptLogs: async () => undefined,
    hashesOf: async (numbers) => numbers.map(blockHash),
    rejected: ({ message }) => new NodeError(message),
    learned: () => undefined,
    now: () => state.nowMs,
  });
  const topics = [hashOf('topic', 1) as Hex, hashOf('topic', 2) as Hex];
  const addresses = [hashOf('address').slice(0, 42) as Hex];
  return { state, queries, filter: { fromBlock: 10, toBlock: 12, topics, addresses } };
}

test('an endpoint that rejected every query, and has no receipts, is asked again after a while', async () => {
  const { state, queries, filter } = rejectingEndpoint();
  await expect(queries.logs(filter)).rejects.toThrow('rejects every query');
  const calls = state.calls;
  // Not at once: each time would cost it a dozen calls.
  await expect(queries.logs(filter)).rejects.toThrow('rejects every query');
  await expect(queries.logsOfBlocks([blockHash(10)], filter.topics)).rejects.toThrow('rejects every query');
  expect(state.calls).toBe(calls);
  expect(queries.limits.offersLogs).toBe(false);

  state.isRejecting = false;
  state.nowMs += 10_000;
  await expect(queries.logs(filter)).rejects.toThrow('rejects every query');
  expect(await queries.logs(filter)).toEqual([]);
  expect(queries.limits.offersLogs).toBe(true);
});

test('a block is not final where the same node shows another one at its height', () => {
  const node = answeringNode({});
  const final = {
    number: 12,
    hash: blockHash(12),
    parentHash: blockHash(11),
    timestamp: 1,
    logsBloom: '0x' as Hex,
  };
  const shown = [
    { number: 11, hash: blockHash(11) },
    { number: 12, hash: hashOf('another') },
  ];
  expect(() => rejectOtherFinal(node, final, shown)).toThrow(
    'calls a block final that is not in its own chain (12)',
  );
  rejectOtherFinal(node, final, [{ number: 12, hash: blockHash(12) }]);
  rejectOtherFinal(node, final, [{ number: 13, hash: blockHash(13) }]);
});
