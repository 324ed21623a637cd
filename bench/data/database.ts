/**
 * Databases of a given size, made once and kept: rows by COPY into tables without indexes, then the indexes, then the
 * statistics from the rows. What comes out is compared, table by table, with what `store.apply` makes of the same
 * records.
 */
import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { addFlatHistogram, deliveryBucket, flatHistogram } from '../../src/domain/delivery-times.ts';
import type { CursorCodec } from '../../src/domain/filters/cursor.ts';
import { statusRank } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import { knownSchema } from '../../src/store/schema/migrate.ts';
import { declaredSchema } from '../../src/store/schema/writer-guard.ts';
import type { EmbeddedDatabase } from '../../src/store/server/embedded.ts';
import { openStore } from '../../src/store/store.ts';
import { describeLane } from '../../src/store/write/statistics.ts';
import { createRowWriter, HISTORY_COLUMNS, MESSAGE_COLUMNS, type Rows, TOKEN_COLUMNS } from './records.ts';
import { createWorld, WORLD_VERSION, type World } from './world.ts';

const ROWS_PER_COPY = 20_000;
/** Measured at a million messages; sorting for the largest index needs as much again for a while. */
const BYTES_A_MESSAGE = 4_000;
const CHECKED_SIZE = 4_000;

export interface Cluster {
  readonly embedded: EmbeddedDatabase;
  url(database: string): string;
}

export interface BenchDatabase {
  readonly size: number;
  readonly name: string;
  readonly url: string;
  readonly world: World;
  /** The codec of its cursors, which are signed with its key. */
  readonly cursors: CursorCodec;
}

export function clusterOf(embedded: EmbeddedDatabase): Cluster {
  const { host, user } = embedded.connection;
  return {
    embedded,
    url: (database) => `postgresql:///${database}?host=${encodeURIComponent(host)}&user=${user}`,
  };
}

/** The process that started all others of PostgreSQL. */
export function postmasterOf({ dataFolder }: EmbeddedDatabase): number {
  return Number.parseInt(readFileSync(`${dataFolder}/postgres/postmaster.pid`, 'utf8'), 10);
}

export async function openClient(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    options: `-c timezone=UTC ${declaredSchema(await knownSchema())}`,
  });
  await client.connect();
  return client;
}

export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openClient(url);
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** The database of this size, as it was left by a run before or made now. */
export async function openDatabase(cluster: Cluster, size: number): Promise<BenchDatabase> {
  const name = `bench_${size}`;
  const url = cluster.url(name);
  const world = createWorld(size);
  const mark = `world ${WORLD_VERSION}, whole`;
  if ((await readMark(cluster.url('postgres'), name)) !== mark) {
    await requireDiskSpace(cluster, size * BYTES_A_MESSAGE, `${size.toLocaleString('en')} messages`);
    await checkAgainstApply(cluster);
    await createEmpty(cluster, name);
    console.error(`Making ${size.toLocaleString('en')} messages`);
    const began = performance.now();
    await withClient(url, (client) => fill(client, world));
    await withClient(cluster.url('postgres'), (client) =>
      client.query(`comment on database ${name} is '${mark}'`),
    );
    console.error(`  made in ${Math.round((performance.now() - began) / 1000)} s`);
  }
  // A release since may have brought migrations: they are applied as they would be to anybody's data.
  const store = await openStore({ place: { url } });
  await store.close();
  return { size, name, url, world, cursors: store.cursors };
}

/** The comment on a database, which says whether it is whole; undefined where there is no such database. */
export async function readMark(url: string, name: string): Promise<string | null | undefined> {
  return withClient(url, async (client) => {
    const { rows } = await client.query(
      `select shobj_description(oid, 'pg_database') as mark from pg_database where datname = $1`,
      [name],
    );
    return rows[0]?.mark;
  });
}

/** @param what is made, for the message */
export async function requireDiskSpace(cluster: Cluster, bytes: number, what: string): Promise<void> {
  const { bavail, bsize } = await statfs(cluster.embedded.dataFolder);
  const free = bavail * bsize;
  const gigabytes = (amount: number) => `${(amount / 1e9).toFixed(1)} GB`;
  if (bytes > free * 0.95) {
    throw new Error(
      `${what} need about ${gigabytes(bytes)} while they are made; ${cluster.embedded.dataFolder} has ` +
        `${gigabytes(free)} free. Choose another folder with --data, or fewer messages.`,
    );
  }
}

