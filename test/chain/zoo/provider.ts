/** A JSON-RPC endpoint on a real socket that serves a virtual chain the way a personality does. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Hex } from '../../../src/ingest/evm/chain.ts';
import { EMPTY_BLOOM } from './bloom-filter.ts';
import {
  errorOf,
  type Filter,
  isOneIn,
  type Query,
  queryOf,
  Refused,
  refuseFilter,
  refuseRange,
  refuseResults,
} from './log-traits.ts';
import { archiveNode, type LogTraits, type Personality } from './personality.ts';
import type { VirtualBlock, VirtualChain, VirtualLog, VirtualTransaction } from './virtual-chain.ts';

export interface ProviderCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface Provider {
  readonly url: URL;
  readonly chain: VirtualChain;
  /** May be replaced at any time. */
  personality: Personality;
  /** HTTP requests so far. */
  readonly requests: number;
  /** JSON-RPC calls so far, by method. */
  readonly callsByMethod: ReadonlyMap<string, number>;
  /** Called with every JSON-RPC call as it arrives. */
  onCall: (call: ProviderCall) => void;
  /** Forgets the counts, also that of a cap. */
  resetCounts(): void;
  close(): Promise<void>;
}

export interface ProviderOptions {
  readonly personality?: Personality;
  readonly port?: number;
}

const USUAL_FINALITY_BLOCKS = 8;
const CODE: Hex = '0x6080';
const FULL_BLOOM: Hex = `0x${'ff'.repeat(256)}`;

