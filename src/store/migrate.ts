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

/**
 * Brings the schema up to date. Throws an OperatorError when the database is newer or was tampered with, or when the
 * schema is older and this role may not change it.
 *
 * @param upTo the number of the last migration to apply, for a copy of a database that has no later one
 */
export async function migrate(client: ClientBase, upTo = Number.POSITIVE_INFINITY): Promise<MigrationReport> {
  const known = (await readMigrations()).filter(({ number }) => number <= upTo);
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

/** The number of the latest migration of a schema, 0 where there is none. Throws an OperatorError like `migrate`. */
export async function schemaNumber(client: ClientBase): Promise<number> {
  const done = await appliedMigrations(client);
  verify(await readMigrations(), done);
  return Math.max(0, ...done.keys());
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
  const { rows } = await client
    .query('select number, name, checksum from migration order by number')
    .catch(async (error) => {
      throw isRefusal(error) ? await unreadable(client, 'migration') : error;
    });
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
    if (isRefusal(error)) {
      throw new OperatorError(
        `The schema lacks migration ${migration.name}, and the role ${await roleName(client)} may not apply it: ${(error as Error).message}.`,
        'Run `lanescan migrate` with the role that owns the tables, or that may create them; then start this again.',
        { cause: error },
      );
    }
    throw new OperatorError(
      `Migration ${migration.name} failed: ${(error as Error).message}`,
      'Nothing of it was applied. Mend what it says, then start again.',
      { cause: error },
    );
  }
}

/** Whether this role may only read: by what it was granted, or because the server takes no writes (a replica). */
export async function isReadOnly(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query(
    `select current_setting('transaction_read_only') = 'on' or not has_table_privilege('store', 'update') as answer`,
  );
  return rows[0].answer;
}

/** Throws an OperatorError that names the tables which this role may not read, if there are any. */
export async function refuseUnreadableTables(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    `${OUR_TABLES} and not has_table_privilege(c.oid, 'select') order by c.oid`,
  );
  if (rows.length > 0) throw await unreadable(client, rows.map(({ name }) => name).join(', '));
}

/**
 * Lets a role read everything, and what later migrations by the present role will make; nothing else.
 * Throws an OperatorError when there is no such role or it is not ours to grant; then nothing is granted.
 */
export async function grantRead(client: ClientBase, role: string): Promise<void> {
  const { rows: known } = await client.query('select from pg_roles where rolname = $1', [role]);
  if (known.length === 0) {
    throw new OperatorError(
      `There is no database role ${client.escapeIdentifier(role)} to grant reading to.`,
      `Make it first, with a password of its own: create role ${client.escapeIdentifier(role)} login password '…'`,
    );
  }
  const { rows: tables } = await client.query(`${OUR_TABLES} order by c.oid`);
  const { rows: places } = await client.query(
    `select current_database() as database, relnamespace::regnamespace::text as schema,
            has_database_privilege($1, current_database(), 'connect') as may_connect,
            has_schema_privilege($1, relnamespace, 'usage') as may_use
     from pg_class where oid = 'migration'::regclass`,
    [role],
  );
  const { database, schema, may_connect: mayConnect, may_use: mayUse } = places[0];
  const grantee = client.escapeIdentifier(role);
  await client.query('begin');
  try {
    // Often everybody has these two, and whoever owns the tables need not own the database.
    if (!mayConnect)
      await client.query(`grant connect on database ${client.escapeIdentifier(database)} to ${grantee}`);
    if (!mayUse) await client.query(`grant usage on schema ${schema} to ${grantee}`);
    await client.query(`grant select on ${tables.map(({ name }) => name).join(', ')} to ${grantee}`);
    await client.query(`alter default privileges in schema ${schema} grant select on tables to ${grantee}`);
    // Where some privileges are held but none may be passed on, PostgreSQL only warns.
    const { rows: left } = await client.query(
      `${OUR_TABLES} and not has_table_privilege($1, c.oid, 'select')`,
      [role],
    );
    if (left.length > 0) throw new Error(`permission denied for table ${left[0].name}`);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw new OperatorError(
      `The role ${await roleName(client)} may not let ${grantee} read: ${(error as Error).message}.`,
      'Nothing was granted. Run this with the role that owns the tables.',
      { cause: error },
    );
  }
}

/** The schema may hold tables of others too; ours have the owner of the list of migrations. Names come quoted. */
const OUR_TABLES = `select c.oid::regclass::text as name from pg_class c, pg_class m
  where m.oid = 'migration'::regclass and c.relkind in ('r', 'p')
    and (c.relnamespace, c.relowner) = (m.relnamespace, m.relowner)`;

async function unreadable(client: ClientBase, tables: string): Promise<OperatorError> {
  const role = await roleName(client);
  return new OperatorError(
    `The role ${role} may not read ${tables}.`,
    `Run \`lanescan migrate --grant-read ${role}\` with the role that owns the tables.`,
  );
}

async function roleName(client: ClientBase): Promise<string> {
  return (await client.query('select current_user as name')).rows[0].name;
}

/** 42501: not granted; 25006: the server, or this role's sessions, take no writes. */
function isRefusal(error: unknown): boolean {
  return ['42501', '25006'].includes(String((error as { code?: unknown }).code));
}