export async function createEmpty(cluster: Cluster, name: string): Promise<void> {
  await withClient(cluster.url('postgres'), async (client) => {
    await client.query(`drop database if exists ${name} with (force)`);
    await client.query(`create database ${name}`);
  });
  const store = await openStore({ place: { url: cluster.url(name) } });
  await store.close();
}

export async function dropDatabase(cluster: Cluster, name: string): Promise<void> {
  await withClient(cluster.url('postgres'), (client) =>
    client.query(`drop database if exists ${name} with (force)`),
  );
}

async function copyText(client: pg.ClientBase, into: string, chunks: readonly string[]): Promise<void> {
  await pipeline(
    function* () {
      for (const chunk of chunks) yield Buffer.from(chunk, 'latin1');
    },
    client.query(copyFrom(`copy ${into} from stdin with (freeze)`)),
  );
}

export interface Index {
  readonly drop: string;
  readonly create: string;
}

export async function indexesOf(client: pg.ClientBase, tables: readonly string[]): Promise<readonly Index[]> {
  const { rows } = await client.query(
    `select i.relname as name, t.relname as table, pg_get_indexdef(i.oid) as definition, c.conname as constraint,
            pg_get_constraintdef(c.oid) as constraint_definition
     from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
     left join pg_constraint c on c.conindid = i.oid
     where t.relname = any($1) order by t.relname, c.conname nulls last, i.relname`,
    [tables],
  );
  return rows.map((row) =>
    row.constraint === null
      ? { drop: `drop index ${row.name}`, create: row.definition }
      : {
          drop: `alter table ${row.table} drop constraint ${row.constraint}`,
          create: `alter table ${row.table} add constraint ${row.constraint} ${row.constraint_definition}`,
        },
  );
}

async function fill(client: pg.Client, world: World): Promise<void> {
  const tables = ['message', 'message_token', 'history'];
  const indexes = await indexesOf(client, tables);
  for (const { drop } of indexes) await client.query(drop);
  await client.query(`set maintenance_work_mem = '1GB'`);
  // Rows that come into a table in the transaction that emptied it need no log and no vacuum.
  await client.query(`begin; truncate ${tables.join(', ')}`);
  const rowsOf = createRowWriter(world);
  for (let from = 0; from < world.size; from += ROWS_PER_COPY) {
    const rows: Rows[] = [];
    for (let n = from; n < Math.min(world.size, from + ROWS_PER_COPY); n++) rows.push(rowsOf(n));
    for (const [into, text] of [
      [`message (${MESSAGE_COLUMNS})`, (row: Rows) => row.message],
      [`message_token (${TOKEN_COLUMNS})`, (row: Rows) => row.token],
      [`history (${HISTORY_COLUMNS})`, (row: Rows) => row.history],
    ] as const)
      await copyText(client, into, inChunks(rows, text));
    if (from > 0 && from % 1_000_000 === 0) console.error(`  ${from.toLocaleString('en')} rows`);
  }
  await client.query('commit');
  for (const { create } of indexes) await client.query(create);
  await fillStatistics(client);
  await client.query('update store set position = $1', [world.size]);
  await client.query('update store_revision set revision = $1', [world.size]);
  await client.query('vacuum analyze');
  await client.query('checkpoint');
}

function inChunks(rows: readonly Rows[], text: (row: Rows) => string): string[] {
  return Array.from({ length: Math.ceil(rows.length / 500) }, (_, chunk) =>
    rows
      .slice(chunk * 500, (chunk + 1) * 500)
      .map(text)
      .join(''),
  );
}

/**
 * What writing the messages one batch after the other would have kept, counted from the messages, which are read once. Totals
 * may have rows already, whatever they count.
 */
