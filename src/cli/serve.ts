import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Siblings } from '../api/siblings.ts';
import { OperatorError } from '../base/operator-error.ts';
import { ApiError } from '../domain/errors.ts';
import type { NetworkSource } from '../ingest/chain/family.ts';
import { connectNetwork } from '../ingest/families.ts';
import { openStore, type Store } from '../store/store.ts';
import { isDoneWithin } from '../store/time-limit.ts';
import { SchemaMovedError } from '../store/writer-guard.ts';
import { type Courier, startCourier } from '../webhooks/courier.ts';
import type { Subscription } from '../webhooks/subscription.ts';
import {
  type Answering,
  asChild,
  type Child,
  listeningText,
  startAnsweringProcesses,
} from './answering-processes.ts';
import { type Config, type ConfigFlags, databasePlace, webhooksOf } from './config.ts';
import { type CliContext, configOf, schemaFor, withLogOption, withStoreOptions } from './context.ts';
import { wantedSources } from './index.ts';
import { levelOf, wordsOf } from './index-progress.ts';
import { noticeTo, openLog } from './verb-log.ts';
import { lanescanVersion } from './version.ts';

/** How often the log tells how indexing goes. */
const INDEX_LINE_EVERY_MS = 60_000;

/** How long a server may take to stop after its drain time: the HTTP server gives answers that are being sent 10 s. */
const SERVER_LIMIT_MS = 11_000;
/** The same for child processes, which close a store of their own within it. */
const CHILDREN_LIMIT_MS = 15_000;

const CLOCK_LOOK_EVERY_MS = 60_000;
/** Connections that come while the process is busy wait; beyond Node's 511 a crowd would be reset. */
const WAITING_CONNECTIONS = 4_096;
/**
 * How much the heap may grow before all of it is looked through, in per cent of what was in use at the last look. Bodies
 * of answers count, soon as they are forgotten, and what a server has in use is little: by Node's own measure it would
 * look five times a second, for a quarter of its time. A Node that does not know the setting says so and goes on.
 */
export const HEAP_GROWTH = '--heap-growing-percent=200';

export function addServe(program: Command, context: CliContext): void {
  withServerOptions(withStoreOptions(program.command('serve')))
    .option('--index', 'also read the lanes of the configured networks, as `lanescan index` does')
    .option('--processes <number>', 'how many processes answer, best one for each core (default: 1)')
    .description('answer the API over HTTP')
    .addHelpText(
      'after',
      `
Examples:
  $ lanescan serve                                    on http://127.0.0.1:8080, data in ./data
  $ lanescan serve --host 0.0.0.0 --port 80           for other machines too
  $ lanescan serve --index                            and index the networks of lanescan.yaml meanwhile
  $ lanescan serve --processes 4                      with four processes on one port
  $ DATABASE_URL=postgresql://… lanescan serve        on a PostgreSQL server of your own

With DATABASE_REPLICA_URL (separated by commas) reads go to replicas of that server which have caught up.`,
    )
    .action(async (flags: ServeFlags) => {
      const child = asChild();
      if (child) await answerAsChild(child, flags, context);
      else await serve(flags, context);
    });
}

async function serve(flags: ServeFlags, context: CliContext): Promise<void> {
  const config = configOf(flags, context);
  const sources = flags.index ? wantedSources(config, context) : [];
  const webhooks = webhooksOf(config, context.environment);
  const { processes } = config;
  context.drainMs = config.drainSeconds * 1_000;
  const log = await openLog(config, context, { isBatched: true });
  const store = await openStore({
    place: databasePlace(config),
    replicas: config.replicaUrls,
    startsProcesses: processes,
    ...(flags.index && { content: 'real' }),
    access: flags.index || webhooks.length > 0 ? 'write' : 'read',
    schema: schemaFor(config),
    notice: noticeTo(log, 'store'),
    signal: context.signal,
  });
  await serveUntilStopped({
    config,
    log,
    store,
    webhooks,
    signal: context.signal,
    ...(processes > 1 && { startAnswering: () => startAnsweringProcesses(processes, log) }),
    ...(flags.index && { alongside: (signal) => indexAlongside(sources, store, log, signal) }),
  });
}

