/** Simulated calls on an EVM network: `eth_call` and `eth_estimateGas` at its newest block. They change nothing. */
import type { DestinationCalls } from '../../domain/manual-execution/diagnosis.ts';
import type { DestinationCallsOptions } from '../engine/family.ts';
import { createAnswerReader } from '../engine/json-rpc/answer-reader.ts';
import type { Endpoint } from '../engine/json-rpc/endpoint.ts';
import {
  createEndpointPool,
  type PooledNode,
  type PooledNodeOptions,
} from '../engine/json-rpc/endpoint-pool.ts';
import { bytesOf, parseQuantity } from './rpc/answers.ts';
import { classifyEvmRpcError } from './rpc/evm-rpc-errors.ts';
import { createNode } from './rpc/node.ts';
import type { EvmSource } from './settings.ts';

type CallNode = PooledNode & DestinationCalls;

/** A visitor waits for the answer: an endpoint that is slow is given up sooner than by the indexer. */
const timing = { answerMs: 12_000, bodyMs: 12_000, maxWaitMs: 3_000, longestPauseMs: 15_000 };

export function openEvmCalls(source: EvmSource, options: DestinationCallsOptions): DestinationCalls {
  const pool = createEndpointPool<CallNode>(
    source,
    classifyEvmRpcError,
    (endpoint, nodeOptions) => createCallNode(endpoint, source, nodeOptions),
    { ...options, timing },
  );
  return {
    simulate: (calls) => pool.run((node) => node.simulate(calls)),
    estimateGas: (calls) => pool.run((node) => node.estimateGas(calls)),
  };
}

function createCallNode(endpoint: Endpoint, source: EvmSource, options: PooledNodeOptions): CallNode {
  const { checkIn, head, headIn } = createNode(endpoint, source, options);
  const { parsed, resultOf } = createAnswerReader(endpoint.name);

  return {
    checkIn,
    head,
    async simulate(calls) {
      const [latest, ...answers] = await endpoint.ask([
        { method: 'eth_getBlockByNumber', params: ['latest', false] },
        ...calls.map(({ from, to, data }) => ({
          method: 'eth_call',
          params: [{ from, to, data }, 'latest'],
        })),
      ]);
      const { number, timestamp } = headIn(latest);
      const outcomes = calls.map((_, index) => {
        const answer = answers[index];
        if (answer !== undefined && 'error' in answer) {
          const { kind, revertData } = answer.error;
          if (kind === 'reverted' || revertData !== undefined)
            return { reverted: parsed('eth_call', () => bytesOf(revertData ?? '0x', undefined, 'bytes')) };
        }
        const result = resultOf(answer, 'eth_call');
        return { returned: parsed('eth_call', () => bytesOf(result, undefined, 'bytes')) };
      });
      return { block: { number, timestamp }, outcomes };
    },
    async estimateGas(calls) {
      const answers = await endpoint.ask(
        calls.map(({ from, to, data }) => ({ method: 'eth_estimateGas', params: [{ from, to, data }] })),
      );
      return answers.map((answer) =>
        'error' in answer
          ? undefined
          : BigInt(parsed('eth_estimateGas', () => parseQuantity(answer.result, 'gas'))),
      );
    },
  };
}
