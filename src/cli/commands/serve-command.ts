import cluster from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { WorkerPeers } from '../../api/server/worker-peers.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { ApiError } from '../../domain/errors.ts';
import type { NetworkSource } from '../../ingest/engine/family.ts';
import { connectNetwork } from '../../ingest/families.ts';
import { SchemaMovedError } from '../../store/schema/writer-guard.ts';
import { isDoneWithin } from '../../store/server/time-limit.ts';
import { openStore, type Store } from '../../store/store.ts';
import { type Dispatcher, startDispatcher } from '../../webhooks/dispatcher.ts';
import type { Subscription } from '../../webhooks/subscription.ts';
import type { Command } from '../command.ts';
import { describeAbis, loadAbis } from '../config/abi-folder.ts';
import { type Config, type ConfigFlags, databasePlace } from '../config/config.ts';
import { createDestinations } from '../config/destinations.ts';
import { type CliContext, configOf, schemaFor, withLogOption, withStoreOptions } from '../context.ts';
import { logWriter, openLog } from '../output/command-log.ts';
import { describeStatus, levelOf } from '../output/index-progress.ts';
import { lanescanVersion } from '../version.ts';
import {
  connectToPrimary,
  listeningText,
  type PrimaryLink,
  type RunningServer,
  startWorkerProcesses,
} from '../worker-processes.ts';
import { chosenSources } from './index-command.ts';

const PROGRESS_INTERVAL_MS = 60_000;

/** How long the graceful shutdown may take after the drain time: responses that are being sent have 10 s of it. */
const SHUTDOWN_TIMEOUT_MS = 11_000;
/** The same with worker processes, which also close their stores. */
const WORKERS_SHUTDOWN_TIMEOUT_MS = 15_000;

const CLOCK_READ_INTERVAL_MS = 60_000;
/** Listen backlog: connections that wait while the process is busy. With Node's 511, a crowd would be reset. */
const LISTEN_BACKLOG = 4_096;
/**
 * How much the old generation may grow before a full garbage collection, in per cent of what was in use after the last
 * one. Response bodies count although they are short-lived, and a server has little in use: with V8's default there would
 * be five full collections a second, a quarter of the CPU time. A Node without this flag prints a warning and continues.
 * The size of the young generation can only be set at start: see bin/lanescan.
 */
export const HEAP_GROWTH_FLAG = '--heap-growing-percent=200';

export function addServe(program: Command, context: CliContext): void {
  withServerOptions(withStoreOptions(program.command('serve')))
    .option('--index', 'also read the lanes of the configured networks, as `lanescan index` does')
    .option('--processes <number>', 'number of worker processes, best one for each core (default: 1)')
    .description('answer the API over HTTP')
    .notes(`
Examples:
  $ lanescan serve                                    on http://127.0.0.1:8080, data in ./data
  $ lanescan serve --host 0.0.0.0 --port 80           for other machines too
  $ lanescan serve --index                            and index the networks of lanescan.yaml meanwhile
  $ lanescan serve --processes 4                      with four worker processes on one port
  $ DATABASE_URL=postgresql://… lanescan serve        on a PostgreSQL server of your own

With DATABASE_REPLICA_URL (separated by commas) reads go to replicas of that server which have caught up.`)
    .action(async (flags: ServeFlags) => {
      if (cluster.isWorker) await serveAsWorker(connectToPrimary(), flags, context);
      else await serve(flags, context);
    });
}

async function serve(flags: ServeFlags, context: CliContext): Promise<void> {
  const config = configOf(flags, context);
  const abis = loadAbis(config);
  const sources = flags.index ? chosenSources(config, context) : [];
  const webhooks = config.read('webhooks', context.environment);
  const { processes } = config;
  context.drainMs = config.drainSeconds * 1_000;
  const log = await openLog(config, context, { isBatched: true });
  if (abis) log.info(`Reasons are also named by ${describeAbis(abis)}`);
  const store = await openStore({
    place: databasePlace(config),
    replicas: config.replicaUrls,
    startsProcesses: processes,
    ...(flags.index && { content: 'real' }),
    access: flags.index || webhooks.length > 0 ? 'write' : 'read',
    schema: schemaFor(config),
    writeLog: logWriter(log, 'store'),
    signal: context.signal,
  });
  await serveUntilStopped({
    config,
    log,
    store,
    webhooks,
    environment: context.environment,
    signal: context.signal,
    ...(processes > 1 && { startServer: () => startWorkerProcesses(config, log) }),
    ...(flags.index && { alongside: (signal) => indexAlongside(sources, store, log, signal) }),
  });
}

