/** The environment of a command: streams, variables, the stop signal; and options that commands share. */
import type { Readable } from 'node:stream';
import type { WriteLog } from '../base/log.ts';
import { defineLabels } from '../domain/names/labels.ts';
import { defineTokens } from '../domain/names/tokens.ts';
import { defineBlockExplorers } from '../domain/networks/block-explorers.ts';
import { defineNetworks } from '../domain/networks/networks.ts';
import { openStore, type Store, type StoreOptions } from '../store/store.ts';
import type { Command } from './command.ts';
import { type Config, type ConfigFlags, databasePlace, readConfig } from './config/config.ts';

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
  /** Aborted to stop: see stop-signal.ts. */
  readonly signal: AbortSignal;
  /** The exit status of a command that ends without an error; default: 0. */
  exitCode: number;
  /** Drain time: how long a server keeps answering after the stop signal. */
  drainMs?: number;
}

export function withLogOption(command: Command): Command {
  return command.option('--log-level <level>', 'debug, info, warn, error or silent (default: info)');
}

/** The process ends this long after the stop signal, plus `drainMs`, whatever it waits for. */
export const STOP_TIMEOUT_MS = 25_000;
/** How long work in progress may continue after the stop signal, before the store is closed. */
export const WORK_TIMEOUT_MS = 5_000;

export function withStoreOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file (default: ./lanescan.yaml where there is one)')
    .option('--data <folder>', 'folder of the embedded database (default: ./data; unused with DATABASE_URL)');
}

/** The configuration. What it defines (chains, tokens, labels, block explorers) is known from then on. */
export function configOf(flags: ConfigFlags, context: CliContext): Config {
  const config = readConfig(flags, context.environment);
  defineNetworks(config.chains);
  defineTokens(config.read('tokens'));
  defineLabels(config.read('labels'));
  defineBlockExplorers(config.read('explorers'));
  return config;
}

export function schemaFor({ autoMigrate }: Config): Required<StoreOptions>['schema'] {
  return autoMigrate ? 'migrate' : 'expect';
}

/** Opens the configured store, uses it, and always closes it. */
export async function withStore<T>(
  config: Config,
  context: CliContext,
  options: Pick<StoreOptions, 'content' | 'access' | 'schema' | 'connections' | 'writeLog'>,
  use: (store: Store) => Promise<T>,
): Promise<T> {
  // A command with a log has written these to it.
  if (!options.writeLog) for (const line of config.warnings) context.err.write(`${line}\n`);
  const store = await openStore({
    place: databasePlace(config),
    writeLog: (line) => context.err.write(`${line}\n`),
    signal: context.signal,
    // A command that only reads changes nothing.
    schema: 'expect',
    ...options,
  });
  const work = closeStoreAfterStop(store, context.signal);
  try {
    return await use(store);
  } finally {
    work.end();
    await store.close();
  }
}

/** The same for a command that writes and may migrate. */
export function withWriter<T>(
  config: Config,
  context: CliContext,
  content: Required<StoreOptions>['content'],
  writeLog: WriteLog,
  use: (store: Store) => Promise<T>,
): Promise<T> {
  const options = { content, access: 'write', schema: schemaFor(config), writeLog } as const;
  return withStore(config, context, options, use);
}

/**
 * Work ends by itself after the stop signal. If a database that does not answer prevents that, the store is closed, which
 * makes its queries fail.
 */
export function closeStoreAfterStop(store: Store, signal: AbortSignal): { end(): void } {
  let timer: NodeJS.Timeout | undefined;
  const limit = () => {
    timer = setTimeout(() => void store.close(), WORK_TIMEOUT_MS);
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
