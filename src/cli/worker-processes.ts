/**
 * Worker processes: several processes that answer requests on one port, for machines where one thread is not enough.
 *
 * The process that was started (the primary) indexes and delivers webhooks, and answers no requests. Its worker processes
 * run the same command and only answer. Node distributes connections to them in turn. A worker that dies is replaced,
 * with exponential backoff. A worker whose primary dies exits at once, because nobody could stop it any more.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Logger } from 'pino';
import type { TokenUse } from '../api/server/rate-limit.ts';
import type { LimiterName, ProcessMetrics, WorkerPeers } from '../api/server/worker-peers.ts';
import { OperatorError } from '../base/operator-error.ts';
import { untilLater } from '../ingest/work.ts';
import type { Config } from './config/config.ts';
import { lanescanVersion } from './version.ts';

/** What answers requests: a server in this process, or worker processes. */
export interface RunningServer {
  /** Graceful shutdown after a stop signal: resolves when all requests in flight have been answered. */
  drain(): Promise<void>;
  /** Stops after a failure, without the drain time. */
  close(): Promise<void>;
  cut(): void;
}

export function listeningText(url: string, basePath: string): string {
  return `Lanescan ${lanescanVersion} listens on ${url} (explorer at ${basePath}/, documentation at ${basePath}/docs)`;
}

type FromWorker =
  | { readonly kind: 'failed'; readonly message: string; readonly remedy: string }
  | { readonly kind: 'scrape'; readonly requestId: number }
  | { readonly kind: 'metrics'; readonly requestId: number; readonly metrics: ProcessMetrics }
  | { readonly kind: 'token-use'; readonly limiter: LimiterName; readonly use: TokenUse };

type FromPrimary =
  | { readonly kind: 'stop' }
  | { readonly kind: 'metrics-request'; readonly requestId: number }
  | { readonly kind: 'scraped'; readonly requestId: number; readonly text: string | null }
  | { readonly kind: 'token-use'; readonly limiter: LimiterName; readonly use: TokenUse };

/** The gauges of a worker that does not send its metrics in time are left out of the scrape. */
const METRICS_TIMEOUT_MS = 2_000;
const FIRST_RESTART_PAUSE_MS = 500;
const LONGEST_RESTART_PAUSE_MS = 30_000;
/** A worker that ran for this long resets the backoff. */
const STABLE_AFTER_MS = 60_000;

// ---- The primary

