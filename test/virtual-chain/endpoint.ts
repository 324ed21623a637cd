/** A JSON-RPC endpoint on a real socket that serves a virtual chain the way a profile does. */
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import {
  isOneIn,
  type JsonRpcCall,
  type JsonRpcServer,
  RpcError,
  type ServedEndpoint,
  startJsonRpcServer,
} from '../json-rpc-server.ts';
import { EMPTY_BLOOM } from './bloom-filter.ts';
import { archiveNode, type EndpointProfile, type LogTraits } from './endpoint-profile.ts';
import { checkFilter, checkRange, checkResults, type Filter, type Query, queryOf } from './log-limits.ts';
import type { VirtualBlock, VirtualChain, VirtualLog, VirtualTransaction } from './virtual-chain.ts';

export type Provider = JsonRpcServer<EndpointProfile> & {
  /** May be replaced at any time. */
  chain: VirtualChain;
};

export interface ProviderOptions {
  readonly profile?: EndpointProfile;
  readonly port?: number;
}

const USUAL_FINALITY_BLOCKS = 8;
const CODE: Hex = '0x6080';
const FULL_BLOOM: Hex = `0x${'ff'.repeat(256)}`;

export async function startProvider(
  chain: VirtualChain,
  { profile = archiveNode, port }: ProviderOptions = {},
): Promise<Provider> {
  const served = { chain };
  const server = await startJsonRpcServer<EndpointProfile>({
    profile,
    port,
    answererOf: (endpoint) => createAnswerer(served, endpoint),
  });
  return Object.defineProperty(server, 'chain', {
    get: () => served.chain,
    set: (told: VirtualChain) => {
      served.chain = told;
    },
  }) as Provider;
}

