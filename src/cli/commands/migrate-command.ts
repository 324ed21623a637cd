import { distributeDatabase } from '../../store/cluster/distribution.ts';
import { upgradeEmbedded } from '../../store/server/embedded-upgrade.ts';
import { printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { type Config, type ConfigFlags, UsageError } from '../config/config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from '../context.ts';

/** Each shard costs a connection and a round trip for a search without a message id. */
const MAX_SHARDS = 256;

interface MigrateFlags extends ConfigFlags {
  readonly grantRead?: string;
  readonly fromBinaries?: string;
  readonly distribute?: boolean;
  readonly shards?: number;
}

export function addMigrate(program: Command, context: CliContext): void {
  withStoreOptions(program.command('migrate'))
    .option(
      '--grant-read <role>',
      'let this database role read all tables, including those of later migrations',
    )
    .option('--from-binaries <folder>', 'folder of the PostgreSQL programs that wrote the embedded database')
    .option('--distribute', 'distribute the tables over the workers of a Citus cluster')
    .option(
      '--shards <n>',
      'with --distribute: shards of each table (default: 1 for each worker)',
      parseShards,
    )
    .description('bring the database schema up to date, or set up a new one')
    .notes(`
serve, index, import, mirror and demo migrate when they start, unless autoMigrate is false. Other commands never do.
Older programs may be running: the migration waits for their transactions, and afterwards their writes are rejected.

Examples:
  $ lanescan migrate
  $ DATABASE_URL=postgresql://… lanescan migrate      before a rolling upgrade
  $ lanescan migrate --grant-read lanescan_reader     for servers that only read
  $ DATABASE_URL=postgresql://… lanescan migrate --distribute      on the coordinator, with everything else stopped
  $ lanescan migrate --from-binaries ./postgres-17    an embedded database of PostgreSQL 17

An embedded database of an older PostgreSQL is copied into new files, which are compared with the old ones and replace
them; the old files are kept. --from-binaries is needed only where the older programs are not in the system's folder.`)
    .action(async ({ grantRead, fromBinaries, distribute, shards, ...flags }: MigrateFlags) => {
      const config = configOf(flags, context);
      if (shards !== undefined && !distribute) {
        throw new UsageError('--shards is for --distribute.', 'Give both, or neither.');
      }
      await upgradeDatabaseFiles(config, fromBinaries, context);
      await withStore(config, context, { schema: 'migrate' }, async (store) => {
        const { applied, total } = store.migrations;
        for (const name of applied) context.out.write(`applied ${name}\n`);
        context.out.write(
          applied.length === 0 ? `Up to date: ${total} migrations.\n` : `Done: ${total} migrations.\n`,
        );
        if (grantRead === undefined) return;
        await store.grantRead(grantRead);
        context.out.write(`The role ${printable(grantRead)} may read all tables.\n`);
      });
      // After the store is closed: its connections would count as those of a running program.
      if (distribute) await distributeOverCluster(config, shards, context);
    });
}

function parseShards(text: string): number {
  const shards = Number(text);
  if (Number.isInteger(shards) && shards >= 1 && shards <= MAX_SHARDS) return shards;
  throw new UsageError(
    `"${printable(text)}" is not a number of shards.`,
    `Give a number from 1 to ${MAX_SHARDS}.`,
  );
}

async function distributeOverCluster(
  { databaseUrl }: Config,
  shards: number | undefined,
  { err, out, signal }: CliContext,
): Promise<void> {
  if (databaseUrl === null) {
    throw new UsageError(
      'The embedded database is one machine and cannot be distributed.',
      'Set DATABASE_URL to the coordinator of a Citus cluster.',
    );
  }
  const report = await distributeDatabase(databaseUrl, {
    shards,
    writeLog: (line) => err.write(`${line}\n`),
    signal,
  });
  for (const table of report.distributed) out.write(`distributed ${table}\n`);
  out.write(`Distributed: ${report.shards} shards on ${report.workers} workers.\n`);
}

async function upgradeDatabaseFiles(
  { databaseUrl, dataFolder }: Config,
  fromBinaries: string | undefined,
  { err, out, signal }: CliContext,
): Promise<void> {
  if (databaseUrl !== null) {
    if (fromBinaries === undefined) return;
    throw new UsageError(
      '--from-binaries is for the embedded database, but DATABASE_URL is set.',
      'Leave one of them out.',
    );
  }
  const report = await upgradeEmbedded({
    dataFolder,
    fromBinaries,
    writeLog: (line) => err.write(`${line}\n`),
    signal,
  });
  if (report === undefined) return;
  const { from, to, tables, rows, kept } = report;
  out.write(
    `Upgraded from PostgreSQL ${from} to ${to}: ${tables} tables with ${rows.toLocaleString('en')} rows, compared.\n` +
      `The old files are kept in ${printable(kept)}; Lanescan does not use them any more.\n`,
  );
}