/** A worker process only answers requests. */
async function serveAsWorker(primary: PrimaryLink, flags: ServeFlags, context: CliContext): Promise<void> {
  try {
    const config = configOf(flags, context);
    loadAbis(config);
    context.drainMs = config.drainSeconds * 1_000;
    const log = await openLog(config, context, { isBatched: true });
    const signal = AbortSignal.any([context.signal, primary.stopped]);
    const store = await openStore({
      place: databasePlace(config),
      replicas: config.replicaUrls,
      // The primary has migrated it.
      schema: 'expect',
      // The primary logs the lines of an embedded database.
      writeLog: config.databaseUrl === null ? (line) => log.debug(line) : logWriter(log, 'store'),
      isOneOf: config.processes,
      signal,
    });
    const { peers } = primary;
    const { environment } = context;
    await serveUntilStopped({ config, log, store, webhooks: [], environment, signal, peers });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    primary.reportFailure(error);
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
  const { startIndexer } = await import('../../ingest/engine/indexer.ts');
  const writeLog = logWriter(log, 'index');
  const indexer = startIndexer({
    sources,
    connect: connectNetwork,
    store,
    signal,
    userAgent: `lanescan/${lanescanVersion}`,
    writeLog,
  });
  const progress = setInterval(() => {
    for (const status of indexer.statuses()) {
      writeLog(describeStatus(status, Date.now()), { level: levelOf(status), network: status.network.name });
    }
  }, PROGRESS_INTERVAL_MS);
  try {
    await indexer.ended;
  } catch (error) {
    // Reads work with a newer schema: this server answers until it is replaced.
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
      .option('--port <number>', 'port to listen on (default: 8080)')
      .option('--base-path <path>', 'prefix of all URLs, such as /lanescan (default: none)'),
  );
}

interface Serving {
  readonly config: Config;
  readonly log: Logger;
  readonly store: Store;
  readonly webhooks: readonly Subscription[];
  /** From which the configured networks take their keys. Without it, no executions are simulated. */
  readonly environment?: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** The other worker processes on the same port. */
  readonly peers?: WorkerPeers;
  /** Starts answering. Default: in this process. */
  readonly startServer?: () => Promise<RunningServer>;
  /** Runs beside the server until the signal; its failure stops the server. */
  readonly alongside?: (signal: AbortSignal) => Promise<void>;
}

/** Serves until the stop signal; then a graceful shutdown: answers requests in flight and closes the store. */
export async function serveUntilStopped(serving: Serving): Promise<void> {
  setFlagsFromString(HEAP_GROWTH_FLAG);
  const { log, store, webhooks, alongside } = serving;
  const stopping = new AbortController();
  const signal = AbortSignal.any([serving.signal, stopping.signal]);
  let answering: RunningServer | undefined;
  let dispatcher: Dispatcher | undefined;
  let beside: Promise<void> | undefined;
  try {
    answering = await (serving.startServer?.() ?? serveInProcess(serving, signal));
    dispatcher = startDispatcher({
      store,
      subscriptions: webhooks,
      log: log.child({ component: 'webhooks' }),
      userAgent: `Lanescan/${lanescanVersion}`,
      now: webhooks.length > 0 ? await followClock(store, signal) : Date.now,
      random: Math.random,
    });
    if (store.simulated && !serving.peers) log.warn('The data is SIMULATED: no message exists on a chain.');
    beside = alongside?.(signal);
    await Promise.race([untilAborted(signal), beside ?? untilAborted(signal)]);
    await untilAborted(signal);
  } finally {
    stopping.abort();
    const timeoutMs = serving.startServer ? WORKERS_SHUTDOWN_TIMEOUT_MS : SHUTDOWN_TIMEOUT_MS;
    const isEnded = await endWithin(serving.config.drainSeconds * 1_000 + timeoutMs, log, {
      requests: serving.signal.aborted ? answering?.drain() : answering?.close(),
      webhooks: dispatcher?.stop(),
      'work beside the server': beside,
    });
    if (!isEnded) answering?.cut();
    await store.close();
  }
}

/** Waits for all parts to end; false after the timeout. Closing the store then ends those that wait for the database. */
async function endWithin(
  timeoutMs: number,
  log: Logger,
  parts: Readonly<Record<string, Promise<void> | undefined>>,
): Promise<boolean> {
  const running = new Set(Object.keys(parts));
  const ends = Object.entries(parts).map(async ([name, part]) => {
    await part?.catch(() => undefined);
    running.delete(name);
  });
  if (await isDoneWithin(timeoutMs, Promise.all(ends))) return true;
  log.warn(`Stopping: not ended after ${timeoutMs / 1_000} s: ${[...running].join(', ')}`);
  return false;
}

async function serveInProcess(serving: Serving, signal: AbortSignal): Promise<RunningServer> {
  const { config, log, store, peers } = serving;
  // Loaded on demand: no other command needs it, and loading it takes longer than most commands run.
  const { createServer } = await import('../../api/server/server.ts');
  const app = createServer({
    store,
    version: lanescanVersion,
    log: log.child({ component: 'http' }),
    accessLog: config.accessLog,
    rateLimit: config.rateLimit,
    apiKeys: config.apiKeys,
    trustProxy: config.trustProxy,
    basePath: config.basePath,
    live: config.live,
    peers,
    destinations: destinationsOf(serving, signal),
    diagnosisCallsPerDay: config.diagnosisCallsPerDay,
  });
  // During shutdown the server waits for open connections, and clients would keep theirs alive.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (signal.aborted) reply.header('Connection', 'close');
    done(null, payload);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    if (!signal.aborted || request.routeOptions.url !== '/readyz') return done();
    done(new ApiError('SERVICE_UNAVAILABLE', 'This server is stopping. Send requests to another one.'));
  });
  try {
    await listen(app, config, peers !== undefined);
  } catch (error) {
    await app.close();
    throw error;
  }
  return {
    async drain() {
      if (config.drainSeconds > 0) {
        log.info(`Stopping: not ready any more; answering for another ${config.drainSeconds} s`);
        await delay(config.drainSeconds * 1000);
      }
      log.info('Stopping: finishing the requests in flight');
      await app.close();
    },
    close: () => app.close(),
    cut: () => app.server.closeAllConnections(),
  };
}

