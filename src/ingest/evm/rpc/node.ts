/**
 * What the indexer asks, put to one endpoint, with every answer held against its question: the blocks asked for, logs of
 * the range, contracts and topics asked for, in order, none twice, of one chain.
 */

import { NodeError } from '../../engine/faults.ts';
import { createAnswerReader } from '../../engine/json-rpc/answer-reader.ts';
import {
  AnswerTooHeavyError,
  type Endpoint,
  EndpointError,
  type RpcAnswer,
  type RpcCall,
} from '../../engine/json-rpc/endpoint.ts';
import {
  createEndpointPool,
  type EndpointPoolOptions,
  type PooledNodeOptions,
} from '../../engine/json-rpc/endpoint-pool.ts';
import { MAX_AHEAD_MS } from '../../engine/timing.ts';
import { inParallel } from '../../work.ts';
import type { EvmSource } from '../settings.ts';
import {
  bytesOf,
  orderLogs,
  parseBlock,
  parseLogs,
  parseQuantity,
  parseReceiptLogs,
  parseTransaction,
} from './answers.ts';
import type { Block, CallAnswer, Chain, ChainLog, ChainNode, Hex } from './chain.ts';
import { classifyEvmRpcError } from './evm-rpc-errors.ts';
import { createLogQueries, type LogPlace, quantity, type TopicFilter } from './log-queries.ts';

export interface RpcNode extends ChainNode {
  /** Whether it is a node of this network at all, and how far it is. */
  checkIn(): Promise<Block>;
  /** The newest block, out of an answer of the endpoint; throws where it cannot be one. */
  headIn(answer: RpcAnswer | undefined): Block;
}

/** A node of another network is not asked again soon: only a change of the configuration helps. */
const WRONG_NETWORK_REST_MS = 300_000;
const RECEIPTS_AT_ONCE = 4;
const BY_NUMBER = 'eth_getBlockByNumber';
const OF_ANOTHER_BLOCK = 'a log of another block';
const TIMES_TOO_HEAVY = 3;
const MAX_HEAVY_CALLS = 10_000;
const latestCall: RpcCall = { method: BY_NUMBER, params: ['latest', false] };

