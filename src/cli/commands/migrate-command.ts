import { distributeDatabase } from '../../store/cluster/distribution.ts';
import type { DerivedReport } from '../../store/derived/derived-rows.ts';
import { backUp } from '../../store/server/backup.ts';
import { upgradeEmbedded } from '../../store/server/embedded-upgrade.ts';
import type { Store } from '../../store/store.ts';
import { counted, printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { type Config, type ConfigFlags, databasePlace, UsageError } from '../config/config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from '../context.ts';
import { createProgress } from '../output/progress-bar.ts';

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

const INTERRUPTED_STATUS = 130;
const UNREPAIRED_STATUS = 1;

export function addRepair(program: Command, context: CliContext): void {
  withStoreOptions(program.command('repair'))
    .option('--dry-run', 'only compare, as `lanescan doctor --deep` does')
    .description('rebuild derived rows that disagree with the records')
    .notes(`
Compares every record with the rows derived from it (columns, tokens, totals, days, delivery times, runs of sequence
numbers, positions in the history), and rewrites wrong ones. It reads all messages; servers keep answering, and writers
wait briefly, at most for the time of counting all messages. It can be interrupted and repeated at any time.

Exit status: 0 everything agrees, 1 something cannot be repaired (or, with --dry-run, disagrees), 130 interrupted.

Examples:
  $ lanescan repair --dry-run
  $ lanescan repair`)
    .action(async ({ dryRun = false, ...flags }: ConfigFlags & { dryRun?: boolean }) => {
      const access = dryRun ? 'read' : 'write';
      await withStore(configOf(flags, context), context, { access, connections: 1 }, async (store) => {
        const report = await walkDerivedRows(store, dryRun ? 'compare' : 'repair', context);
        if (report === undefined) {
          context.err.write('Interrupted. What was repaired stays; run it again to continue.\n');
          context.exitCode = INTERRUPTED_STATUS;
          return;
        }
        context.out.write(summary(report, dryRun));
        if (report.disagreements.some(({ isRepairable }) => dryRun || !isRepairable))
          context.exitCode = UNREPAIRED_STATUS;
      });
    });
}

/** Compares or repairs all messages, with progress on standard error; undefined where it was interrupted. */
export async function walkDerivedRows(store: Store, work: 'compare' | 'repair', { err, signal }: CliContext) {
  const { count } = await store.countMessages();
  const title = work === 'compare' ? 'Comparing' : 'Repairing';
  const progress = createProgress(err, title, Math.max(count, 1), {
    describeAmount: (messages) => `${Math.round(messages).toLocaleString('en')} messages`,
  });
  try {
    return await store.derived[work]({ signal, advance: progress.advance, note: progress.note });
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    progress.end();
  }
}

function summary({ messages, disagreements }: DerivedReport, dryRun: boolean): string {
  const number = (value: number) => value.toLocaleString('en');
  const lines = disagreements.map(({ what, count, isRepairable }) => {
    const verdict = isRepairable ? (dryRun ? 'can be repaired' : 'repaired') : 'cannot be repaired';
    return `${verdict}: ${number(count)} ${what}\n`;
  });
  const compared = `Compared ${number(messages)} messages with their derived rows`;
  return lines.length === 0 ? `${compared}: everything agrees.\n` : `${compared}.\n${lines.join('')}`;
}

export function addBackup(program: Command, context: CliContext): void {
  withStoreOptions(program.command('backup'))
    .argument('<folder>', 'data folder to make, which must not exist')
    .description('copy the database while it is in use')
    .notes(`
The copy is of one moment, whatever is written meanwhile. Every table is compared with the original, and the folder appears
when the copy is complete. It is a data folder like any other: use it with --data, or put it in the place of the original.
With DATABASE_URL the copy of that server is an embedded database.

Examples:
  $ lanescan backup backups/monday
  $ lanescan search --data backups/monday      look into the backup`)
    .action(async (folder: string, flags: ConfigFlags) => {
      const config = configOf(flags, context);
      const { tables, rows } = await backUp({
        place: databasePlace(config),
        folder,
        writeLog: (line) => void context.err.write(`${line}\n`),
        signal: context.signal,
      });
      context.out.write(
        `${printable(folder)}: ${counted(tables, 'table')} with ${counted(rows, 'row')}, compared with the original\n`,
      );
    });
}
