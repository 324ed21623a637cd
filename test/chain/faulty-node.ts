/** A JSON-RPC node on a socket of its own, with a small consistent chain, that can be told to misbehave. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { keccak256, stringToHex } from 'viem';
import { expect, onTestFinished } from 'vitest';
import { findNetwork, type Network } from '../../src/domain/networks/networks.ts';
import type { EndpointPoolOptions } from '../../src/ingest/engine/json-rpc/endpoint-pool.ts';
import type { Block, Chain, ChainLog, ChainNode, Hex, Transaction } from '../../src/ingest/evm/rpc/chain.ts';
import { createChain } from '../../src/ingest/evm/rpc/endpoints.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { bloomOf } from '../virtual-chain/bloom-filter.ts';

export interface TinyBlock extends Block {
  readonly logs: readonly ChainLog[];
}

/** A chain that grows and forks at will. Every third block is without logs, the others have two. */
export interface TinyChain {
  readonly blocks: readonly TinyBlock[];
  readonly head: TinyBlock;
  grow(blocks: number): void;
  /** Replaces the newest blocks by as many others, and one more. */
  fork(blocks: number): void;
}

export const TOPIC: Hex = keccak256(stringToHex('Happened(uint256)'));
export const OTHER_TOPIC: Hex = keccak256(stringToHex('Otherwise(uint256)'));
export const CONTRACT: Hex = `0x${'c0'.repeat(20)}`;
const SECONDS_A_BLOCK = 12;

export function makeTinyChain(length: number, newestAt = Date.now()): TinyChain {
  const firstAt = Math.floor(newestAt / 1000) - (length - 1) * SECONDS_A_BLOCK;
  const blocks: TinyBlock[] = [];
  let branch = 0;
  const grow = (count: number) => {
    for (let i = 0; i < count; i++) {
      const number = blocks.length;
      const hash = keccak256(stringToHex(`block ${number} of branch ${branch}`));
      const logs =
        number % 3 === 2 ? [] : [makeLog(number, hash, 0, TOPIC), makeLog(number, hash, 1, OTHER_TOPIC)];
      blocks.push({
        number,
        hash,
        parentHash: blocks.at(-1)?.hash ?? `0x${'00'.repeat(32)}`,
        timestamp: firstAt + number * SECONDS_A_BLOCK,
        logsBloom: bloomOf(logs),
        logs,
      });
    }
  };
  grow(length);
  return {
    blocks,
    get head() {
      return blocks.at(-1) as TinyBlock;
    },
    grow,
    fork(count) {
      blocks.splice(-count);
      branch++;
      grow(count + 1);
    },
  };
}

function makeLog(blockNumber: number, blockHash: Hex, logIndex: number, topic: Hex): ChainLog {
  return {
    address: CONTRACT,
    topics: [topic, `0x${blockNumber.toString(16).padStart(64, '0')}`],
    data: `0x${logIndex.toString(16).padStart(64, '0')}`,
    blockNumber,
    blockHash,
    transactionHash: keccak256(stringToHex(`transaction of ${blockHash}`)),
    logIndex,
  };
}

export function transactionOf({ transactionHash }: ChainLog): Transaction {
  return { hash: transactionHash, from: `0x${'f0'.repeat(20)}`, to: CONTRACT, input: '0x12345678' };
}

