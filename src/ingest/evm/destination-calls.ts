/** Simulated calls on an EVM network: `eth_call` and `eth_estimateGas` at its newest block. They change nothing. */
import type { DestinationCalls, SimulatedCall } from '../../domain/manual-execution/diagnosis.ts';
import type { DestinationCallsOptions } from '../engine/family.ts';
import { NodeError, RequestRejectedError } from '../engine/faults.ts';
import type { Endpoint, RpcAnswer } from '../engine/json-rpc/endpoint.ts';
import {
  createEndpointPool,
  type PooledNode,
  type PooledNodeOptions,
} from '../engine/json-rpc/endpoint-pool.ts';
import { bytesOf, MalformedAnswerError, parseQuantity } from './rpc/answers.ts';
import { classifyEvmRpcError } from './rpc/evm-rpc-errors.ts';
import { createNode } from './rpc/node.ts';
import type { EvmSource } from './settings.ts';

type CallNode = PooledNode & DestinationCalls;

/** A visitor waits for the answer: an endpoint that is slow is given up sooner than by the indexer. */
const timing = { answerMs: 12_000, bodyMs: 12_000, maxWaitMs: 3_000, longestPauseMs: 15_000 };

export function openEvmCalls(source: EvmSource, options: DestinationCallsOptions): DestinationCalls {
  const { network, rpc, requestsPerSecond, batchSize } = source;
  const pool = createEndpointPool<CallNode>(
    {
      networkName: network.name,
      rpc,
      requestsPerSecond,
      batchSize,
      classifyRpcError: classifyEvmRpcError,
    },
    (endpoint, nodeOptions) => createCallNode(endpoint, source, nodeOptions),
    { ...options, timing },
  );
  return {
    simulate: (calls) => pool.run((node) => node.simulate(calls)),
    estimateGas: (calls) => pool.run((node) => node.estimateGas(calls)),
  };
}

function createCallNode(endpoint: Endpoint, source: EvmSource, options: PooledNodeOptions): CallNode {
  const { checkIn, head, headOf } = createNode(endpoint, source, options);
  const fault = (method: string, what: string, Fault = NodeError) =>
    new Fault(`${endpoint.name}: ${method}: ${what}`);

  const resultOf = (answer: RpcAnswer | undefined, method: string): unknown => {
    if (answer === undefined) throw fault(method, 'no answer');
    if ('error' in answer) throw fault(method, answer.error.message, RequestRejectedError);
    return answer.result;
  };
  const parsed = <T>(method: string, read: () => T): T => {
    try {
      return read();
    } catch (error) {
      if (error instanceof MalformedAnswerError) throw fault(method, `the answer has ${error.message}`);
      throw error;
    }
  };

  return {
    checkIn,
    head,
    async simulate(calls) {
      const [latest, ...answers] = await endpoint.ask([
        { method: 'eth_getBlockByNumber', params: ['latest', false] },
        ...calls.map((call) => ({ method: 'eth_call', params: [requestOf(call), 'latest'] })),
      ]);
      const { number, timestamp } = headOf(resultOf(latest, 'eth_getBlockByNumber'));
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
        calls.map((call) => ({ method: 'eth_estimateGas', params: [requestOf(call)] })),
      );
      return answers.map((answer) =>
        'error' in answer
          ? undefined
          : BigInt(parsed('eth_estimateGas', () => parseQuantity(answer.result, 'gas'))),
      );
    },
  };
}

function requestOf({ from, to, data }: SimulatedCall): object {
  return { from, to, data };
}
