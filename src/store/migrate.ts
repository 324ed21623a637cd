/**
 * Schema migrations: forward only, each in a transaction, each with a checksum of its text.
 *
 * Several processes may start at once: an advisory lock lets one migrate while the rest wait and then find
 * nothing to do.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { ClientBase } from 'pg';
import { OperatorError } from '../domain/errors.ts';

/** Any constant will do, so long as every Lanescan uses the same. */
const MIGRATION_LOCK = 7_264_910_331;

const migrationsFolder = new URL('./migrations/', import.meta.url);

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly text: string;
}

export interface MigrationReport {
  /** The names of those applied now. */
  readonly applied: readonly string[];
  /** How many the schema has in all. */
  readonly total: number;
}

/** Brings the schema up to date. Throws an OperatorError when the database is newer or was tampered with. */
export async function migrate(client: ClientBase): Promise<MigrationReport> {
  const known = await readMigrations();
  await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
  try {
    const done = await appliedMigrations(client);
    verify(known, done);
    const pending = known.filter((migration) => !done.has(migration.number));
    for (const migration of pending) await applyMigration(client, migration);
    return { applied: pending.map(({ name }) => name), total: known.length };
  } finally {
    await client.query('select pg_advisory_unlock($1)', [MIGRATION_LOCK]);
  }
}

async function readMigrations(): Promise<readonly Migration[]> {
  const files = (await readdir(migrationsFolder)).filter((file) => file.endsWith('.sql')).sort();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(new URL(file, migrationsFolder), 'utf8');
      return {
        number: Number.parseInt(file, 10),
        name: file.replace(/\.sql$/, ''),
        checksum: createHash('sha256').update(text).digest('hex'),
        text,
      };
    }),
  );
}

async function appliedMigrations(
  client: ClientBase,
): Promise<Map<number, { name: string; checksum: string }>> {
  const { rows: present } = await client.query(`select to_regclass('migration') is not null as present`);
  if (!present[0].present) return new Map();
  const { rows } = await client.query('select number, name, checksum from migration order by number');
  return new Map(rows.map(({ number, name, checksum }) => [number, { name, checksum }]));
}

function verify(
  known: readonly Migration[],
  done: ReadonlyMap<number, { name: string; checksum: string }>,
): void {
  for (const [number, { name, checksum }] of done) {
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

async function applyMigration(client: ClientBase, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(
      `create table if not exists migration (
         number integer primary key, name text not null, checksum text not null,
         applied_at timestamptz not null default now())`,
    );
    await client.query(migration.text);
    await client.query('insert into migration (number, name, checksum) values ($1, $2, $3)', [
      migration.number,
      migration.name,
      migration.checksum,
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw new OperatorError(
      `Migration ${migration.name} failed: ${(error as Error).message}`,
      'Nothing of it was applied. Check that the database role may create tables, then start again.',
      { cause: error },
    );
  }
}