/** Starts this many worker processes; resolves when all of them listen. */
export async function startWorkerProcesses(
  { processes: count, basePath }: Pick<Config, 'processes' | 'basePath'>,
  log: Logger,
): Promise<RunningServer> {
  const stopping = new AbortController();
  const workers = new Set<Worker>();
  const listening = new Set<Worker>();
  const metricsRequests = new Map<number, (metrics: ProcessMetrics) => void>();
  let nextRequestId = 0;
  /** The counters that each worker sent last, so that none goes back while a worker does not answer. */
  const counters = new Map<Worker, ProcessMetrics>();
  let endedCounters: ProcessMetrics[] = [];
  let scraping: Promise<string> | undefined;

  const metricsOf = (worker: Worker): Promise<ProcessMetrics> =>
    new Promise((resolve) => {
      const requestId = nextRequestId++;
      const settle = (metrics: ProcessMetrics) => {
        clearTimeout(timer);
        metricsRequests.delete(requestId);
        resolve(metrics);
      };
      const timer = setTimeout(settle, METRICS_TIMEOUT_MS, []);
      metricsRequests.set(requestId, settle);
      send(worker, { kind: 'metrics-request', requestId });
    });

  const receive = async (worker: Worker, message: FromWorker): Promise<void> => {
    if (message.kind === 'metrics') metricsRequests.get(message.requestId)?.(message.metrics);
    if (message.kind === 'token-use') {
      for (const other of listening) if (other !== worker) send(other, message);
    }
    if (message.kind === 'scrape') {
      // Concurrent scrapes share one, so that an older value never follows a newer one.
      scraping ??= scrape().finally(() => {
        scraping = undefined;
      });
      const text = await scraping.catch((error: Error) => {
        log.error(`The metrics of the worker processes cannot be aggregated: ${error.message}`);
        return null;
      });
      send(worker, { kind: 'scraped', requestId: message.requestId, text });
    }
  };

  const scrape = async (): Promise<string> => {
    const { AggregatorRegistry } = await import('prom-client');
    const gauges = await Promise.all(
      [...listening].map(async (worker) => {
        const metrics = await metricsOf(worker);
        if (metrics.length > 0 && workers.has(worker)) counters.set(worker, metrics.filter(isCumulative));
        return metrics.filter((metric) => !isCumulative(metric));
      }),
    );
    const sum = (parts: readonly ProcessMetrics[]) =>
      AggregatorRegistry.aggregate(parts.map((part) => [...part]));
    endedCounters = [sum(endedCounters).getMetricsAsArray() as unknown as ProcessMetrics];
    return sum([...gauges, ...counters.values(), ...endedCounters]).metrics();
  };

  /** Starts a worker; resolves when it listens. Rejects with the worker's own error when it cannot start. */
  const start = (): Promise<{ readonly url: string; readonly ended: Promise<string> }> =>
    new Promise((resolve, reject) => {
      const worker = cluster.fork();
      let failure: OperatorError | undefined;
      workers.add(worker);
      const ended = new Promise<string>((end) => {
        worker.once('exit', (status, signal) => {
          workers.delete(worker);
          listening.delete(worker);
          endedCounters.push(counters.get(worker) ?? []);
          counters.delete(worker);
          const how = signal ? `was ended by ${signal}` : `exited with status ${status}`;
          reject(failure ?? new Error(`it ${how} before it listened`));
          end(how);
        });
      });
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'failed') failure = new OperatorError(message.message, message.remedy);
        else void receive(worker, message);
      });
      worker.once('listening', ({ address, port }) => {
        listening.add(worker);
        resolve({ url: `http://${address.includes(':') ? `[${address}]` : address}:${port}`, ended });
      });
      if (stopping.signal.aborted) send(worker, { kind: 'stop' });
    });

  /** Restarts a worker whenever it ends, until the shutdown. */
  const keepRunning = async (ended: Promise<string>): Promise<void> => {
    let pauseMs = FIRST_RESTART_PAUSE_MS;
    for (let current = ended; ; ) {
      const startedAt = performance.now();
      const how = await current.catch((error: Error) => `did not start: ${error.message}`);
      if (stopping.signal.aborted) return;
      log.error(`A worker process ${how}; it is restarted`);
      if (performance.now() - startedAt > STABLE_AFTER_MS) pauseMs = FIRST_RESTART_PAUSE_MS;
      await untilLater(pauseMs, stopping.signal);
      if (stopping.signal.aborted) return;
      pauseMs = Math.min(LONGEST_RESTART_PAUSE_MS, pauseMs * 2);
      current = start().then((worker) => worker.ended);
    }
  };

  const stop = async (): Promise<void> => {
    stopping.abort();
    const exits = [...workers].map((worker) => {
      send(worker, { kind: 'stop' });
      // A worker that is still starting may not receive messages yet.
      if (!listening.has(worker)) worker.process.kill('SIGTERM');
      return once(worker, 'exit');
    });
    await Promise.all(exits);
  };

  try {
    // One first, so that a common failure is reported once.
    const first = await start();
    const others = await Promise.all(Array.from({ length: count - 1 }, start));
    for (const { ended } of [first, ...others]) void keepRunning(ended);
    log.info(`${listeningText(first.url, basePath)}; ${count} worker processes`);
  } catch (error) {
    await stop();
    throw error;
  }
  const cut = () => {
    for (const worker of workers) {
      log.warn(`Worker process ${worker.process.pid} did not end in time and is killed`);
      worker.process.kill('SIGKILL');
    }
  };
  return { drain: stop, close: stop, cut };
}

/** A metric whose value never decreases while its process runs. Its type is text, whatever prom-client declares. */
function isCumulative({ type }: ProcessMetrics[number]): boolean {
  return String(type) === 'counter' || String(type) === 'histogram';
}

function send(worker: Worker, message: FromPrimary): void {
  // A worker that is exiting needs no message.
  if (worker.isConnected()) worker.send(message, () => undefined);
}

// ---- A worker

export type PrimaryLink = ReturnType<typeof connectToPrimary>;

export function connectToPrimary() {
  const stopping = new AbortController();
  const scrapes = new Map<number, (text: string | null) => void>();
  let nextRequestId = 0;
  let readMetrics: () => Promise<ProcessMetrics> = async () => [];
  const tokenUseReceivers = new Map<LimiterName, (use: TokenUse) => void>();

  const send = (message: FromWorker) => void process.send?.(message, undefined, undefined, () => undefined);
  process.on('message', (message: FromPrimary) => {
    if (message.kind === 'stop') stopping.abort();
    if (message.kind === 'token-use') tokenUseReceivers.get(message.limiter)?.(message.use);
    if (message.kind === 'scraped') scrapes.get(message.requestId)?.(message.text);
    if (message.kind === 'metrics-request') {
      void readMetrics()
        .catch(() => [])
        .then((metrics) => send({ kind: 'metrics', requestId: message.requestId, metrics }));
    }
  });
  // The channel to the primary must not keep this process alive.
  process.channel?.unref();
  const peers: WorkerPeers = {
    scrape: () =>
      new Promise((resolve, reject) => {
        const requestId = nextRequestId++;
        scrapes.set(requestId, (text) => {
          scrapes.delete(requestId);
          if (text === null) reject(new Error('The primary process could not aggregate the metrics'));
          else resolve(text);
        });
        send({ kind: 'scrape', requestId });
      }),
    onMetricsRequest(read) {
      readMetrics = read;
    },
    sendTokenUse: (limiter, use) => send({ kind: 'token-use', limiter, use }),
    onTokenUse(limiter, receive) {
      tokenUseReceivers.set(limiter, receive);
    },
  };
  return {
    peers,
    /** Aborted when the primary stops this process. */
    stopped: stopping.signal,
    reportFailure: ({ message, remedy }: OperatorError) => send({ kind: 'failed', message, remedy }),
  };
}
