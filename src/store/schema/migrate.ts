/**
 * Schema migrations: forward only, each with a checksum of its text. All pending ones are applied in one transaction. It
 * first locks all writers out (`migration-lock.ts`), and last installs the guard against older writers (`writer-guard.ts`).
 * Only the conversion of a large store (`conversion.ts`) lies between two transactions, and each migration that follows it
 * has a separate transaction: making all indexes again because the next one had to wait would take too long.
 *
 * Several processes may start at once: an advisory lock lets one migrate while the others wait and then find nothing to do.
 *
 * The first file is a baseline, which replaced the migrations up to its number. A database that has all of these has the
 * same schema and goes on; one with fewer has to be migrated by the last version that had them.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { runMigration } from '../cluster/migration-statements.ts';
import { isPermissionError, roleName, unreadableError } from '../server/roles.ts';
import { convertTables, FIRST_AFTER_CONVERSION } from './conversion.ts';
import { isLockFailure, type LockOptions, withMigrationLock, withoutWriters } from './migration-lock.ts';
import { guardWriters } from './writer-guard.ts';

const migrationsFolder = new URL('./migrations/', import.meta.url);

/** The baseline's number, and the checksum of the last migration that it replaced, which had the same number. */
const BASELINE = 21;
const REPLACED_CHECKSUM = '2fd39d0237026f3fb453d3838813305f6bad38552be4da0acc1dadc267b01f17';
/** The last commit with the migrations that the baseline replaced. */
const LAST_COMMIT_BEFORE_BASELINE = '4b9af096c26d';

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly text: string;
}

type AppliedMigrations = ReadonlyMap<number, { readonly name: string; readonly checksum: string }>;

/** `applied` are the names of those applied now; `total` counts all of the schema, also those that the baseline replaced. */
type MigrationReport = Readonly<{ applied: readonly string[]; total: number }>;

export interface MigrateOptions extends LockOptions {
  /** The last migration to apply, for a copy of a database that has no later one. */
  readonly upTo?: number;
  /** The migrations to apply; by default those of this program. */
  readonly folder?: URL;
  /** Pages of an old table that are converted in one transaction. */
  readonly pagesPerBatch?: number;
}

/** There is no schema, or no database at all. */
export class NotInitialisedError extends OperatorError {
  constructor(message: string) {
    super(
      message,
      'Run `lanescan migrate` to set it up; `lanescan import`, `index`, `mirror` and `serve` do so too, unless autoMigrate is off.',
    );
  }
}

/** The schema is of an earlier release. */
export class OlderSchemaError extends OperatorError {
  constructor(missing: readonly string[]) {
    super(
      `The database has the schema of an earlier release: it lacks ${missing.join(', ')}.`,
      'Make a backup, then run `lanescan migrate` with the role that owns the tables.',
    );
  }
}

/** The number of the latest migration that this program has. */
export async function knownSchema(): Promise<number> {
  return latestOf(await readMigrations());
}

function latestOf(migrations: readonly Migration[]): number {
  return Math.max(...migrations.map(({ number }) => number));
}

/**
 * Applies pending migrations. Throws an OperatorError when the database is newer or an applied migration differs, when this
 * role may not change the schema, or when others keep it locked.
 */
export async function migrate(
  client: ClientBase,
  { upTo = Number.POSITIVE_INFINITY, folder, pagesPerBatch, ...options }: MigrateOptions = {},
): Promise<MigrationReport> {
  const known = (await readMigrations(folder)).filter(({ number }) => number <= upTo);
  return withMigrationLock(client, options, async () => {
    const pending = await pendingMigrations(client, known);
    const apply = async (migrations: readonly Migration[]) => {
      const [first] = migrations;
      if (!first) return;
      await withoutWriters(client, options, async () => {
        for (const migration of migrations) await applyMigration(client, migration);
        await guardWriters(client, latestOf(known));
      }).catch(async (error) => {
        throw isPermissionError(error) ? await notAllowed(client, first, error) : error;
      });
    };
    const first = pending.find(({ number }) => number === FIRST_AFTER_CONVERSION);
    const isNew = pending.length === known.length;
    if (isNew || !first) await apply(pending);
    else {
      await apply(pending.filter(({ number }) => number < FIRST_AFTER_CONVERSION));
      await convertTables(client, { ...options, pagesPerBatch }).catch(async (error) => {
        throw isPermissionError(error) ? await notAllowed(client, first, error) : error;
      });
      options.writeLog?.('Making the indexes of the new tables');
      for (const migration of pending)
        if (migration.number >= FIRST_AFTER_CONVERSION) await apply([migration]);
    }
    return { applied: pending.map(({ name }) => name), total: latestOf(known) };
  });
}

