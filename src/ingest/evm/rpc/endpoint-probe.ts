/**
 * Probes one endpoint with the queries that the indexer makes: whether it is a node of the network, what it accepts in one
 * query for logs, and how far back its logs and its state go.
 */
import { NodeError, RangeTooLargeError } from '../../engine/faults.ts';
import {
  AnswerTooHeavyError,
  createEndpoint,
  type EndpointOptions,
  usualTiming,
} from '../../engine/json-rpc/endpoint.ts';
import { answerOf, callOf, typeAndVersion } from '../contracts/abi.ts';
import { currentRegistrations, watchedTopics } from '../contracts/contracts.ts';
import type { EvmSource } from '../settings.ts';
import { startBlockOf } from '../start-block.ts';
import type { Block, Hex } from './chain.ts';
import { classifyEvmRpcError } from './evm-rpc-errors.ts';
import { AddressRequiredError } from './log-queries.ts';
import { createNode } from './node.ts';

/** A value, or why there is none, for people. */
export type Found<T> = { readonly value: T } | { readonly problem: string };

/** What was not reached because the endpoint failed before is left out. */
export interface EndpointProbe {
  readonly name: string;
  /** It answers, and is a node of this network. */
  readonly head: Found<Block>;
  readonly finalized?: Found<Block>;
  /** How many calls it takes in one request, up to what is configured. */
  readonly batchSize?: Found<number>;
  /** Blocks in one query for the logs of every contract, up to what is configured; null where it wants addresses. */
  readonly logRangeOfAll?: Found<number | null>;
  /** Blocks in one query for the logs of known contracts, up to what is configured. */
  readonly logRange?: Found<number>;
  /** Topics and addresses in one filter, up to those that were tried. */
  readonly filterSize?: Found<FilterSize>;
  readonly hasReceipts?: Found<boolean>;
  /** Whether there are logs at the first block to index, as far as its blooms tell; that block. */
  readonly logsFrom?: Found<number>;
  /** How many blocks back there is state, in powers of ten; all the way: the height of the chain. */
  readonly stateDepth?: Found<number>;
  readonly routers?: Found<readonly RouterFound[]>;
}

export interface FilterSize {
  readonly topics: number;
  readonly addresses: number;
}

export interface RouterFound {
  readonly address: Hex;
  readonly hasCode: boolean;
  /** What it calls itself, such as `Router 1.2.0`; null where it does not say. */
  readonly type: string | null;
}

/** Addresses in one filter, at most: the indexer asks by address where it knows no more contracts than this. */
export const MAX_ADDRESSES = 100;
/** Blocks around the first one that are looked at for logs that their blooms promise. */
const SAMPLED_BLOCKS = 20;
const EMPTY_BLOOM = /^0x0*$/;

/** Short: a dead endpoint must not hold up the others. */
const timing = {
  ...usualTiming,
  answerMs: 5_000,
  bodyMs: 10_000,
  maxWaitMs: 3_000,
  firstPauseMs: 500,
};

