/**
 * Prometheus metrics, scraped at /metrics; those of worker processes on one port are aggregated. Label values come from the code
 * or from the configuration, never from a client: each new value costs memory for ever.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { statuses } from '../../domain/lifecycle.ts';
import { findingKindNames } from '../../domain/networks/index-findings.ts';
import { findNetwork } from '../../domain/networks/networks.ts';
import type { Store } from '../../store/store.ts';
import { type DiagnosisOutcome, diagnosisOutcomes } from '../execution/diagnoses.ts';
import type { ChangeFeed } from '../live/change-feed.ts';
import { type CutReason, cutReasons } from '../server/connections.ts';
import { createExpiringCache } from '../server/expiring-cache.ts';
import type { WorkerPeers } from '../server/worker-peers.ts';
import { lagBlocks, lagSeconds, secondsBetween, seenAgeSeconds } from './indexing-health.ts';

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
const knownMethods = ['GET', 'HEAD', 'OPTIONS'];
/** Scrapes share one read of the store for this long. */
const READ_TTL_MS = 5_000;
/** The same for sizes and growth, which change slowly and take some thirty statements. */
const DISK_TTL_MS = 60_000;

export type Metrics = ReturnType<typeof createMetrics>;

interface MetricsOptions {
  readonly store: Store;
  readonly feed: Pick<ChangeFeed, 'followers'>;
  readonly version: string;
  readonly inFlight: () => number;
  readonly rateLimitedClients: () => number;
  readonly connections: () => number;
  readonly waitingBytes: () => number;
  readonly peers?: WorkerPeers | undefined;
}

export function createMetrics(options: MetricsOptions) {
  const { store, peers } = options;
  const registry = new Registry();
  const registers = [registry];
  peers?.onMetricsRequest(() => registry.getMetricsAsJSON());
  collectDefaultMetrics({ register: registry });

  const histogram = (name: string, help: string, labelNames: readonly string[]) =>
    new Histogram({ name, help, labelNames, buckets: durationBuckets, registers });
  /** With 0 for each value that its label can have: a series that appears with its first event hides that event. */
  const counter = (name: string, help: string, label?: string, values: readonly string[] = []) => {
    const created = new Counter({ name, help, labelNames: label ? [label] : [], registers });
    if (label) for (const value of values) created.inc({ [label]: value }, 0);
    return created;
  };

  const requests = histogram(
    'lanescan_http_request_duration_seconds',
    'Time to the end of a response; for streams, to its beginning.',
    ['route', 'method', 'status'],
  );
  const queries = histogram(
    'lanescan_database_query_duration_seconds',
    'Time of a read, including its wait for a connection.',
    ['query', 'outcome'],
  );
  const rejections = counter(
    'lanescan_http_refusals_total',
    'Requests rejected by a rate limit (429) or by load shedding (503), and rejected connections.',
    'reason',
    ['rate_limit', 'overload', 'connections'],
  );
  const cuts = counter(
    'lanescan_http_answers_cut_total',
    'Responses that were not sent completely: the client disconnected, or the server cut the connection.',
    'reason',
    ['client', ...cutReasons],
  );
  const diagnoses = counter(
    'lanescan_diagnoses_total',
    'Simulated executions by outcome; responses from the cache are not counted.',
    'outcome',
    diagnosisOutcomes,
  );
  const diagnosisCalls = counter(
    'lanescan_diagnosis_calls_total',
    'Calls to RPC endpoints for simulated executions.',
  );
  const stopObserving = store.observeReads((query, seconds, outcome) =>
    queries.observe({ query, outcome }, seconds),
  );

  /** Gauges that are read together at each scrape; items that cannot be read are left out of it. */
  const gauges: RegisterGauges = (labelNames, items, rows) => {
    for (const [name, [help, measure, aggregator = 'first']] of Object.entries(rows)) {
      new Gauge({
        name,
        help,
        labelNames,
        aggregator,
        registers,
        async collect() {
          this.reset();
          // Otherwise a gauge without labels would show 0 for an unknown value.
          if (labelNames.length === 0) this.remove();
          try {
            const readings = (await items()).map(([labels, item]) => {
              const value = typeof measure === 'function' ? measure(item) : item[measure];
              return { labels, value };
            });
            // Of several items with the same labels, the worst is set last.
            readings.sort((a, b) => Number(a.value) - Number(b.value));
            for (const { labels, value } of readings) if (value !== null) this.set(labels, Number(value));
          } catch {
            // Unknown is not zero: the gauge is missing from this scrape.
          }
        },
      });
    }
  };
  registerProcessGauges(gauges, options);
  registerStoreGauges(gauges, store);

  return {
    /** @param route the path pattern of the route, never the requested path */
    observeRequest(route: string, method: string, status: number, seconds: number): void {
      const known = knownMethods.includes(method) ? method : 'other';
      requests.observe({ route, method: known, status: String(status) }, seconds);
    },
    observeRejection: (reason: 'rate_limit' | 'overload' | 'connections') => rejections.inc({ reason }),
    /** Counts a response that was not sent completely, by reason. */
    observeCut: (reason: CutReason | 'client') => cuts.inc({ reason }),
    observeDiagnosis: (outcome: DiagnosisOutcome) => diagnoses.inc({ outcome }),
    observeDiagnosisCalls: (calls: number) => diagnosisCalls.inc(calls),
    /** All metrics in the text format of Prometheus. */
    scrape: () => (peers ? peers.scrape() : registry.metrics()),
    close(): void {
      stopObserving();
      registry.clear();
    },
  };
}

