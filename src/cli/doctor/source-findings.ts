/** Checks of `doctor` and `audit` for what keeps the records up to date: indexers, mirrors, and the endpoints they read. */
import {
  hasLoss,
  indexingHealth,
  lagSeconds,
  mirrorHealth,
  secondsBetween,
} from '../../api/metrics/indexing-health.ts';
import { blockNoun } from '../../domain/chain-families.ts';
import { type FindingKind, findingKinds } from '../../domain/networks/index-findings.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import type { NetworkReport, NetworkSource, ProbeFinding } from '../../ingest/engine/family.ts';
import { probeNetwork } from '../../ingest/families.ts';
import type { MirrorState } from '../../store/ledger/mirror-ledger.ts';
import type { NetworkProgress } from '../../store/query/network-progress.ts';
import type { Store } from '../../store/store.ts';
import { age, counted, howOld, printable } from '../../text/format.ts';
import type { Config } from '../config/config.ts';
import type { CliContext } from '../context.ts';
import { lanescanVersion } from '../version.ts';
import { type Finding, failure, ok, problemFinding, warning } from './finding.ts';

type SourceStore = Pick<Store, 'networkProgress' | 'mirrors'>;
type IndexedStore = SourceStore & { readonly index: Pick<Store['index'], 'checks'> };

const MISSING = 'new messages and status changes are missing';

/** For `doctor`. No findings where nothing is indexed or mirrored. */
export async function sourceFindings(store: IndexedStore, config: Config, context: CliContext) {
  const configured = configuredSelectors(config, context);
  const networks = await store.networkProgress();
  const mirrors = await store.mirrors();
  const completeness: Finding[] = [];
  for (const network of networks) {
    const found = await store.index.checks.findings(network.selector);
    completeness.push(
      ...found.map(({ kind, detail }) =>
        (findingKinds[kind].isLoss ? failure : warning)(
          `${nameOf(network)}: ${printable(detail)}`,
          remedies[kind],
        ),
      ),
    );
  }
  return [
    ...networks.map((network) => networkFinding(network, configured.has(network.selector))),
    ...networks.filter(({ unreadableLogs }) => unreadableLogs > 0).map(unreadableFinding),
    ...completeness,
    ...mirrors.map(mirrorFinding),
  ];
}

const ARCHIVE_REMEDY =
  'Add an endpoint that has the whole history (an archive node) to `rpc`; the blocks are read again.';
const REVIEW_REMEDY =
  'What no two endpoints show is removed by itself. If this stays, the endpoints disagree: add another one to `rpc`.';
const UNREADABLE_REMEDY =
  'The log of the indexer says why. A chain that is not built in is defined under `chains`; otherwise a newer version may decode them. They are read again at every start.';
const remedies: Readonly<Record<FindingKind, string>> = {
  'registrations-missing': ARCHIVE_REMEDY,
  'messages-missing': ARCHIVE_REMEDY,
  'commits-missing': ARCHIVE_REMEDY,
  'executions-missing': ARCHIVE_REMEDY,
  'onramp-unknown': 'Check `routers` in the configuration, or add an endpoint that has the whole history.',
  'contract-unknown':
    'A newer version of Lanescan may know it; it is examined again at every start. Check `routers` in the configuration.',
  'contract-disputed':
    'One of these endpoints is wrong: remove it from `rpc`. With a third endpoint, two that agree decide. They are asked again.',
  'messages-invented': REVIEW_REMEDY,
  'commits-invented': REVIEW_REMEDY,
  'events-unconfirmed':
    'Add an endpoint that has the whole history (an archive node) to `rpc`, and remove those that do not answer. The blocks are reviewed as soon as a second endpoint shows them.',
  'logs-unreadable': UNREADABLE_REMEDY,
  'bloom-wrong': 'Nothing has to be done. `verify: off` makes it explicit.',
};

function unreadableFinding(network: NetworkProgress): Finding {
  const { unreadableLogs } = network;
  const are = unreadableLogs === 1 ? 'is' : 'are';
  return warning(
    `${nameOf(network)}: ${counted(unreadableLogs, 'log')} could not be decoded and ${are} kept`,
    UNREADABLE_REMEDY,
  );
}

/** For `audit` and `index`: what networks lack according to their own contracts. Selectors restrict it to these. */
export async function knownLosses(store: IndexedStore, selectors: readonly (string | undefined)[]) {
  const losses: string[] = [];
  for (const network of (await store.networkProgress()).filter(isAmong(selectors))) {
    for (const { kind, detail } of await store.index.checks.findings(network.selector))
      if (findingKinds[kind].isLoss) losses.push(`${nameOf(network)}: ${printable(detail)}.`);
  }
  return losses;
}

/** For `audit`: what it cannot judge because an indexer or mirror has stopped. Selectors restrict it to these networks. */
export async function stoppedSources(store: SourceStore, selectors: readonly (string | undefined)[]) {
  const networks = (await store.networkProgress())
    .filter(isAmong(selectors))
    .filter((network) => indexingHealth(network) === 'stopped');
  const mirrors = (await store.mirrors()).filter((mirror) => mirrorHealth(mirror) === 'stopped');
  return [...networks.map(stoppedIndexing), ...mirrors.map(stoppedMirror)].map(
    (what) => `${what}: messages sent since then are not checked.`,
  );
}