export async function fillStatistics(client: pg.ClientBase): Promise<void> {
  await client.query(`
    create temporary table counted as
      select source_selector, dest_selector, onramp, sequence_number, sent_at::date as day, status, ready, delivery_ms from message;
    insert into lane_total select source_selector, dest_selector, status, ready, count(*) from counted group by 1, 2, 3, 4
      on conflict (source_selector, dest_selector, status, ready) do update set messages = excluded.messages;
    insert into day_total select day, source_selector, dest_selector, status, count(*) from counted group by 1, 2, 3, 4
      on conflict (day, source_selector, dest_selector, status) do update set messages = excluded.messages;
    insert into lane_run select source_selector, dest_selector, onramp, min(sequence_number), max(sequence_number)
      from counted group by 1, 2, 3;`);
  const { rows: newest } = await client.query(
    `select r.source_selector, r.dest_selector, r.onramp, m.message_id, m.sent_at, m.record,
            r.to_sequence - r.from_sequence + 1 as present
     from lane_run r cross join lateral (
       select message_id, sent_at, record from message m
       where m.source_selector = r.source_selector and m.dest_selector = r.dest_selector and m.onramp = r.onramp
       order by sort_key desc, message_id desc limit 1) m`,
  );
  for (const row of newest) {
    await client.query(
      `insert into lane_onramp (source_selector, dest_selector, onramp, newest_message, last_sent_at, description, present, runs)
       values ($1, $2, $3, $4, $5, $6, $7, 1)`,
      [
        row.source_selector,
        row.dest_selector,
        row.onramp,
        row.message_id,
        row.sent_at,
        describeLane(JSON.parse(row.record) as Message),
        row.present,
      ],
    );
  }
  const { rows } = await client.query(
    `select source_selector, dest_selector, day::text as day, delivery_ms, count(*)::int as messages
     from counted where status = ${statusRank('SUCCESS')} group by 1, 2, 3, 4`,
  );
  const days = new Map<string, { lane: string[]; histogram: Map<number, number> }>();
  for (const row of rows) {
    const lane = [row.source_selector, row.dest_selector, row.day];
    const day = days.get(lane.join()) ?? { lane, histogram: new Map() };
    addFlatHistogram(day.histogram, [deliveryBucket(Number(row.delivery_ms)), row.messages]);
    days.set(lane.join(), day);
  }
  const values = [...days.values()].map(({ lane, histogram }) => [
    ...lane,
    JSON.stringify(flatHistogram(histogram)),
  ]);
  await client.query(
    'insert into lane_delivery select * from unnest($1::bigint[], $2::bigint[], $3::date[], $4::json[])',
    [0, 1, 2, 3].map((column) => values.map((row) => row[column])),
  );
  await client.query('drop table counted');
}

/** The same small world made both ways must leave the same rows in every table. */
async function checkAgainstApply(cluster: Cluster): Promise<void> {
  const world = createWorld(CHECKED_SIZE);
  const [made, applied] = ['bench_check_made', 'bench_check_applied'];
  await createEmpty(cluster, made);
  await createEmpty(cluster, applied);
  try {
    await withClient(cluster.url(made), (client) => fill(client, world));
    const store = await openStore({ place: { url: cluster.url(applied) } });
    try {
      const rowsOf = createRowWriter(world);
      for (let from = 0; from < world.size; from += 1_000) {
        const messages = Array.from(
          { length: 1_000 },
          (_, index) => JSON.parse(rowsOf(from + index).record) as Message,
        );
        await store.apply(messages.map((message) => ({ kind: 'Snapshot', message })));
      }
    } finally {
      await store.close();
    }
    await requireSameRows(cluster.url(made), cluster.url(applied));
  } finally {
    await dropDatabase(cluster, made);
    await dropDatabase(cluster, applied);
  }
}

/** Throws where a table of the databases differs but for the moments of writing. `made` is what the bench made. */
export async function requireSameRows(
  made: string,
  applied: string,
  ignored: readonly string[] = [],
): Promise<void> {
  const [one, other] = await Promise.all(
    [made, applied].map((url) => withClient(url, (client) => contents(client, ignored))),
  );
  for (const [table, rows] of one ?? []) {
    const difference = rows.findIndex((row, index) => row !== other?.get(table)?.[index]);
    if (difference === -1 && rows.length === other?.get(table)?.length) continue;
    throw new Error(
      `The bench would measure rows that the program does not make. ${table}, row ${difference} of ${rows.length}:\n` +
        `made    ${rows[difference]}\napplied ${other?.get(table)?.[difference]}`,
    );
  }
}

/** Every row of every table as text, but for the moments at which they were written. */
async function contents(
  client: pg.Client,
  ignored: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows: tables } = await client.query(
    `select tablename from pg_tables where schemaname = 'public' and tablename <> all($1) order by 1`,
    [['migration', 'cursor_key', ...ignored]],
  );
  const all = new Map<string, readonly string[]>();
  for (const { tablename } of tables) {
    const { rows } = await client.query(
      `select (to_jsonb(t) - 'recorded_at' - 'created_at' - 'removed_at' - 'id')::text as row from ${tablename} t order by 1`,
    );
    all.set(tablename, rows.map(({ row }) => row.replace(/"histogram": \[([^\]]*)\]/, inBucketOrder)).sort());
  }
  return all;
}

/** A histogram lists its buckets in the order in which they first came up, which means nothing. */
function inBucketOrder(_text: string, list: string): string {
  const pairs = list.match(/\d+, \d+/g) ?? [];
  return `"histogram": [${pairs.sort().join(', ')}]`;
}
