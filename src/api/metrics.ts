/**
 * What Prometheus scrapes at /metrics. Every server has its own registry; those of processes that share a port are told
 * as one.
 *
 * Labels come from our code or from the configuration, never from a client: what a client chooses could be anything,
 * and each new value would cost memory for ever.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { findingKindNames } from '../domain/index-findings.ts';
import { statuses } from '../domain/lifecycle.ts';
import { findNetwork } from '../domain/networks.ts';
import { refuseParameters } from '../domain/search-parameters.ts';
import type { StoreFigures } from '../store/figures.ts';
import type { MirrorState } from '../store/mirror-ledger.ts';
import type { Store } from '../store/store.ts';
import type { WebhookBacklog } from '../store/webhook-deliveries.ts';
import type { ChangeFeed } from './change-feed.ts';
import { type CutReason, cutReasons } from './connections.ts';
import { lagBlocks, lagSeconds, secondsBetween, seenAgeSeconds } from './indexing-health.ts';
import type { Route } from './route.ts';
import type { Siblings } from './siblings.ts';

/** A figure that is read whenever somebody scrapes; a source that fails is left out of that scrape. */
export interface GaugeSource {
  /** In snake case, with its unit, such as `lanescan_webhook_deliveries_pending`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** What becomes of it where several processes share a port; `first`, the default, is for what all of them read alike. */
  readonly across?: 'first' | 'sum' | 'min' | 'max';
  readonly read: () => Promise<readonly GaugeReading[]> | readonly GaugeReading[];
}

