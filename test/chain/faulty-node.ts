/** An endpoint of a small virtual chain whose answers a test changes, call by call. */
import type { IncomingHttpHeaders } from 'node:http';
import { keccak256, pad, stringToHex, toHex } from 'viem';
import { expect, onTestFinished } from 'vitest';
import { findNetwork, type Network } from '../../src/domain/networks/networks.ts';
import type { EndpointPoolOptions } from '../../src/ingest/engine/json-rpc/endpoint-pool.ts';
import type { Chain, ChainNode, Hex } from '../../src/ingest/evm/rpc/chain.ts';
import { createChain } from '../../src/ingest/evm/rpc/node.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { type Fault, type JsonRpcCall, startJsonRpcServer } from '../json-rpc-server.ts';
import { createAnswerer, virtualSource } from '../virtual-chain/endpoint.ts';
import { archiveNode } from '../virtual-chain/endpoint-profile.ts';
import { createVirtualChain, type EventSeries, type VirtualChain } from '../virtual-chain/virtual-chain.ts';
import { evmSource } from './indexing.ts';

export const network = findNetwork('1337') as Network;
export const TOPIC: Hex = keccak256(stringToHex('Happened(uint256)'));
const OTHER_TOPIC: Hex = keccak256(stringToHex('Otherwise(uint256)'));
export const CONTRACT: Hex = `0x${'c0'.repeat(20)}`;

/** A chain of so many blocks. Every third block is without logs, the others have one of each topic. */
export function makeTinyChain(length: number, newestAt = Date.now()): VirtualChain {
  const seriesOf = (id: number, topic: Hex): EventSeries => ({
    id,
    topic,
    emitter: CONTRACT,
    count: 1_000_000,
    blockOf: (index) => index + Math.floor(index / 2),
    eventOf: (index) => ({ topics: [topic, pad(toHex(index))], data: pad(toHex(id)) }),
  });
  return createVirtualChain({
    network,
    head: length - 1,
    series: [seriesOf(0, TOPIC), seriesOf(1, OTHER_TOPIC)],
    contracts: [],
    blockSeconds: 12,
    headAtMs: newestAt,
  });
}

export type FaultyNode = Awaited<ReturnType<typeof startFaultyNode>>;

export async function startFaultyNode({
  chain = makeTinyChain(30),
  chainId = Number(network.chainId),
}: {
  readonly chain?: VirtualChain;
  readonly chainId?: number;
} = {}) {
  const node = {
    chain,
    chainId,
    /** Every call, in the order of arrival. */
    calls: [] as JsonRpcCall[],
    /** Every HTTP request: how many calls it held (0 for one that was no array), its target and headers. */
    requests: [] as {
      readonly batch: number;
      readonly calls: readonly JsonRpcCall[];
      readonly url: string | undefined;
      readonly headers: IncomingHttpHeaders;
    }[],
    /** Answers of methods, in place of the chain's. */
    methods: {} as Record<string, (params: readonly unknown[]) => unknown>,
    /** Called for every HTTP request. */
    misbehave: (_calls: readonly JsonRpcCall[]): Fault | undefined => undefined,
    /** Answers of contracts to eth_call. */
    contracts: {} as Record<string, (data: Hex) => unknown>,
    /** How many blocks below the head are final. */
    finalityDepth: 3,
  };
  const server = await startJsonRpcServer({
    profile: archiveNode,
    interfere(calls, { url, headers }, isBatch) {
      node.requests.push({ batch: isBatch ? calls.length : 0, calls, url, headers });
      return { fault: node.misbehave(calls) };
    },
    answererOf: (endpoint) => {
      const answer = createAnswerer(endpoint);
      return (call) => {
        const own = node.methods[call.method];
        if (own) return own(call.params);
        const source = virtualSource(chain);
        return answer(call, {
          ...source,
          chainId: node.chainId,
          finalLag: node.finalityDepth,
          call: (to, data, block) => node.contracts[to]?.(data) ?? source.call(to, data, block),
          hasCode: (address, block) => address in node.contracts || source.hasCode(address, block),
        });
      };
    },
  });
  server.onCall = (call) => node.calls.push(call);
  onTestFinished(server.close);
  const { url, close: down, reopen: up } = server;
  /** It can reject connections, and take them again on the same port. */
  return Object.assign(node, { url, host: url.host, down, up });
}

// ---- Chains that speak to such nodes

export function makeSource(nodes: readonly FaultyNode[], overrides: Partial<EvmSource> = {}): EvmSource {
  return evmSource({
    network,
    rpc: nodes.map(({ url }) => url),
    routers: [CONTRACT],
    requestsPerSecond: 100_000,
    pollEvery: 1_000,
    ...overrides,
  });
}

/** Short pauses; answers may take as long as a busy machine needs. */
export const briefly = {
  answerMs: 10_000,
  bodyMs: 10_000,
  firstPauseMs: 20,
  longestPauseMs: 100,
  maxWaitMs: 300,
  longestRetryAfterMs: 60_000,
};

/** For endpoints that are silent: a test waits for them several times. */
export const impatient = { ...briefly, answerMs: 4_000, bodyMs: 4_000 };

export function openChain(
  nodes: readonly FaultyNode[],
  overrides: Partial<EvmSource> = {},
  options: Partial<EndpointPoolOptions> = {},
): Chain {
  const chain = createChain(makeSource(nodes, overrides), {
    userAgent: 'lanescan/test',
    timing: briefly,
    ...options,
  });
  onTestFinished(() => chain.close());
  return chain;
}

/** A chain that so many nodes serve, at most three. */
export async function openNodes(
  count: number,
  overrides: Partial<EvmSource> = {},
  options: Partial<EndpointPoolOptions> = {},
) {
  const started = await Promise.all(Array.from({ length: count }, () => startFaultyNode()));
  const nodes = started as unknown as readonly [FaultyNode, FaultyNode, FaultyNode];
  return { nodes, node: nodes[0], chain: openChain(started, overrides, options) };
}

/** The name of the node that did the work. */
export const nameOf = async (node: ChainNode) => {
  await node.head();
  return node.name;
};
export const range = { fromBlock: 0, toBlock: 20, topics: [TOPIC] };
export const failureOf = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => expect.unreachable('it should have failed'),
    (error: Error) => error,
  );

/** One fault for the requests that hold the method, the truth for all others. */
export const whenAsked =
  (method: string, fault: Fault): FaultyNode['misbehave'] =>
  (calls) =>
    calls.some((call) => call.method === method) ? fault : undefined;