export async function startProvider(chain: VirtualChain, options: ProviderOptions = {}): Promise<Provider> {
  let requests = 0;
  let calls = 0;
  let rangesWithLogs = 0;
  let callsByMethod = new Map<string, number>();
  let tokens: number | undefined;
  let filledAtMs = performance.now();

  /** Whether the rate allows so many calls now. */
  const takeTokens = (count: number, perSecond: number): boolean => {
    const nowMs = performance.now();
    const filled = (tokens ?? perSecond) + ((nowMs - filledAtMs) / 1000) * perSecond;
    tokens = Math.min(perSecond, filled);
    filledAtMs = nowMs;
    if (tokens < count) return false;
    tokens -= count;
    return true;
  };

  /** Refuses a whole HTTP request. */
  const admit = (asked: readonly ProviderCall[], isBatch: boolean): void => {
    const { cap, rate, fails, batch } = provider.personality;
    if (cap && calls > cap.max) throw new Refused(cap.refusal, { max: cap.max });
    if (rate && !takeTokens(asked.length, rate.max)) throw new Refused(rate.refusal, { max: rate.max });
    if (fails && isOneIn(fails.every, requests)) throw new Refused(fails.refusal);
    if (batch && isBatch && asked.length > batch.max)
      throw new Refused(batch.refusal, { max: batch.max, count: asked.length });
  };

  const respond = async (body: string, response: ServerResponse): Promise<void> => {
    requests++;
    const { personality } = provider;
    const asked = JSON.parse(body) as ProviderCall | ProviderCall[];
    const list = Array.isArray(asked) ? asked : [asked];
    calls += list.length;
    for (const call of list) {
      callsByMethod.set(call.method, (callsByMethod.get(call.method) ?? 0) + 1);
      provider.onCall(call);
    }
    if (personality.latencyMs !== undefined) await delay(personality.latencyMs, undefined, { ref: false });
    if (personality.resetsEvery !== undefined && isOneIn(personality.resetsEvery, requests)) {
      response.socket?.resetAndDestroy();
      return;
    }
    try {
      admit(list, Array.isArray(asked));
    } catch (error) {
      sendRefusal(response, error, Array.isArray(asked) ? null : list[0]?.id, personality);
      return;
    }
    if (!Array.isArray(asked)) {
      try {
        sendJson(response, { jsonrpc: '2.0', id: asked.id, result: answerTo(asked) });
      } catch (error) {
        sendRefusal(response, error, asked.id, personality);
      }
      return;
    }
    sendJson(
      response,
      list.map((call) => {
        try {
          return { jsonrpc: '2.0', id: call.id, result: answerTo(call) };
        } catch (error) {
          return { jsonrpc: '2.0', id: call.id, error: errorOf(error) };
        }
      }),
    );
  };

  const headNumber = (): number => {
    const { lag } = provider.personality;
    const isBehind = lag !== undefined && isOneIn(lag.every ?? 1, requests);
    return Math.max(0, chain.head - (isBehind ? lag.blocks : 0));
  };

  const numberOf = (tag: unknown): number => {
    const head = headNumber();
    if (tag === 'latest' || tag === 'pending' || tag === undefined) return head;
    if (tag === 'earliest') return 0;
    if (tag !== 'finalized' && tag !== 'safe') return Number(tag);
    const { finalized = { lagBlocks: USUAL_FINALITY_BLOCKS } } = provider.personality;
    if (finalized === 'genesis') return 0;
    if (finalized === 'null') return -1;
    if ('refusal' in finalized) throw new Refused(finalized.refusal);
    return Math.max(0, head - finalized.lagBlocks);
  };

  const visible = (block: VirtualBlock | undefined) =>
    block && block.number <= headNumber() ? block : undefined;

  /** The block whose state answers, or a refusal; -1: the state before the first block, where there is nothing. */
  const stateBlock = (tag: unknown): number => {
    const number = numberOf(tag);
    const { state } = provider.personality;
    if (!state || number >= headNumber() - state.keptBlocks) return number;
    if (state.answer === 'current') return headNumber();
    if (state.answer === 'empty') return -1;
    throw new Refused(state.answer, { count: number });
  };

  // Some clients leave out the parameters where there are none.
  const answerTo = ({ method, params = [] }: Partial<ProviderCall>): unknown => {
    const { personality } = provider;
    const [first, second] = params;
    switch (method) {
      case 'eth_chainId':
        return quantity(Number(chain.network.chainId));
      case 'net_version':
        return chain.network.chainId;
      case 'eth_blockNumber':
        return quantity(headNumber());
      case 'eth_getBlockByNumber': {
        const number = numberOf(first);
        return blockJson(number < 0 ? undefined : visible(chain.block(number)), personality, second === true);
      }
      case 'eth_getBlockByHash':
        return blockJson(visible(chain.blockByHash(first as Hex)), personality, second === true);
      case 'eth_getLogs':
        return logsFor((first ?? {}) as Filter);
      case 'eth_getBlockReceipts': {
        if (personality.receipts) throw new Refused(personality.receipts);
        const isHash = typeof first === 'string' && first.length === 66;
        const block = visible(isHash ? chain.blockByHash(first as Hex) : chain.block(numberOf(first)));
        return block ? receiptsFor(block) : null;
      }
      case 'eth_getTransactionByHash': {
        const transaction = chain.transaction(first as Hex);
        return transaction && transaction.blockNumber <= headNumber() ? transactionJson(transaction) : null;
      }
      case 'eth_call': {
        const { to, data } = first as { to: Hex; data: Hex };
        const answer = chain.call(to.toLowerCase() as Hex, data, stateBlock(second));
        if (answer !== undefined) return answer;
        if (!chain.hasCode(to.toLowerCase() as Hex, stateBlock(second))) return '0x';
        throw new Refused({ code: 3, message: 'execution reverted' });
      }
      case 'eth_getCode':
        return chain.hasCode((first as string).toLowerCase() as Hex, stateBlock(second)) ? CODE : '0x';
      case 'eth_getBalance':
        return stateBlock(second) < 0 ? '0x0' : '0xde0b6b3a7640000';
      default:
        throw new Refused({
          code: -32601,
          message: `the method ${method} does not exist/is not available`,
        });
    }
  };

  const logsFor = (filter: Filter): readonly unknown[] => {
    const traits = provider.personality.logs ?? {};
    const asked = queryOf(filter);
    refuseFilter(asked, traits);
    if (filter.blockHash !== undefined) {
      const block = visible(chain.blockByHash(filter.blockHash));
      if (!block) throw new Refused({ code: -32000, message: 'unknown block' });
      const logs = chain.logsOfBlock(filter.blockHash) ?? [];
      return answered(
        logs.filter((log) => isMatch(log, asked)),
        { from: block.number, to: block.number },
      );
    }
    const from = numberOf(filter.fromBlock);
    const to = Math.min(numberOf(filter.toBlock), headNumber());
    const count = numberOf(filter.toBlock) - from + 1;
    refuseRange(asked, { from, to: from + count - 1 }, traits);
    if (traits.isBlindToAddresses && asked.addresses) return [];
    return answered(chain.logs({ from, to, topics: asked.topics, addresses: asked.addresses }), { from, to });
  };

  const receiptsFor = (block: VirtualBlock): readonly unknown[] => {
    const traits = provider.personality.logs ?? {};
    const { kept } = traits;
    if (!kept || block.number >= headNumber() - kept.blocks) return receiptsOf(chain, block, traits);
    if (kept.answer === 'empty') return [];
    throw new Refused(kept.answer, { count: block.number });
  };

  /** What it makes of the logs that it should answer. */
  const answered = (
    found: readonly VirtualLog[],
    { from, to }: { readonly from: number; readonly to: number },
  ): readonly unknown[] => {
    const traits = provider.personality.logs ?? {};
    const { kept, leavesOutEvery, truncatedAt } = traits;
    const lowest = kept ? headNumber() - kept.blocks : 0;
    if (kept && kept.answer !== 'empty' && from < lowest) throw new Refused(kept.answer, { count: from });
    let logs = found.filter(({ blockNumber }) => blockNumber >= lowest);
    refuseResults(logs.length, { from, to }, traits);
    if (logs.length > 0 && leavesOutEvery !== undefined && isOneIn(leavesOutEvery, ++rangesWithLogs))
      logs = logs.slice(0, -1);
    if (truncatedAt !== undefined) logs = logs.slice(0, truncatedAt);
    return ordered(logs, traits).map((log) => logJson(log, traits));
  };

  const provider: Omit<Provider, 'url' | 'close'> = {
    chain,
    personality: options.personality ?? archiveNode,
    get requests() {
      return requests;
    },
    get callsByMethod() {
      return callsByMethod;
    },
    onCall: () => undefined,
    resetCounts() {
      requests = 0;
      calls = 0;
      callsByMethod = new Map();
    },
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      // A fault of the kit itself is an unhandled rejection, so that it never looks like one of the endpoint.
      void respond(Buffer.concat(chunks).toString('utf8'), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.defineProperties(provider, {
    url: { value: new URL(`http://127.0.0.1:${port}/`) },
    close: {
      value: () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    },
  }) as Provider;
}

function isMatch({ topics, address }: VirtualLog, query: Query): boolean {
  return (query.topics?.includes(topics[0] as Hex) ?? true) && (query.addresses?.includes(address) ?? true);
}

function ordered(logs: readonly VirtualLog[], { order }: LogTraits): readonly VirtualLog[] {
  if (order === 'reversed') return logs.toReversed();
  if (order === 'by address') return logs.toSorted((a, b) => a.address.localeCompare(b.address));
  return logs;
}

function logJson(log: VirtualLog, traits: LogTraits): Record<string, unknown> {
  const { blockTimestamp, ...rest } = log;
  return {
    ...rest,
    blockNumber: quantity(log.blockNumber),
    logIndex: quantity(traits.hasIndexPerTransaction ? 0 : log.logIndex),
    transactionIndex: quantity(log.transactionIndex),
    removed: false,
    ...(traits.hasBlockTimestamp && { blockTimestamp: quantity(blockTimestamp) }),
  };
}

function blockJson(block: VirtualBlock | undefined, { bloom }: Personality, isFull: boolean): unknown {
  if (!block) return null;
  const { logsBloom, transactions, ...rest } = block;
  const shown = bloom === 'zero' ? EMPTY_BLOOM : bloom === 'full' ? FULL_BLOOM : logsBloom;
  return {
    ...emptyHeader,
    ...rest,
    number: quantity(block.number),
    timestamp: quantity(block.timestamp),
    ...(bloom !== 'absent' && { logsBloom: shown }),
    transactions: isFull ? transactions.map(transactionJson) : transactions.map(({ hash }) => hash),
  };
}

const zeroHash: Hex = `0x${'00'.repeat(32)}`;
/** What clients expect in a header and nobody here reads. */
const emptyHeader = {
  nonce: '0x0000000000000000',
  sha3Uncles: zeroHash,
  miner: `0x${'00'.repeat(20)}`,
  stateRoot: zeroHash,
  receiptsRoot: zeroHash,
  transactionsRoot: zeroHash,
  mixHash: zeroHash,
  difficulty: '0x0',
  totalDifficulty: '0x0',
  size: '0x220',
  extraData: '0x',
  gasLimit: '0x1c9c380',
  gasUsed: '0x0',
  baseFeePerGas: '0x1',
  uncles: [],
};

function transactionJson(transaction: VirtualTransaction): Record<string, unknown> {
  return {
    ...transaction,
    blockNumber: quantity(transaction.blockNumber),
    transactionIndex: quantity(transaction.transactionIndex),
    input: '0x12345678',
    value: '0x0',
    nonce: '0x0',
    gas: '0x5208',
    gasPrice: '0x1',
    type: '0x0',
    v: '0x1b',
    r: '0x1',
    s: '0x1',
  };
}

function receiptsOf(chain: VirtualChain, block: VirtualBlock, traits: LogTraits): readonly unknown[] {
  const logs = chain.logsOfBlock(block.hash) ?? [];
  return block.transactions.map((transaction) => ({
    blockHash: block.hash,
    blockNumber: quantity(block.number),
    transactionHash: transaction.hash,
    transactionIndex: quantity(transaction.transactionIndex),
    from: transaction.from,
    to: transaction.to,
    status: '0x1',
    logs: logs
      .filter(({ transactionHash }) => transactionHash === transaction.hash)
      .map((log) => logJson(log, traits)),
  }));
}

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

function sendRefusal(response: ServerResponse, error: unknown, id: unknown, { rate }: Personality): void {
  if (!(error instanceof Refused)) throw error;
  const { message, status = 200, isPlainText, isReset } = error.wording;
  if (isReset) {
    response.socket?.resetAndDestroy();
    return;
  }
  if (rate?.retryAfterSeconds !== undefined && status === 429)
    response.setHeader('Retry-After', String(rate.retryAfterSeconds));
  if (isPlainText) response.writeHead(status, { 'Content-Type': 'text/plain' }).end(message);
  else sendJson(response, { jsonrpc: '2.0', id: id ?? null, error: errorOf(error) }, status);
}

function quantity(number: number): Hex {
  return `0x${number.toString(16)}`;
}
