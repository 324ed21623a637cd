/**
 * How an endpoint profile serves a chain over JSON-RPC. The chain is a virtual one (`startProvider`) or a recorded one
 * (`test/chaos/recorded-chain.ts`).
 */
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import {
  isOneIn,
  type JsonRpcCall,
  type JsonRpcServer,
  RpcError,
  type ServedEndpoint,
  startJsonRpcServer,
} from '../json-rpc-server.ts';
import { archiveNode, type EndpointProfile, type Limit, type LogTraits } from './endpoint-profile.ts';
import {
  EMPTY_BLOOM,
  type VirtualBlock,
  type VirtualChain,
  type VirtualLog,
  type VirtualTransaction,
} from './virtual-chain.ts';

/** JSON as a node answers it. */
export type Json = Readonly<Record<string, unknown>>;

/** A chain as its endpoints read it. What does not exist at its head is undefined. */
export interface ChainSource {
  readonly chainId: number;
  readonly head: number;
  /** How far the final block is below the head, whatever the profile says. */
  readonly finalLag?: number | undefined;
  block(number: number, isFull: boolean): Json | undefined;
  blockByHash(hash: Hex, isFull: boolean): Json | undefined;
  /** Each log with the time of its block. Both ends are included. */
  logs(query: Query & { readonly from: number; readonly to: number }): readonly Json[];
  logsOfBlock(hash: Hex, query: Query): readonly Json[] | undefined;
  receipts(hash: Hex): readonly Json[] | undefined;
  transaction(hash: Hex): Json | undefined;
  /** In the state of that block. Throws an RpcError where the call reverts. */
  call(to: Hex, data: Hex, block: number): unknown | Promise<unknown>;
  hasCode(address: Hex, block: number): boolean;
}

export type Provider = JsonRpcServer<EndpointProfile> & {
  /** May be replaced at any time. */
  chain: VirtualChain;
};

export interface ProviderOptions {
  readonly profile?: EndpointProfile;
  readonly port?: number;
}

export async function startProvider(
  chain: VirtualChain,
  { profile = archiveNode, port }: ProviderOptions = {},
): Promise<Provider> {
  const served = { chain };
  const server = await startJsonRpcServer<EndpointProfile>({
    profile,
    port,
    answererOf: (endpoint) => {
      const answer = createAnswerer(endpoint);
      return (call) => answer(call, virtualSource(served.chain));
    },
  });
  return Object.defineProperty(server, 'chain', {
    get: () => served.chain,
    set: (told: VirtualChain) => {
      served.chain = told;
    },
  }) as Provider;
}

const USUAL_FINALITY_BLOCKS = 8;
const CODE: Hex = '0x6080';
const FULL_BLOOM: Hex = `0x${'ff'.repeat(256)}`;