/** The configured networks, on whose endpoints executions are simulated; undefined where that is not possible. */
function destinationsOf({ config, log, store, environment }: Serving, signal: AbortSignal) {
  if (!config.diagnosis || store.simulated || environment === undefined) return undefined;
  try {
    const writeLog = logWriter(log, 'diagnosis');
    return createDestinations({ sources: config.read('networks', environment), signal, writeLog });
  } catch (error) {
    // A server that does not index may lack the keys of endpoints. It answers all the same.
    if (!(error instanceof OperatorError)) throw error;
    log.warn(`No executions can be simulated: ${error.message} (diagnosis: false turns this off)`);
    return undefined;
  }
}

/**
 * The database's clock, for times that several servers share: their own clocks may differ or jump. Between reads it
 * advances with the monotonic clock of the process.
 */
async function followClock(store: Store, signal: AbortSignal): Promise<() => number> {
  let offsetMs = 0;
  const read = async () => {
    offsetMs = (await store.clock()) - performance.now();
  };
  await read();
  const reading = setInterval(() => void read().catch(() => undefined), CLOCK_READ_INTERVAL_MS).unref();
  signal.addEventListener('abort', () => clearInterval(reading), { once: true });
  return () => performance.now() + offsetMs;
}

async function listen(app: FastifyInstance, { host, port, basePath }: Config, isWorker: boolean) {
  try {
    await app.listen({
      host,
      port,
      backlog: LISTEN_BACKLOG,
      listenTextResolver: (url) =>
        isWorker ? `Worker process ${process.pid} is ready` : listeningText(url, basePath),
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new OperatorError(
        `Port ${port} on ${host} is taken by another program.`,
        'Stop that program, or choose another port with --port.',
      );
    }
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL') {
      throw new OperatorError(
        `Cannot listen on ${host}:${port}: ${message}.`,
        'Choose another address with --host and --port.',
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
