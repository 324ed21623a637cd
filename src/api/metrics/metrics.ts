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
import { processGauges, storeGauges } from './gauges.ts';

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
const knownMethods = ['GET', 'HEAD', 'OPTIONS'];

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(
  options: Parameters<typeof processGauges>[0] & { readonly peers?: WorkerPeers | undefined },
) {
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
