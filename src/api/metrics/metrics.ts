/**
 * Prometheus metrics, scraped at /metrics. Every server has its own registry; those of worker processes on one port are
 * aggregated.
 *
 * Label values come from the code or from the configuration, never from a client: each new value costs memory for ever.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type DiagnosisOutcome, diagnosisOutcomes } from '../execution/diagnoses.ts';
import { type CutReason, cutReasons } from '../server/connections.ts';
import type { WorkerPeers } from '../server/worker-peers.ts';
import { type ProcessGaugeOptions, processGauges, storeGauges } from './gauges.ts';

export interface ObservedRequest {
  /** The path pattern of the route, never the requested path. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

export interface Metrics {
  observeRequest(request: ObservedRequest): void;
  observeRejection(reason: 'rate_limit' | 'overload' | 'connections'): void;
  /** Counts a response that was not sent completely, by reason. */
  observeCut(reason: CutReason | 'client'): void;
  /** Counts a simulated execution. */
  observeDiagnosis(outcome: DiagnosisOutcome): void;
  /** Counts calls to RPC endpoints for simulated executions. */
  observeDiagnosisCalls(calls: number): void;
  /** All metrics in the text format of Prometheus. */
  scrape(): Promise<string>;
  close(): void;
}

export interface MetricsOptions extends ProcessGaugeOptions {
  readonly peers?: WorkerPeers | undefined;
}

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
const knownMethods = ['GET', 'HEAD', 'OPTIONS'];

export function createMetrics(options: MetricsOptions): Metrics {
  const { store, peers } = options;
  const registry = new Registry();
  const registers = [registry];
  peers?.onMetricsRequest(() => registry.getMetricsAsJSON());
  collectDefaultMetrics({ register: registry });

  const requests = new Histogram({
    name: 'lanescan_http_request_duration_seconds',
    help: 'Time to the end of a response; for streams, to its beginning.',
    labelNames: ['route', 'method', 'status'],
    buckets: durationBuckets,
    registers,
  });
  const rejections = new Counter({
    name: 'lanescan_http_refusals_total',
    help: 'Requests rejected by a rate limit (429) or by load shedding (503), and rejected connections.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['rate_limit', 'overload', 'connections']) rejections.inc({ reason }, 0);
  const cuts = new Counter({
    name: 'lanescan_http_answers_cut_total',
    help: 'Responses that were not sent completely: the client disconnected, or the server cut the connection.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['client', ...cutReasons]) cuts.inc({ reason }, 0);
  const diagnoses = new Counter({
    name: 'lanescan_diagnoses_total',
    help: 'Simulated executions by outcome; responses from the cache are not counted.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of diagnosisOutcomes) diagnoses.inc({ outcome }, 0);
  const diagnosisCalls = new Counter({
    name: 'lanescan_diagnosis_calls_total',
    help: 'Calls to RPC endpoints for simulated executions.',
    registers,
  });
  const queries = new Histogram({
    name: 'lanescan_database_query_duration_seconds',
    help: 'Time of a read, including its wait for a connection.',
    labelNames: ['query', 'outcome'],
    buckets: durationBuckets,
    registers,
  });
  const stopObserving = store.observeReads((query, seconds, outcome) =>
    queries.observe({ query, outcome }, seconds),
  );

  const sources = [...processGauges(options), ...storeGauges(store)];
  for (const { name, help, labelNames = [], across = 'first', read } of sources) {
    new Gauge({
      name,
      help,
      labelNames,
      aggregator: across,
      registers,
      async collect() {
        this.reset();
        // Otherwise a gauge without labels would show 0 for an unknown value.
        if (labelNames.length === 0) this.remove();
        try {
          const found = await read();
          const readings = typeof found === 'number' ? [{ value: found }] : found;
          for (const { labels = {}, value } of readings) this.set(labels, value);
        } catch {
          // Unknown is not zero: the gauge is missing from this scrape.
        }
      },
    });
  }

  return {
    observeRequest({ route, method, status, seconds }) {
      const known = knownMethods.includes(method) ? method : 'other';
      requests.observe({ route, method: known, status: String(status) }, seconds);
    },
    observeRejection: (reason) => rejections.inc({ reason }),
    observeCut: (reason) => cuts.inc({ reason }),
    observeDiagnosis: (outcome) => diagnoses.inc({ outcome }),
    observeDiagnosisCalls: (calls) => diagnosisCalls.inc(calls),
    scrape: () => (peers ? peers.scrape() : registry.metrics()),
    close() {
      stopObserving();
      registry.clear();
    },
  };
}
