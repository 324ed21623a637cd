/** What `lanescan doctor` reports of a Solana network: every endpoint is probed with the requests that indexing makes. */
import type { EndpointReport, NetworkReport, ProbeFinding, ProbeOptions } from '../engine/family.ts';
import { NodeError } from '../engine/faults.ts';
import { createEndpoint, usualTiming } from '../engine/json-rpc/endpoint.ts';
import { endpointNames } from '../engine/json-rpc/endpoint-pool.ts';
import type { FinalizedHead } from './chain.ts';
import { createNode, MAX_TRANSACTION_VERSION, type RpcNode } from './node.ts';
import { checkOffRamps, readRouters } from './programs.ts';
import type { SvmSource } from './settings.ts';
import { classifySvmRpcError } from './svm-rpc-errors.ts';

/** Transactions of a router that are read as a trial. */
const TRIAL_TRANSACTIONS = 10;
/** A node with less history than this, in seconds, has only what ordinary nodes keep. */
const SHORT_HISTORY_SECONDS = 30 * 86_400;

/** To be removed when somebody has indexed a real cluster and compared the records. */
const untried: ProbeFinding = {
  severity: 'warning',
  text: 'indexing of Solana has been tested with a virtual cluster and recorded transactions, and has not yet been run against a live one',
  remedy:
    'Start with `start` set to yesterday. Compare a few messages with the official explorer, then look at unreadable logs in ' +
    '/v2/networks and at `lanescan audit`. docs/operations/solana.md says what to look at first.',
};

type Found<T> = { readonly value: T } | { readonly problem: string };

export async function probeNetwork(source: SvmSource, options: ProbeOptions): Promise<NetworkReport> {
  const names = endpointNames(source.rpc);
  const probed = await Promise.all(
    source.rpc.map((url, index) => probeEndpoint(source, url, names[index] ?? url.host, options)),
  );
  return {
    endpoints: probed.map(({ probe }) => probe),
    routers: [untried, ...(probed.find(({ programs }) => programs.length > 0)?.programs ?? [])],
  };
}

interface Probed {
  readonly probe: EndpointReport;
  /** What it says of the configured programs. */
  readonly programs: readonly ProbeFinding[];
}

async function probeEndpoint(
  source: SvmSource,
  url: URL,
  name: string,
  { userAgent, signal, now }: ProbeOptions,
): Promise<Probed> {
  const endpoint = createEndpoint({
    url,
    name,
    requestsPerSecond: source.requestsPerSecond,
    batchSize: source.batchSize,
    userAgent,
    signal,
    now,
    random: Math.random,
    timing: usualTiming,
    classifyRpcError: classifySvmRpcError,
  });
  const ignored = () => undefined;
  const node = createNode(endpoint, source.network, { now, onHead: ignored, writeLog: ignored });
  const textOf = (problem: string) =>
    // Problems begin with the name of their endpoint, which the reader has already.
    problem.startsWith(`${name}: `) ? problem.slice(name.length + 2) : problem;
  const head = await found(() => node.checkIn());
  if ('problem' in head) {
    const severity = source.rpc.length > 1 ? 'warning' : 'error';
    const finding = {
      severity,
      text: textOf(head.problem),
      remedy: 'Check its URL, its key and its cluster.',
    } as const;
    return { probe: { name, head: null, capabilities: [], findings: [finding] }, programs: [] };
  }
  const { slot, timestamp } = head.value;
  const history = await probeHistory(source, node, head.value);
  const transactions = await probeTransactions(source, node, slot);
  const capabilities = [
    `finalized up to slot ${slot}`,
    ...history.capabilities,
    ...transactions.capabilities,
    endpoint.batchSize === 1 ? 'no batches' : `batches of ${endpoint.batchSize}`,
  ];
  const findings = [...history.findings, ...transactions.findings].map((finding) => ({
    ...finding,
    text: textOf(finding.text),
  }));
  return {
    probe: { name, head: { number: slot, timestamp }, capabilities, findings },
    programs: await probePrograms(source, node, slot),
  };
}

type Partial = Pick<EndpointReport, 'capabilities' | 'findings'>;

