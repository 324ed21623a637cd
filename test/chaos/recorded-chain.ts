/**
 * Recordings of real chains, abandoned branches included.
 *
 * Blocks, receipts, logs and transactions are what the lab's nodes answered, word for word. Calls are put to the node
 * when they are first asked, in the state that the replayed head had, and remembered: the node keeps every state of its
 * final chain. The states of branches it forgets, so that what a branch changed is asked while it is recorded.
 */
import { encodeFunctionData, type Hex, numberToHex, parseAbi, toEventSelector } from 'viem';
import { RpcError, rpcError } from '../json-rpc-server.ts';
import type { LabNetwork, RawLog } from '../lab/lab.ts';
import { type ChainSource, type Filter, type Json, type Query, queryOf } from '../virtual-chain/endpoint.ts';

export interface RecordedBlock {
  readonly number: number;
  readonly hash: Hex;
  /** As the node gave it, transactions by their hashes. */
  readonly header: Json;
  readonly receipts: readonly Json[];
  readonly transactions: readonly (Json & { readonly hash: Hex })[];
  readonly logs: readonly RawLog[];
}

/** Blocks that the chain has abandoned, from the lowest up. */
export interface RecordedBranch {
  /** The last block that both have. */
  readonly forkNumber: number;
  readonly blocks: readonly RecordedBlock[];
  /** What contracts answered in the branch and nowhere else. */
  readonly answers: ReadonlyMap<string, CallAnswer>;
}

/** One moment of a chain: all blocks up to a head. */
export interface ChainView {
  readonly head: RecordedBlock;
  /** Undefined above the head. */
  at(number: number): RecordedBlock | undefined;
  readonly branch: RecordedBranch | undefined;
}

export type CallAnswer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } };

/** A chain to replay. */
export interface RecordedChain {
  readonly chainId: number;
  /** The chain as it is at the end, by height. */
  readonly chain: readonly RecordedBlock[];
  readonly branches: readonly RecordedBranch[];
  /** What a contract answers in the state of the view's head. */
  call(to: string, data: string, view: ChainView): Promise<CallAnswer>;
}

export function viewOf(chain: readonly RecordedBlock[], height: number, branch?: RecordedBranch): ChainView {
  const at = (number: number) => {
    if (number > height) return undefined;
    return branch && number > branch.forkNumber
      ? branch.blocks[number - branch.forkNumber - 1]
      : chain[number];
  };
  const head = at(height);
  if (!head) throw new RangeError(`There is no block ${height} to look from.`);
  return { head, at, branch };
}

/** The chain as a node shows it whose head is that of the view. */
export function recordedSource(network: RecordedChain, view: ChainView): ChainSource {
  const { blocks, transactions } = indexOf(network);
  /** A node knows the blocks of its own chain and of branches that it may have left, but none it has yet to see. */
  const byHash = (hash: Hex): RecordedBlock | undefined => {
    const block = blocks.get(hash);
    if (!block || block.number > view.head.number) return undefined;
    const isOfFinalChain = network.chain[block.number] === block;
    return isOfFinalChain && view.at(block.number) !== block ? undefined : block;
  };
  const logsIn = (block: RecordedBlock | undefined, query: Query) =>
    block &&
    logsMatching(block, query).map((log) => ({ ...log, blockTimestamp: block.header.timestamp }) as Json);
  return {
    chainId: network.chainId,
    head: view.head.number,
    block: (number) => view.at(number)?.header,
    blockByHash: (hash) => byHash(hash)?.header,
    logs: ({ from, to, ...query }) =>
      Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => view.at(from + index)).flatMap(
        (block) => logsIn(block, query) ?? [],
      ),
    logsOfBlock: (hash, query) => logsIn(byHash(hash), query),
    receipts: (hash) => byHash(hash)?.receipts,
    transaction: (hash) =>
      // By number, as the same transaction may be in blocks of several branches.
      transactions
        .get(hash)
        ?.find((block) => view.at(block.number) === block)
        ?.transactions.find((transaction) => transaction.hash === hash),
    async call(to, data) {
      const answer = await network.call(to, data, view);
      if ('error' in answer) throw new RpcError(answer.error, {}, answer.error.data);
      return answer.result;
    },
    hasCode: () => {
      throw rpcError(-32601, 'the method eth_getCode does not exist/is not available');
    },
  };
}

