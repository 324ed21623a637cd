/** Probes one endpoint: whether it is a node of the network, its limits, and how far back it goes. */
import { NodeFault, RangeTooLarge } from '../chain/faults.ts';
import {
  AnswerTooHeavy,
  createEndpoint,
  type EndpointOptions,
  usualTiming,
} from '../chain/json-rpc/endpoint.ts';
import { answerOf, callOf, offRampAdded, offRampRemoved, onRampSet, typeAndVersion } from './abi.ts';
import type { Block, Hex } from './chain.ts';
import { createNode } from './node.ts';
import { classifyEvmRefusal } from './refusals.ts';
import type { EvmSource } from './settings.ts';
import { startBlockOf } from './start-block.ts';

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
  /** How many blocks it takes in one request for logs, up to what is configured. */
  readonly logRange?: Found<number>;
  /** Whether there are logs at the first block to index; that block. */
  readonly logsFrom?: Found<number>;
  /** How many blocks back there is state, in powers of ten; all the way: the height of the chain. */
  readonly stateDepth?: Found<number>;
  readonly routers?: Found<readonly RouterFound[]>;
}

export interface RouterFound {
  readonly address: Hex;
  readonly hasCode: boolean;
  /** What it calls itself, such as `Router 1.2.0`; null where it does not say. */
  readonly type: string | null;
}

/** Short: a dead endpoint must not hold up the others. */
const timing = {
  ...usualTiming,
  answerMs: 5_000,
  bodyMs: 10_000,
  patienceMs: 3_000,
  firstPauseMs: 500,
};

export async function probeEndpoint(
  source: EvmSource,
  options: Omit<EndpointOptions, 'requestsPerSecond' | 'batchSize' | 'timing' | 'classifyRefusal'>,
): Promise<EndpointProbe> {
  const { requestsPerSecond, batchSize, maxRange, routers, start } = source;
  const endpoint = createEndpoint({
    ...options,
    requestsPerSecond,
    batchSize,
    timing,
    classifyRefusal: classifyEvmRefusal,
  });
  const node = createNode(endpoint, source, { now: options.now, heard: () => undefined });
  let isSilent = false;

  /** Undefined once the endpoint has left us waiting: each further question would wait as long. */
  const found = async <T>(ask: () => Promise<T>): Promise<Found<T> | undefined> => {
    if (isSilent) return undefined;
    try {
      return { value: await ask() };
    } catch (error) {
      if (!(error instanceof NodeFault || error instanceof RangeTooLarge)) throw error;
      isSilent = error instanceof AnswerTooHeavy;
      return { problem: error.message };
    }
  };

  const head = await found(() => node.checkIn());
  if (head === undefined || 'problem' in head)
    return { name: endpoint.name, head: head ?? { problem: 'silent' } };
  const newest = head.value;
  const topics = [onRampSet, offRampAdded, offRampRemoved].map(({ topic }) => topic);

  /** What a call comes to when it is asked for without being believed in shape. */
  const isAnswered = async (method: string, ...params: readonly unknown[]): Promise<boolean> => {
    const [answer] = await endpoint.ask([{ method, params }]);
    return answer !== undefined && 'result' in answer;
  };

  const longestRange = async (): Promise<number> => {
    let taken = 0;
    let refusal: RangeTooLarge | undefined;
    for (let wanted = 10; taken < Math.min(maxRange, newest.number + 1) && !refusal; wanted *= 10) {
      const blocks = Math.min(wanted, maxRange, newest.number + 1);
      try {
        const fromBlock = newest.number - blocks + 1;
        await node.logs({ fromBlock, toBlock: newest.number, topics, addresses: routers });
        taken = blocks;
      } catch (error) {
        if (!(error instanceof RangeTooLarge)) throw error;
        refusal = error;
      }
    }
    const accepted = refusal?.acceptedBlocks ?? 0;
    if (refusal && taken === 0 && accepted === 0) throw refusal;
    return Math.max(taken, accepted);
  };

  const firstLogs = async (): Promise<number> => {
    const wanted = (await startBlockOf(node, start, newest)) ?? 0;
    const block = Math.min(wanted, newest.number);
    await node.logs({ fromBlock: block, toBlock: block, topics, addresses: routers });
    return block;
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
  const logRange = await found(longestRange);
  const logsFrom = await found(firstLogs);
  const stateDepth = await found(depthOfState);
  return {
    name: endpoint.name,
    head,
    ...(finalized && { finalized }),
    ...(routersFound && { routers: routersFound }),
    ...(batch && { batchSize: batch }),
    ...(logRange && { logRange }),
    ...(logsFrom && { logsFrom }),
    ...(stateDepth && { stateDepth }),
  };
}
