/**
 * Messages that have had their whole lives, written in bulk: the store in which the lives of the benchmark begin.
 *
 * Processes compute the rows of chunks (`settled-rows.ts`) and copy them, one chunk after the other, into tables without
 * indexes; then come the indexes, the statistics and a vacuum. A chunk is one transaction, so that what is interrupted goes on. The lives of a chunk end before
 * those of the next begin. Everything else is as the writer leaves it, which a small store written both ways shows first.
 *
 * Indexes are built from rows in their final order, and no row has been updated: both are packed, which they are not after
 * a life.
 */
import type pg from 'pg';
import { openStore } from '../../src/store/store.ts';
import { startWorker, type Worker } from '../child.ts';
import {
  type Cluster,
  createEmpty,
  dropDatabase,
  fillStatistics,
  indexesOf,
  openClient,
  readMark,
  requireDiskSpace,
  requireSameRows,
  withClient,
} from '../data/database.ts';
import { lanes, WORLD_VERSION } from '../data/world.ts';
import { createLives, type Lives, type Member, type ProtocolVersion } from './lives.ts';
import { type Counters, readCounters } from './measurement.ts';
import type { Chunk, SettledOrder } from './settled-worker.ts';
import { createTimeline, stateAt } from './timeline.ts';
import { createWriter } from './writer.ts';

/** Measured, with 800 for a while: the log, and what is sorted for the indexes. */
const BYTES_A_MESSAGE: Readonly<Record<ProtocolVersion | 'all', number>> = {
  '1.5.0': 6_500,
  '1.6.0': 6_400,
  '2.0.0': 14_200,
  all: 8_300,
};
/** Larger ones only take more memory. */
const CHUNK = 2_000;
/** They compute and PostgreSQL copies: more of them than cores would wait for each other. */
const PROCESSES = 2;
/** Indexes of one table that are built at the same time share a scan of it, which counts where the table exceeds the memory. */
const INDEX_BUILDERS = 4;
/** Rows of a chunk are collected before they are written, which is too much for the youngest generation of the usual size. */
const WORKER_ARGUMENTS = ['--max-semi-space-size=64'];
/**
 * Among these are lives of all kinds: of each version some that were sent, committed and executed again in another block, and
 * with one to six attempts.
 */
const CHECKED = { from: 12_000, to: 13_200, chunkSize: 600 };
const CHECKED_WORLD = 100_000;

const filledTables = [
  'message',
  'message_token',
  'fact',
  'lane_fact',
  'root_blessing',
  'removed_attempt',
  'history',
];

export interface SettledSettings {
  /** The first of the world's messages. */
  readonly settled: number;
  /** Of the whole world. */
  readonly messages: number;
  readonly version?: ProtocolVersion | undefined;
}

/** The messages of the world that are settled. */
interface Extent {
  readonly from: number;
  readonly to: number;
  readonly chunkSize: number;
}

export interface SettledOptions extends SettledSettings {
  readonly isStopping?: () => boolean;
  /** Called with the number of messages that are written. */
  readonly onSettled?: (messages: number) => void;
}

export interface SettledStore {
  /** Counters of the empty store. */
  readonly first: Counters;
  /** What it took, in all runs. */
  readonly seconds: number;
}

/** The database with its settled messages, as a run before left it or made now; undefined where the run is stopped. */
export async function openSettled(
  cluster: Cluster,
  name: string,
  options: SettledOptions,
): Promise<SettledStore | undefined> {
  const { settled, messages, version } = options;
  const url = cluster.url(name);
  const world = JSON.stringify({ settled, messages, version, world: WORLD_VERSION });
  const begun = await readWorld(cluster, name);
  if (begun === undefined) {
    await requireDiskSpace(
      cluster,
      settled * BYTES_A_MESSAGE[version ?? 'all'],
      `${settled.toLocaleString('en')} messages`,
    );
    await checkAgainstWriter(cluster, version);
    await begin(cluster, name, world);
  } else if (begun !== world) {
    throw new Error(
      `The data folder has settled messages of another run: ${begun} instead of ${world}. Choose another --data.`,
    );
  }
  return withClient(url, async (client) => {
    const began = performance.now();
    const extent = { from: 0, to: settled, chunkSize: CHUNK };
    const isWhole = await fill(client, url, createLives(messages, version), extent, options);
    await client.query('update bench.fill set seconds = seconds + $1', [(performance.now() - began) / 1000]);
    if (!isWhole) return undefined;
    const { rows } = await client.query<SettledStore>('select first, seconds from bench.fill');
    return rows[0];
  });
}

