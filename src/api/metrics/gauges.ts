/** The gauges of /metrics: figures of this process, and figures of the store, which all processes read alike. */

import { statuses } from '../../domain/lifecycle.ts';
import { findingKindNames } from '../../domain/networks/index-findings.ts';
import { findNetwork } from '../../domain/networks/networks.ts';
import type { MirrorState } from '../../store/ledger/mirror-ledger.ts';
import type { WebhookBacklog } from '../../store/ledger/webhook-deliveries.ts';
import type { StoreMetrics } from '../../store/query/store-metrics.ts';
import type { Store } from '../../store/store.ts';
import type { ChangeFeed } from '../live/change-feed.ts';
import { lagBlocks, lagSeconds, secondsBetween, seenAgeSeconds } from './indexing-health.ts';

/** A gauge that is read at each scrape; a source that fails is left out of that scrape. */
export interface GaugeSource {
  /** In snake case, with its unit, such as `lanescan_network_lag_seconds`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** How the values of worker processes are combined. `first`, the default, is for values that all of them read alike. */
  readonly across?: 'first' | 'sum' | 'min' | 'max';
  readonly read: () => Promise<readonly GaugeReading[]> | readonly GaugeReading[];
}

export interface GaugeReading {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface ProcessGaugeOptions {
  readonly store: Store;
  readonly feed: Pick<ChangeFeed, 'followers'>;
  readonly version: string;
  /** Number of requests that are being answered. */
  readonly inFlight: () => number;
  readonly rateLimitedClients: () => number;
  /** Number of open connections. */
  readonly connections: () => number;
  /** Bytes of responses that wait for clients to read them. */
  readonly waitingBytes: () => number;
}

export function processGauges({
  store,
  feed,
  version,
  inFlight,
  rateLimitedClients,
  connections,
  waitingBytes,
}: ProcessGaugeOptions): readonly GaugeSource[] {
  return [
    {
      name: 'lanescan_build_info',
      help: 'Always 1; see the labels.',
      labelNames: ['version', 'simulated'],
      read: () => [{ value: 1, labels: { version, simulated: String(store.simulated) } }],
    },
    {
      name: 'lanescan_http_requests_in_flight',
      help: 'Requests being answered now, streams and waiting ones included.',
      across: 'sum',
      read: () => [{ value: inFlight() }],
    },
    {
      name: 'lanescan_http_connections',
      help: 'Open connections of clients.',
      across: 'sum',
      read: () => [{ value: connections() }],
    },
    {
      name: 'lanescan_http_waiting_bytes',
      help: 'Bytes of responses that wait for clients to read them.',
      across: 'sum',
      read: () => [{ value: waitingBytes() }],
    },
    {
      name: 'lanescan_rate_limited_clients',
      help: 'Clients with a token bucket.',
      across: 'max',
      read: () => [{ value: rateLimitedClients() }],
    },
    {
      name: 'lanescan_database_connections',
      help: 'Connections to the database.',
      labelNames: ['pool', 'state'],
      across: 'sum',
      read: () =>
        store.pools().flatMap(({ pool, total, idle }) => [
          { value: total - idle, labels: { pool, state: 'used' } },
          { value: idle, labels: { pool, state: 'idle' } },
        ]),
    },
    {
      name: 'lanescan_database_waiting',
      help: 'Requests that wait for a connection.',
      labelNames: ['pool'],
      across: 'sum',
      read: () => store.pools().map(({ pool, waiting }) => ({ value: waiting, labels: { pool } })),
    },
    {
      name: 'lanescan_feed_followers',
      help: 'Streams and waiting requests that follow the changes.',
      across: 'sum',
      read: () => [{ value: feed.followers }],
    },
  ];
}

/** Scrapes share the figures of the store for this long. */
const FIGURES_TTL_MS = 5_000;

export function storeGauges(store: Store): readonly GaugeSource[] {
  const currentMetrics = cached(() => store.metrics());
  const currentReplicas = cached(() => store.replicas());
  const currentCluster = cached(() => store.cluster());
  // After the figures: while the database is away they fail first, and the scrape does not wait twice.
  const currentBacklog = cached(async () => {
    await currentMetrics();
    return store.webhooks.backlog();
  });
  const figure = (name: string, help: string, read: (figures: StoreMetrics) => number): GaugeSource => ({
    name,
    help,
    read: async () => [{ value: read(await currentMetrics()) }],
  });
  const networkFigure = (
    name: string,
    help: string,
    read: (network: StoreMetrics['networks'][number]) => number | null,
  ): GaugeSource => ({
    name,
    help,
    labelNames: ['network'],
    read: async () =>
      (await currentMetrics()).networks.flatMap((network) => {
        const value = read(network);
        const labels = { network: findNetwork(network.selector)?.name ?? network.selector };
        return value === null ? [] : [{ value, labels }];
      }),
  });
  /** By host, because a path could contain a key. Of several mirrors of one host, the worst counts. */
  const mirrorFigure = (
    name: string,
    help: string,
    read: (mirror: MirrorState) => number | null,
  ): GaugeSource => ({
    name,
    help,
    labelNames: ['source'],
    read: async () => {
      const worst = new Map<string, number>();
      for (const mirror of (await currentMetrics()).mirrors) {
        const { host } = new URL(mirror.source);
        const value = read(mirror);
        if (value !== null) worst.set(host, Math.max(worst.get(host) ?? 0, value));
      }
      return [...worst].map(([source, value]) => ({ value, labels: { source } }));
    },
  });
  const storeSources: readonly GaugeSource[] = [
    {
      name: 'lanescan_database_up',
      help: 'Whether the database answered this scrape, or one a few seconds ago.',
      across: 'min',
      read: () =>
        currentMetrics().then(
          () => [{ value: 1 }],
          () => [{ value: 0 }],
        ),
    },
    {
      name: 'lanescan_cluster_worker_up',
      help: 'Whether a worker of the database cluster answers; absent for a store on one node.',
      labelNames: ['worker'],
      across: 'min',
      read: async () =>
        ((await currentCluster())?.workers ?? []).map(({ address, isAway }) => ({
          value: isAway ? 0 : 1,
          labels: { worker: address },
        })),
    },
    {
      name: 'lanescan_cluster_published',
      help: 'Whether the latest changes are visible on all workers and published; absent for a store on one node.',
      across: 'min',
      read: async () => {
        const cluster = await currentCluster();
        return cluster ? [{ value: cluster.isPublished ? 1 : 0 }] : [];
      },
    },
    {
      name: 'lanescan_replica_lag_changes',
      help: 'Changes (and writes that change no record) that a replica has not replayed yet, by its place in DATABASE_REPLICA_URL.',
      labelNames: ['replica'],
      across: 'max',
      read: async () =>
        (await currentReplicas()).flatMap(({ replica, lag }) =>
          lag === null ? [] : [{ value: lag, labels: { replica } }],
        ),
    },
    {
      name: 'lanescan_replica_used',
      help: 'Whether a replica is read from: it answers and has caught up.',
      labelNames: ['replica'],
      across: 'min',
      read: async () =>
        (await currentReplicas()).map(({ replica, isUsed }) => ({
          value: isUsed ? 1 : 0,
          labels: { replica },
        })),
    },
    figure('lanescan_history_position', 'Position of the latest change.', ({ position }) => position),
    {
      name: 'lanescan_messages',
      help: 'Messages by status.',
      labelNames: ['status'],
      read: async () => {
        const { byStatus } = await currentMetrics();
        return statuses.map((status) => ({ value: byStatus[status], labels: { status } }));
      },
    },
    figure(
      'lanescan_messages_in_flight',
      'Messages that have neither succeeded nor failed yet.',
      ({ inFlight }) => inFlight,
    ),
    figure(
      'lanescan_messages_ready_for_manual_execution',
      'Messages that can be executed by hand.',
      ({ readyForManualExecution }) => readyForManualExecution,
    ),
    figure('lanescan_lanes', 'Lanes with at least one message.', ({ lanes }) => lanes),
    figure(
      'lanescan_missing_sequence_numbers',
      'Sequence numbers missing between the first and the last of their on-ramps.',
      ({ missingSequenceNumbers }) => missingSequenceNumbers,
    ),
    figure(
      'lanescan_onramps_with_holes',
      'On-ramps with at least one missing sequence number.',
      ({ onrampsWithHoles }) => onrampsWithHoles,
    ),
    networkFigure(
      'lanescan_network_lag_blocks',
      'Blocks between the head of a network and the newest block that was read.',
      lagBlocks,
    ),
    networkFigure(
      'lanescan_network_lag_seconds',
      'Age of the newest block of a network that was read; grows while nothing is read.',
      lagSeconds,
    ),
    networkFigure(
      'lanescan_network_indexed',
      'Whether an indexer holds the lease of a network; 0: it is not being indexed.',
      ({ isLeased }) => (isLeased ? 1 : 0),
    ),
    networkFigure(
      'lanescan_network_seen_age_seconds',
      'Time since the last heartbeat of an indexer of a network.',
      seenAgeSeconds,
    ),
    networkFigure(
      'lanescan_network_progress_age_seconds',
      'Time since the progress of a network was last recorded.',
      ({ updatedAt, readAt }) => secondsBetween(updatedAt, readAt),
    ),
    networkFigure(
      'lanescan_network_owed_blocks',
      'Blocks of a network’s history that are still to be read.',
      ({ owedBlocks }) => owedBlocks,
    ),
    networkFigure(
      'lanescan_network_failed_ranges',
      'Ranges of blocks that could not be read and are tried again.',
      ({ failedRanges }) => failedRanges,
    ),
    networkFigure(
      'lanescan_network_oldest_failure_seconds',
      'For how long the oldest of those ranges has failed; 0 without one.',
      ({ oldestFailureAt, readAt }) =>
        oldestFailureAt === null ? 0 : secondsBetween(oldestFailureAt, readAt),
    ),
    networkFigure(
      'lanescan_network_unreadable_logs',
      'Logs of trusted contracts that could not be decoded and are kept.',
      ({ unreadableLogs }) => unreadableLogs,
    ),
    networkFigure(
      'lanescan_network_foreign_logs',
      'Logs of contracts that no configured router registered; they are ignored.',
      ({ foreignLogs }) => foreignLogs,
    ),
    {
      name: 'lanescan_network_findings',
      help: 'Open findings about the completeness of a network, by kind.',
      labelNames: ['network', 'kind'],
      read: async () =>
        (await currentMetrics()).networks.flatMap(({ selector, findings }) =>
          findingKindNames.map((kind) => ({
            value: findings.find((finding) => finding.kind === kind)?.count ?? 0,
            labels: { network: findNetwork(selector)?.name ?? selector, kind },
          })),
        ),
    },
    networkFigure('lanescan_network_stopped', 'Whether indexing a network has a problem.', (network) =>
      network.problem === null ? 0 : 1,
    ),
    mirrorFigure(
      'lanescan_mirror_seen_age_seconds',
      'Time since the last heartbeat of a mirror, by the host of its source.',
      ({ seenAt, readAt }) => secondsBetween(seenAt, readAt),
    ),
    mirrorFigure(
      'lanescan_mirror_current_age_seconds',
      'Time since a mirrored source was last read to its newest message, by its host.',
      ({ currentAt, readAt }) => (currentAt === null ? null : secondsBetween(currentAt, readAt)),
    ),
  ];
  const webhookFigure = (
    name: string,
    help: string,
    read: (webhook: WebhookBacklog) => Readonly<Record<string, number>> | number,
  ): GaugeSource => ({
    name,
    help,
    labelNames: ['subscription', 'state'],
    read: async () =>
      (await currentBacklog()).flatMap((webhook) => {
        const figures = read(webhook);
        const subscription = webhook.name;
        return typeof figures === 'number'
          ? [{ value: figures, labels: { subscription } }]
          : Object.entries(figures).map(([state, value]) => ({ value, labels: { subscription, state } }));
      }),
  });
  const webhookSources: readonly GaugeSource[] = [
    webhookFigure(
      'lanescan_webhook_deliveries',
      'Deliveries that wait for their next attempt (pending), or for a replay (parked).',
      ({ pending, parked }) => ({ pending, parked }),
    ),
    webhookFigure(
      'lanescan_webhook_lag_changes',
      'Changes that a webhook subscription has not processed yet.',
      ({ lag }) => lag,
    ),
    webhookFigure(
      'lanescan_webhook_served',
      'Whether a server holds the lease of a webhook subscription.',
      ({ isServed }) => (isServed ? 1 : 0),
    ),
  ];
  return [...storeSources, ...webhookSources];
}

/** Caches the result for a few seconds (single-flight); a failure is not cached. */
function cached<T>(read: () => Promise<T>): () => Promise<T> {
  let latest: { readonly at: number; readonly promise: Promise<T> } | undefined;
  return () => {
    if (latest === undefined || performance.now() - latest.at > FIGURES_TTL_MS) {
      const promise = read();
      latest = { at: performance.now(), promise };
      promise.catch(() => {
        if (latest?.promise === promise) latest = undefined;
      });
    }
    return latest.promise;
  };
}
