/** The gauges of /metrics: of this process, and of the store, which all processes read alike. */
import { statuses } from '../../domain/lifecycle.ts';
import { findingKindNames } from '../../domain/networks/index-findings.ts';
import { findNetwork } from '../../domain/networks/networks.ts';
import type { MirrorState } from '../../store/ledger/mirror-ledger.ts';
import type { WebhookBacklog } from '../../store/ledger/webhook-deliveries.ts';
import type { StoreMetrics } from '../../store/query/statistics-reads.ts';
import type { Store } from '../../store/store.ts';
import type { ChangeFeed } from '../live/change-feed.ts';
import { lagBlocks, lagSeconds, secondsBetween, seenAgeSeconds } from './indexing-health.ts';

/** How the values of worker processes are combined. `first`, the default, is for values that all of them read alike. */
type Aggregator = 'first' | 'sum' | 'min' | 'max';

/** A gauge that is read at each scrape; a source that fails is left out of that scrape. */
interface GaugeSource {
  /** In snake case, with its unit, such as `lanescan_network_lag_seconds`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  readonly across?: Aggregator;
  /** The value of a gauge without labels, or one for each set of labels. */
  readonly read: () => GaugeValue | Promise<GaugeValue>;
}

type GaugeValue = number | readonly GaugeReading[];

interface GaugeReading {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export function processGauges(options: {
  readonly store: Store;
  readonly feed: Pick<ChangeFeed, 'followers'>;
  readonly version: string;
  readonly inFlight: () => number;
  readonly rateLimitedClients: () => number;
  readonly connections: () => number;
  readonly waitingBytes: () => number;
}): readonly GaugeSource[] {
  const { store, feed, version } = options;
  const sum = (name: string, help: string, read: GaugeSource['read'], labelNames: readonly string[] = []) =>
    ({ name, help, labelNames, across: 'sum', read }) as const;
  return [
    {
      name: 'lanescan_build_info',
      help: 'Always 1; see the labels.',
      labelNames: ['version', 'simulated'],
      read: () => [{ value: 1, labels: { version, simulated: String(store.simulated) } }],
    },
    sum(
      'lanescan_http_requests_in_flight',
      'Requests being answered now, streams and waiting ones included.',
      options.inFlight,
    ),
    sum('lanescan_http_connections', 'Open connections of clients.', options.connections),
    sum(
      'lanescan_http_waiting_bytes',
      'Bytes of responses that wait for clients to read them.',
      options.waitingBytes,
    ),
    {
      name: 'lanescan_rate_limited_clients',
      help: 'Clients with a token bucket.',
      across: 'max',
      read: options.rateLimitedClients,
    },
    sum(
      'lanescan_database_connections',
      'Connections to the database.',
      () =>
        store.pools().flatMap(({ pool, total, idle }) => [
          { value: total - idle, labels: { pool, state: 'used' } },
          { value: idle, labels: { pool, state: 'idle' } },
        ]),
      ['pool', 'state'],
    ),
    sum(
      'lanescan_database_waiting',
      'Requests that wait for a connection.',
      () => store.pools().map(({ pool, waiting }) => ({ value: waiting, labels: { pool } })),
      ['pool'],
    ),
    sum(
      'lanescan_feed_followers',
      'Streams and waiting requests that follow the changes.',
      () => feed.followers,
    ),
  ];
}

/** Scrapes share one read of the store for this long. */
const READ_TTL_MS = 5_000;

/** By name of the gauge: its help, and its value; none where that is null. */
type Rows<T> = Readonly<
  Record<string, readonly [help: string, read: (of: T) => number | boolean | null, across?: Aggregator]>
>;

const totalRows: Rows<StoreMetrics> = {
  lanescan_history_position: ['Position of the latest change.', ({ position }) => position],
  lanescan_messages_in_flight: [
    'Messages that have neither succeeded nor failed yet.',
    ({ inFlight }) => inFlight,
  ],
  lanescan_messages_ready_for_manual_execution: [
    'Messages that can be executed manually.',
    ({ readyForManualExecution }) => readyForManualExecution,
  ],
  lanescan_lanes: ['Lanes with at least one message.', ({ lanes }) => lanes],
  lanescan_missing_sequence_numbers: [
    'Sequence numbers missing between the first and the last of their on-ramps.',
    ({ missingSequenceNumbers }) => missingSequenceNumbers,
  ],
  lanescan_onramps_with_holes: [
    'On-ramps with at least one missing sequence number.',
    ({ onrampsWithHoles }) => onrampsWithHoles,
  ],
};

const networkRows: Rows<StoreMetrics['networks'][number]> = {
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
    ({ isLeased }) => isLeased,
  ],
  lanescan_network_seen_age_seconds: [
    'Time since the last heartbeat of an indexer of a network.',
    seenAgeSeconds,
  ],
  lanescan_network_progress_age_seconds: [
    'Time since the progress of a network was last recorded.',
    ({ updatedAt, readAt }) => secondsBetween(updatedAt, readAt),
  ],
  lanescan_network_owed_blocks: [
    'Blocks of a network’s history that are still to be read.',
    ({ owedBlocks }) => owedBlocks,
  ],
  lanescan_network_failed_ranges: [
    'Ranges of blocks that could not be read and are tried again.',
    ({ failedRanges }) => failedRanges,
  ],
  lanescan_network_oldest_failure_seconds: [
    'For how long the oldest of those ranges has failed; 0 without one.',
    ({ oldestFailureAt, readAt }) => (oldestFailureAt === null ? 0 : secondsBetween(oldestFailureAt, readAt)),
  ],
  lanescan_network_unreadable_logs: [
    'Logs of trusted contracts that could not be decoded; they are stored.',
    ({ unreadableLogs }) => unreadableLogs,
  ],
  lanescan_network_foreign_logs: [
    'Logs of contracts that no configured router registered; they are ignored.',
    ({ foreignLogs }) => foreignLogs,
  ],
  lanescan_network_stopped: ['Whether indexing a network has a problem.', ({ problem }) => problem !== null],
};