/** How the values of worker processes are combined. `first`, the default, is for values that all of them read alike. */
type Aggregator = 'first' | 'sum' | 'min' | 'max';

type Labels = Readonly<Record<string, string>>;
type Items<T> = readonly (readonly [Labels, T])[];

type Measured = number | boolean | null;
/** A member of the item that is its value, or how it is computed. */
type MeasureOf<T> = ((item: T) => Measured) | (T extends object ? MeasuredKey<T> : never);
type MeasuredKey<T> = { [K in keyof T]: T[K] extends Measured ? K : never }[keyof T];

/**
 * @param items read anew at each scrape
 * @param rows by name of the gauge (in snake case, with its unit): its help, and its value for an item; none where that is null
 */
type RegisterGauges = <T>(
  labelNames: readonly string[],
  items: () => Items<T> | Promise<Items<T>>,
  rows: Readonly<Record<string, readonly [help: string, MeasureOf<T>, Aggregator?]>>,
) => void;

/** The one item of gauges without labels. */
const alone = <T>(item: T): Items<T> => [[{}, item]];

function registerProcessGauges(gauges: RegisterGauges, options: MetricsOptions): void {
  const { store, feed, version } = options;
  gauges(['version', 'simulated'], () => [[{ version, simulated: String(store.simulated) }, 1]], {
    lanescan_build_info: ['Always 1; see the labels.', (one) => one],
  });
  gauges([], () => alone(options), {
    lanescan_http_requests_in_flight: [
      'Requests being answered now, streams and waiting ones included.',
      ({ inFlight }) => inFlight(),
      'sum',
    ],
    lanescan_http_connections: ['Open connections of clients.', ({ connections }) => connections(), 'sum'],
    lanescan_http_waiting_bytes: [
      'Bytes of responses that wait for clients to read them.',
      ({ waitingBytes }) => waitingBytes(),
      'sum',
    ],
    lanescan_rate_limited_clients: [
      'Clients with a token bucket.',
      ({ rateLimitedClients }) => rateLimitedClients(),
      'max',
    ],
    lanescan_feed_followers: [
      'Streams and waiting requests that follow the changes.',
      () => feed.followers,
      'sum',
    ],
  });
  const poolStates = () =>
    store
      .pools()
      .flatMap(({ pool, total, idle }) => [
        [{ pool, state: 'used' }, total - idle] as const,
        [{ pool, state: 'idle' }, idle] as const,
      ]);
  gauges(['pool', 'state'], poolStates, {
    lanescan_database_connections: ['Connections to the database.', (count) => count, 'sum'],
  });
  gauges(['pool'], () => store.pools().map(({ pool, waiting }) => [{ pool }, waiting]), {
    lanescan_database_waiting: ['Requests that wait for a connection.', (waiting) => waiting, 'sum'],
  });
}

