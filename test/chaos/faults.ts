/**
 * Faults of an endpoint, chosen by a seed.
 *
 * Nobody could index chains if all endpoints were wrong in the same way for ever. So this is taken for granted, here as
 * in the indexer: at most one endpoint of a network has holes in its logs (`omits`), and its receipts are whole; what
 * contracts answer comes from the endpoint's own head, late perhaps, but not invented; and when all is over at least
 * one endpoint of each network is right.
 */
import type { Randomness } from '../../src/ingest/demo/randomness.ts';
import type { Fault, Interference, JsonRpcAnswer, JsonRpcCall } from '../json-rpc-server.ts';
import type { Filter } from '../virtual-chain/endpoint.ts';
import { type ChainView, matchingLogs, type RecordedBlock, type RecordedChain } from './recorded-chain.ts';

export type Temper = ReturnType<typeof chooseTemper>;

/** How an endpoint is until all comes right. Shares are of HTTP requests. */
export function chooseTemper(randomness: Randomness, mayOmit: boolean) {
  const some = (chance: number, most: number) =>
    randomness.chance(chance) ? randomness.between(0, most) : 0;
  const omits = mayOmit ? some(0.7, 0.3) : 0;
  return {
    /** Share of those that fail. */
    fails: some(0.7, 0.12),
    /** Share of those in which one call is answered with an error. */
    rejects: some(0.6, 0.08),
    /** Share of those in which one call is answered wrongly, in a way that the answer or another one gives away. */
    errs: some(0.6, 0.08),
    /** Share of those for logs in which logs are missing. */
    omits,
    /** How many blocks it takes in one eth_getLogs. */
    maxRange: randomness.pick([10, 50, 100, 10_000, 10_000, 10_000]),
    /** How many logs it returns at once. */
    maxLogs: randomness.pick([5, 20, 10_000, 10_000]),
    /** Answers ranges beyond its head with what it has, instead of an error. */
    isForgetful: randomness.chance(0.3),
    // Who has holes in the logs must show them somewhere.
    hasReceipts: omits > 0 || randomness.chance(0.7),
    /** How many calls it takes in one request. */
    maxBatch: randomness.pick([3, 10, 30, 1_000, 1_000, 1_000]),
  };
}

const WRONG_CHAIN_ID = 424242;

/** What goes wrong with one HTTP request at an endpoint that shows this view of the chain. */
export type ChooseInterference = (calls: readonly JsonRpcCall[], view: ChainView) => Interference;

export function createInterference(
  temper: Temper,
  network: RecordedChain,
  randomness: Randomness,
  /** While it says that it is a node of another network. */
  isElsewhere: () => boolean,
): ChooseInterference {
  return (calls, view) => {
    if (calls.length > temper.maxBatch) {
      const message = `batch size is limited to ${temper.maxBatch}`;
      const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32600, message } });
      return { fault: status(200, body) };
    }
    if (randomness.chance(temper.fails)) return { fault: chooseFault(randomness) };
    const rejectedCall = randomness.chance(temper.rejects) ? randomness.pick(calls) : undefined;
    const wrongCall = randomness.chance(temper.errs) ? randomness.pick(calls) : undefined;
    const hasHoles = randomness.chance(temper.omits);
    return {
      answer(call, truth) {
        const { method } = call;
        if (truth.error) return truth;
        if (method === 'eth_chainId' && isElsewhere())
          return { ...truth, result: `0x${WRONG_CHAIN_ID.toString(16)}` };
        if (call === rejectedCall) return rejected(truth, randomness.pick(rejections));
        if (method === 'eth_getBlockReceipts' && !temper.hasReceipts)
          return rejected(truth, { code: -32601, message: 'the method eth_getBlockReceipts does not exist' });
        const told = method === 'eth_getLogs' ? limited(call, truth, temper, view) : truth;
        if (told.error) return told;
        if (call === wrongCall) return wrong(call, told, network, view, randomness);
        return method === 'eth_getLogs' && hasHoles ? withHoles(told, randomness) : told;
      },
    };
  };
}

// ---- Requests that fail

function status(code: number, body: string, headers: Record<string, string> = {}): Fault {
  return { status: code, body, headers };
}

function chooseFault(randomness: Randomness): Fault {
  return randomness.pickWeighted<() => Fault>([
    [() => 'hang', 1],
    [() => ({ delayMs: randomness.integer(5, 150) }), 4],
    [() => 'reset', 3],
    [() => 'cut', 2],
    [() => status(429, 'Too many requests'), 2],
    [() => status(429, '{"error":{"code":429,"message":"rate limited"}}', { 'Retry-After': '0' }), 1],
    [() => status(429, '', { 'Retry-After': '1' }), 0.3],
    [() => status(500, 'Internal server error'), 1],
    [() => status(502, '<html><body>502 Bad Gateway</body></html>'), 1],
    [() => status(503, '', { 'Retry-After': '0' }), 1],
    [() => status(200, '{"jsonrpc":"2.0","id":1,"result":[{"addr'), 1],
    [() => status(200, ''), 1],
    [() => status(200, '<html>Welcome</html>'), 1],
    [() => status(200, '[]'), 1],
    [() => status(200, 'null'), 1],
    [() => status(504, 'upstream request timeout'), 0.5],
  ])();
}

// ---- Calls that are rejected

type CallError = NonNullable<JsonRpcAnswer['error']>;