/** Answers calls as the endpoint's profile does. */
export function createAnswerer(endpoint: ServedEndpoint<EndpointProfile>) {
  let answersWithLogs = 0;

  return async ({ method, params }: JsonRpcCall, chain: ChainSource): Promise<unknown> => {
    const { profile } = endpoint;
    const { lag, logs: traits = {} } = profile;
    const [first, second] = params;
    const isBehind = lag !== undefined && isOneIn(lag.every ?? 1, endpoint.requests);
    const head = Math.max(0, chain.head - (isBehind ? lag.blocks : 0));

    const numberOf = (tag: unknown): number => {
      if (tag === 'latest' || tag === 'pending' || tag === undefined) return head;
      if (tag === 'earliest') return 0;
      if (tag !== 'finalized' && tag !== 'safe') return Number(tag);
      if (chain.finalLag !== undefined) return Math.max(0, head - chain.finalLag);
      const { finalized = { lagBlocks: USUAL_FINALITY_BLOCKS } } = profile;
      if (finalized === 'genesis') return 0;
      if (finalized === 'null') return -1;
      if ('error' in finalized) throw new RpcError(finalized.error);
      return Math.max(0, head - finalized.lagBlocks);
    };
    const visible = (found: Json | undefined): Json | undefined =>
      Number(found?.number ?? found?.blockNumber) <= head ? found : undefined;
    /** The block whose state answers, or an error; -1: the state before the first block, where there is nothing. */
    const stateBlock = (tag: unknown): number => {
      const number = numberOf(tag);
      const { state } = profile;
      if (!state || number >= head - state.keptBlocks) return number;
      if (state.answer === 'current') return head;
      if (state.answer === 'empty') return -1;
      throw new RpcError(state.answer, { count: number });
    };

    const logsFor = (filter: Filter): readonly Json[] => {
      const query = queryOf(filter);
      checkFilter(query, traits);
      if (filter.blockHash !== undefined) {
        const block = visible(chain.blockByHash(filter.blockHash, false));
        const found = block && chain.logsOfBlock(filter.blockHash, query);
        if (!found) throw new RpcError({ code: -32000, message: 'unknown block' });
        return answeredLogs(found, Number(block.number), Number(block.number));
      }
      const [from, to] = [numberOf(filter.fromBlock), numberOf(filter.toBlock)];
      checkRange(query, { from, to }, traits);
      if (traits.isBlindToAddresses && query.addresses) return [];
      const highest = Math.min(to, head);
      return answeredLogs(chain.logs({ from, to: highest, ...query }), from, highest);
    };
    /** What it makes of the logs that it should answer. */
    const answeredLogs = (found: readonly Json[], from: number, to: number): readonly Json[] => {
      const { kept, leavesOutEvery, truncatedAt } = traits;
      const lowest = kept ? head - kept.blocks : 0;
      if (kept && kept.answer !== 'empty' && from < lowest) throw new RpcError(kept.answer, { count: from });
      let logs = found.filter(({ blockNumber }) => Number(blockNumber) >= lowest);
      checkResults(logs.length, { from, to }, traits);
      if (logs.length > 0 && leavesOutEvery !== undefined && isOneIn(leavesOutEvery, ++answersWithLogs))
        logs = logs.slice(0, -1);
      if (truncatedAt !== undefined) logs = logs.slice(0, truncatedAt);
      return ordered(logs, traits).map((log) => shownLog(log, traits));
    };
    const receiptsFor = (block: Json): readonly Json[] => {
      const { kept } = traits;
      const number = Number(block.number);
      if (kept && !kept.keepsReceipts && number < head - kept.blocks) {
        if (kept.answer === 'empty') return [];
        throw new RpcError(kept.answer, { count: number });
      }
      return (chain.receipts(block.hash as Hex) ?? []).map((receipt) => ({
        ...receipt,
        logs: (receipt.logs as readonly Json[]).map((log) => shownLog(log, traits)),
      }));
    };

    switch (method) {
      case 'eth_chainId':
        return quantity(chain.chainId);
      case 'net_version':
        return String(chain.chainId);
      case 'eth_blockNumber':
        return quantity(head);
      case 'eth_getBlockByNumber': {
        const number = numberOf(first);
        return number < 0 ? null : shownBlock(visible(chain.block(number, second === true)), profile);
      }
      case 'eth_getBlockByHash':
        return shownBlock(visible(chain.blockByHash(first as Hex, second === true)), profile);
      case 'eth_getLogs':
        return logsFor((first ?? {}) as Filter);
      case 'eth_getBlockReceipts': {
        if (profile.receipts) throw new RpcError(profile.receipts);
        const isHash = typeof first === 'string' && first.length === 66;
        const block = visible(
          isHash ? chain.blockByHash(first as Hex, false) : chain.block(numberOf(first), false),
        );
        return block && receiptsFor(block);
      }
      case 'eth_getTransactionByHash':
        return visible(chain.transaction(first as Hex));
      case 'eth_call': {
        const { to, data } = first as { to: Hex; data: Hex };
        return chain.call(to.toLowerCase() as Hex, data, stateBlock(second));
      }
      case 'eth_getCode':
        return chain.hasCode((first as string).toLowerCase() as Hex, stateBlock(second)) ? CODE : '0x';
      case 'eth_getBalance': {
        const number = stateBlock(second);
        if (Number.isNaN(number) || number > head)
          throw new RpcError({ code: -32000, message: 'header not found' });
        return number < 0 ? '0x0' : '0xde0b6b3a7640000';
      }
      default:
        throw new RpcError({
          code: -32601,
          message: `the method ${method} does not exist/is not available`,
        });
    }
  };
}

function ordered(logs: readonly Json[], { order }: LogTraits): readonly Json[] {
  if (order === 'reversed') return logs.toReversed();
  if (order !== 'by address') return logs;
  return logs.toSorted((a, b) => String(a.address).localeCompare(String(b.address)));
}

function shownLog({ blockTimestamp, ...log }: Json, traits: LogTraits): Json {
  return {
    ...log,
    ...(traits.hasIndexPerTransaction && { logIndex: '0x0' }),
    ...(traits.hasBlockTimestamp && { blockTimestamp }),
  };
}

function shownBlock(block: Json | undefined, { bloom }: EndpointProfile): Json | undefined {
  if (!block || bloom === undefined) return block;
  const { logsBloom, ...rest } = block;
  if (bloom === 'absent') return rest;
  return { ...rest, logsBloom: bloom === 'zero' ? EMPTY_BLOOM : FULL_BLOOM };
}

// ---- Limits on `eth_getLogs`, checked before and after the chain answers

