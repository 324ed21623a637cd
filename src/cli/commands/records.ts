/** Where the reading commands (search, show, lanes, audit, export) read: the configured store, or a server by its URL. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Command } from '../command.ts';
import { type Config, type ConfigFlags, UsageError } from '../config/config.ts';
import { type CliContext, withStore, withStoreOptions } from '../context.ts';
import type { Records } from './records-interface.ts';
import { createRemoteRecords } from './remote-records.ts';
import { createStoreRecords } from './store-records.ts';

export interface RecordFlags extends ConfigFlags {
  readonly url?: string;
}

export function withRecordOptions(command: Command): Command {
  return withStoreOptions(command).option(
    '--url <url>',
    'read from a Lanescan server instead, such as https://lanescan.example (key: LANESCAN_API_KEY)',
  );
}

export async function withRecords<T>(
  flags: RecordFlags,
  config: Config,
  context: CliContext,
  use: (records: Records) => Promise<T>,
): Promise<T> {
  const noteSimulated = () =>
    void context.err.write('The data is SIMULATED: no message exists on a chain.\n');
  if (flags.url !== undefined) {
    if (flags.data !== undefined)
      throw new UsageError('--url and --data exclude each other.', 'Give the one to read from.');
    return use(createRemoteRecords(flags.url, config.apiKey, context.signal, noteSimulated));
  }
  return withStore(withDemo(config, flags, context), context, { connections: 1 }, async (store) => {
    if (store.simulated) noteSimulated();
    return use(createStoreRecords(store, config, context));
  });
}

/** `lanescan demo` has its own folder. Where it is the only one with a database, it is the one that is meant. */
function withDemo(config: Config, flags: RecordFlags, { err }: CliContext): Config {
  const demo = demoFolder(config, flags);
  if (demo === undefined || hasDatabase(config.dataFolder)) return config;
  err.write(`Reading the demo's database in ${demo}: ${config.dataFolder} has no database.\n`);
  return { ...config, dataFolder: demo };
}

/** The folder of the demo's database, where there is one beside the configured database. */
export function demoFolder(config: Config, { data, url }: RecordFlags): string | undefined {
  if (data !== undefined || url !== undefined || config.databaseUrl !== null) return undefined;
  const demo = `${config.dataFolder}/demo`;
  return hasDatabase(demo) ? demo : undefined;
}

function hasDatabase(dataFolder: string): boolean {
  return existsSync(path.join(dataFolder, 'postgres', 'PG_VERSION'));
}
