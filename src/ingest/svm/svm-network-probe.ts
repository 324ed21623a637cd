/** What `lanescan doctor` reports of a Solana network: every endpoint is probed with the requests that indexing makes. */
import { type Probed, probeEndpoints } from '../engine/endpoint-probe.ts';
import type { NetworkReport, ProbeFinding, ProbeOptions } from '../engine/family.ts';
import { NodeError } from '../engine/faults.ts';
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

type ProbedNode = Probed<ChainNode, FinalizedHead>;

export async function probeNetwork(source: SvmSource, options: ProbeOptions): Promise<NetworkReport> {
  const probes = await probeEndpoints(
    source,
    options,
    classifySvmRpcError,
    (endpoint, nodeOptions) => createNode(endpoint, source.network, nodeOptions),
    'Check its URL, its key and its cluster.',
    async (probed) => {
      const { slot, timestamp } = probed.newest;
      const capabilities = [
        `finalized up to slot ${slot}`,
        ...(await probeHistory(source, probed)),
        ...(await probeTransactions(source, probed)),
      ];
      const { batchSize } = probed.endpoint;
      return {
        head: { number: slot, timestamp },
        capabilities: [...capabilities, batchSize === 1 ? 'no batches' : `batches of ${batchSize}`],
        found: await probePrograms(source, probed),
      };
    },
  );
  const programs = probes.flatMap(({ found }) => (found ? [found] : []));
  return { endpoints: probes.map(({ report }) => report), routers: [untried, ...(programs[0] ?? [])] };
}

/** Its capabilities, as of the functions below. */
async function probeHistory({ start }: SvmSource, { node, newest, ask, report }: ProbedNode) {
  const first = await ask(
    () => node.firstAvailableSlot(),
    'error',
    'Use an endpoint that answers getFirstAvailableBlock: it shows how far back history goes.',
  );
  if (first === undefined) return [];
  const seconds = await ask(() => node.timeAt(first));
  const since = seconds === undefined ? '' : ` (${new Date(seconds * 1_000).toISOString().slice(0, 10)})`;
  const isEnough =
    start && 'time' in start
      ? seconds !== undefined && seconds <= start.time / 1_000
      : first <= Math.max(1, start?.block ?? 1);
  const isShort = seconds !== undefined && newest.timestamp - seconds < SHORT_HISTORY_SECONDS;
  if (!isEnough)
    report(
      'warning',
      `its history begins at slot ${first}${since}${isShort ? ', as that of ordinary nodes' : ''}: what is older cannot be read from it`,
      'Add an archive endpoint, or set `start` to a later slot or date and name the `offramps`.',
    );
  return [`history from slot ${first}${since} on`];
}

async function probeTransactions(
  { routers: [address = ''] }: SvmSource,
  { node, newest, ask, report }: ProbedNode,
): Promise<readonly string[]> {
  const listed = await ask(
    () => node.signatures({ address, limit: TRIAL_TRANSACTIONS, minContextSlot: newest.slot }),
    'error',
    'Use an endpoint that answers getSignaturesForAddress.',
  );
  if (listed?.length === 0) {
    const remedy = 'Check `routers`, or use an endpoint with more history.';
    report('warning', `it lists no transaction of the router ${address}`, remedy);
  }
  if (!listed || listed.length === 0) return [];
  const begunAt = performance.now();
  const read = await ask(
    () => node.transactions(listed),
    'error',
    'Use an endpoint that answers getTransaction with logs and inner instructions.',
  );
  if (!read) return [];
  const perSecond = (1_000 * read.length) / Math.max(1, performance.now() - begunAt);
  const unknown = read.filter((transaction) => 'problem' in transaction);
  if (unknown.length > 0)
    report(
      'warning',
      `${unknown.length} of the newest ${read.length} transactions of the router cannot be read, first ${unknown[0]?.problem}`,
      'They are kept as unreadable until then, and counted in `unreadableLogs` of /v2/networks.',
    );
  return [
    `transactions up to version ${MAX_TRANSACTION_VERSION}`,
    `about ${Math.max(1, Math.round(perSecond))} transactions a second`,
  ];
}

/** What the endpoint says of the configured programs. */
async function probePrograms(
  { routers, offramps, network }: SvmSource,
  { node, newest: { slot } }: ProbedNode,
): Promise<readonly ProbeFinding[]> {
  const remedy = 'Check `routers` and `offramps` against the CCIP directory: everything else rests on them.';
  const findings: ProbeFinding[] = [];
  /** A failed read becomes a finding: it concerns the configured programs, not the endpoint. */
  const attempt = async <T>(severity: ProbeFinding['severity'], read: () => Promise<T>) => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      findings.push({ severity, text: error.message, remedy });
      return undefined;
    }
  };
  for (const router of routers) {
    const config = await attempt('error', () => readRouters(node, [router], network.selector, slot));
    if (config) findings.push({ severity: 'ok', text: `router ${router} is the router of ${network.name}` });
  }
  const checked = await attempt('warning', () => checkOffRamps(node, offramps, routers, slot));
  if (checked && checked.contracts.length > 0)
    findings.push({
      severity: 'ok',
      text: `the off-ramps may deliver from ${checked.contracts.length} networks`,
    });
  for (const text of checked?.rejected ?? []) findings.push({ severity: 'error', text, remedy });
  return findings;
}