/** The last sequence numbers of the lanes after messages were sent; numbers each of them. */
export function numberMessages(
  lives: Lives,
  { from, to, sequences }: Chunk,
  onSent?: (member: Member) => void,
): readonly number[] {
  const last = [...sequences];
  for (let n = from; n < to; n++) {
    const lane = lives.laneOf(n).number;
    const sequence = (last[lane] ?? 0) + 1;
    last[lane] = sequence;
    onSent?.({ n, sequence });
  }
  return last;
}

/** All messages up to one, as a chunk. */
export function messagesBefore(to: number): Chunk {
  return { from: 0, to, sequences: lanes.map(() => 0) };
}

// ---- The stages. What is outside of the measured schema says how far they are.

type Stage = 'rows' | 'counted' | 'whole';

async function readWorld(cluster: Cluster, name: string): Promise<string | undefined> {
  if ((await readMark(cluster.url('postgres'), name)) === undefined) return undefined;
  return withClient(cluster.url(name), async (client) => {
    const { rows: found } = await client.query(`select to_regclass('bench.fill') is not null as is_there`);
    if (!found[0].is_there) return undefined;
    const { rows } = await client.query('select world from bench.fill');
    return rows[0]?.world;
  });
}

async function begin(cluster: Cluster, name: string, world: string): Promise<void> {
  await createEmpty(cluster, name);
  await withClient(cluster.url(name), async (client) => {
    const first = await readCounters(client);
    const indexes = await indexesOf(client, filledTables);
    await client.query(`begin; create schema bench;
      create table bench.fill (
        world text not null, stage text not null, first json not null, seconds float8 not null, written integer not null);
      create table bench.missing_index (place integer primary key, definition text not null)`);
    for (const [place, { drop, create }] of indexes.entries()) {
      await client.query('insert into bench.missing_index values ($1, $2)', [place, create]);
      await client.query(drop);
    }
    await client.query(`insert into bench.fill values ($1, 'rows', $2, 0, 0)`, [
      world,
      JSON.stringify(first),
    ]);
    await client.query('commit');
  });
}

/** Whether everything is written; false where it is stopped before. */
async function fill(
  client: pg.Client,
  url: string,
  lives: Lives,
  extent: Extent,
  options: Omit<SettledOptions, 'settled'>,
): Promise<boolean> {
  const stageOf = async () =>
    (await client.query<{ stage: Stage }>('select stage from bench.fill')).rows[0]?.stage;
  if ((await stageOf()) === 'rows') {
    if (!(await timed('rows', () => fillRows(client, url, lives, extent, options)))) return false;
    if (!(await timed('indexes', () => buildIndexes(client, url, options)))) return false;
    await timed('statistics', () => finish(client));
  }
  if ((await stageOf()) === 'counted') {
    await timed('vacuum', () => client.query('vacuum analyze'));
    await client.query(`checkpoint; update bench.fill set stage = 'whole'`);
  }
  return true;
}

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  const seconds = (performance.now() - began) / 1000;
  if (seconds >= 10) console.error(`  ${what}: ${Math.round(seconds)} s`);
  return result;
}