const mirrorRows: Rows<MirrorState> = {
  lanescan_mirror_seen_age_seconds: [
    'Time since the last heartbeat of a mirror, by the host of its source.',
    ({ seenAt, readAt }) => secondsBetween(seenAt, readAt),
  ],
  lanescan_mirror_current_age_seconds: [
    'Time since a mirrored source was last read to its newest message, by its host.',
    ({ currentAt, readAt }) => (currentAt === null ? null : secondsBetween(currentAt, readAt)),
  ],
};

const webhookRows: Rows<WebhookBacklog> = {
  lanescan_webhook_lag_changes: [
    'Changes that a webhook subscription has not processed yet.',
    ({ lag }) => lag,
  ],
  lanescan_webhook_served: [
    'Whether a server holds the lease of a webhook subscription.',
    ({ isServed }) => isServed,
  ],
};

const workerRows: Rows<NonNullable<Awaited<ReturnType<Store['cluster']>>>['workers'][number]> = {
  lanescan_cluster_worker_up: [
    'Whether a worker of the database cluster answers; absent for a store on one node.',
    ({ isAway }) => !isAway,
    'min',
  ],
};

const replicaRows: Rows<Awaited<ReturnType<Store['replicas']>>[number]> = {
  lanescan_replica_lag_changes: [
    'Changes (and writes that change no record) that a replica has not replayed yet, by its place in DATABASE_REPLICA_URL.',
    ({ lag }) => lag,
    'max',
  ],
  lanescan_replica_used: [
    'Whether a replica is read from: it answers and has caught up.',
    ({ isUsed }) => isUsed,
    'min',
  ],
};