/** One of several processes on a port: it only answers. */
async function answerAsChild(child: Child, flags: ServeFlags, context: CliContext): Promise<void> {
  try {
    const config = configOf(flags, context);
    context.drainMs = config.drainSeconds * 1_000;
    const log = await openLog(config, context, { isBatched: true });
    const signal = AbortSignal.any([context.signal, child.stopped]);
    const store = await openStore({
      place: databasePlace(config),
      replicas: config.replicaUrls,
      // Its parent has seen to it.
      schema: 'expect',
      // What becomes of an embedded database its parent tells.
      notice: config.databaseUrl === null ? (line) => log.debug(line) : noticeTo(log, 'store'),
      isOneOf: config.processes,
      signal,
    });
    const { siblings } = child;
    await serveUntilStopped({ config, log, store, webhooks: [], signal, siblings });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    child.tellFailure(error);
    context.exitCode = 1;
  }
}

interface ServeFlags extends ConfigFlags {
  readonly index?: boolean;
}

async function indexAlongside(
  sources: readonly NetworkSource[],
  store: Store,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { startIndexer } = await import('../ingest/chain/indexer.ts');
  const notice = noticeTo(log, 'index');
  const indexer = startIndexer({
    sources,
    connect: connectNetwork,
    store,
    signal,
    userAgent: `lanescan/${lanescanVersion}`,
    notice,
  });
  const progress = setInterval(() => {
    for (const status of indexer.statuses()) {
      notice(wordsOf(status, Date.now()), { level: levelOf(status), network: status.network.name });
    }
  }, INDEX_LINE_EVERY_MS);
  try {
    await indexer.ended;
  } catch (error) {
    // Reads go on beside a newer schema: this server still answers until it is replaced.
    if (!(error instanceof SchemaMovedError)) throw error;
    log.error(`Indexing has ended. ${error.message} ${error.remedy}`);
    await untilAborted(signal);
  } finally {
    clearInterval(progress);
  }
}

export function withServerOptions(command: Command): Command {
  return withLogOption(
    command
      .option('--host <address>', 'address to listen on (default: 127.0.0.1, this machine only)')
      .option('--port <number>', 'port to listen on (default: 8080)'),
  );
}

interface Serving {
  readonly config: Config;
  readonly log: Logger;
  readonly store: Store;
  readonly webhooks: readonly Subscription[];
  /** Aborted when it is time to stop. */
  readonly signal: AbortSignal;
  /** Other processes that answer on the same port. */
  readonly siblings?: Siblings;
  /** Begins to answer; in this process, where nothing is said. */
  readonly startAnswering?: () => Promise<Answering>;
  /** Runs beside the server until the signal; its failure stops the server. */
  readonly alongside?: (signal: AbortSignal) => Promise<void>;
}

/** Serves until the signal to stop, answers what is in flight, and closes the store. */
export async function serveUntilStopped(serving: Serving): Promise<void> {
  setFlagsFromString(HEAP_GROWTH);
  const { log, store, webhooks, alongside } = serving;
  const stopping = new AbortController();
  const signal = AbortSignal.any([serving.signal, stopping.signal]);
  let answering: Answering | undefined;
  let courier: Courier | undefined;
  let beside: Promise<void> | undefined;
  try {
    answering = await (serving.startAnswering?.() ?? answerHere(serving, signal));
    courier = startCourier({
      store,
      subscriptions: webhooks,
      log: log.child({ component: 'webhooks' }),
      userAgent: `Lanescan/${lanescanVersion}`,
      now: webhooks.length > 0 ? await followClock(store, signal) : Date.now,
      random: Math.random,
    });
    if (store.simulated && !serving.siblings) log.warn('The data is SIMULATED: no chain stands behind it.');
    beside = alongside?.(signal);
    await Promise.race([untilAborted(signal), beside ?? untilAborted(signal)]);
    await untilAborted(signal);
  } finally {
    stopping.abort();
    const limitMs = serving.startAnswering ? CHILDREN_LIMIT_MS : SERVER_LIMIT_MS;
    const isEnded = await endWithin(serving.config.drainSeconds * 1_000 + limitMs, log, {
      requests: serving.signal.aborted ? answering?.drain() : answering?.close(),
      webhooks: courier?.stop(),
      'work beside the server': beside,
    });
    if (!isEnded) answering?.cut();
    await store.close();
  }
}