/** Throws an OperatorError unless the schema is the one that this program knows. Changes nothing. */
export async function requireSchema(client: ClientBase, folder?: URL): Promise<MigrationReport> {
  const known = await readMigrations(folder);
  const pending = await pendingMigrations(client, known);
  if (pending.length === known.length) {
    throw new NotInitialisedError('The database is empty: Lanescan has not been set up in it yet.');
  }
  if (pending.length > 0) throw new OlderSchemaError(pending.map(({ name }) => name));
  return { applied: [], total: latestOf(known) };
}

/** The number of the latest migration that the database has; 0 where it has none. */
export async function databaseSchema(client: ClientBase): Promise<number> {
  return Math.max(0, ...(await appliedMigrations(client)).keys());
}

/** The same, where every migration that the database has is one that this program knows; otherwise throws. */
export async function verifiedSchema(client: ClientBase): Promise<number> {
  await pendingMigrations(client, await readMigrations());
  return databaseSchema(client);
}

async function pendingMigrations(client: ClientBase, known: readonly Migration[]) {
  const done = await appliedMigrations(client);
  verify(known, done);
  return known.filter((migration) => !done.has(migration.number));
}

async function readMigrations(folder = migrationsFolder): Promise<readonly Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(new URL(file, folder), 'utf8');
      return {
        number: Number.parseInt(file, 10),
        name: file.replace(/\.sql$/, ''),
        checksum: createHash('sha256').update(text).digest('hex'),
        text,
      };
    }),
  );
}

async function appliedMigrations(client: ClientBase): Promise<AppliedMigrations> {
  const { rows: present } = await client.query(`select to_regclass('migration') is not null as present`);
  if (!present[0].present) return new Map();
  const { rows } = await client
    .query('select number, name, checksum from migration order by number')
    .catch(async (error) => {
      throw isPermissionError(error) ? await unreadableError(client, 'migration') : error;
    });
  return new Map(rows.map(({ number, name, checksum }) => [number, { name, checksum }]));
}

function verify(known: readonly Migration[], done: AppliedMigrations): void {
  const latest = Math.max(0, ...done.keys());
  if (latest > 0 && latest < BASELINE) {
    throw new OperatorError(
      `The database has the schema ${latest} of a development version; this version of Lanescan upgrades from ${BASELINE} on.`,
      `Make a backup, run \`lanescan migrate\` of commit ${LAST_COMMIT_BEFORE_BASELINE} on it, then start this version again.`,
    );
  }
  for (const [number, { name, checksum }] of done) {
    if (number < BASELINE || (number === BASELINE && checksum === REPLACED_CHECKSUM)) continue;
    const migration = known.find((candidate) => candidate.number === number);
    if (!migration) {
      throw new OperatorError(
        `The database has migration ${name}, which this version of Lanescan does not know.`,
        'A newer Lanescan has used it: upgrade this one, or point DATABASE_URL at another database.',
      );
    }
    if (migration.checksum !== checksum) {
      throw new OperatorError(
        `Migration ${name} in the database differs from the one in this version of Lanescan.`,
        'Install the release that made this database, or restore the migration file; applied ones never change.',
      );
    }
  }
}

/** Runs inside the transaction of all pending migrations. */
async function applyMigration(client: ClientBase, migration: Migration): Promise<void> {
  try {
    await client.query(
      `create table if not exists migration (
         number integer primary key, name text not null, checksum text not null,
         applied_at timestamptz not null default now())`,
    );
    await runMigration(client, migration.text);
    await client.query('insert into migration (number, name, checksum) values ($1, $2, $3)', [
      migration.number,
      migration.name,
      migration.checksum,
    ]);
  } catch (error) {
    if (isPermissionError(error) || isLockFailure(error)) throw error;
    throw new OperatorError(
      `Migration ${migration.name} failed: ${(error as Error).message}`,
      'The schema was not changed. Fix what the message says, then start again.',
      { cause: error },
    );
  }
}

async function notAllowed(client: ClientBase, migration: Migration, error: unknown): Promise<OperatorError> {
  return new OperatorError(
    `The schema lacks migration ${migration.name}, and the role ${await roleName(client)} may not apply it: ${(error as Error).message}.`,
    'Run `lanescan migrate` with the role that owns the tables, or that may create them; then start this again.',
    { cause: error },
  );
}