const indexes = new WeakMap<RecordedChain, ReturnType<typeof makeIndex>>();

function indexOf(network: RecordedChain) {
  const index = indexes.get(network) ?? makeIndex(network);
  indexes.set(network, index);
  return index;
}

function makeIndex(network: RecordedChain) {
  const all = [...network.chain, ...network.branches.flatMap(({ blocks }) => blocks)];
  const transactions = new Map<Hex, RecordedBlock[]>();
  for (const block of all) {
    for (const { hash } of block.transactions) {
      transactions.set(hash, [...(transactions.get(hash) ?? []), block]);
    }
  }
  return { blocks: new Map(all.map((block) => [block.hash, block])), transactions };
}

export function matchingLogs(block: RecordedBlock, filter: Filter): readonly RawLog[] {
  return logsMatching(block, queryOf(filter));
}

function logsMatching({ logs }: RecordedBlock, { topics, addresses }: Query) {
  return logs.filter(
    (log) =>
      (topics?.includes(log.topics[0] as Hex) ?? true) &&
      (addresses?.includes(log.address.toLowerCase() as Hex) ?? true),
  );
}

export type Recorder = Awaited<ReturnType<typeof createRecorder>>;

const rampEvents = new Set<Hex | undefined>(
  ['OnRampSet(uint64,address)', 'OffRampAdded(uint64,address)', 'OffRampRemoved(uint64,address)'].map(
    (signature) => toEventSelector(signature),
  ),
);
const views = parseAbi([
  'function getOffRamps()',
  'function getOnRamp(uint64)',
  'function typeAndVersion()',
  'function getStaticConfig()',
  'function getDynamicConfig()',
  'function getDestChainConfig(uint64)',
]);
const READ_AT_ONCE = 25;

/**
 * Begins to record a network on which everything has been deployed: views reach from its head of now on.
 *
 * @param other selector of the network at the other end of all lanes
 */
export async function createRecorder(network: LabNetwork, other: bigint) {
  const firstHead = await network.blockNumber();
  const routers = Object.values(network.routers);
  const branches: RecordedBranch[] = [];
  const ask = createBatch(network.url);

  const readBlock = async (number: number): Promise<RecordedBlock> => {
    const block = (await result(ask('eth_getBlockByNumber', [numberToHex(number), true]))) as Json & {
      readonly hash: Hex;
      readonly transactions: RecordedBlock['transactions'];
    };
    const receipts = await Promise.all(
      block.transactions.map(({ hash }) => result(ask('eth_getTransactionReceipt', [hash]))),
    );
    const hashes = block.transactions.map(({ hash }) => hash);
    return {
      number,
      hash: block.hash,
      header: { ...block, transactions: hashes },
      receipts: receipts as Json[],
      transactions: block.transactions,
      logs: (receipts as { logs: RawLog[] }[]).flatMap(({ logs }) => logs),
    };
  };

  const readBlocks = async (from: number, to: number): Promise<readonly RecordedBlock[]> => {
    const blocks: RecordedBlock[] = [];
    for (let first = from; first <= to; first += READ_AT_ONCE) {
      const count = Math.min(READ_AT_ONCE, to - first + 1);
      blocks.push(
        ...(await Promise.all(Array.from({ length: count }, (_, index) => readBlock(first + index)))),
      );
    }
    return blocks;
  };

  /** Everything that routers say of their ramps now, and the ramps that these blocks name of themselves. */
  const readRamps = async (blocks: readonly RecordedBlock[]): Promise<ReadonlyMap<string, CallAnswer>> => {
    const events = blocks.flatMap(({ logs }) => logs).filter(({ topics }) => rampEvents.has(topics[0]));
    if (events.length === 0) return new Map();
    const call = (functionName: (typeof views)[number]['name'], args: readonly bigint[] = []) =>
      encodeFunctionData({ abi: views, functionName, args } as Parameters<typeof encodeFunctionData>[0]);
    const ramps = [...new Set(events.map(({ data }) => `0x${data.slice(-40)}`))];
    const calls = [
      ...routers.flatMap((to) => [
        { to, data: call('getOffRamps') },
        { to, data: call('getOnRamp', [other]) },
      ]),
      ...ramps.flatMap((to) => [
        ...(['typeAndVersion', 'getStaticConfig', 'getDynamicConfig'] as const).map((name) => ({
          to,
          data: call(name),
        })),
        { to, data: call('getDestChainConfig', [other]) },
      ]),
    ];
    const answers = await Promise.all(calls.map((asked) => ask('eth_call', [asked, 'latest'])));
    return new Map(calls.map(({ to, data }, index) => [keyOf(to, data), answers[index] as CallAnswer]));
  };

  return {
    /** Keeps what the chain has above `forkNumber`, which is about to be abandoned. */
    async recordBranch(forkNumber: number) {
      const blocks = await readBlocks(forkNumber + 1, await network.blockNumber());
      branches.push({ forkNumber, blocks, answers: await readRamps(blocks) });
    },
    /** Keeps the chain as it is now; nothing may happen on the node any more. */
    async finish(): Promise<RecordedChain> {
      const chain = await readBlocks(0, await network.blockNumber());
      return { chainId: network.chainId, chain, branches, call: createCalls(chain, firstHead, ask) };
    },
  };
}

