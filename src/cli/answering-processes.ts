/**
 * Several processes that answer on one port: one for each core, where one thread is not enough.
 *
 * The process that was started (the parent) indexes and delivers webhooks, and answers nothing; its children run the same
 * command and only answer. Node hands connections to them in turn. A child that dies is replaced. A child whose parent
 * dies ends at once: nothing goes on answering that nobody can stop.
 */
import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import type { Takings } from '../api/rate-limit.ts';
import type { ProcessMetrics, Siblings } from '../api/siblings.ts';
import { OperatorError } from '../base/operator-error.ts';
import { untilLater } from '../ingest/work.ts';
import { lanescanVersion } from './version.ts';

/** What answers requests, in this process or in others. */
export interface Answering {
  /** Answers what is in flight, and comes back when there is nothing more. */
  drain(): Promise<void>;
  /** Ends it, if it has not ended. */
  close(): Promise<void>;
  /** Cuts off what has not ended in time. */
  cut(): void;
}

export function listeningText(url: string): string {
  return `Lanescan ${lanescanVersion} listens on ${url} (explorer at /, documentation at /docs)`;
}

type FromChild =
  | { readonly kind: 'failed'; readonly message: string; readonly remedy: string }
  | { readonly kind: 'scrape'; readonly question: number }
  | { readonly kind: 'metrics'; readonly question: number; readonly metrics: ProcessMetrics }
  | { readonly kind: 'takings'; readonly takings: Takings };

type FromParent =
  | { readonly kind: 'stop' }
  | { readonly kind: 'metrics?'; readonly question: number }
  | { readonly kind: 'scraped'; readonly question: number; readonly text: string | null }
  | { readonly kind: 'takings'; readonly takings: Takings };

/** A process that is too busy to tell its metrics is left out of a scrape. */
const METRICS_WAIT_MS = 2_000;
const SOONEST_RESTART_MS = 500;
const LATEST_RESTART_MS = 30_000;
/** A child that lived for so long had not failed to start. */
const STEADY_MS = 60_000;

// ---- The parent

/** Starts so many processes; resolves when all of them answer. */
export async function startAnsweringProcesses(count: number, log: Logger): Promise<Answering> {
  const stopping = new AbortController();
  const children = new Set<Worker>();
  const answering = new Set<Worker>();
  const waiting = new Map<number, (metrics: ProcessMetrics) => void>();
  let questions = 0;

  const metricsOf = (child: Worker): Promise<ProcessMetrics> =>
    new Promise((resolve) => {
      const question = questions++;
      const settle = (metrics: ProcessMetrics) => {
        clearTimeout(timer);
        waiting.delete(question);
        resolve(metrics);
      };
      const timer = setTimeout(settle, METRICS_WAIT_MS, []);
      waiting.set(question, settle);
      tell(child, { kind: 'metrics?', question });
    });

  const hear = async (child: Worker, said: FromChild): Promise<void> => {
    if (said.kind === 'metrics') waiting.get(said.question)?.(said.metrics);
    if (said.kind === 'takings') {
      for (const other of answering) if (other !== child) tell(other, said);
    }
    if (said.kind === 'scrape') {
      const text = await scrape().catch((error: Error) => {
        log.error(`The metrics of the processes that answer cannot be put together: ${error.message}`);
        return null;
      });
      tell(child, { kind: 'scraped', question: said.question, text });
    }
  };

  const scrape = async (): Promise<string> => {
    const { AggregatorRegistry } = await import('prom-client');
    const metrics = await Promise.all([...answering].map(metricsOf));
    return AggregatorRegistry.aggregate(metrics.map((own) => [...own])).metrics();
  };

  /** Resolves when the child answers, to where; fails with its own words when it does not come to that. */
  const start = (): Promise<{ readonly url: string; readonly ended: Promise<string> }> =>
    new Promise((resolve, reject) => {
      const child = cluster.fork();
      let failure: OperatorError | undefined;
      children.add(child);
      const ended = new Promise<string>((end) => {
        child.once('exit', (status, signal) => {
          children.delete(child);
          answering.delete(child);
          const how = signal ? `was ended by ${signal}` : `ended with status ${status}`;
          reject(failure ?? new Error(`it ${how} before it could answer`));
          end(how);
        });
      });
      child.on('message', (said: FromChild) => {
        if (said.kind === 'failed') failure = new OperatorError(said.message, said.remedy);
        else void hear(child, said);
      });
      child.once('listening', ({ address, port }) => {
        answering.add(child);
        resolve({ url: `http://${address.includes(':') ? `[${address}]` : address}:${port}`, ended });
      });
      if (stopping.signal.aborted) tell(child, { kind: 'stop' });
    });

  /** Puts another in the place of one that has ended, again and again. */
  const replace = async (ended: Promise<string>): Promise<void> => {
    let pause = SOONEST_RESTART_MS;
    for (let current = ended; ; ) {
      const startedAt = performance.now();
      const how = await current.catch((error: Error) => `did not start: ${error.message}`);
      if (stopping.signal.aborted) return;
      log.error(`A process that answers ${how}; another one is started`);
      if (performance.now() - startedAt > STEADY_MS) pause = SOONEST_RESTART_MS;
      await untilLater(pause, stopping.signal);
      if (stopping.signal.aborted) return;
      pause = Math.min(LATEST_RESTART_MS, pause * 2);
      current = start().then((child) => child.ended);
    }
  };

  const stop = async (): Promise<void> => {
    stopping.abort();
    const all = [...children];
    await Promise.all(
      all.map(
        (child) =>
          new Promise<void>((resolve) => {
            child.once('exit', () => resolve());
            tell(child, { kind: 'stop' });
            // One that is only starting may not listen to us yet.
            if (!answering.has(child)) child.process.kill('SIGTERM');
          }),
      ),
    );
  };

  try {
    // One first: what keeps it from starting is told once.
    const first = await start();
    const others = await Promise.all(Array.from({ length: count - 1 }, start));
    for (const { ended } of [first, ...others]) void replace(ended);
    log.info(`${listeningText(first.url)}; ${count} processes answer`);
  } catch (error) {
    await stop();
    throw error;
  }
  const cut = () => {
    for (const child of children) {
      log.warn(`Process ${child.process.pid} did not end in time and is killed`);
      child.process.kill('SIGKILL');
    }
  };
  return { drain: stop, close: stop, cut };
}

