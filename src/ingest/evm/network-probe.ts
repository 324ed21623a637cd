/**
 * What `lanescan doctor` reports of an EVM network. Every endpoint is probed with the queries that the indexer makes: whether it
 * is a node of the network, what it accepts in one query for logs, and how far back its logs and its state go.
 */
import { counted } from '../../text/format.ts';
import { type Probed, probeEndpoints } from '../engine/endpoint-probe.ts';
import type { NetworkReport, ProbeFinding, ProbeOptions } from '../engine/family.ts';
import { NodeError, RangeTooLargeError } from '../engine/faults.ts';
import { answerOf, callOf, typeAndVersion, watchedTopics } from './contracts/abi.ts';
import { currentRegistrations } from './contracts/contracts.ts';
import { startBlockOf } from './history-start.ts';
import type { Block, Hex } from './rpc/chain.ts';
import { classifyEvmRpcError } from './rpc/evm-rpc-errors.ts';
import { AddressRequiredError } from './rpc/log-queries.ts';
import { createNode, type RpcNode } from './rpc/node.ts';
import type { EvmSource } from './settings.ts';

/** Below this, history takes more requests than most plans allow. */
const SHORT_RANGE = 100;
/** Addresses in one filter, at most: the indexer asks by address where it knows no more contracts than this. */
const MAX_ADDRESSES = 100;
/** Blocks around the first one that are looked at for logs that their blooms promise. */
const SAMPLED_BLOCKS = 20;
const EMPTY_BLOOM = /^0x0*$/;

export async function probeNetwork(source: EvmSource, options: ProbeOptions): Promise<NetworkReport> {
  const probes = await probeEndpoints(
    source,
    options,
    classifyEvmRpcError,
    (endpoint, nodeOptions) => createNode(endpoint, source, nodeOptions),
    'Check its URL and its key.',
    (probed) => probeEndpoint(source, probed),
  );
  const answering = probes.filter(({ report }) => report.head !== null);
  const answers = answering.flatMap(({ found = [] }) => found);
  return {
    endpoints: probes.map(({ report }) => report),
    routers: answering.length === 0 ? [] : source.routers.map((router) => routerFinding(router, answers)),
  };
}

type RouterAnswer = NonNullable<Awaited<ReturnType<typeof probeEndpoint>>['found']>[number];

function routerFinding(router: string, all: readonly RouterAnswer[]): ProbeFinding {
  const answers = all.filter(({ address }) => address === router);
  const subject = `router ${router}`;
  const remedy = 'Check `routers` against the CCIP directory: everything else is trusted because of them.';
  const [first] = answers;
  if (first === undefined) return { severity: 'warning', text: `${subject} could not be asked` };
  const other = answers.find(({ type, hasCode }) => type !== first.type || hasCode !== first.hasCode);
  if (other !== undefined) {
    const text = `${subject}: ${first.name} and ${other.name} disagree about it`;
    return { severity: 'error', text, remedy };
  }
  if (!first.hasCode) return { severity: 'error', text: `${subject}: there is no contract`, remedy };
  const type = first.type ?? 'nothing';
  if (!/^Router \d/.test(type)) return { severity: 'error', text: `${subject} calls itself ${type}`, remedy };
  return { severity: 'ok', text: `${subject} is ${type}` };
}

