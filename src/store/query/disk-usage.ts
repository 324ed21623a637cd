/**
 * Disk usage: the bytes of the store by table, and a forecast of its growth from the pace at which messages came.
 *
 * Nothing here reads more as the store grows, but for the logarithm of the history: sizes are from the catalogs, counts from
 * the statistics, and the position of a time is found by binary search.
 */
import { statfs } from 'node:fs/promises';
import { distributedTables } from '../cluster/layout.ts';
import type { ClusterStatus } from '../cluster/workers.ts';
import type { Read } from '../reads/reads.ts';
import { tables } from '../schema/tables.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A week has its quiet and its busy days, so that a shorter span says less. */
const SPAN_DAYS = 7;
/** A shorter history is mostly chance. */
const MIN_SPAN_MS = HOUR_MS;
/** An empty store takes 1 MB, mostly first pages of indexes. At so many messages that is a fifth of the whole, and it shrinks. */
const MIN_MESSAGES = 1_000;
/** Messages that were recorded so many times as fast as they are sent come from history, not from the present. */
const LOAD_FACTOR = 2;

export interface TableBytes {
  readonly table: string;
  readonly heap: number;
  readonly indexes: number;
  /** Long values outside of their rows, and the maps of free space. */
  readonly toast: number;
}

export interface Pace {
  readonly messagesPerDay: number;
  /** Null while the size of a message is unknown. */
  readonly bytesPerDay: number | null;
  /** The time over which it was measured. */
  readonly spanMs: number;
}

export interface Growth {
  /** With facts, history and indexes; null while there are too few messages to tell. */
  readonly bytesPerMessage: number | null;
  /** As messages were recorded lately; null with less than an hour of history. */
  readonly recorded: Pace | null;
  /** As they were sent in the last whole days (UTC); null where none is covered. */
  readonly sent: Pace | null;
  /** Whether what was recorded lately is a load of history, whose pace says nothing about the time after it. */
  readonly isLoad: boolean;
  /** The one of the two that is expected to go on; null where it is unknown. */
  readonly expected: Pace | null;
}

export interface DiskUsage {
  /** The whole database, on all nodes of a cluster; null while a worker is away. */
  readonly databaseBytes: number | null;
  /** Our tables, on all nodes of a cluster. */
  readonly tables: readonly TableBytes[];
  readonly messages: number;
  readonly growth: Growth;
  /** Of an embedded server; null for another one, whose disk cannot be seen from here. */
  readonly disk: { readonly freeBytes: number; readonly walBytes: number } | null;
}

export interface DiskPlace {
  /** Whether the server is on this machine, and ours. */
  readonly isEmbedded: boolean;
  /** Undefined for a store on one node. */
  readonly cluster: ClusterStatus | undefined;
}

export async function readDiskUsage(read: Read, { isEmbedded, cluster }: DiskPlace): Promise<DiskUsage> {
  const [database] = await read<{ bytes: number }>(
    'select pg_database_size(current_database())::float8 as bytes',
    [],
  );
  const workerBytes = (cluster?.workers ?? []).map(({ bytes }) => bytes);
  const local = cluster === undefined ? tables : tables.filter((table) => !isDistributed(table));
  const sizes = [
    ...(await read<TableBytes>(LOCAL_SIZES, [local])),
    ...(cluster === undefined ? [] : await read<TableBytes>(DISTRIBUTED_SIZES, [distributedTables])),
  ];
  const storeBytes = sizes.reduce((sum, { heap, indexes, toast }) => sum + heap + indexes + toast, 0);
  const observed = await readObservedMessages(read);
  return {
    databaseBytes: workerBytes.includes(null)
      ? null
      : workerBytes.reduce<number>((sum, bytes) => sum + (bytes ?? 0), database?.bytes ?? 0),
    tables: sizes,
    messages: observed.messages,
    growth: growthOf({ ...observed, storeBytes }),
    disk: isEmbedded ? await readDisk(read) : null,
  };
}

/** How long the free space lasts; infinite while nothing is added, null where that is unknown. */
export function daysLeft({ freeBytes }: { readonly freeBytes: number }, pace: Pace | null): number | null {
  const bytesPerDay = pace?.bytesPerDay ?? null;
  return bytesPerDay === null ? null : freeBytes / bytesPerDay;
}

// ---- Sizes

function isDistributed(table: string): boolean {
  return (distributedTables as readonly string[]).includes(table);
}

const LOCAL_SIZES = `select name as table, pg_relation_size(id)::float8 as heap,
    pg_indexes_size(id)::float8 as indexes, (pg_table_size(id) - pg_relation_size(id))::float8 as toast
  from (select name, to_regclass(name) as id from unnest($1::text[]) as ours (name)) known where id is not null`;