async function fillRows(
  client: pg.Client,
  url: string,
  lives: Lives,
  extent: Extent,
  { messages, version, isStopping = () => false, onSettled }: Omit<SettledOptions, 'settled'>,
): Promise<boolean> {
  const { rows } = await client.query<{ written: number }>('select written from bench.fill');
  const chunks = chunksOf(lives, extent, rows[0]?.written);
  /** Chunks are computed at the same time, and written one after the other. */
  let written = Promise.resolve();
  const work = async (worker: Worker<SettledOrder, void>): Promise<void> => {
    while (!isStopping()) {
      const { value: chunk } = chunks.next();
      if (!chunk) return;
      const before = written;
      const computed = worker.run({ kind: 'compute', url, messages, version, chunk });
      written = Promise.all([before, computed]).then(() => worker.run({ kind: 'write' }));
      await written;
      onSettled?.(chunk.to - extent.from);
    }
  };
  const workers = Array.from({ length: PROCESSES }, () =>
    startWorker<SettledOrder, void>('./life/settled-worker.ts', { nodeArgs: WORKER_ARGUMENTS }),
  );
  try {
    await Promise.all(workers.map(work));
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
  }
  return chunks.next().done === true;
}

/** Those after `written`, all chunks before which are written. */
function* chunksOf(
  lives: Lives,
  { from: first, to: end, chunkSize }: Extent,
  written = first,
): Generator<Chunk, undefined> {
  let { sequences } = messagesBefore(0);
  for (let from = first; from < end; from += chunkSize) {
    const chunk = { from, to: Math.min(end, from + chunkSize), sequences };
    sequences = numberMessages(lives, chunk);
    if (from >= written) yield chunk;
  }
}

async function buildIndexes(
  client: pg.Client,
  url: string,
  { isStopping = () => false }: Pick<SettledOptions, 'isStopping'>,
): Promise<boolean> {
  // Constraints first: they lock the table, the others do not.
  const { rows: missing } = await client.query(
    `select place, definition from bench.missing_index order by definition not like 'alter table%', place`,
  );
  const builders = Array.from({ length: INDEX_BUILDERS }, async () => {
    const builder = await openClient(url);
    try {
      await builder.query(`set maintenance_work_mem = '512MB'; set max_parallel_maintenance_workers = 0`);
      for (let index = missing.shift(); index && !isStopping(); index = missing.shift()) {
        await builder.query(`begin; ${index.definition}`);
        await builder.query('delete from bench.missing_index where place = $1', [index.place]);
        await builder.query('commit');
      }
    } finally {
      await builder.end();
    }
  });
  await Promise.all(builders);
  return !isStopping();
}

/** What is counted over all messages, in one transaction. */
async function finish(client: pg.Client): Promise<void> {
  await client.query('begin');
  await fillStatistics(client);
  await client.query('update store_revision set revision = (select position from store)');
  await client.query(`update bench.fill set stage = 'counted'`);
  await client.query('commit');
}

// ---- The check

/** A small store written both ways must have the same rows in every table. */
async function checkAgainstWriter(cluster: Cluster, version: ProtocolVersion | undefined): Promise<void> {
  const [made, written] = ['bench_check_made', 'bench_check_written'];
  const messages = CHECKED_WORLD;
  const lives = createLives(messages, version);
  try {
    await begin(cluster, made, '');
    const url = cluster.url(made);
    await withClient(url, (client) => fill(client, url, lives, CHECKED, { messages, version }));
    await createEmpty(cluster, written);
    const store = await openStore({ place: { url: cluster.url(written) } });
    try {
      const writer = createWriter(store);
      for (const { from, to, sequences } of chunksOf(lives, CHECKED)) {
        const timeline = createTimeline(lives, stateAt(from, sequences), { end: to });
        for (let steps = timeline.next(); steps; steps = timeline.next())
          for (const step of steps) await writer.write(step, timeline.at);
      }
    } finally {
      await store.close();
    }
    // Leases are of processes, and the revision counts transactions.
    await requireSameRows(url, cluster.url(written), ['index_network', 'store_revision']);
  } finally {
    await dropDatabase(cluster, made);
    await dropDatabase(cluster, written);
  }
}