async function probeEndpoint(source: EvmSource, probed: Probed<RpcNode, Block>) {
  const { maxRange, routers, start } = source;
  const { endpoint, node, newest, report, ask } = probed;
  const { name } = endpoint;

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

  /** Blocks in one query for logs, up to what is configured. */
  const longestRange = async (addresses: readonly Hex[] | undefined): Promise<number> => {
    let taken = 0;
    let rpcError: RangeTooLargeError | undefined;
    for (let wanted = 10; taken < Math.min(maxRange, newest.number + 1) && !rpcError; wanted *= 10) {
      const blocks = Math.min(wanted, maxRange, newest.number + 1);
      try {
        const range = { fromBlock: newest.number - blocks + 1, toBlock: newest.number };
        await node.logs({ ...range, topics: watchedTopics, ...(addresses && { addresses }) });
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

  /** The same for the logs of every contract; null where it wants addresses. */
  const longestRangeOfAll = (): Promise<number | null> =>
    longestRange(undefined).catch((error: unknown) => {
      if (error instanceof AddressRequiredError) return null;
      throw error;
    });

  /** Topics and addresses in one filter, up to those that were tried. */
  const filterSize = async () => {
    const block = { fromBlock: newest.number, toBlock: newest.number };
    await node.logs({ ...block, topics: watchedTopics, addresses: await knownAddresses() });
    const { maxTopics = watchedTopics.length, maxAddresses = MAX_ADDRESSES, offersLogs } = node.logLimits;
    if (!offersLogs) throw new NodeError(`${name}: eth_getLogs: it rejects every query`, 'refused');
    return { topics: maxTopics, addresses: maxAddresses };
  };

  /** The first block to index, if there are logs from there on, as far as its blooms tell. */
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
        `${name}: eth_getLogs: it shows no logs of block ${promising.number}, whose header says that there are some`,
        'history-missing',
      );
  };

  /** How many blocks back there is state, in powers of ten; all the way: the height of the chain. */
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

  /** Whether there is a contract, and what it calls itself, such as `Router 1.2.0`; null where it does not say. */
  const askRouters = async () => {
    const answers = await node.calls(routers.map((router) => callOf(typeAndVersion, router)));
    const codes = await endpoint.ask(
      routers.map((router) => ({ method: 'eth_getCode', params: [router, 'latest'] })),
    );
    return routers.map((address, index) => {
      const [type] = answerOf(typeAndVersion, answers[index]) ?? [];
      const code = codes[index];
      const hasCode = code !== undefined && 'result' in code && code.result !== '0x';
      return { name, address, hasCode: hasCode || type !== undefined, type: type ?? null };
    });
  };

  /** How many calls it takes in one request, up to what is configured. */
  const takenBatch = async (): Promise<number> => {
    const { batchSize: planned } = endpoint;
    await endpoint.ask(Array.from({ length: planned }, () => ({ method: 'eth_chainId', params: [] })));
    return endpoint.batchSize;
  };

  // In this order: what is learned of batches and filters serves the later questions.
  const final = await ask(() => node.finalized(newest), 'error', 'Set `finality` to a depth in blocks.');
  const found = await ask(askRouters, 'warning', 'Try again; the indexer asks routers all the time.');
  const batch = await ask(takenBatch, 'warning', 'Set `batchSize: 1`.');
  const remedy = 'Use an endpoint that answers eth_getLogs.';
  const filter = await ask(filterSize, 'error', remedy);
  const rangeOfAll = await ask(longestRangeOfAll);
  const range = await ask(() => longestRange(routers), 'error', filter && remedy);
  const hasReceipts = await ask(async () => (await node.receiptLogs([newest.hash], [])) !== undefined);
  const archive = 'Use an endpoint with the whole history, or a later `start`.';
  const logsFrom = await ask(firstLogs, 'warning', archive);
  const state = await ask(depthOfState);
  if (rangeOfAll === null)
    report(
      'warning',
      'it gives logs only of addresses that are named: new blocks take a query for each new contract',
      'It works. An endpoint without this limit finds new ramps with fewer queries.',
    );
  if (range !== undefined && range < Math.min(SHORT_RANGE, maxRange, newest.number + 1))
    report(
      'warning',
      `it gives logs of ${counted(range, 'block')} at once, and history is long`,
      'Use an endpoint or a plan with a longer range, or a later `start`.',
    );
  const withoutAddress = rangeOfAll ? `of ${counted(rangeOfAll, 'block')} without an address` : '';
  const { topics = Infinity, addresses = Infinity } = filter ?? {};
  return {
    found,
    head: newest,
    capabilities: [
      final ? `final up to ${final.number}` : '',
      range === undefined ? '' : `logs of ${counted(range, 'block')} at once`,
      rangeOfAll === null ? 'only by address' : rangeOfAll === range ? '' : withoutAddress,
      topics < watchedTopics.length ? `${counted(topics, 'topic')} in one filter` : '',
      addresses < MAX_ADDRESSES ? `${counted(addresses, 'address', 'addresses')} in one filter` : '',
      batch === undefined ? '' : batch === 1 ? 'no batches' : `batches of ${batch}`,
      hasReceipts === false ? 'no receipts' : '',
      logsFrom === undefined ? '' : `logs from block ${logsFrom} on`,
      state === undefined
        ? ''
        : state >= newest.number
          ? 'state of every block'
          : `state of the newest ${state} blocks or more`,
    ],
  };
}