/** The same from all shards. */
const DISTRIBUTED_SIZES = `select name as table, citus_relation_size(id)::float8 as heap,
    (citus_total_relation_size(id) - citus_table_size(id))::float8 as indexes,
    (citus_table_size(id) - citus_relation_size(id))::float8 as toast
  from (select name, to_regclass(name) as id from unnest($1::text[]) as ours (name)) known where id is not null`;

/** Needs the rights of a superuser, which our role has on an embedded server. */
async function readDisk(read: Read): Promise<DiskUsage['disk']> {
  const [server] = await read<{ folder: string; walBytes: number }>(
    `select current_setting('data_directory') as folder,
            (select coalesce(sum(size), 0) from pg_ls_waldir())::float8 as "walBytes"`,
    [],
  );
  if (server === undefined) return null;
  const { bavail, bsize } = await statfs(server.folder);
  return { freeBytes: bavail * bsize, walBytes: server.walBytes };
}

// ---- Growth

/** What the store knows of the messages that came. */
export interface ObservedMessages {
  readonly messages: number;
  /** Changes of messages since the store was made, of which each message has several. */
  readonly changes: number;
  /** Those of them in the latest `spanMs`, and that time; null without any change. */
  readonly latest: { readonly changes: number; readonly spanMs: number } | null;
  /** Messages that were sent on so many whole days before today. */
  readonly sent: { readonly messages: number; readonly days: number };
  /** Whether an indexer still has history to read. */
  readonly isReadingHistory: boolean;
}

async function readObservedMessages(read: Read): Promise<ObservedMessages> {
  // The first day with a message is seldom whole: for a store that began with the head, it is the day of its start.
  const [row] = await read<{
    messages: number;
    position: number;
    now: Date;
    sent: number;
    days: number;
    isReadingHistory: boolean;
  }>(
    `with day as (select (clock_timestamp() at time zone 'UTC')::date as today, (select min(day) from day_total) as first),
     span as (select today, case when first is not null then greatest(first + 1, today - ${SPAN_DAYS}) end as since from day)
     select (select coalesce(sum(messages), 0) from lane_total)::float8 as messages,
            (select position from store)::float8 as position, clock_timestamp() as now,
            (select coalesce(sum(messages), 0) from day_total where day >= since and day < today)::float8 as sent,
            greatest(0, coalesce(today - since, 0)) as days,
            exists (select from network_progress where owed_blocks > 0) as "isReadingHistory"
     from span`,
    [],
  );
  if (row === undefined) throw new Error('The statistics have no row');
  const { messages, position, now, sent, days, isReadingHistory } = row;
  return {
    messages,
    changes: position,
    latest: await readLatestChanges(read, position, now),
    sent: { messages: sent, days },
    isReadingHistory,
  };
}

async function readLatestChanges(read: Read, last: number, now: Date): Promise<ObservedMessages['latest']> {
  const first = await readChangeFrom(read, 0);
  if (first === undefined) return null;
  const since = Math.max(first.recordedAt.getTime(), now.getTime() - SPAN_DAYS * DAY_MS);
  // The first position that was recorded since then. A clock that was set back moves the result by what it was set back.
  let [low, high] = [first.position, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const change = await readChangeFrom(read, middle);
    if (change === undefined || change.recordedAt.getTime() >= since) high = middle;
    else low = change.position + 1;
  }
  return { changes: Math.max(0, last + 1 - low), spanMs: now.getTime() - since };
}

/** The first change at or after a position: one row of the index. */
async function readChangeFrom(read: Read, position: number) {
  const [change] = await read<{ position: number; recordedAt: Date }>(
    `select h.position::float8 as position, h.recorded_at as "recordedAt" from history h
     where h.position >= $1 order by h.position limit 1`,
    [position],
  );
  return change;
}

export function growthOf(observed: ObservedMessages & { readonly storeBytes: number }): Growth {
  const { messages, changes, latest, sent, isReadingHistory, storeBytes } = observed;
  const bytesPerMessage = messages < MIN_MESSAGES ? null : storeBytes / messages;
  const paceOf = (count: number, spanMs: number): Pace => {
    const messagesPerDay = (count * DAY_MS) / spanMs;
    return {
      messagesPerDay,
      bytesPerDay: bytesPerMessage === null ? null : messagesPerDay * bytesPerMessage,
      spanMs,
    };
  };
  // A change is counted as its share of a message, because a message grows with each of its changes.
  const recorded =
    latest === null || latest.spanMs < MIN_SPAN_MS
      ? null
      : paceOf(changes === 0 ? 0 : (latest.changes / changes) * messages, latest.spanMs);
  const sentPace = sent.days === 0 ? null : paceOf(sent.messages, sent.days * DAY_MS);
  const isFasterThanSent =
    recorded !== null && sentPace !== null && recorded.messagesPerDay > LOAD_FACTOR * sentPace.messagesPerDay;
  const isLoad = isReadingHistory || isFasterThanSent;
  return { bytesPerMessage, recorded, sent: sentPace, isLoad, expected: isLoad ? sentPace : recorded };
}