/** In the words of several providers. */
const rejections: readonly CallError[] = [
  { code: -32000, message: 'header not found' },
  { code: -32000, message: 'missing trie node 3f1c (path ) state 0x00 is not available' },
  { code: -32603, message: 'Internal error' },
  { code: -32002, message: 'request timed out' },
  { code: -32005, message: 'daily request count exceeded, request rate limited' },
  { code: 429, message: 'Your app has exceeded its compute units per second capacity' },
  { code: -32016, message: 'over rate limit' },
  { code: -32603, message: 'request failed or timed out' },
  { code: -32000, message: 'upstream connect error or disconnect/reset before headers' },
  { code: 19, message: 'Temporary internal error. Please retry, trace-id: 8a3c' },
];

function rejected({ id }: JsonRpcAnswer, error: CallError): JsonRpcAnswer {
  return { id, error };
}

/** What the endpoint makes of a request for logs that is too large for it, or goes beyond what it has. */
function limited(call: JsonRpcCall, truth: JsonRpcAnswer, temper: Temper, view: ChainView): JsonRpcAnswer {
  const { fromBlock, toBlock, blockHash } = call.params[0] as Filter;
  if (blockHash !== undefined) return truth;
  const length = Number(toBlock) - Number(fromBlock) + 1;
  if (length > temper.maxRange) {
    const message = `eth_getLogs is limited to a ${temper.maxRange} blocks range`;
    return rejected(truth, { code: -32600, message });
  }
  if (length > 1 && (truth.result as unknown[]).length > temper.maxLogs) {
    const message = `query returned more than ${temper.maxLogs} results`;
    return rejected(truth, { code: -32005, message });
  }
  if (Number(toBlock) > view.head.number && !temper.isForgetful) {
    const message =
      'One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.';
    return rejected(truth, { code: -32000, message });
  }
  return truth;
}

// ---- Answers that are wrong

/** Some of the logs are missing: one, a few, or all. */
function withHoles(truth: JsonRpcAnswer, randomness: Randomness): JsonRpcAnswer {
  const logs = truth.result as unknown[];
  const keeps = randomness.pick([0, 0.5, 0.9]);
  return { ...truth, result: logs.filter(() => randomness.chance(keeps)) };
}

function wrong(
  call: JsonRpcCall,
  truth: JsonRpcAnswer,
  network: RecordedChain,
  view: ChainView,
  randomness: Randomness,
): JsonRpcAnswer {
  if (randomness.chance(0.15)) return { ...truth, id: randomness.pick(['1', 0, null, 1e9]) };
  switch (call.method) {
    case 'eth_getBlockByNumber':
    case 'eth_getBlockByHash':
      return { ...truth, result: wrongBlock(truth.result, network, view, randomness) };
    case 'eth_getLogs':
      return { ...truth, result: wrongLogs(call.params[0] as Filter, truth, network, view, randomness) };
    case 'eth_getTransactionByHash':
    case 'eth_getBlockReceipts':
      return { ...truth, result: randomness.pick([null, {}, [{}]]) };
    case 'eth_call':
      return { ...truth, result: randomness.pick([null, 'not found', '0x123']) };
    default:
      return { ...truth, result: null };
  }
}

/** Another block than the one that was asked for: a neighbour, one of a branch, or none. */
function wrongBlock(
  result: unknown,
  network: RecordedChain,
  view: ChainView,
  randomness: Randomness,
): unknown {
  const number = Number((result as { number?: string } | null)?.number ?? 0);
  const others = [...network.branches.flatMap(({ blocks }) => blocks), network.chain[number]].filter(
    (block): block is RecordedBlock => block?.number === number && block !== view.at(number),
  );
  return randomness.pick<() => unknown>([
    () => null,
    () => view.at(number - 1)?.header ?? null,
    () => ({ ...(result as object), logsBloom: '0x' }),
    ...others.map(
      ({ header }) =>
        () =>
          header,
    ),
  ])();
}

function wrongLogs(
  filter: Filter,
  truth: JsonRpcAnswer,
  network: RecordedChain,
  view: ChainView,
  randomness: Randomness,
): unknown {
  const logs = truth.result as readonly object[];
  const [first] = logs;
  const abandoned = network.branches
    .flatMap(({ blocks }) => blocks)
    .filter((block) => view.at(block.number) !== block && isWithin(block, filter))
    .flatMap((block) => matchingLogs(block, filter));
  return randomness.pick<() => unknown>([
    () => null,
    () => [...logs, ...logs.slice(-1)],
    () => [...logs].reverse(),
    () => (first ? [{ ...first, removed: true }, ...logs.slice(1)] : {}),
    () => logs.map((log) => ({ ...log, blockNumber: '0x1' })),
    // Of blocks that the chain has left: in place of its own, or among them.
    () => (abandoned.length > 0 ? abandoned : null),
    () => inOrder([...logs, ...abandoned]),
  ])();
}

function isWithin({ number }: RecordedBlock, { fromBlock, toBlock }: Filter): boolean {
  return number >= Number(fromBlock) && number <= Number(toBlock);
}

function inOrder(logs: readonly unknown[]): readonly unknown[] {
  const place = (log: unknown) => {
    const { blockNumber, logIndex } = log as { blockNumber: string; logIndex: string };
    return Number(blockNumber) * 1e6 + Number(logIndex);
  };
  return [...logs].sort((a, b) => place(a) - place(b));
}