export function createNode(
  endpoint: Endpoint,
  { network, finality }: Pick<EvmSource, 'network' | 'finality'>,
  { now, onHead, writeLog }: PooledNodeOptions,
): RpcNode {
  const { name } = endpoint;
  let offersReceipts = true;

  const { fault, parsed, rejected, resultOf } = createAnswerReader(name, {
    pruned: 'it does not have that part of history: ',
  });

  const ask = async (method: string, ...params: readonly unknown[]): Promise<RpcAnswer | undefined> => {
    const [answer] = await endpoint.ask([{ method, params }]);
    return answer;
  };

  const callAnswer = (answer: RpcAnswer | undefined): CallAnswer => {
    const method = 'eth_call';
    // A contract that takes longer than nodes allow does not answer either.
    if (['reverted', 'aborted'].includes(errorKind(answer) ?? '')) return undefined;
    const result = resultOf(answer, method);
    const data = parsed(method, () => bytesOf(result, undefined, 'bytes'));
    return data === '0x' ? undefined : data;
  };

  const blockIn = (answer: RpcAnswer | undefined, method = BY_NUMBER): Block =>
    parsed(method, () => parseBlock(resultOf(answer, method)));
  const isNull = (answer: RpcAnswer | undefined) =>
    answer !== undefined && 'result' in answer && answer.result === null;
  const errorKind = (answer: RpcAnswer | undefined) =>
    answer !== undefined && 'error' in answer ? answer.error.kind : undefined;

  /** The highest block that it has shown, to any of the concurrent callers. */
  let shown = 0;

  const headIn = (answer: RpcAnswer | undefined): Block => {
    const head = blockIn(answer);
    if (head.timestamp * 1000 > now() + MAX_AHEAD_MS) {
      const time = new Date(Math.min(head.timestamp * 1000, 8.64e15)).toISOString();
      throw fault(BY_NUMBER, `block ${head.number} is of ${time}, which is in the future`);
    }
    shown = Math.max(shown, head.number);
    onHead(head.number);
    return head;
  };

  /** @param places tags, or numbers as quantities */
  const askForBlocks = (places: readonly string[]) =>
    endpoint.ask(places.map((place) => ({ method: BY_NUMBER, params: [place, false] })));

  const blockAt = (number: number, answer: RpcAnswer | undefined): Block => {
    const block = blockIn(answer);
    if (block.number !== number) throw fault(BY_NUMBER, `block ${block.number} instead of ${number}`);
    return block;
  };

  const blocks = async (numbers: readonly number[]): Promise<readonly Block[]> => {
    const places = numbers.map(quantity);
    let answers = await askForBlocks(places);
    // Behind a load balancer another backend may have the block, since one of them has shown it.
    if (answers.some(isNull) && Math.max(...numbers) <= shown) answers = await askForBlocks(places);
    return numbers.map((number, index) => {
      if (isNull(answers[index])) throw fault(BY_NUMBER, `it has no block ${number}`, 'behind');
      const block = blockAt(number, answers[index]);
      shown = Math.max(shown, number);
      return block;
    });
  };

  const tag = typeof finality === 'number' ? undefined : finality;

  /** The block in the answer to a question for the network's tag of final blocks. */
  const taggedBlock = (answer: RpcAnswer | undefined): Block => {
    if (isNull(answer) || ['unknown', 'unsupported', 'invalid'].includes(errorKind(answer) ?? '')) {
      throw fault(
        BY_NUMBER,
        `it knows no ${tag} block; configure a depth in blocks for ${network.name}, such as \`finality: 64\``,
        'configuration',
      );
    }
    return blockIn(answer);
  };

  /** @param tagged the block with the network's tag; undefined where a depth is configured */
  const finalBelow = async (head: Block, tagged: Block | undefined): Promise<Block> => {
    if (tagged !== undefined && tagged.number <= head.number) return tagged;
    // Where finality is instant the chain may have moved on since the head was read.
    const number = typeof finality === 'number' ? Math.max(0, head.number - finality) : head.number;
    if (number === head.number && tagged === undefined) return head;
    const [below] = await blocks([number]);
    return below ?? head;
  };

  /** Checked against the query, in the order of the chain. */
  const checkedLogs = (
    logs: readonly ChainLog[],
    method: string,
    topics: readonly Hex[],
    problemOf: (log: ChainLog) => string | undefined,
  ): readonly ChainLog[] => {
    const askedTopics = new Set<string | undefined>(topics);
    for (const log of logs) {
      const problem =
        problemOf(log) ??
        (askedTopics.has(log.topics[0]) ? undefined : 'a log with a topic that was not asked for');
      if (problem !== undefined) throw fault(method, problem);
    }
    const ordered = orderLogs(logs);
    if ('problem' in ordered) throw fault(method, ordered.problem);
    return ordered.logs;
  };

  /** Whether a node that did not answer in time answers at all. */
  const isAlive = async (): Promise<boolean> => {
    try {
      return (await ask('eth_chainId')) !== undefined;
    } catch (error) {
      if (error instanceof NodeError) return false;
      throw error;
    }
  };

  /** How often calls, each alone, were too much for the node while it was alive. */
  const heavy = new Map<string, number>();
  const isRejecting = (call: RpcCall) => heavy.get(JSON.stringify(call)) === TIMES_TOO_HEAVY;

  /**
   * A contract whose call times out on a node that is alive, or returns too much, counts as one that reverts, but
   * only after a few times in a row: the node may have been slow for another reason.
   */
  const askContracts = async (calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> => {
    const willing = calls.filter((call) => !isRejecting(call));
    const answers = await askWilling(willing);
    const message = 'it was too much for the node';
    let next = 0;
    return calls.map((call) => {
      const answer = willing[next] === call ? answers[next++] : undefined;
      return answer ?? { error: { kind: 'reverted', code: undefined, message } };
    });
  };

  const askWilling = async (calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> => {
    if (calls.length === 0) return [];
    const [only] = calls;
    const key = calls.length === 1 ? JSON.stringify(only) : undefined;
    try {
      const answers = await endpoint.ask(calls);
      if (key !== undefined) heavy.delete(key);
      return answers;
    } catch (error) {
      if (!(error instanceof AnswerTooHeavyError)) throw error;
      if (key === undefined) {
        const middle = Math.ceil(calls.length / 2);
        return [
          ...(await askContracts(calls.slice(0, middle))),
          ...(await askContracts(calls.slice(middle))),
        ];
      }
      if (heavy.size >= MAX_HEAVY_CALLS) heavy.clear();
      if (await isAlive()) heavy.set(key, (heavy.get(key) ?? 0) + 1);
      if (heavy.get(key) !== TIMES_TOO_HEAVY) throw error;
      return askContracts(calls);
    }
  };

  const parseLogAnswer = (result: unknown, place: LogPlace, { topics, addresses }: TopicFilter) => {
    const method = 'eth_getLogs';
    const asked = addresses && new Set<string>(addresses);
    return checkedLogs(
      parsed(method, () => parseLogs(result)),
      method,
      topics,
      ({ blockNumber, blockHash, address }) => {
        if (asked?.has(address) === false) return `a log of ${address}, which was not asked for`;
        if ('blockHash' in place) return blockHash === place.blockHash ? undefined : OF_ANOTHER_BLOCK;
        return blockNumber < place.fromBlock || blockNumber > place.toBlock
          ? `a log of block ${blockNumber}, outside ${place.fromBlock} to ${place.toBlock}`
          : undefined;
      },
    );
  };

  const receiptLogs = async (hashes: readonly Hex[], topics: readonly Hex[]) => {
    const method = 'eth_getBlockReceipts';
    const wanted = new Set<string | undefined>(topics);
    const found = new Map<Hex, readonly ChainLog[]>();
    // Not in batches: the receipts of one busy block are an answer of megabytes.
    await inParallel(hashes, RECEIPTS_AT_ONCE, async (blockHash) => {
      if (!offersReceipts) return;
      const answer = await ask(method, blockHash);
      if (['unsupported', 'invalid'].includes(errorKind(answer) ?? '')) offersReceipts = false;
      if (!offersReceipts) return;
      const result = resultOf(answer, method);
      if (result === null) throw fault(method, `it has no receipts of block ${blockHash}`);
      const logs = parsed(method, () => parseReceiptLogs(result, blockHash)).filter((log) =>
        wanted.has(log.topics[0]),
      );
      const problemOf = (log: ChainLog) => (log.blockHash === blockHash ? undefined : OF_ANOTHER_BLOCK);
      found.set(blockHash, checkedLogs(logs, method, topics, problemOf));
    });
    return offersReceipts ? hashes.map((hash) => found.get(hash) ?? []) : undefined;
  };

  const queries = createLogQueries({
    ask: (filters, isBulk) =>
      endpoint.ask(
        filters.map((filter) => ({ method: 'eth_getLogs', params: [filter] })),
        isBulk,
      ),
    isAlive,
    parse: parseLogAnswer,
    receiptLogs,
    hashesOf: async (numbers) => (await blocks(numbers)).map(({ hash }) => hash),
    rejected: (rpcError) => rejected('eth_getLogs', rpcError),
    learned: (text) => writeLog(`${name}: ${text}`, { network: network.name }),
    now,
  });

  return {
    name,

    headIn,
    async checkIn() {
      const [id, latest] = await endpoint.ask([{ method: 'eth_chainId', params: [] }, latestCall]);
      const chainId = parsed('eth_chainId', () =>
        parseQuantity(resultOf(id, 'eth_chainId'), 'number of a chain'),
      );
      if (String(chainId) !== network.chainId) {
        throw new EndpointError(
          `${name}: it is a node of chain ${chainId}, and ${network.name} is chain ${network.chainId}`,
          'wrong-chain',
          WRONG_NETWORK_REST_MS,
        );
      }
      return headIn(latest);
    },

    async head() {
      return headIn(await ask(BY_NUMBER, 'latest', false));
    },

    async tips(number) {
      const tags = ['latest', ...(tag === undefined ? [] : [tag])];
      const answers = await askForBlocks(number === undefined ? tags : [...tags, quantity(number)]);
      const head = headIn(answers[0]);
      const final = await finalBelow(head, tag === undefined ? undefined : taggedBlock(answers[1]));
      const found = answers[tags.length];
      const isThere = number !== undefined && !isNull(found);
      return { head, final, block: isThere ? blockAt(number, found) : undefined };
    },

    async finalized(head) {
      const tagged = tag === undefined ? undefined : taggedBlock(await ask(BY_NUMBER, tag, false));
      return finalBelow(head, tagged);
    },

    blocks,

    async blockByHash(hash) {
      const method = 'eth_getBlockByHash';
      const answer = await ask(method, hash, false);
      if (isNull(answer) || errorKind(answer) === 'unknown') return undefined;
      const block = blockIn(answer, method);
      if (block.hash !== hash) throw fault(method, `block ${block.hash} instead of ${hash}`);
      return block;
    },

    get logLimits() {
      return queries.limits;
    },

    async logs(filter) {
      const { fromBlock, toBlock, topics, addresses } = filter;
      if (fromBlock > toBlock) throw new RangeError(`No blocks from ${fromBlock} to ${toBlock}.`);
      // To a node an empty list means "any", not "none".
      return topics.length === 0 || addresses?.length === 0 ? [] : queries.logs(filter);
    },

    async logsOfBlocks(hashes, topics, addresses) {
      return topics.length === 0 ? hashes.map(() => []) : queries.logsOfBlocks(hashes, topics, addresses);
    },

    receiptLogs,

    async hasLogs(blockHash) {
      const answer = await ask('eth_getLogs', { blockHash });
      if (answer === undefined || 'error' in answer) return undefined;
      return parsed('eth_getLogs', () => parseLogs(answer.result)).length > 0;
    },

    async transactions(hashes) {
      const method = 'eth_getTransactionByHash';
      const answers = await endpoint.ask(hashes.map((hash) => ({ method, params: [hash] })));
      return hashes.map((hash, index) => {
        const result = resultOf(answers[index], method);
        if (result === null) throw fault(method, `it has no transaction ${hash}`);
        const transaction = parsed(method, () => parseTransaction(result));
        if (transaction.hash !== hash)
          throw fault(method, `transaction ${transaction.hash} instead of ${hash}`);
        return transaction;
      });
    },

    async accounts(questions) {
      const methods = { code: 'eth_getCode', balance: 'eth_getBalance' };
      const answers = await endpoint.ask(
        questions.map(({ address, has, block }) => ({
          method: methods[has],
          params: [address, quantity(block)],
        })),
      );
      // Nothing is `0x` for code and `0x0`, of whatever length, for a balance.
      return answers.map((answer) =>
        'error' in answer || typeof answer.result !== 'string' ? undefined : !/^0x0*$/.test(answer.result),
      );
    },

    async calls(calls) {
      const asked = calls.map(
        ({ to, data }): RpcCall => ({ method: 'eth_call', params: [{ to, data }, 'latest'] }),
      );
      const answers = (await askContracts(asked)).map(callAnswer);
      const silent = asked.filter((_, index) => answers[index] === undefined);
      if (silent.length === 0) return answers;
      // One that has fallen back behind what it showed before knows nothing of contracts that are there: its silence
      // counts only together with its height.
      const [height, ...again] = await askContracts([latestCall, ...silent]);
      const { number } = blockIn(height);
      if (number < shown)
        throw fault('eth_call', `its state is of block ${number}, and it had shown block ${shown}`, 'behind');
      let next = 0;
      return answers.map((answer) => answer ?? callAnswer(again[next++]));
    },
  };
}

export function createChain(source: EvmSource, options: EndpointPoolOptions): Chain {
  const create = (endpoint: Endpoint, nodeOptions: PooledNodeOptions) =>
    createNode(endpoint, source, nodeOptions);
  return { network: source.network, ...createEndpointPool(source, classifyEvmRpcError, create, options) };
}
