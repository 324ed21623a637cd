/** What a verb may touch of the world outside: streams, the environment, the signal to stop. */
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
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
}

/** The options that every verb with a store has. */
export function withStoreOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file (default: ./lanescan.yaml where there is one)')
    .option('--data <folder>', 'folder of the embedded database (default: ./data; unused with DATABASE_URL)');
}

export function configOf(flags: ConfigFlags, context: CliContext): Config {
  return readConfig(flags, context.environment);
}

/** For verbs that may bring the schema up to date. */
export function schemaFor({ autoMigrate }: Config): Required<StoreOptions>['schema'] {
  return autoMigrate ? 'migrate' : 'expect';
}

/** Opens the configured store, uses it, and closes it whatever happens. */
export async function withStore<T>(
  config: Config,
  context: CliContext,
  options: Pick<StoreOptions, 'content' | 'access' | 'schema' | 'connections'>,
  use: (store: Store) => Promise<T>,
): Promise<T> {
  for (const line of config.notices) context.err.write(`${line}\n`);
  const store = await openStore({
    place: databasePlace(config),
    notice: (line) => context.err.write(`${line}\n`),
    signal: context.signal,
    // A verb that only looks changes nothing.
    schema: 'expect',
    ...options,
  });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}
