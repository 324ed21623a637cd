import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Siblings } from '../api/siblings.ts';
import { ApiError, OperatorError } from '../domain/errors.ts';
import type { NetworkSource } from '../ingest/evm/source.ts';
import { OTHER_CONNECTIONS, openStore, READ_CONNECTIONS, type Store } from '../store/store.ts';
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
import { type CliContext, configOf, schemaFor, withStoreOptions } from './context.ts';
import { wantedSources } from './index.ts';
import { wordsOf } from './index-progress.ts';
import { lanescanVersion } from './version.ts';

/** How often the log tells how indexing goes. */
const INDEX_LINE_EVERY_MS = 60_000;

/** Several processes share the connections of one, but each has so many. */
const FEWEST_CONNECTIONS = 3;

/** How many connections to the database a server with this configuration may have at once. */
export function connectionsOf({ processes }: Config): number {
  const parent = READ_CONNECTIONS + OTHER_CONNECTIONS;
  return processes === 1
    ? parent
    : parent + processes * (readConnectionsOfChild(processes) + OTHER_CONNECTIONS);
}

function readConnectionsOfChild(processes: number): number {
  return Math.max(FEWEST_CONNECTIONS, Math.ceil(READ_CONNECTIONS / processes));
}

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
  const log = await serverLog(config, context);
  for (const line of config.notices) log.info(line);
  const store = await openStore({
    place: databasePlace(config),
    replicas: config.replicaUrls,
    ...(flags.index && { content: 'real' }),
    access: flags.index || webhooks.length > 0 ? 'write' : 'read',
    schema: schemaFor(config),
    notice: (line) => log.info(line),
    signal: context.signal,
  });
  const { processes } = config;
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
    const log = await serverLog(config, context);
    const signal = AbortSignal.any([context.signal, child.stopped]);
    const store = await openStore({
      place: databasePlace(config),
      replicas: config.replicaUrls,
      // Its parent has seen to it.
      schema: 'expect',
      // What becomes of an embedded database its parent tells.
      notice: (line) => (config.databaseUrl === null ? log.debug(line) : log.info(line)),
      connections: readConnectionsOfChild(config.processes),
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
  const { startIndexer } = await import('../ingest/evm/indexer.ts');
  const indexer = startIndexer({
    sources,
    store,
    signal,
    userAgent: `lanescan/${lanescanVersion}`,
    notice: (line) => log.info(line),
  });
  const progress = setInterval(() => {
    for (const status of indexer.statuses()) {
      log.info(`${status.network.name}: ${wordsOf(status, Date.now())}`);
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

/** The log of a process that serves, whose library the other verbs need not load. */
export async function serverLog(config: Config, context: CliContext): Promise<Logger> {
  const { createLog } = await import('./log.ts');
  return createLog(config.logLevel, context.err, context.environment);
}

export function withServerOptions(command: Command): Command {
  return command
    .option('--host <address>', 'address to listen on (default: 127.0.0.1, this machine only)')
    .option('--port <number>', 'port to listen on (default: 8080)')
    .option('--log-level <level>', 'debug, info, warn, error or silent (default: info)');
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
      log,
      userAgent: `Lanescan/${lanescanVersion}`,
      now: webhooks.length > 0 ? await followClock(store, signal) : Date.now,
      random: Math.random,
    });
    if (store.simulated && !serving.siblings) log.warn('The data is SIMULATED: no chain stands behind it.');
    beside = alongside?.(signal);
    await Promise.race([untilAborted(signal), beside ?? untilAborted(signal)]);
    await untilAborted(signal);
    await answering.drain();
  } finally {
    stopping.abort();
    await Promise.all([answering?.close(), courier?.stop(), beside?.catch(() => undefined)]);
    await store.close();
  }
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
    log,
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
