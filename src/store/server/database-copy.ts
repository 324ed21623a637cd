/**
 * Copies Lanescan's tables from one PostgreSQL server to another, of any two major versions: our migrations create them,
 * COPY fills them, and a digest of every table is compared in the end.
 */
import { statfs } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg, { type Client } from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { knownSchema, migrate, verifiedSchema } from '../schema/migrate.ts';
import { declaredSchema } from '../schema/writer-guard.ts';

const LOG_INTERVAL_MS = 3_000;

export interface CopyOptions {
  readonly writeLog: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Others may write to the source meanwhile: the copy is of one snapshot, and sequences may be ahead of it. */
  readonly hasWriters?: boolean;
}

export type CopyReport = Awaited<ReturnType<typeof copyDatabase>>;

/** A connection to the original or to the copy. */
export async function connectForCopy(connection: pg.ClientConfig, program: string) {
  const client = new pg.Client({
    ...connection,
    application_name: program,
    options: `-c timezone=UTC -c statement_timeout=0 ${declaredSchema(await knownSchema())}`,
  });
  // The pending query rejects with the error too.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** What a copy takes on the disk, and whether the disk of a folder has room for it. Texts are for messages. */
export async function spaceFor(source: Client, folder: string, spareBytes: number) {
  const { rows } = await source.query('select pg_database_size(current_database()) as bytes');
  const neededBytes = Number(rows[0].bytes) * 1.1 + spareBytes;
  const { bavail, bsize } = await statfs(folder);
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  return {
    isEnough: bavail * bsize >= neededBytes,
    needed: gigabytes(neededBytes),
    free: gigabytes(bavail * bsize),
  };
}

/**
 * Copies all our tables and sequences into an empty database. No other session may write to the target, and without
 * `hasWriters` none to the source.
 * Throws when the copy differs from the original in anything.
 */
export async function copyDatabase(source: Client, target: Client, options: CopyOptions) {
  const { writeLog, signal, hasWriters = false } = options;
  await source.query('begin isolation level repeatable read read only');
  const schema = await verifiedSchema(source);
  // The same schema as the original has, so that a later migration finds what it expects.
  if (schema > 0) await migrate(target, { upTo: schema, writeLog, signal });
  const [ours, theirs] = await Promise.all([relationsOf(target, 'r'), relationsOf(source, 'r')]);
  const foreign = theirs.filter((table) => !ours.includes(table));
  if (foreign.length > 0) writeLog(`Not of Lanescan, and therefore not copied: ${foreign.join(', ')}`);

  await target.query('begin');
  const indexes = await dropIndexes(target);
  if (ours.length > 0) await target.query(`truncate ${ours.join(', ')}`);
  for (const table of ours) await copyTable(source, target, table, options);
  for (const sequence of await relationsOf(target, 'S')) {
    const { rows } = await source.query(`select last_value, is_called from ${sequence}`);
    await target.query('select setval($1::regclass, $2, $3)', [
      sequence,
      rows[0].last_value,
      rows[0].is_called,
    ]);
  }
  writeLog(`Building ${indexes.length} indexes`);
  for (const definition of indexes) {
    signal?.throwIfAborted();
    await target.query(definition);
  }
  await target.query('commit');
  await target.query('analyze');

  let rows = 0;
  for (const table of ours) {
    signal?.throwIfAborted();
    writeLog(`Comparing ${table}`);
    const [original, copy] = await Promise.all([digestOf(source, table), digestOf(target, table)]);
    if (original.digest !== copy.digest)
      throw new Error(`the copy of the table ${table} differs from the original`);
    rows += original.rows;
  }
  for (const sequence of hasWriters ? [] : await relationsOf(target, 'S')) {
    const text = `select last_value, is_called from ${sequence}`;
    const [original, copy] = await Promise.all([source.query(text), target.query(text)]);
    if (JSON.stringify(original.rows) !== JSON.stringify(copy.rows))
      throw new Error(`the copy of the sequence ${sequence} differs from the original`);
  }
  await source.query('commit');
  return { tables: ours.length, rows };
}

/** Tables (`r`) or sequences (`S`) of the schema, with their names quoted. */
async function relationsOf(client: Client, kind: 'r' | 'S'): Promise<string[]> {
  const { rows } = await client.query(
    `select oid::regclass::text as name from pg_class
     where relkind = $1 and relnamespace = 'public'::regnamespace order by relname`,
    [kind],
  );
  return rows.map(({ name }) => name);
}

/** Drops indexes that belong to no constraint, to build them faster after the rows are in; returns their definitions. */
async function dropIndexes(client: Client): Promise<string[]> {
  const { rows } = await client.query(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
     from pg_index join pg_class on pg_class.oid = indexrelid
     where relnamespace = 'public'::regnamespace
       and not exists (select from pg_constraint where conindid = indexrelid)
     order by relname`,
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  return rows.map(({ definition }) => definition);
}

async function copyTable(source: Client, target: Client, table: string, { writeLog, signal }: CopyOptions) {
  const { rows } = await source.query(
    `select string_agg(quote_ident(attname), ', ' order by attnum) as columns, pg_table_size($1::regclass) as bytes
     from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [table],
  );
  const [{ columns, bytes }] = rows;
  const size = megabytes(Number(bytes));
  writeLog(`Copying ${table} (${size} on disk)`);
  let copied = 0;
  let nextLogAt = Date.now() + LOG_INTERVAL_MS;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      copied += chunk.length;
      if (Date.now() > nextLogAt) {
        nextLogAt = Date.now() + LOG_INTERVAL_MS;
        writeLog(`Copying ${table} (${size} on disk): ${megabytes(copied)} so far`);
      }
      done(null, chunk);
    },
  });
  await pipeline(
    source.query(copyTo(`copy ${table} (${columns}) to stdout`)),
    meter,
    target.query(copyFrom(`copy ${table} (${columns}) from stdin with (freeze)`)),
    { ...(signal && { signal }) },
  );
}

/** A digest of all rows in any order: the sums of the two halves of their hashes. */
async function digestOf(client: Client, table: string): Promise<{ rows: number; digest: string }> {
  const half = (from: number) => `sum(('x' || substr(hash, ${from}, 16))::bit(64)::bigint::numeric)`;
  const { rows } = await client.query(
    `select count(*)::text as rows, concat_ws(' ', count(*), ${half(1)}, ${half(17)}) as digest
     from (select md5(t::text) as hash from ${table} t) hashes`,
  );
  return { rows: Number(rows[0].rows), digest: rows[0].digest };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