function createAnswerer(served: { readonly chain: VirtualChain }, provider: ServedEndpoint<EndpointProfile>) {
  let rangesWithLogs = 0;

  const headNumber = (): number => {
    const { lag } = provider.profile;
    const isBehind = lag !== undefined && isOneIn(lag.every ?? 1, provider.requests);
    return Math.max(0, served.chain.head - (isBehind ? lag.blocks : 0));
  };

  const numberOf = (tag: unknown): number => {
    const head = headNumber();
    if (tag === 'latest' || tag === 'pending' || tag === undefined) return head;
    if (tag === 'earliest') return 0;
    if (tag !== 'finalized' && tag !== 'safe') return Number(tag);
    if (served.chain.finalLag !== undefined) return Math.max(0, head - served.chain.finalLag);
    const { finalized = { lagBlocks: USUAL_FINALITY_BLOCKS } } = provider.profile;
    if (finalized === 'genesis') return 0;
    if (finalized === 'null') return -1;
    if ('error' in finalized) throw new RpcError(finalized.error);
    return Math.max(0, head - finalized.lagBlocks);
  };

  const visible = (block: VirtualBlock | undefined) =>
    block && block.number <= headNumber() ? block : undefined;

  /** The block whose state answers, or an error; -1: the state before the first block, where there is nothing. */
  const stateBlock = (tag: unknown): number => {
    const number = numberOf(tag);
    const { state } = provider.profile;
    if (!state || number >= headNumber() - state.keptBlocks) return number;
    if (state.answer === 'current') return headNumber();
    if (state.answer === 'empty') return -1;
    throw new RpcError(state.answer, { count: number });
  };

  const answerTo = ({ method, params }: JsonRpcCall): unknown => {
    const { profile } = provider;
    const [first, second] = params;
    switch (method) {
      case 'eth_chainId':
        return quantity(Number(served.chain.network.chainId));
      case 'net_version':
        return served.chain.network.chainId;
      case 'eth_blockNumber':
        return quantity(headNumber());
      case 'eth_getBlockByNumber': {
        const number = numberOf(first);
        return blockJson(
          number < 0 ? undefined : visible(served.chain.block(number)),
          profile,
          second === true,
        );
      }
      case 'eth_getBlockByHash':
        return blockJson(visible(served.chain.blockByHash(first as Hex)), profile, second === true);
      case 'eth_getLogs':
        return logsFor((first ?? {}) as Filter);
      case 'eth_getBlockReceipts': {
        if (profile.receipts) throw new RpcError(profile.receipts);
        const isHash = typeof first === 'string' && first.length === 66;
        const block = visible(
          isHash ? served.chain.blockByHash(first as Hex) : served.chain.block(numberOf(first)),
        );
        return block ? receiptsFor(block) : null;
      }
      case 'eth_getTransactionByHash': {
        const transaction = served.chain.transaction(first as Hex);
        return transaction && transaction.blockNumber <= headNumber() ? transactionJson(transaction) : null;
      }
      case 'eth_call': {
        const { to, data } = first as { to: Hex; data: Hex };
        const answer = served.chain.call(to.toLowerCase() as Hex, data, stateBlock(second));
        if (answer !== undefined) return answer;
        if (!served.chain.hasCode(to.toLowerCase() as Hex, stateBlock(second))) return '0x';
        throw new RpcError({ code: 3, message: 'execution reverted' });
      }
      case 'eth_getCode':
        return served.chain.hasCode((first as string).toLowerCase() as Hex, stateBlock(second)) ? CODE : '0x';
      case 'eth_getBalance':
        return stateBlock(second) < 0 ? '0x0' : '0xde0b6b3a7640000';
      default:
        throw new RpcError({
          code: -32601,
          message: `the method ${method} does not exist/is not available`,
        });
    }
  };

  const logsFor = (filter: Filter): readonly unknown[] => {
    const traits = provider.profile.logs ?? {};
    const asked = queryOf(filter);
    checkFilter(asked, traits);
    if (filter.blockHash !== undefined) {
      const block = visible(served.chain.blockByHash(filter.blockHash));
      if (!block) throw new RpcError({ code: -32000, message: 'unknown block' });
      const logs = served.chain.logsOfBlock(filter.blockHash) ?? [];
      return answered(
        logs.filter((log) => isMatch(log, asked)),
        { from: block.number, to: block.number },
      );
    }
    const from = numberOf(filter.fromBlock);
    const to = Math.min(numberOf(filter.toBlock), headNumber());
    const count = numberOf(filter.toBlock) - from + 1;
    checkRange(asked, { from, to: from + count - 1 }, traits);
    if (traits.isBlindToAddresses && asked.addresses) return [];
    return answered(served.chain.logs({ from, to, topics: asked.topics, addresses: asked.addresses }), {
      from,
      to,
    });
  };

  const receiptsFor = (block: VirtualBlock): readonly unknown[] => {
    const traits = provider.profile.logs ?? {};
    const { kept } = traits;
    if (!kept || block.number >= headNumber() - kept.blocks) return receiptsOf(served.chain, block, traits);
    if (kept.answer === 'empty') return [];
    throw new RpcError(kept.answer, { count: block.number });
  };

  /** What it makes of the logs that it should answer. */
  const answered = (
    found: readonly VirtualLog[],
    { from, to }: { readonly from: number; readonly to: number },
  ): readonly unknown[] => {
    const traits = provider.profile.logs ?? {};
    const { kept, leavesOutEvery, truncatedAt } = traits;
    const lowest = kept ? headNumber() - kept.blocks : 0;
    if (kept && kept.answer !== 'empty' && from < lowest) throw new RpcError(kept.answer, { count: from });
    let logs = found.filter(({ blockNumber }) => blockNumber >= lowest);
    checkResults(logs.length, { from, to }, traits);
    if (logs.length > 0 && leavesOutEvery !== undefined && isOneIn(leavesOutEvery, ++rangesWithLogs))
      logs = logs.slice(0, -1);
    if (truncatedAt !== undefined) logs = logs.slice(0, truncatedAt);
    return ordered(logs, traits).map((log) => logJson(log, traits));
  };

  return answerTo;
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

function blockJson(block: VirtualBlock | undefined, { bloom }: EndpointProfile, isFull: boolean): unknown {
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

function quantity(number: number): Hex {
  return `0x${number.toString(16)}`;
}
