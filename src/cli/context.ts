/** What a verb may touch of the world outside: streams, the environment, the signal to stop. */
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { defineNetworks } from '../domain/networks.ts';
import { openStore, type Store, type StoreOptions } from '../store/store.ts';
import { type Config, type ConfigFlags, databasePlace, readConfig } from './config.ts';

export interface TerminalStream {
  write(text: string, done?: (error?: Error | null) => void): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface CliContext {
  readonly environment: NodeJS.ProcessEnv;
  readonly input: Readable;
  readonly out: TerminalStream;
  readonly err: TerminalStream;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Aborted when it is time to stop: see stop-signal.ts. */
  readonly signal: AbortSignal;
  /** The exit status when a verb finishes without an error; 0 unless set. */
  exitCode: number;
  /** How long a verb goes on on purpose when it is told to stop (ms). */
  drainMs?: number;
}

/** For verbs that log. */
export function withLogOption(command: Command): Command {
  return command.option('--log-level <level>', 'debug, info, warn, error or silent (default: info)');
}

/** The process ends so long after the signal to stop, beside `drainMs`, whatever it waits for. */
export const STOP_LIMIT_MS = 25_000;
/** How long work in progress may go on after the signal, before the store is closed under it. */
export const WORK_LIMIT_MS = 5_000;

/** The options that every verb with a store has. */
export function withStoreOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file (default: ./lanescan.yaml where there is one)')
    .option('--data <folder>', 'folder of the embedded database (default: ./data; unused with DATABASE_URL)');
}

/** The configuration. The chains that it defines are known from then on, wherever a network is looked up. */
export function configOf(flags: ConfigFlags, context: CliContext): Config {
  const config = readConfig(flags, context.environment);
  defineNetworks(config.chains);
  return config;
}

/** For verbs that may bring the schema up to date. */
export function schemaFor({ autoMigrate }: Config): Required<StoreOptions>['schema'] {
  return autoMigrate ? 'migrate' : 'expect';
}

/** Opens the configured store, uses it, and closes it whatever happens. */
export async function withStore<T>(
  config: Config,
  context: CliContext,
  options: Pick<StoreOptions, 'content' | 'access' | 'schema' | 'connections' | 'notice'>,
  use: (store: Store) => Promise<T>,
): Promise<T> {
  // A verb with a log has written these to it.
  if (!options.notice) for (const line of config.notices) context.err.write(`${line}\n`);
  const store = await openStore({
    place: databasePlace(config),
    rawRows: config.rawRows,
    notice: (line) => context.err.write(`${line}\n`),
    signal: context.signal,
    // A verb that only looks changes nothing.
    schema: 'expect',
    ...options,
  });
  const work = limitWork(store, context.signal);
  try {
    return await use(store);
  } finally {
    work.end();
    await store.close();
  }
}

/**
 * Work is to end by itself when the signal comes. If a database that does not answer keeps it from that, the store is
 * closed under it.
 */
export function limitWork(store: Store, signal: AbortSignal): { end(): void } {
  let timer: NodeJS.Timeout | undefined;
  const limit = () => {
    timer = setTimeout(() => void store.close(), WORK_LIMIT_MS);
  };
  if (signal.aborted) limit();
  signal.addEventListener('abort', limit);
  return {
    end() {
      signal.removeEventListener('abort', limit);
      clearTimeout(timer);
    },
  };
}