function keyOf(to: string, data: string): string {
  return `${to.toLowerCase()} ${data}`;
}

/**
 * What contracts say of themselves changes with few blocks: those that create contracts or move ramps. Between two of
 * them an answer is asked for once; and what is the same at both ends is taken to be the same between them.
 */
function createCalls(chain: readonly RecordedBlock[], firstHead: number, ask: Ask): RecordedChain['call'] {
  const turns = chain.filter(
    ({ number, logs, transactions }) =>
      number <= firstHead ||
      transactions.some(({ to }) => to === null) ||
      logs.some(({ topics }) => rampEvents.has(topics[0])),
  );
  const ends = [firstHead, chain.length - 1];
  const known = new Map<string, Promise<CallAnswer>>();
  const at = (to: string, data: string, number: number) => {
    const key = `${number} ${keyOf(to, data)}`;
    const answer = known.get(key) ?? ask('eth_call', [{ to, data }, numberToHex(number)]);
    known.set(key, answer);
    return answer;
  };
  return async (to, data, { head, branch }) => {
    const inBranch = branch?.answers.get(keyOf(to, data));
    if (inBranch) return inBranch;
    const [first, last] = await Promise.all(ends.map((number) => at(to, data, number)));
    if (first && JSON.stringify(first) === JSON.stringify(last)) return first;
    const height = Math.min(head.number, branch?.forkNumber ?? head.number);
    return at(to, data, turns.findLast(({ number }) => number <= height)?.number ?? 0);
  };
}

type Ask = (method: string, params: readonly unknown[]) => Promise<CallAnswer>;

/** What is asked in the same moment goes to the node as one request. */
function createBatch(url: string): Ask {
  let waiting: { readonly call: Json; readonly resolve: (answer: Promise<CallAnswer>) => void }[] = [];
  const send = async () => {
    const batch = waiting;
    waiting = [];
    const answers = fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(batch.map(({ call }, id) => ({ jsonrpc: '2.0', id, ...call }))),
    }).then((response) => response.json() as Promise<(CallAnswer & { readonly id: number })[]>);
    for (const [id, { resolve }] of batch.entries()) {
      resolve(
        answers.then((all) => {
          const { id: _, ...answer } = all.find((entry) => entry.id === id) ?? {};
          if ('error' in answer || 'result' in answer) return answer as CallAnswer;
          throw new Error(`The node did not answer: ${JSON.stringify(all).slice(0, 200)}`);
        }),
      );
    }
  };
  return (method, params) =>
    new Promise((resolve) => {
      if (waiting.length === 0) setImmediate(send);
      waiting.push({ call: { method, params }, resolve });
    });
}

async function result(answer: Promise<CallAnswer>): Promise<unknown> {
  const given = await answer;
  if ('error' in given) throw new Error(given.error.message);
  return given.result;
}