/** A gauge for each row, with one reading for each item. */
function gauges<T>(
  rows: Rows<T>,
  label: string,
  read: () => Promise<readonly (readonly [labelValue: string, item: T])[]>,
): readonly GaugeSource[] {
  return Object.entries(rows).map(([name, [help, measure, across = 'first']]) => ({
    name,
    help,
    labelNames: [label],
    across,
    read: async () =>
      (await read())
        .flatMap(([labelValue, item]) => {
          const value = measure(item);
          return value === null ? [] : [{ value: Number(value), labels: { [label]: labelValue } }];
        })
        .sort((a, b) => a.value - b.value),
  }));
}

export function storeGauges(store: Store): readonly GaugeSource[] {
  const stats = cached(() => store.metrics());
  const replicas = cached(() => store.replicas());
  const cluster = cached(() => store.cluster());
  // After the statistics: while the database is away they fail first, and the scrape does not wait twice.
  const webhooks = cached(async () => {
    await stats();
    return store.webhooks.backlog();
  });
  const networks = async () =>
    (await stats()).networks.map(
      (network) => [findNetwork(network.selector)?.name ?? network.selector, network] as const,
    );
  return [
    {
      name: 'lanescan_database_up',
      help: 'Whether the database answered this scrape, or one a few seconds ago.',
      across: 'min',
      read: () =>
        stats().then(
          () => 1,
          () => 0,
        ),
    },
    ...gauges(workerRows, 'worker', async () =>
      ((await cluster())?.workers ?? []).map((worker) => [worker.address, worker]),
    ),
    {
      name: 'lanescan_cluster_published',
      help: 'Whether the latest changes are visible on all workers and published; absent for a store on one node.',
      across: 'min',
      read: async () => {
        const found = await cluster();
        return found ? Number(found.isPublished) : [];
      },
    },
    ...gauges(replicaRows, 'replica', async () =>
      (await replicas()).map((replica) => [replica.replica, replica]),
    ),
    {
      name: 'lanescan_messages',
      help: 'Messages by status.',
      labelNames: ['status'],
      read: async () => {
        const { byStatus } = await stats();
        return statuses.map((status) => ({ value: byStatus[status], labels: { status } }));
      },
    },
    ...Object.entries(totalRows).map(([name, [help, measure]]) => ({
      name,
      help,
      read: async () => Number(measure(await stats())),
    })),
    ...gauges(networkRows, 'network', networks),
    {
      name: 'lanescan_network_findings',
      help: 'Open findings about the completeness of a network, by kind.',
      labelNames: ['network', 'kind'],
      read: async () =>
        (await networks()).flatMap(([network, { findings }]) =>
          findingKindNames.map((kind) => ({
            value: findings.find((finding) => finding.kind === kind)?.count ?? 0,
            labels: { network, kind },
          })),
        ),
    },
    // By host, because a path could contain a key. Of several mirrors of one host, the worst is set last.
    ...gauges(mirrorRows, 'source', async () =>
      (await stats()).mirrors.map((mirror) => [new URL(mirror.source).host, mirror]),
    ),
    {
      name: 'lanescan_webhook_deliveries',
      help: 'Deliveries that wait for their next attempt (pending), or for a replay (parked).',
      labelNames: ['subscription', 'state'],
      read: async () =>
        (await webhooks()).flatMap(({ name, pending, parked }) => [
          { value: pending, labels: { subscription: name, state: 'pending' } },
          { value: parked, labels: { subscription: name, state: 'parked' } },
        ]),
    },
    ...gauges(webhookRows, 'subscription', async () =>
      (await webhooks()).map((webhook) => [webhook.name, webhook]),
    ),
  ];
}

/** Caches the result for a few seconds (single-flight); a failure is not cached. */
function cached<T>(read: () => Promise<T>): () => Promise<T> {
  let latest: { readonly at: number; readonly promise: Promise<T> } | undefined;
  return () => {
    if (latest === undefined || performance.now() - latest.at > READ_TTL_MS) {
      const promise = read();
      latest = { at: performance.now(), promise };
      promise.catch(() => {
        if (latest?.promise === promise) latest = undefined;
      });
    }
    return latest.promise;
  };
}