/** An error object of a JSON-RPC answer. */
export class Refused extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface Asked {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What one HTTP request gets instead of the truth. */
export type Misbehaviour =
  | 'hang'
  | 'reset'
  /** Half of the answer, then the end of the connection. */
  | 'cut'
  /** Half of the answer, as if it were whole. */
  | 'truncate'
  /** Half of the answer, then nothing. */
  | 'stall'
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** The true answer, changed. */
  | { readonly change: (answer: unknown) => unknown };

export interface FaultyNode {
  readonly url: URL;
  readonly host: string;
  readonly chain: TinyChain;
  /** Every call, in the order of arrival. */
  readonly calls: Asked[];
  /** Every HTTP request: how many calls it held (0 for one that was no array), and its headers. */
  readonly requests: {
    readonly batch: number;
    readonly calls: readonly Asked[];
    readonly headers: IncomingHttpHeaders;
  }[];
  chainId: number;
  /** What each method answers, in place of the truth. */
  readonly methods: Record<string, (params: readonly unknown[]) => unknown>;
  /** Asked for every HTTP request. */
  misbehave: (calls: readonly Asked[]) => Misbehaviour | undefined;
  /** Answers of contracts to eth_call. */
  readonly contracts: Record<string, (data: Hex) => unknown>;
  /** How many blocks below the head are final. */
  finalityDepth: number;
  /** Refuses connections, and takes them again on the same port. */
  down(): Promise<void>;
  up(): Promise<void>;
}

export async function startFaultyNode({
  chain = makeTinyChain(30),
  chainId = 1337,
}: {
  readonly chain?: TinyChain;
  readonly chainId?: number;
} = {}): Promise<FaultyNode> {
  const node: Omit<FaultyNode, 'url' | 'host' | 'down' | 'up'> = {
    chain,
    chainId,
    calls: [],
    requests: [],
    methods: {},
    misbehave: () => undefined,
    contracts: {},
    finalityDepth: 3,
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Asked | Asked[];
      const calls = Array.isArray(body) ? body : [body];
      node.calls.push(...calls);
      node.requests.push({ batch: Array.isArray(body) ? body.length : 0, calls, headers: request.headers });
      const answers = calls.map((call) => answerTo(call, node as FaultyNode));
      respond(response, node.misbehave(calls), Array.isArray(body) ? answers : answers[0]);
    });
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
  const down = () =>
    new Promise<void>((resolve) => {
      if (!server.listening) return resolve();
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await listen(0);
  onTestFinished(down);
  const { port } = server.address() as AddressInfo;
  return Object.assign(node, {
    url: new URL(`http://127.0.0.1:${port}/`),
    host: `127.0.0.1:${port}`,
    down,
    up: () => listen(port),
  });
}

function respond(response: ServerResponse, misbehaviour: Misbehaviour | undefined, answer: unknown): void {
  const json = JSON.stringify(answer);
  const half = json.slice(0, json.length / 2);
  response.setHeader('Content-Type', 'application/json');
  if (misbehaviour === undefined) response.end(json);
  else if (misbehaviour === 'hang') return;
  else if (misbehaviour === 'reset') response.socket?.resetAndDestroy();
  else if (misbehaviour === 'truncate') response.end(half);
  else if (misbehaviour === 'stall' || misbehaviour === 'cut') {
    response.writeHead(200, { 'Content-Length': json.length });
    response.write(half, () => {
      if (misbehaviour === 'cut') response.socket?.destroy();
    });
  } else if ('change' in misbehaviour) response.end(JSON.stringify(misbehaviour.change(answer)));
  else response.writeHead(misbehaviour.status, misbehaviour.headers).end(misbehaviour.body ?? '');
}

function answerTo({ id, method, params }: Asked, node: FaultyNode): unknown {
  try {
    const own = node.methods[method];
    return { jsonrpc: '2.0', id, result: (own ? own(params) : truth(method, params, node)) ?? null };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { jsonrpc: '2.0', id, error: { code: error.code, message: error.message } };
  }
}

function truth(method: string, params: readonly unknown[], node: FaultyNode): unknown {
  const { blocks, head } = node.chain;
  const [first] = params;
  const numbered = (tag: unknown) => {
    if (tag === 'latest') return head;
    if (tag === 'finalized' || tag === 'safe') return blocks[Math.max(0, head.number - node.finalityDepth)];
    return blocks[Number(tag)];
  };
  const logs = blocks.flatMap((block) => block.logs);
  switch (method) {
    case 'eth_chainId':
      return quantity(node.chainId);
    case 'eth_getBlockByNumber':
      return blockJson(numbered(first));
    case 'eth_getBlockByHash':
      return blockJson(blocks.find(({ hash }) => hash === first));
    case 'eth_getLogs':
      return logsFor(first as RawFilter, blocks).map(logJson);
    case 'eth_getBlockReceipts': {
      const block = blocks.find(({ hash }) => hash === first);
      if (block === undefined) return null;
      const { hash: blockHash, logs: own } = block;
      const transactionHash = own[0]?.transactionHash;
      return own.length === 0 ? [] : [{ blockHash, transactionHash, logs: own.map(logJson) }];
    }
    case 'eth_getTransactionByHash': {
      const log = logs.find(({ transactionHash }) => transactionHash === first);
      return log && transactionOf(log);
    }
    case 'eth_call': {
      const { to, data } = first as { to: string; data: Hex };
      return node.contracts[to]?.(data) ?? '0x';
    }
    case 'eth_getCode':
      return node.contracts[first as string] ? '0x60806040' : '0x';
    case 'eth_getBalance':
      if (numbered(params[1]) === undefined) throw new Refused(-32000, 'header not found');
      return '0x0';
    default:
      throw new Refused(-32601, `the method ${method} does not exist/is not available`);
  }
}

interface RawFilter {
  readonly fromBlock?: string;
  readonly toBlock?: string;
  readonly blockHash?: string;
  readonly address?: readonly string[];
  readonly topics?: readonly [readonly string[]];
}

function logsFor(
  { fromBlock, toBlock, blockHash, address, topics }: RawFilter,
  blocks: readonly TinyBlock[],
) {
  const chosen =
    blockHash === undefined
      ? blocks.slice(Number(fromBlock), Number(toBlock) + 1)
      : blocks.filter(({ hash }) => hash === blockHash);
  if (blockHash !== undefined && chosen.length === 0) throw new Refused(-32000, 'unknown block');
  return chosen
    .flatMap(({ logs }) => logs)
    .filter(
      (log) =>
        (topics?.[0].includes(log.topics[0] ?? '') ?? true) && (address?.includes(log.address) ?? true),
    );
}

function blockJson(block: TinyBlock | undefined): unknown {
  if (block === undefined) return null;
  const { number, hash, parentHash, timestamp, logsBloom } = block;
  return { number: quantity(number), hash, parentHash, timestamp: quantity(timestamp), logsBloom };
}

export function logJson(log: ChainLog): Record<string, unknown> {
  return {
    ...log,
    blockNumber: quantity(log.blockNumber),
    logIndex: quantity(log.logIndex),
    transactionIndex: '0x0',
    removed: false,
  };
}

export function quantity(number: number): Hex {
  return `0x${number.toString(16)}`;
}

// ---- Chains that speak to such nodes

export const network = findNetwork('1337') as Network;

export function makeSource(nodes: readonly FaultyNode[], overrides: Partial<EvmSource> = {}): EvmSource {
  return {
    network,
    rpc: nodes.map(({ url }) => url),
    routers: [CONTRACT],
    start: null,
    finality: 'finalized',
    requestsPerSecond: 100_000,
    batchSize: 50,
    maxRange: 10_000,
    pollEvery: 1_000,
    verify: 'head',
    verifierResults: null,
    ...overrides,
  };
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

/** One misbehaviour for the requests that hold the method, the truth for all others. */
export const whenAsked =
  (method: string, misbehaviour: Misbehaviour): FaultyNode['misbehave'] =>
  (calls) =>
    calls.some((call) => call.method === method) ? misbehaviour : undefined;