async function probeHistory(source: SvmSource, node: RpcNode, head: FinalizedHead): Promise<Partial> {
  const first = await found(() => node.firstAvailableSlot());
  if ('problem' in first) {
    const remedy = 'Use an endpoint that answers getFirstAvailableBlock: it shows how far back history goes.';
    return { capabilities: [], findings: [{ severity: 'error', text: first.problem, remedy }] };
  }
  const time = await found(() => node.timeAt(first.value));
  const seconds = 'value' in time ? time.value : undefined;
  const since = seconds === undefined ? '' : ` (${new Date(seconds * 1_000).toISOString().slice(0, 10)})`;
  const capabilities = [`history from slot ${first.value}${since} on`];
  const wanted = source.start && 'block' in source.start ? source.start.block : 1;
  const wantedTime = source.start && 'time' in source.start ? source.start.time / 1_000 : undefined;
  const isEnough =
    wantedTime === undefined
      ? first.value <= Math.max(1, wanted)
      : seconds !== undefined && seconds <= wantedTime;
  if (isEnough) return { capabilities, findings: [] };
  const isShort = seconds !== undefined && head.timestamp - seconds < SHORT_HISTORY_SECONDS;
  return {
    capabilities,
    findings: [
      {
        severity: 'warning',
        text: `its history begins at slot ${first.value}${since}${isShort ? ', as that of ordinary nodes' : ''}: what is older cannot be read from it`,
        remedy: 'Add an archive endpoint, or set `start` to a later slot or date and name the `offramps`.',
      },
    ],
  };
}

async function probeTransactions(source: SvmSource, node: RpcNode, slot: number): Promise<Partial> {
  const [router = ''] = source.routers;
  const limit = TRIAL_TRANSACTIONS;
  const listed = await found(() => node.signatures({ address: router, limit, minContextSlot: slot }));
  if ('problem' in listed) {
    const remedy = 'Use an endpoint that answers getSignaturesForAddress.';
    return { capabilities: [], findings: [{ severity: 'error', text: listed.problem, remedy }] };
  }
  if (listed.value.length === 0) {
    return {
      capabilities: [],
      findings: [
        {
          severity: 'warning',
          text: `it lists no transaction of the router ${router}`,
          remedy: 'Check `routers`, or use an endpoint with more history.',
        },
      ],
    };
  }
  const begunAt = performance.now();
  const read = await found(() => node.transactions(listed.value));
  if ('problem' in read) {
    const remedy = 'Use an endpoint that answers getTransaction with logs and inner instructions.';
    return { capabilities: [], findings: [{ severity: 'error', text: read.problem, remedy }] };
  }
  const perSecond = (1_000 * read.value.length) / Math.max(1, performance.now() - begunAt);
  const unknown = read.value.filter((transaction) => 'problem' in transaction);
  return {
    capabilities: [
      `transactions up to version ${MAX_TRANSACTION_VERSION}`,
      `about ${Math.max(1, Math.round(perSecond))} transactions a second`,
    ],
    findings:
      unknown.length === 0
        ? []
        : [
            {
              severity: 'warning',
              text: `${unknown.length} of the newest ${read.value.length} transactions of the router cannot be read, first ${unknown[0]?.problem}`,
              remedy:
                'They are kept as unreadable until then, and counted in `unreadableLogs` of /v2/networks.',
            },
          ],
  };
}

async function probePrograms(
  source: SvmSource,
  node: RpcNode,
  slot: number,
): Promise<readonly ProbeFinding[]> {
  const remedy = 'Check `routers` and `offramps` against the CCIP directory: everything else rests on them.';
  const findings: ProbeFinding[] = [];
  for (const router of source.routers) {
    const config = await found(() => readRouters(node, [router], source.network.selector, slot));
    findings.push(
      'problem' in config
        ? { severity: 'error', text: config.problem, remedy }
        : { severity: 'ok', text: `router ${router} is the router of ${source.network.name}` },
    );
  }
  const checked = await found(() => checkOffRamps(node, source.offramps, source.routers, slot));
  if ('problem' in checked) return [...findings, { severity: 'warning', text: checked.problem, remedy }];
  if (source.offramps.length > 0 && checked.value.contracts.length > 0) {
    const text = `the off-ramps may deliver from ${checked.value.contracts.length} networks`;
    findings.push({ severity: 'ok', text });
  }
  return [
    ...findings,
    ...checked.value.rejected.map((text) => ({ severity: 'error' as const, text, remedy })),
  ];
}

async function found<T>(ask: () => Promise<T>): Promise<Found<T>> {
  try {
    return { value: await ask() };
  } catch (error) {
    if (error instanceof NodeError) return { problem: error.message };
    throw error;
  }
}
