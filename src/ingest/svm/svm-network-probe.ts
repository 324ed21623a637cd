/** What `lanescan doctor` reports of a Solana network: every endpoint is probed with the requests that indexing makes. */
import type { EndpointReport, NetworkReport, ProbeFinding, ProbeOptions } from '../engine/family.ts';
import { NodeError } from '../engine/faults.ts';
import { createEndpoint, usualTiming } from '../engine/json-rpc/endpoint.ts';
import { endpointNames } from '../engine/json-rpc/endpoint-pool.ts';
import { type ChainNode, createNode, type FinalizedHead, MAX_TRANSACTION_VERSION } from './node.ts';
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

/** What one part of the probe has shown. */
type Shown = Pick<EndpointReport, 'capabilities' | 'findings'>;

const failed = (severity: ProbeFinding['severity'], text: string, remedy: string): Shown => ({
  capabilities: [],
  findings: [{ severity, text, remedy }],
});

/** The report on an endpoint, and what it says of the configured programs. */
async function probeEndpoint(
  source: SvmSource,
  url: URL,
  name: string,
  { userAgent, signal, now }: ProbeOptions,
): Promise<{ readonly probe: EndpointReport; readonly programs: readonly ProbeFinding[] }> {
  const { requestsPerSecond, batchSize, network, rpc } = source;
  const endpoint = createEndpoint({
    url,
    name,
    requestsPerSecond,
    batchSize,
    userAgent,
    signal,
    now,
    random: Math.random,
    timing: usualTiming,
    classifyRpcError: classifySvmRpcError,
  });
  const ignored = () => undefined;
  const node = createNode(endpoint, network, { now, onHead: ignored, writeLog: ignored });
  // Problems begin with the name of their endpoint, which the reader has already.
  const withoutName = (findings: readonly ProbeFinding[]) =>
    findings.map((finding) => ({
      ...finding,
      text: finding.text.startsWith(`${name}: `) ? finding.text.slice(name.length + 2) : finding.text,
    }));
  const head = await found(() => node.checkIn());
  if ('problem' in head) {
    const remedy = 'Check its URL, its key and its cluster.';
    const { capabilities, findings } = failed(rpc.length > 1 ? 'warning' : 'error', head.problem, remedy);
    return { probe: { name, head: null, capabilities, findings: withoutName(findings) }, programs: [] };
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
  const findings = withoutName([...history.findings, ...transactions.findings]);
  return {
    probe: { name, head: { number: slot, timestamp }, capabilities, findings },
    programs: await probePrograms(source, node, slot),
  };
}

async function probeHistory({ start }: SvmSource, node: ChainNode, head: FinalizedHead): Promise<Shown> {
  const first = await found(() => node.firstAvailableSlot());
  if ('problem' in first) {
    const remedy = 'Use an endpoint that answers getFirstAvailableBlock: it shows how far back history goes.';
    return failed('error', first.problem, remedy);
  }
  const time = await found(() => node.timeAt(first.value));
  const seconds = 'value' in time ? time.value : undefined;
  const since = seconds === undefined ? '' : ` (${new Date(seconds * 1_000).toISOString().slice(0, 10)})`;
  const capabilities = [`history from slot ${first.value}${since} on`];
  const isEnough =
    start && 'time' in start
      ? seconds !== undefined && seconds <= start.time / 1_000
      : first.value <= Math.max(1, start?.block ?? 1);
  if (isEnough) return { capabilities, findings: [] };
  const isShort = seconds !== undefined && head.timestamp - seconds < SHORT_HISTORY_SECONDS;
  const { findings } = failed(
    'warning',
    `its history begins at slot ${first.value}${since}${isShort ? ', as that of ordinary nodes' : ''}: what is older cannot be read from it`,
    'Add an archive endpoint, or set `start` to a later slot or date and name the `offramps`.',
  );
  return { capabilities, findings };
}

async function probeTransactions({ routers }: SvmSource, node: ChainNode, slot: number): Promise<Shown> {
  const [address = ''] = routers;
  const listed = await found(() =>
    node.signatures({ address, limit: TRIAL_TRANSACTIONS, minContextSlot: slot }),
  );
  if ('problem' in listed)
    return failed('error', listed.problem, 'Use an endpoint that answers getSignaturesForAddress.');
  if (listed.value.length === 0) {
    const remedy = 'Check `routers`, or use an endpoint with more history.';
    return failed('warning', `it lists no transaction of the router ${address}`, remedy);
  }
  const begunAt = performance.now();
  const read = await found(() => node.transactions(listed.value));
  if ('problem' in read) {
    const remedy = 'Use an endpoint that answers getTransaction with logs and inner instructions.';
    return failed('error', read.problem, remedy);
  }
  const perSecond = (1_000 * read.value.length) / Math.max(1, performance.now() - begunAt);
  const unknown = read.value.filter((transaction) => 'problem' in transaction);
  const { findings } = failed(
    'warning',
    `${unknown.length} of the newest ${read.value.length} transactions of the router cannot be read, first ${unknown[0]?.problem}`,
    'They are kept as unreadable until then, and counted in `unreadableLogs` of /v2/networks.',
  );
  return {
    capabilities: [
      `transactions up to version ${MAX_TRANSACTION_VERSION}`,
      `about ${Math.max(1, Math.round(perSecond))} transactions a second`,
    ],
    findings: unknown.length === 0 ? [] : findings,
  };
}

async function probePrograms(
  source: SvmSource,
  node: ChainNode,
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
