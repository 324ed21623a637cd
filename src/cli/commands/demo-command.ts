import type { Logger } from 'pino';
import type { Fact } from '../../domain/facts.ts';
import { createSimulation, type Simulation } from '../../ingest/demo/simulation.ts';
import { untilLater } from '../../ingest/work.ts';
import { isDatabaseUnavailable, openStore, type Store } from '../../store/store.ts';
import type { Command } from '../command.ts';
import { loadAbis } from '../config/abi-folder.ts';
import { type ConfigFlags, databasePlace } from '../config/config.ts';
import { type CliContext, closeStoreAfterStop, configOf, schemaFor, withStoreOptions } from '../context.ts';
import { logWriter, openLog } from '../output/command-log.ts';
import { serveUntilStopped, withServerOptions } from './serve-command.ts';

const STEP_INTERVAL_MS = 500;
const LOG_INTERVAL_MS = 2_000;
const BATCH_FACTS = 5_000;

export function addDemo(program: Command, context: CliContext): void {
  withServerOptions(withStoreOptions(program.command('demo')))
    .option('--seed <text>', 'the same seed creates the same network', 'lanescan')
    .description('serve a simulated network with live traffic, to try everything out')
    .notes(`
The demo has its own store (./data/demo), generates its history at each start, and rejects a store with real records.
Every response has the header X-Lanescan-Simulated: true.

Examples:
  $ lanescan demo
  $ lanescan demo --seed other --port 9000`)
    .action(async (flags: ConfigFlags & { seed: string }) => {
      const configured = configOf(flags, context);
      loadAbis(configured);
      const webhooks = configured.read('webhooks', context.environment);
      const config =
        flags.data === undefined
          ? { ...configured, dataFolder: `${configured.dataFolder}/demo` }
          : configured;
      const log = await openLog(config, context, { isBatched: true });
      const store = await openStore({
        place: databasePlace(config),
        content: 'simulated',
        access: 'write',
        schema: schemaFor(config),
        writeLog: logWriter(log, 'store'),
        signal: context.signal,
      });
      const startsAt = new Date();
      const simulation = createSimulation({ seed: flags.seed, startsAt });
      context.drainMs = config.drainSeconds * 1_000;
      const work = closeStoreAfterStop(store, context.signal);
      try {
        await generateHistory(simulation, startsAt, store, log, context.signal);
        context.signal.throwIfAborted();
      } catch (error) {
        await store.close();
        throw error;
      } finally {
        work.end();
      }
      await serveUntilStopped({
        config,
        signal: context.signal,
        log,
        store,
        webhooks,
        alongside: (signal) => liveTraffic(simulation, store, log, signal),
      });
    });
}

async function generateHistory(
  simulation: Simulation,
  until: Date,
  store: Store,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  log.warn('SIMULATED network: generating a month of traffic');
  await store.reset();
  for (const { network, bytes, claims } of simulation.tokens)
    await store.index.tokens.write(network, [{ bytes, claims, dueInMs: 0 }]);
  let messages = 0;
  let shownAt = performance.now();
  // The next batch is generated while the database writes the previous one.
  let writing = Promise.resolve();
  for (const facts of simulation.factsUntil(until, BATCH_FACTS)) {
    await writing;
    if (signal.aborted) return;
    writing = store.apply(facts).then(({ created }) => {
      messages += created;
    });
    // Awaited with the next batch; until then a failure must not count as unhandled.
    writing.catch(() => undefined);
    if (performance.now() - shownAt < LOG_INTERVAL_MS) continue;
    shownAt = performance.now();
    log.info(`${messages.toLocaleString('en')} simulated messages so far`);
  }
  await writing;
  log.info(`${messages.toLocaleString('en')} simulated messages on ${simulation.networks.length} networks`);
}

async function liveTraffic(simulation: Simulation, store: Store, log: Logger, signal: AbortSignal) {
  while (!signal.aborted) {
    for (const facts of simulation.factsUntil(new Date())) await applyWithRetry(store, facts, log, signal);
    await untilLater(STEP_INTERVAL_MS, signal);
  }
}

/** Retries while the database is away, as a server does. */
async function applyWithRetry(store: Store, facts: readonly Fact[], log: Logger, signal: AbortSignal) {
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      await store.apply(facts);
      return;
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      if (isFirst) log.warn('The database does not answer; the simulation continues when it does');
      await untilLater(STEP_INTERVAL_MS, signal);
    }
  }
}
