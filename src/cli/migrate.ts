import type { Command } from 'commander';
import { upgradeEmbedded } from '../store/embedded-upgrade.ts';
import { type Config, type ConfigFlags, UsageError } from './config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';
import { printable } from './terminal-text.ts';

interface MigrateFlags extends ConfigFlags {
  readonly grantRead?: string;
  readonly fromBinaries?: string;
}

export function addMigrate(program: Command, context: CliContext): void {
  withStoreOptions(program.command('migrate'))
    .option(
      '--grant-read <role>',
      'let this database role read all tables, including those of later migrations',
    )
    .option('--from-binaries <folder>', 'folder of the PostgreSQL programs that wrote the embedded database')
    .description('bring the database schema up to date, or set up a new one')
    .addHelpText(
      'after',
      `
serve, index, import, mirror and demo migrate when they start, unless autoMigrate is false. Other commands never do.
Older programs may be running: the migration waits for their transactions, and afterwards their writes are refused.

Examples:
  $ lanescan migrate
  $ DATABASE_URL=postgresql://… lanescan migrate      before a rolling upgrade
  $ lanescan migrate --grant-read lanescan_reader     for servers that only read
  $ lanescan migrate --from-binaries ./postgres-17    an embedded database of PostgreSQL 17

An embedded database of an older PostgreSQL is copied into new files, which are compared with the old ones and replace
them; the old files are kept. --from-binaries is needed only where the older programs are not in the system's folder.`,
    )
    .action(async ({ grantRead, fromBinaries, ...flags }: MigrateFlags) => {
      const config = configOf(flags, context);
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
    });
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
    notice: (line) => err.write(`${line}\n`),
    signal,
  });
  if (report === undefined) return;
  const { from, to, tables, rows, kept } = report;
  out.write(
    `Upgraded from PostgreSQL ${from} to ${to}: ${tables} tables with ${rows.toLocaleString('en')} rows, compared.\n` +
      `The old files are kept in ${printable(kept)}; Lanescan does not use them any more.\n`,
  );
}