export interface Filter {
  readonly fromBlock?: unknown;
  readonly toBlock?: unknown;
  readonly blockHash?: Hex;
  readonly address?: Hex | readonly Hex[];
  readonly topics?: readonly (Hex | readonly Hex[] | null)[];
}

/** The filter with its lists; undefined is any. */
export interface Query {
  readonly topics: readonly Hex[] | undefined;
  readonly addresses: readonly Hex[] | undefined;
}

export function queryOf({ address, topics = [] }: Filter): Query {
  const list = (value: Hex | readonly Hex[] | null | undefined) => {
    const values = value === null || value === undefined ? [] : [value].flat();
    return values.length === 0 ? undefined : (values as Hex[]).map((entry) => entry.toLowerCase() as Hex);
  };
  return { topics: list(topics[0]), addresses: list(address) };
}

function checkFilter({ topics, addresses }: Query, traits: LogTraits): void {
  if (traits.rejected) throw new RpcError(traits.rejected);
  if (traits.addressRequired && !addresses) throw new RpcError(traits.addressRequired);
  for (const [limit, list] of [
    [traits.topics, topics],
    [traits.addresses, addresses],
  ] as const) {
    const count = list?.length ?? 0;
    if (limit && count > limit.max) throw new RpcError(limit.error, { max: limit.max, count });
  }
}

/** Both ends included. */
interface Span {
  readonly from: number;
  readonly to: number;
}

function checkRange({ addresses }: Query, { from, to }: Span, traits: LogTraits): void {
  const count = to - from + 1;
  for (const limit of [traits.blocks, addresses ? undefined : traits.blocksWithoutAddress])
    if (limit && count > limit.max) throw beyond(limit, count, { from, to }, from + limit.max - 1);
}

/** @param count how many logs there are in the span */
function checkResults(count: number, { from, to }: Span, { results }: LogTraits): void {
  if (!results || count <= results.max) return;
  throw beyond(results, count, { from, to }, from + Math.max(0, Math.floor((to - from) / 2) - 1));
}

/** @param acceptedTo the end of a shorter range that would be accepted */
const beyond = ({ max, error }: Limit, count: number, { from, to }: Span, acceptedTo: number) =>
  new RpcError(error, {
    ...{ max, count, from, to },
    fromHex: quantity(from),
    acceptedToHex: quantity(acceptedTo),
  });

/** A virtual chain in the JSON of a node. */
export function virtualSource(chain: VirtualChain): ChainSource {
  const isMatch = ({ topics, address }: VirtualLog, query: Query) =>
    (query.topics?.includes(topics[0] as Hex) ?? true) && (query.addresses?.includes(address) ?? true);
  return {
    chainId: Number(chain.network.chainId),
    head: chain.head,
    finalLag: chain.finalLag,
    block: (number, isFull) => blockJson(chain.block(number), isFull),
    blockByHash: (hash, isFull) => blockJson(chain.blockByHash(hash), isFull),
    logs: (query) => chain.logs(query).map(logJson),
    logsOfBlock: (hash, query) =>
      chain
        .logsOfBlock(hash)
        ?.filter((log) => isMatch(log, query))
        .map(logJson),
    receipts(hash) {
      const logs = chain.logsOfBlock(hash) ?? [];
      return chain.blockByHash(hash)?.transactions.map((transaction) => ({
        blockHash: hash,
        blockNumber: quantity(transaction.blockNumber),
        transactionHash: transaction.hash,
        transactionIndex: quantity(transaction.transactionIndex),
        from: transaction.from,
        to: transaction.to,
        status: '0x1',
        logs: logs.filter(({ transactionHash }) => transactionHash === transaction.hash).map(logJson),
      }));
    },
    transaction(hash) {
      const found = chain.transaction(hash);
      return found && transactionJson(found);
    },
    call(to, data, block) {
      const answer = chain.call(to, data, block);
      if (answer !== undefined) return answer;
      if (!chain.hasCode(to, block)) return '0x';
      throw new RpcError({ code: 3, message: 'execution reverted' });
    },
    hasCode: chain.hasCode,
  };
}

export function logJson(log: VirtualLog): Json {
  return {
    ...log,
    blockNumber: quantity(log.blockNumber),
    logIndex: quantity(log.logIndex),
    transactionIndex: quantity(log.transactionIndex),
    blockTimestamp: quantity(log.blockTimestamp),
    removed: false,
  };
}

function blockJson(block: VirtualBlock | undefined, isFull: boolean): Json | undefined {
  return (
    block && {
      ...emptyHeader,
      ...block,
      number: quantity(block.number),
      timestamp: quantity(block.timestamp),
      transactions: block.transactions.map((one) => (isFull ? transactionJson(one) : one.hash)),
    }
  );
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

export function transactionJson(transaction: VirtualTransaction): Json {
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

export function quantity(number: number): Hex {
  return `0x${number.toString(16)}`;
}
