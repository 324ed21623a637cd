/** What a life costs up to a moment: disk, dead rows, WAL, writes, searches and memory. */
import type pg from 'pg';
import { type DiskUse, readWalPosition } from '../measurements/disk.ts';
import type { SearchTimes } from './searches.ts';

/** Counters of the server since it was created, of which the measurements have the differences. */
export interface Counters {
  readonly walBytes: number;
  readonly rowsWritten: number;
  readonly rowsUpdated: number;
  readonly hotUpdates: number;
  readonly pagesCached: number;
  readonly pagesRead: number;
}

export interface TableState {
  readonly name: string;
  readonly liveRows: number;
  readonly deadRows: number;
  /** Since the store was created, as are the next two. */
  readonly autovacuums: number;
  readonly updates: number;
  readonly hotUpdates: number;
  /** Of a table's bytes, what dead rows and free space take; null without pgstattuple. */
  readonly unusedShare: number | null;
}

export interface Measurement {
  /** Months of 30 days; 0 before the first life, where messages were settled before; null at the end. */
  readonly month: number | null;
  readonly messages: number;
  readonly seconds: number;
  readonly disk: DiskUse;
  readonly tables: readonly TableState[];
  /** Of a B-tree's leaf pages, what is in use; none without pgstattuple. */
  readonly leafDensity: Readonly<Record<string, number>>;
  /** Since the measurement before. */
  readonly since: {
    readonly messages: number;
    readonly walBytesPerMessage: number;
    readonly rowsWrittenPerMessage: number;
    readonly hotShare: number;
    readonly cacheHitShare: number;
    readonly messagesPerSecond: number;
  };
  readonly whileWriting: boolean;
  readonly searches: SearchTimes;
  readonly residentMebibytes: number;
}

/** Smaller relations say nothing about bloat. */
const MIN_INSPECTED_BYTES = 1_000_000;

export async function readCounters(client: pg.ClientBase): Promise<Counters> {
  const { rows } = await client.query<Omit<Counters, 'walBytes'>>(
    `select (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables)::float8 as "rowsWritten",
            (select sum(n_tup_upd) from pg_stat_user_tables)::float8 as "rowsUpdated",
            (select sum(n_tup_hot_upd) from pg_stat_user_tables)::float8 as "hotUpdates",
            blks_hit::float8 as "pagesCached", blks_read::float8 as "pagesRead"
     from pg_stat_database where datname = current_database()`,
  );
  const [counted] = rows;
  if (!counted) throw new Error('The server has no statistics of this database.');
  return { ...counted, walBytes: await readWalPosition(client) };
}

/** Makes pgstattuple available where the server has it, outside the schema that is measured. */
export async function prepareInspection(client: pg.ClientBase): Promise<boolean> {
  const { rowCount } = await client.query(`select from pg_available_extensions where name = 'pgstattuple'`);
  if (rowCount === 0) return false;
  await client.query(
    'create schema if not exists bench; create extension if not exists pgstattuple schema bench',
  );
  return true;
}

/** Live and dead rows of each table, and how much of tables and indexes is in use. */
export async function readBloat(
  client: pg.ClientBase,
  isInspectable: boolean,
): Promise<Pick<Measurement, 'tables' | 'leafDensity'>> {
  const { rows } = await client.query(
    `select relid::int as oid, relname as name, n_live_tup::float8 as "liveRows", n_dead_tup::float8 as "deadRows",
            autovacuum_count::int as autovacuums, n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as "hotUpdates",
            pg_relation_size(relid)::float8 as bytes
     from pg_stat_user_tables where schemaname = 'public' order by bytes desc`,
  );
  const tables: TableState[] = [];
  for (const { oid, bytes, ...table } of rows) {
    const isInspected = isInspectable && bytes >= MIN_INSPECTED_BYTES;
    tables.push({ ...table, unusedShare: isInspected ? await readUnusedShare(client, oid) : null });
  }
  return { tables, leafDensity: isInspectable ? await readLeafDensity(client) : {} };
}

async function readUnusedShare(client: pg.ClientBase, table: number): Promise<number> {
  const { rows } = await client.query(
    `select (dead_tuple_len + approx_free_space) / table_len::float8 as share from bench.pgstattuple_approx($1::oid)`,
    [table],
  );
  return Number(rows[0].share.toFixed(3));
}

async function readLeafDensity(client: pg.ClientBase): Promise<Readonly<Record<string, number>>> {
  const { rows } = await client.query(
    `select c.relname as name, (bench.pgstatindex(c.oid)).avg_leaf_density / 100 as density
     from pg_class c join pg_am a on a.oid = c.relam
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'i' and a.amname = 'btree'
       and pg_relation_size(c.oid) >= $1`,
    [MIN_INSPECTED_BYTES],
  );
  return Object.fromEntries(rows.map(({ name, density }) => [name, Number(density.toFixed(3))]));
}

/** What a part of the run came to. */
export interface Stretch {
  readonly messages: number;
  readonly seconds: number;
  readonly from: Counters;
  readonly to: Counters;
}

export function summarise({ messages, seconds, from, to }: Stretch): Measurement['since'] {
  const grown = (counter: keyof Counters) => to[counter] - from[counter];
  const pages = grown('pagesCached') + grown('pagesRead');
  const share = (part: number, whole: number) => (whole === 0 ? 0 : Number((part / whole).toFixed(4)));
  return {
    messages,
    walBytesPerMessage: Math.round(grown('walBytes') / messages),
    rowsWrittenPerMessage: Number((grown('rowsWritten') / messages).toFixed(1)),
    hotShare: share(grown('hotUpdates'), grown('rowsUpdated')),
    cacheHitShare: share(grown('pagesCached'), pages),
    messagesPerSecond: Math.round(messages / seconds),
  };
}
