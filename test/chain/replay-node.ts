/**
 * A node that replays a recording: a real JSON-RPC server whose chain is whatever view of the recording it is given,
 * and which can be made to misbehave with every request.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Hex } from 'viem';
import type { ChainView, ReplayBlock, ReplayNetwork } from './replay-recording.ts';

export interface RpcCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface RpcAnswer {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** How an HTTP request is answered, where not with 200 and the whole truth. */
export type Delivery =
  /** Never. */
  | { readonly kind: 'hang' }
  | { readonly kind: 'slow'; readonly ms: number }
  | { readonly kind: 'reset' }
  /** Half of the answer, then the connection is closed. */
  | { readonly kind: 'cut' }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body: string;
    };

/** What goes wrong with one HTTP request. */
export interface Misfortune {
  readonly delivery?: Delivery;
  /** The answer to one of its calls, which may be another than the truth. */
  answer?(call: RpcCall, truth: RpcAnswer, view: ChainView): RpcAnswer;
}

/** What may go wrong at an endpoint; asked for each HTTP request. */
export type Misbehaviour = (calls: readonly RpcCall[]) => Misfortune;

export interface ReplayNode {
  readonly url: string;
  /** How many HTTP requests have come in. */
  readonly requests: number;
  close(): Promise<void>;
}

export interface ReplayNodeOptions {
  readonly network: ReplayNetwork;
  /** What the node takes for the chain at this moment. */
  readonly view: () => ChainView;
  readonly misbehave?: Misbehaviour;
}

export async function startReplayNode(options: ReplayNodeOptions): Promise<ReplayNode> {
  let requests = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      requests++;
      const asked = JSON.parse(Buffer.concat(chunks).toString('utf8')) as RpcCall | RpcCall[];
      const calls = Array.isArray(asked) ? asked : [asked];
      const misfortune = options.misbehave?.(calls);
      // One request is answered from one view, even if the chain goes on meanwhile.
      const view = options.view();
      const answers = await Promise.all(
        calls.map(async (call) => {
          const truth = { jsonrpc: '2.0', id: call.id, ...(await truthOf(call, options.network, view)) };
          return misfortune?.answer?.(call, truth, view) ?? truth;
        }),
      );
      const body = JSON.stringify(Array.isArray(asked) ? answers : answers[0]);
      await deliver(response, misfortune?.delivery, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    get requests() {
      return requests;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function deliver(
  response: ServerResponse,
  delivery: Delivery | undefined,
  body: string,
): Promise<void> {
  response.setHeader('Content-Type', 'application/json');
  switch (delivery?.kind) {
    case 'hang':
      return;
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'cut':
      response.writeHead(200, { 'Content-Length': Buffer.byteLength(body) });
      response.write(body.slice(0, body.length / 2), () => response.socket?.destroy());
      return;
    case 'status':
      response.writeHead(delivery.status, delivery.headers).end(delivery.body);
      return;
    case 'slow':
      await delay(delivery.ms, undefined, { ref: false });
      response.end(body);
      return;
    default:
      response.end(body);
  }
}

type Outcome = Pick<RpcAnswer, 'result' | 'error'>;

async function truthOf(
  { method, params }: RpcCall,
  network: ReplayNetwork,
  view: ChainView,
): Promise<Outcome> {
  const [first] = params;
  switch (method) {
    case 'eth_chainId':
      return { result: `0x${network.chainId.toString(16)}` };
    case 'eth_getBlockByNumber':
      return { result: view.at(first === 'latest' ? view.head.number : Number(first))?.header ?? null };
    case 'eth_getBlockByHash':
      return { result: blockOf(network, view, first)?.header ?? null };
    case 'eth_getLogs':
      return logsFor(first as LogFilter, network, view);
    case 'eth_getBlockReceipts':
      return { result: blockOf(network, view, first)?.receipts ?? null };
    case 'eth_getTransactionByHash':
      return { result: transactionOf(network, view, first as Hex) ?? null };
    case 'eth_call': {
      const { to, data } = first as { to: string; data: string };
      return network.call(to, data, view);
    }
    default:
      return { error: { code: -32601, message: `the method ${method} does not exist/is not available` } };
  }
}

/** A node knows the blocks of its own chain and those of branches that it may have left, but none it has yet to see. */
function blockOf(network: ReplayNetwork, view: ChainView, hash: unknown): ReplayBlock | undefined {
  const block = indexOf(network).blocks.get(hash as Hex);
  if (!block || block.number > view.head.number) return undefined;
  const isOfFinalChain = network.chain[block.number] === block;
  return isOfFinalChain && view.at(block.number) !== block ? undefined : block;
}

function transactionOf(network: ReplayNetwork, view: ChainView, hash: Hex): unknown {
  for (const block of indexOf(network).transactions.get(hash) ?? []) {
    // By number, as the same transaction may stand in blocks of several branches.
    if (view.at(block.number) === block)
      return block.transactions.find((transaction) => transaction.hash === hash);
  }
  return undefined;
}

interface Index {
  readonly blocks: ReadonlyMap<Hex, ReplayBlock>;
  readonly transactions: ReadonlyMap<Hex, readonly ReplayBlock[]>;
}

const indexes = new WeakMap<ReplayNetwork, Index>();

function indexOf(network: ReplayNetwork): Index {
  const known = indexes.get(network);
  if (known) return known;
  const all = [...network.chain, ...network.branches.flatMap(({ blocks }) => blocks)];
  const transactions = new Map<Hex, ReplayBlock[]>();
  for (const block of all) {
    for (const { hash } of block.transactions) {
      transactions.set(hash, [...(transactions.get(hash) ?? []), block]);
    }
  }
  const index = { blocks: new Map(all.map((block) => [block.hash, block])), transactions };
  indexes.set(network, index);
  return index;
}

export interface LogFilter {
  readonly fromBlock?: Hex;
  readonly toBlock?: Hex;
  readonly blockHash?: Hex;
  readonly address?: readonly Hex[];
  /** Left out: logs of every topic. */
  readonly topics?: readonly [readonly Hex[]];
}

function logsFor(filter: LogFilter, network: ReplayNetwork, view: ChainView): Outcome {
  if (filter.blockHash !== undefined) {
    const block = blockOf(network, view, filter.blockHash);
    return block
      ? { result: matchingLogs(block, filter) }
      : { error: { code: -32000, message: 'unknown block' } };
  }
  const from = Number(filter.fromBlock);
  const to = Math.min(Number(filter.toBlock), view.head.number);
  const logs: unknown[] = [];
  for (let number = from; number <= to; number++) {
    const block = view.at(number);
    if (block) logs.push(...matchingLogs(block, filter));
  }
  return { result: logs };
}

export function matchingLogs({ logs }: ReplayBlock, { address, topics }: LogFilter): ReplayBlock['logs'] {
  const wanted = topics?.[0];
  return logs.filter(
    (log) =>
      (wanted === undefined || wanted.includes(log.topics[0] as Hex)) &&
      (address === undefined || address.includes(log.address)),
  );
}