export interface GaugeReading {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface ObservedRequest {
  /** The pattern of the route, never the path that was asked for. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

export interface Metrics {
  observeRequest(request: ObservedRequest): void;
  observeRefusal(reason: 'rate_limit' | 'overload' | 'connections'): void;
  /** An answer that was not sent whole, and because of whom. */
  observeCut(reason: CutReason | 'client'): void;
  registerGauges(...sources: readonly GaugeSource[]): void;
  /** All of them in Prometheus' text format. */
  scrape(): Promise<string>;
  close(): void;
}

export interface MetricsOptions {
  readonly store: Store;
  readonly feed: Pick<ChangeFeed, 'followers'>;
  readonly version: string;
  /** How many requests are being answered now. */
  readonly inFlight: () => number;
  readonly rateLimitedClients: () => number;
  /** How many connections are open. */
  readonly connections: () => number;
  /** Bytes of answers that wait for clients to read them. */
  readonly waitingBytes: () => number;
  readonly siblings?: Siblings | undefined;
}

/** Scrapes of several servers, and of impatient people, share one look into the database. */
const FIGURES_KEPT_MS = 5_000;
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
const knownMethods = ['GET', 'HEAD', 'OPTIONS'];

export function createMetrics({
  store,
  feed,
  version,
  inFlight,
  rateLimitedClients,
  connections,
  waitingBytes,
  siblings,
}: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  siblings?.onMetricsAsked(() => registry.getMetricsAsJSON());
  collectDefaultMetrics({ register: registry });

  const requests = new Histogram({
    name: 'lanescan_http_request_duration_seconds',
    help: 'Time to the end of an answer; for streams, to their beginning.',
    labelNames: ['route', 'method', 'status'],
    buckets: requestSeconds,
    registers,
  });
  const refusals = new Counter({
    name: 'lanescan_http_refusals_total',
    help: 'Requests refused because of a rate limit (429) or of overload (503), and connections beyond their limit.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['rate_limit', 'overload', 'connections']) refusals.inc({ reason }, 0);
  const cuts = new Counter({
    name: 'lanescan_http_answers_cut_total',
    help: 'Answers that were not sent whole, by whose doing: the client left, or the server cut it off.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['client', ...cutReasons]) cuts.inc({ reason }, 0);
  const queries = new Histogram({
    name: 'lanescan_database_query_duration_seconds',
    help: 'Time of a read, with its wait for a connection.',
    labelNames: ['query', 'outcome'],
    buckets: requestSeconds,
    registers,
  });
  const stopObserving = store.observeReads((query, seconds, outcome) =>
    queries.observe({ query, outcome }, seconds),
  );

  const register = ({ name, help, labelNames = [], across = 'first', read }: GaugeSource) => {
    new Gauge({
      name,
      help,
      labelNames,
      aggregator: across,
      registers,
      async collect() {
        this.reset();
        // A gauge without labels would show 0 for what is unknown.
        if (labelNames.length === 0) this.remove();
        try {
          for (const { labels = {}, value } of await read()) this.set(labels, value);
        } catch {
          // Unknown is not zero: the figure is missing from this scrape.
        }
      },
    });
  };

  const currentFigures = kept(() => store.figures());
  const currentReplicas = kept(() => store.replicas());
  // After the figures: while the database is away those fail quickly, and spare everybody the second wait.
  const currentBacklog = kept(async () => {
    await currentFigures();
    return store.webhooks.backlog();
  });
  const figure = (name: string, help: string, read: (figures: StoreFigures) => number): GaugeSource => ({
    name,
    help,
    read: async () => [{ value: read(await currentFigures()) }],
  });
  const networkFigure = (
    name: string,
    help: string,
    read: (network: StoreFigures['networks'][number]) => number | null,
  ): GaugeSource => ({
    name,
    help,
    labelNames: ['network'],
    read: async () =>
      (await currentFigures()).networks.flatMap((network) => {
        const value = read(network);
        const labels = { network: findNetwork(network.selector)?.name ?? network.selector };
        return value === null ? [] : [{ value, labels }];
      }),
  });
  /** By host: a path could hold a key. Of several mirrors of one host, the worst counts. */
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
      for (const mirror of (await currentFigures()).mirrors) {
        const { host } = new URL(mirror.source);
        const value = read(mirror);
        if (value !== null) worst.set(host, Math.max(worst.get(host) ?? 0, value));
      }
      return [...worst].map(([source, value]) => ({ value, labels: { source } }));
    },
  });
  const sources: readonly GaugeSource[] = [
    {
      name: 'lanescan_build_info',
      help: 'Always 1; the labels tell.',
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
      help: 'Bytes of answers that wait for clients to read them.',
      across: 'sum',
      read: () => [{ value: waitingBytes() }],
    },
    {
      name: 'lanescan_rate_limited_clients',
      help: 'Clients whose rate is being remembered.',
      across: 'max',
      read: () => [{ value: rateLimitedClients() }],
    },
    {
      name: 'lanescan_database_up',
      help: 'Whether the database answered this scrape, or one a few seconds ago.',
      across: 'min',
      read: () =>
        currentFigures().then(
          () => [{ value: 1 }],
          () => [{ value: 0 }],
        ),
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
      help: 'Those who wait for a connection.',
      labelNames: ['pool'],
      across: 'sum',
      read: () => store.pools().map(({ pool, waiting }) => ({ value: waiting, labels: { pool } })),
    },
    {
      name: 'lanescan_replica_lag_changes',
      help: 'Changes that a replica has still to replay, by its place in DATABASE_REPLICA_URL.',
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
    {
      name: 'lanescan_feed_followers',
      help: 'Streams and waiting requests that follow the changes.',
      across: 'sum',
      read: () => [{ value: feed.followers }],
    },
    figure('lanescan_history_position', 'Position of the latest change.', ({ position }) => position),
    {
      name: 'lanescan_messages',
      help: 'Messages by status.',
      labelNames: ['status'],
      read: async () => {
        const { byStatus } = await currentFigures();
        return statuses.map((status) => ({ value: byStatus[status], labels: { status } }));
      },
    },
    figure('lanescan_messages_in_flight', 'Neither succeeded nor failed yet.', ({ inFlight }) => inFlight),
    figure(
      'lanescan_messages_ready_for_manual_execution',
      'Messages that somebody may execute by hand.',
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
      'Blocks that a network has and the index has not.',
      lagBlocks,
    ),
    networkFigure(
      'lanescan_network_lag_seconds',
      'Age of the newest block of a network that was read; grows while nothing is read.',
      lagSeconds,
    ),
    networkFigure(
      'lanescan_network_indexed',
      'Whether an indexer holds the lease on a network; 0: nobody indexes it.',
      ({ isLeased }) => (isLeased ? 1 : 0),
    ),
    networkFigure(
      'lanescan_network_seen_age_seconds',
      'Time since an indexer of a network was last alive.',
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
      'For how long the oldest of those ranges has failed; 0 where there is none.',
      ({ oldestFailureAt, readAt }) =>
        oldestFailureAt === null ? 0 : secondsBetween(oldestFailureAt, readAt),
    ),
    networkFigure(
      'lanescan_network_unreadable_logs',
      'Logs of genuine contracts that could not be understood and are kept.',
      ({ unreadableLogs }) => unreadableLogs,
    ),
    networkFigure(
      'lanescan_network_foreign_logs',
      'Logs of contracts that no router named: seen, not believed.',
      ({ foreignLogs }) => foreignLogs,
    ),
    {
      name: 'lanescan_network_findings',
      help: 'Open findings about the completeness of a network, by kind.',
      labelNames: ['network', 'kind'],
      read: async () =>
        (await currentFigures()).networks.flatMap(({ selector, findings }) =>
          findingKindNames.map((kind) => ({
            value: findings.find((finding) => finding.kind === kind)?.count ?? 0,
            labels: { network: findNetwork(selector)?.name ?? selector, kind },
          })),
        ),
    },
    networkFigure('lanescan_network_stopped', 'Whether indexing a network has met a problem.', (network) =>
      network.problem === null ? 0 : 1,
    ),
    mirrorFigure(
      'lanescan_mirror_seen_age_seconds',
      'Time since the process of a mirror was last alive, by the host of its source.',
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
      'Changes that a webhook subscription has not looked at yet.',
      ({ lag }) => lag,
    ),
    webhookFigure(
      'lanescan_webhook_served',
      'Whether a server works for a webhook subscription.',
      ({ isServed }) => (isServed ? 1 : 0),
    ),
  ];
  for (const source of [...sources, ...webhookSources]) register(source);

  return {
    observeRequest({ route, method, status, seconds }) {
      const known = knownMethods.includes(method) ? method : 'other';
      requests.observe({ route, method: known, status: String(status) }, seconds);
    },
    observeRefusal: (reason) => refusals.inc({ reason }),
    observeCut: (reason) => cuts.inc({ reason }),
    registerGauges: (...added) => added.forEach(register),
    scrape: () => (siblings ? siblings.scrape() : registry.metrics()),
    close() {
      stopObserving();
      registry.clear();
    },
  };
}

/** The same answer for all who ask within a few seconds; a failure is forgotten at once. */
function kept<T>(read: () => Promise<T>): () => Promise<T> {
  let latest: { readonly at: number; readonly promise: Promise<T> } | undefined;
  return () => {
    if (latest === undefined || performance.now() - latest.at > FIGURES_KEPT_MS) {
      const promise = read();
      latest = { at: performance.now(), promise };
      promise.catch(() => {
        if (latest?.promise === promise) latest = undefined;
      });
    }
    return latest.promise;
  };
}

export const metricsRoutes: readonly Route[] = [
  {
    path: '/metrics',
    mediaType: 'text/plain',
    operationId: 'getMetrics',
    tag: 'Operations',
    summary: 'Figures for Prometheus',
    description:
      'Requests by route and status with their durations, the database’s connections and queries, messages by ' +
      'status, missing sequence numbers, how far each network is indexed, and the process itself. For those who ' +
      'run the service; keep it from others at the proxy.',
    success: { description: 'The figures, in Prometheus’ text format.' },
    errors: [],
    async handle({ query }, { metrics }) {
      refuseParameters(query);
      return { body: await metrics.scrape(), freshness: 'never' };
    },
  },
];