function tell(child: Worker, words: FromParent): void {
  // One that is about to end hears nothing more, and need not.
  if (child.isConnected()) child.send(words, () => undefined);
}

// ---- A child

export interface Child {
  readonly siblings: Siblings;
  /** Aborted when the parent wants this process to end. */
  readonly stopped: AbortSignal;
  /** Lets the parent say why this process could not start. */
  tellFailure(error: OperatorError): void;
}

/** What this process is to its parent; undefined where it was not started by one. */
export function asChild(): Child | undefined {
  if (!cluster.isWorker) return undefined;
  const stopping = new AbortController();
  const scrapes = new Map<number, (text: string | null) => void>();
  let questions = 0;
  let readMetrics: () => Promise<ProcessMetrics> = async () => [];
  let hearTakings: (takings: Takings) => void = () => undefined;

  const say = (words: FromChild) => void process.send?.(words, undefined, undefined, () => undefined);
  process.on('message', (said: FromParent) => {
    if (said.kind === 'stop') stopping.abort();
    if (said.kind === 'takings') hearTakings(said.takings);
    if (said.kind === 'scraped') scrapes.get(said.question)?.(said.text);
    if (said.kind === 'metrics?') {
      void readMetrics()
        .catch(() => [])
        .then((metrics) => say({ kind: 'metrics', question: said.question, metrics }));
    }
  });
  // Listening to the parent is no reason to stay.
  process.channel?.unref();
  return {
    stopped: stopping.signal,
    tellFailure: ({ message, remedy }) => say({ kind: 'failed', message, remedy }),
    siblings: {
      scrape: () =>
        new Promise((resolve, reject) => {
          const question = questions++;
          scrapes.set(question, (text) => {
            scrapes.delete(question);
            if (text === null) reject(new Error('The parent could not put the metrics together'));
            else resolve(text);
          });
          say({ kind: 'scrape', question });
        }),
      onMetricsAsked(read) {
        readMetrics = read;
      },
      tellTakings: (takings) => say({ kind: 'takings', takings }),
      onTakings(hear) {
        hearTakings = hear;
      },
    },
  };
}