function registerStoreGauges(gauges: RegisterGauges, store: Store): void {
  const stats = cached(() => store.metrics());
  const replicas = cached(() => store.replicas());
  const cluster = cached(() => store.cluster());
  // After the statistics: while the database is away they fail first, and the scrape does not wait twice.
  const webhooks = cached(async () => {
    await stats();
    return store.webhooks.backlog();
  });
  const disk = cached(async () => {
    await stats();
    return store.diskUsage();
  }, DISK_TTL_MS);
  const networks = async () =>
    (await stats()).networks.map(
      (network) => [{ network: findNetwork(network.selector)?.name ?? network.selector }, network] as const,
    );

  const isUp = () =>
    stats().then(
      () => alone(true),
      () => alone(false),
    );
  gauges([], isUp, {
    lanescan_database_up: [
      'Whether the database answered this scrape, or one a few seconds ago.',
      (isUp) => isUp,
      'min',
    ],
  });
  const tableParts = async () =>
    (await disk()).tables.flatMap(({ table, heap, indexes, toast }) =>
      Object.entries({ heap, indexes, toast }).map(([part, bytes]) => [{ table, part }, bytes] as const),
    );
  gauges(['table', 'part'], tableParts, {
    lanescan_table_bytes: [
      'Bytes of a table on disk, on all nodes of a cluster: its rows (heap), its indexes, and long values (toast).',
      (bytes) => bytes,
    ],
  });
  gauges([], async () => alone(await disk()), {
    lanescan_database_bytes: [
      'Bytes of the whole database, on all nodes of a cluster; absent while a worker is away.',
      'databaseBytes',
    ],
    lanescan_database_growth_bytes_per_day: [
      'Expected growth, from the messages of the last days; absent where it is unknown.',
      ({ growth }) => growth.expected?.bytesPerDay ?? null,
    ],
    lanescan_disk_free_bytes: [
      'Free bytes of the file system of the embedded database; absent for another server.',
      ({ disk }) => disk?.freeBytes ?? null,
    ],
  });
  const workers = async () =>
    ((await cluster())?.workers ?? []).map((worker) => [{ worker: worker.address }, worker] as const);
  gauges(['worker'], workers, {
    lanescan_cluster_worker_up: [
      'Whether a worker of the database cluster answers; absent for a store on one node.',
      ({ isAway }) => !isAway,
      'min',
    ],
  });
  gauges([], async () => alone(await cluster()), {
    lanescan_cluster_published: [
      'Whether the latest changes are visible on all workers and published; absent for a store on one node.',
      (found) => found?.isPublished ?? null,
      'min',
    ],
  });
  gauges(['replica'], async () => (await replicas()).map((each) => [{ replica: each.replica }, each]), {
    lanescan_replica_lag_changes: [
      'Changes (and writes that change no record) that a replica has not replayed yet, by its place in DATABASE_REPLICA_URL.',
      'lag',
      'max',
    ],
    lanescan_replica_used: ['Whether a replica is read from: it answers and has caught up.', 'isUsed', 'min'],
  });
  const messages = async () => {
    const { byStatus } = await stats();
    return statuses.map((status) => [{ status }, byStatus[status]] as const);
  };
  gauges(['status'], messages, { lanescan_messages: ['Messages by status.', (count) => count] });
  gauges([], async () => alone(await stats()), {
    lanescan_history_position: ['Position of the latest change.', 'position'],
    lanescan_messages_in_flight: ['Messages that have neither succeeded nor failed yet.', 'inFlight'],
    lanescan_messages_ready_for_manual_execution: [
      'Messages that can be executed manually.',
      'readyForManualExecution',
    ],
    lanescan_lanes: ['Lanes with at least one message.', 'lanes'],
    lanescan_missing_sequence_numbers: [
      'Sequence numbers missing between the first and the last of their on-ramps.',
      'missingSequenceNumbers',
    ],
    lanescan_onramps_with_holes: ['On-ramps with at least one missing sequence number.', 'onrampsWithHoles'],
  });
  gauges(['network'], networks, {
    lanescan_network_lag_blocks: [
      'Blocks between the head of a network and the newest block that was read.',
      lagBlocks,
    ],
    lanescan_network_lag_seconds: [
      'Age of the newest block of a network that was read; grows while nothing is read.',
      lagSeconds,
    ],
    lanescan_network_indexed: [
      'Whether an indexer holds the lease of a network; 0: it is not being indexed.',
      'isLeased',
    ],
    lanescan_network_seen_age_seconds: [
      'Time since the last heartbeat of an indexer of a network.',
      seenAgeSeconds,
    ],
    lanescan_network_progress_age_seconds: [
      'Time since the progress of a network was last recorded.',
      ({ updatedAt, readAt }) => secondsBetween(updatedAt, readAt),
    ],
    lanescan_network_owed_blocks: ['Blocks of a network’s history that are still to be read.', 'owedBlocks'],
    lanescan_network_failed_ranges: [
      'Ranges of blocks that could not be read and are tried again.',
      'failedRanges',
    ],
    lanescan_network_oldest_failure_seconds: [
      'For how long the oldest of those ranges has failed; 0 without one.',
      ({ oldestFailureAt, readAt }) =>
        oldestFailureAt === null ? 0 : secondsBetween(oldestFailureAt, readAt),
    ],
    lanescan_network_unreadable_logs: [
      'Logs of trusted contracts that could not be decoded; they are stored.',
      'unreadableLogs',
    ],
    lanescan_network_foreign_logs: [
      'Logs of contracts that no configured router registered; they are ignored.',
      'foreignLogs',
    ],
    lanescan_network_stopped: [
      'Whether indexing a network has a problem.',
      ({ problem }) => problem !== null,
    ],
  });
  const findings = async () =>
    (await networks()).flatMap(([{ network }, { findings }]) =>
      findingKindNames.map((kind) => {
        const found = findings.find((finding) => finding.kind === kind);
        return [{ network, kind }, found?.count ?? 0] as const;
      }),
    );
  gauges(['network', 'kind'], findings, {
    lanescan_network_findings: [
      'Open findings about the completeness of a network, by kind.',
      (count) => count,
    ],
  });
  // By host, because a path could contain a key.
  const mirrors = async () =>
    (await stats()).mirrors.map((mirror) => [{ source: new URL(mirror.source).host }, mirror] as const);
  gauges(['source'], mirrors, {
    lanescan_mirror_seen_age_seconds: [
      'Time since the last heartbeat of a mirror, by the host of its source.',
      ({ seenAt, readAt }) => secondsBetween(seenAt, readAt),
    ],
    lanescan_mirror_current_age_seconds: [
      'Time since a mirrored source was last read to its newest message, by its host.',
      ({ currentAt, readAt }) => (currentAt === null ? null : secondsBetween(currentAt, readAt)),
    ],
  });
  const deliveries = async () =>
    (await webhooks()).flatMap(({ name, pending, parked }) => [
      [{ subscription: name, state: 'pending' }, pending] as const,
      [{ subscription: name, state: 'parked' }, parked] as const,
    ]);
  gauges(['subscription', 'state'], deliveries, {
    lanescan_webhook_deliveries: [
      'Deliveries that wait for their next attempt (pending), or for a replay (parked).',
      (count) => count,
    ],
  });
  gauges(
    ['subscription'],
    async () => (await webhooks()).map((each) => [{ subscription: each.name }, each]),
    {
      lanescan_webhook_lag_changes: ['Changes that a webhook subscription has not processed yet.', 'lag'],
      lanescan_webhook_served: ['Whether a server holds the lease of a webhook subscription.', 'isServed'],
    },
  );
}

/** Caches the result for some time. */
function cached<T>(read: () => Promise<T>, ttlMs = READ_TTL_MS): () => Promise<T> {
  const cache = createExpiringCache<T>(ttlMs);
  return () => cache.get('', read);
}