export async function probeEndpoint(
  source: EvmSource,
  options: Omit<EndpointOptions, 'requestsPerSecond' | 'batchSize' | 'timing' | 'classifyRpcError'>,
): Promise<EndpointProbe> {
  const { requestsPerSecond, batchSize, maxRange, routers, start } = source;
  const endpoint = createEndpoint({
    ...options,
    requestsPerSecond,
    batchSize,
    timing,
    classifyRpcError: classifyEvmRpcError,
  });
  const node = createNode(endpoint, source, { now: options.now, onHead: () => undefined });
  let isSilent = false;

  /** Undefined once the endpoint has left us waiting: each further question would wait as long. */
  const found = async <T>(ask: () => Promise<T>): Promise<Found<T> | undefined> => {
    if (isSilent) return undefined;
    try {
      return { value: await ask() };
    } catch (error) {
      if (!(error instanceof NodeError || error instanceof RangeTooLargeError)) throw error;
      isSilent = error instanceof AnswerTooHeavyError;
      return { problem: error.message };
    }
  };

  const head = await found(() => node.checkIn());
  if (head === undefined || 'problem' in head)
    return { name: endpoint.name, head: head ?? { problem: 'silent' } };
  const newest = head.value;
  /** Whether a call has a result, of whatever shape. */
  const isAnswered = async (method: string, ...params: readonly unknown[]): Promise<boolean> => {
    const [answer] = await endpoint.ask([{ method, params }]);
    return answer !== undefined && 'result' in answer;
  };

  /** The routers and the contracts that they name, filled up with unused addresses. */
  const knownAddresses = async (): Promise<readonly Hex[]> => {
    const named = await currentRegistrations(node, routers);
    const known = new Set<Hex>([...routers, ...named.map(({ address }) => address)]);
    for (let filler = 1; known.size < MAX_ADDRESSES; filler++)
      known.add(`0x${filler.toString(16).padStart(40, '0')}`);
    return [...known].slice(0, MAX_ADDRESSES);
  };

  const longestRange = async (addresses: readonly Hex[] | undefined): Promise<number> => {
    let taken = 0;
    let rpcError: RangeTooLargeError | undefined;
    for (let wanted = 10; taken < Math.min(maxRange, newest.number + 1) && !rpcError; wanted *= 10) {
      const blocks = Math.min(wanted, maxRange, newest.number + 1);
      try {
        const fromBlock = newest.number - blocks + 1;
        await node.logs({
          fromBlock,
          toBlock: newest.number,
          topics: watchedTopics,
          ...(addresses && { addresses }),
        });
        taken = blocks;
      } catch (error) {
        if (!(error instanceof RangeTooLargeError)) throw error;
        rpcError = error;
      }
    }
    const accepted = rpcError?.acceptedBlocks ?? 0;
    if (rpcError && taken === 0 && accepted === 0) throw rpcError;
    return Math.max(taken, accepted);
  };

  const longestRangeOfAll = (): Promise<number | null> =>
    longestRange(undefined).catch((error: unknown) => {
      if (error instanceof AddressRequiredError) return null;
      throw error;
    });

  const filterSize = async (): Promise<FilterSize> => {
    await node.logs({
      fromBlock: newest.number,
      toBlock: newest.number,
      topics: watchedTopics,
      addresses: await knownAddresses(),
    });
    const { maxTopics = watchedTopics.length, maxAddresses = MAX_ADDRESSES, offersLogs } = node.logLimits;
    if (!offersLogs) throw new NodeError(`${endpoint.name}: eth_getLogs: it rejects every query`, 'refused');
    return { topics: maxTopics, addresses: maxAddresses };
  };

  const firstLogs = async (): Promise<number> => {
    const wanted = (await startBlockOf(node, start, newest)) ?? 0;
    const block = Math.min(wanted, newest.number);
    await node.logs({ fromBlock: block, toBlock: block, topics: watchedTopics, addresses: routers });
    await rejectPrunedLogs(block);
    return block;
  };

  /** Some nodes answer with an empty list where they have thrown the logs away; their headers still tell. */
  const rejectPrunedLogs = async (from: number): Promise<void> => {
    const count = Math.min(SAMPLED_BLOCKS, newest.number - from + 1);
    const headers = await node.blocks(Array.from({ length: count }, (_, index) => from + index));
    const promising = headers.find(({ logsBloom }) => !EMPTY_BLOOM.test(logsBloom));
    if (!promising) return;
    const [answer] = await endpoint.ask([{ method: 'eth_getLogs', params: [{ blockHash: promising.hash }] }]);
    const isEmpty = answer !== undefined && 'result' in answer && JSON.stringify(answer.result) === '[]';
    if (isEmpty)
      throw new NodeError(
        `${endpoint.name}: eth_getLogs: it shows no logs of block ${promising.number}, whose header says that there are some`,
        'history-missing',
      );
  };

  const depthOfState = async (): Promise<number> => {
    const [router = `0x${'0'.repeat(40)}`] = routers;
    let depth = 0;
    for (let wanted = 100; depth < newest.number; wanted *= 10) {
      const back = Math.min(wanted, newest.number);
      if (!(await isAnswered('eth_getBalance', router, `0x${(newest.number - back).toString(16)}`))) break;
      depth = back;
    }
    return depth;
  };

  const askRouters = async (): Promise<readonly RouterFound[]> => {
    const answers = await node.calls(routers.map((router) => callOf(typeAndVersion, router)));
    const codes = await endpoint.ask(
      routers.map((router) => ({ method: 'eth_getCode', params: [router, 'latest'] })),
    );
    return routers.map((address, index) => {
      const [type] = answerOf(typeAndVersion, answers[index]) ?? [];
      const code = codes[index];
      const hasCode = code !== undefined && 'result' in code && code.result !== '0x';
      return { address, hasCode: hasCode || type !== undefined, type: type ?? null };
    });
  };

  const takenBatch = async (): Promise<number> => {
    const { batchSize: planned } = endpoint;
    await endpoint.ask(Array.from({ length: planned }, () => ({ method: 'eth_chainId', params: [] })));
    return endpoint.batchSize;
  };

  const finalized = await found(() => node.finalized(newest));
  const routersFound = await found(askRouters);
  const batch = await found(takenBatch);
  const filters = await found(filterSize);
  const logRangeOfAll = await found(longestRangeOfAll);
  const logRange = await found(() => longestRange(routers));
  const hasReceipts = await found(async () => (await node.receiptLogs([newest.hash], [])) !== undefined);
  const logsFrom = await found(firstLogs);
  const stateDepth = await found(depthOfState);
  return {
    name: endpoint.name,
    head,
    ...(finalized && { finalized }),
    ...(routersFound && { routers: routersFound }),
    ...(batch && { batchSize: batch }),
    ...(filters && { filterSize: filters }),
    ...(logRangeOfAll && { logRangeOfAll }),
    ...(logRange && { logRange }),
    ...(hasReceipts && { hasReceipts }),
    ...(logsFrom && { logsFrom }),
    ...(stateDepth && { stateDepth }),
  };
}