/** Waits for all parts to end; false where that takes too long. Closing the store ends those that wait for the database. */
async function endWithin(
  limitMs: number,
  log: Logger,
  parts: Readonly<Record<string, Promise<void> | undefined>>,
): Promise<boolean> {
  const left = new Set(Object.keys(parts));
  const ends = Object.entries(parts).map(async ([name, part]) => {
    await part?.catch(() => undefined);
    left.delete(name);
  });
  if (await isDoneWithin(limitMs, Promise.all(ends))) return true;
  log.warn(`Stopping: given up after ${limitMs / 1_000} s: ${[...left].join(', ')}`);
  return false;
}

async function answerHere(
  { config, log, store, siblings }: Serving,
  signal: AbortSignal,
): Promise<Answering> {
  // Loaded here: no other verb needs it, and it takes longer to load than most of them take to run.
  const { createServer } = await import('../api/server.ts');
  const app = createServer({
    store,
    version: lanescanVersion,
    log: log.child({ component: 'http' }),
    accessLog: config.accessLog,
    rateLimit: config.rateLimit,
    apiKeys: config.apiKeys,
    trustProxy: config.trustProxy,
    live: config.live,
    siblings,
  });
  // A client would keep the connection of its last answer open, and the server would wait for it to let go.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (signal.aborted) reply.header('Connection', 'close');
    done(null, payload);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    if (!signal.aborted || request.routeOptions.url !== '/readyz') return done();
    done(new ApiError('SERVICE_UNAVAILABLE', 'This server is stopping. Send requests to another one.'));
  });
  try {
    await listen(app, config, siblings !== undefined);
  } catch (error) {
    await app.close();
    throw error;
  }
  return {
    async drain() {
      if (config.drainSeconds > 0) {
        log.info(`Stopping: not ready any more, but answering for another ${config.drainSeconds} s`);
        await delay(config.drainSeconds * 1000);
      }
      log.info('Stopping: answering what is in flight');
      await app.close();
    },
    close: () => app.close(),
    cut: () => app.server.closeAllConnections(),
  };
}

/**
 * The database's clock, for times that servers leave to each other: theirs may differ by hours, or jump. In between
 * looks it goes on by the clock of the process that nobody can set.
 */
async function followClock(store: Store, signal: AbortSignal): Promise<() => number> {
  let offset = 0;
  const look = async () => {
    offset = (await store.clock()) - performance.now();
  };
  await look();
  const looking = setInterval(() => void look().catch(() => undefined), CLOCK_LOOK_EVERY_MS).unref();
  signal.addEventListener('abort', () => clearInterval(looking), { once: true });
  return () => performance.now() + offset;
}

async function listen(app: FastifyInstance, { host, port }: Config, isOneOfSeveral: boolean): Promise<void> {
  try {
    await app.listen({
      host,
      port,
      backlog: WAITING_CONNECTIONS,
      listenTextResolver: (url) => (isOneOfSeveral ? `Process ${process.pid} is ready` : listeningText(url)),
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new OperatorError(
        `Port ${port} on ${host} is taken by another program.`,
        'Stop that one, or choose another port with --port.',
      );
    }
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL') {
      throw new OperatorError(
        `Cannot listen on ${host}:${port}: ${message}.`,
        'Choose others with --host and --port.',
      );
    }
    throw error;
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