function configuredSelectors(config: Config, { environment }: CliContext): ReadonlySet<string> {
  try {
    return new Set(config.read('networks', environment).map(({ network }) => network.selector));
  } catch {
    // Errors of the configuration are a separate finding.
    return new Set();
  }
}

function networkFinding(network: NetworkProgress, isConfigured: boolean): Finding {
  const health = indexingHealth(network);
  const name = nameOf(network);
  if (health === 'stopped')
    return (isConfigured ? failure : warning)(
      `${stoppedIndexing(network)}: ${MISSING}`,
      'Start `lanescan index` (or `lanescan serve --index`) again; its log says why it ended.',
    );
  if (health === 'failing') {
    const problem =
      network.problem ??
      (hasLoss(network)
        ? 'the history that was read contradicts its contracts, see below'
        : `${network.failedRanges} ranges of blocks could not be read for a long time`);
    return warning(
      `Indexing of ${name} has a problem: ${printable(problem)}`,
      'It is retried. The log of the indexer has the details.',
    );
  }
  if (health === 'stale')
    return warning(
      `Indexing of ${name} is alive but recorded no progress for ${ageBetween(network.updatedAt, network.readAt)}`,
      'See the log of the indexer; restart it if it has no new lines.',
    );
  const lag = lagSeconds(network);
  const noun = blockNoun(networkBySelector(network.selector)?.family ?? '');
  const block = network.indexedBlock === null ? `no ${noun} read yet` : `at ${noun} ${network.indexedBlock}`;
  const old = lag === null ? '' : `, whose age is ${age(lag * 1000)}`;
  return health === 'ok'
    ? ok(`Indexing of ${name}: ${block}${old}`)
    : warning(`Indexing of ${name}: behind, ${block}${old}`);
}

function mirrorFinding(mirror: MirrorState): Finding {
  const source = printable(mirror.source);
  const health = mirrorHealth(mirror);
  if (health === 'ok') return ok(`Mirror of ${source}: up to date`);
  return health === 'stopped'
    ? warning(
        `${stoppedMirror(mirror)}: ${MISSING}`,
        'Start `lanescan mirror` again, or run it with --once if it need not follow any more.',
      )
    : warning(
        `Mirror of ${source} is alive, but the source could not be read to its newest message for some time`,
        'The log of the mirror says why.',
      );
}

function stoppedIndexing(network: NetworkProgress): string {
  return `Indexing of ${nameOf(network)} stopped ${ageBetween(network.seenAt, network.readAt)} ago`;
}

function stoppedMirror({ source, seenAt, readAt }: MirrorState): string {
  return `The mirror of ${printable(source)} stopped ${ageBetween(seenAt, readAt)} ago`;
}

function nameOf({ selector }: NetworkProgress): string {
  return networkBySelector(selector)?.name ?? selector;
}

function ageBetween(from: Date, to: Date): string {
  return age(secondsBetween(from, to) * 1000);
}

/** Every network where no selector is given. */
function isAmong(selectors: readonly (string | undefined)[]): (network: NetworkProgress) => boolean {
  const chosen = new Set(selectors.filter((selector) => selector !== undefined));
  return ({ selector }) => chosen.size === 0 || chosen.has(selector);
}

// ---- The configured networks: every endpoint is tested, all at the same time

/** Generous, because some chains produce blocks only when there are transactions. */
const OLD_HEAD_MS = 15 * 60_000;

/** No findings where no network is configured. */
export async function* networkFindings(config: Config, context: CliContext): AsyncGenerator<Finding> {
  const { signal, now } = context;
  let sources: readonly NetworkSource[];
  try {
    sources = config.read('networks', context.environment);
  } catch (error) {
    yield problemFinding('Networks', error);
    return;
  }
  const options = { userAgent: `lanescan/${lanescanVersion}`, signal, now };
  const probes = sources.map((source) => probeNetwork(source, options));
  // A failure while another network is awaited is reported in its turn.
  for (const probe of probes) probe.catch(() => undefined);
  for (const [index, { network }] of sources.entries()) {
    const probe = await probes[index];
    if (probe) yield* findingsOf(network.name, probe, now());
  }
}

function* findingsOf(network: string, { endpoints, routers }: NetworkReport, now: number) {
  for (const { name, head, capabilities, findings } of endpoints) {
    const prefix = `${network} at ${printable(name)}`;
    if (head) {
      const headAge = now - head.timestamp * 1000;
      const parts = [`head ${head.number}, ${howOld(headAge)}`, ...capabilities];
      yield ok(`${prefix}: ${printable(parts.join(', '))}`);
      if (headAge > OLD_HEAD_MS)
        yield warning(
          `${prefix}: the newest block is ${howOld(headAge)}`,
          'The node may have fallen behind; the indexer prefers other endpoints meanwhile.',
        );
    }
    for (const finding of findings) yield asFinding(prefix, finding);
  }
  if (endpoints.every(({ head }) => head === null))
    yield failure(`${network}: no endpoint can be used`, 'Check rpc, or add another one.');
  for (const finding of routers) yield asFinding(network, finding);
}

function asFinding(prefix: string, { severity, text, remedy }: ProbeFinding): Finding {
  return { severity, what: `${prefix}: ${printable(text)}`, ...(remedy !== undefined && { remedy }) };
}
