/**
 * The conversion of an older store to the compact tables: how long it takes, what disk it needs, and what a reader of the
 * earlier release notices.
 *
 *     npm run bench:conversion                                       # 20,000 messages that were indexed
 *     npm run bench:conversion -- --messages 1000000 --data /var/tmp/bench-conversion
 *
 * A store of settled messages (`life/settled.ts`) is written as releases of schema 21 had it, row by row. The conversion of that
 * store is interrupted in the middle of its facts, and continued; meanwhile a reader asks for newest pages. In the end every
 * table must have the same rows as the store that it was made from.
 */
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import type pg from 'pg';
import { migrate } from '../src/store/schema/migrate.ts';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { dataTables } from '../test/database.ts';
import { makeOldStore } from '../test/upgrade/old-store.ts';
import { parseCount } from './arguments.ts';
import { type Cluster, clusterOf, dropDatabase, openClient, withClient } from './data/database.ts';
import { type ProtocolVersion, protocolVersions } from './life/lives.ts';
import { openSettled } from './life/settled.ts';
import { readRelations } from './measurements/disk.ts';
import { machineFacts, measuredOn, writeResults } from './results-file.ts';

const given = new Command('npm run bench:conversion --')
  .description('How long does the conversion of an older store take?')
  .option('--messages <number>', 'indexed messages', parseCount, 20_000)
  .addOption(new Option('--protocol <version>', 'the version of all messages').choices(protocolVersions))
  .option('--data <folder>', 'keep the messages there, to be converted again')
  .option('--no-write', 'do not write bench/results/conversion.json')
  .showHelpAfterError('Try: npm run bench:conversion -- --help')
  .parse()
  .opts<{ messages: number; protocol?: ProtocolVersion; data?: string; write: boolean }>();

const [MADE, OLD] = ['bench_conversion_made', 'bench_conversion_old'];
const NEWEST = 'select record from message order by sent_at desc, message_id desc limit 21';
const READ_INTERVAL_MS = 200;
const INTERRUPTED_AT = /^Converting fact: [3-9]\d%/;

const dataFolder = path.resolve(given.data ?? (await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'))));
mkdirSync(dataFolder, { recursive: true });
const embedded = await openEmbedded({ dataFolder });
try {
  const cluster = clusterOf(embedded);
  const world = { settled: given.messages, messages: given.messages, version: given.protocol };
  await openSettled(cluster, MADE, world);
  console.error('Writing them as schema 21 had them');
  await makeOld(cluster);
  const { phases, ...result } = await convert(cluster);
  await requireSame(cluster);
  console.table(result);
  console.table(phases);
  if (given.write)
    writeResults('conversion', {
      date: measuredOn(),
      machine: machineFacts(),
      ...{ messages: given.messages, version: given.protocol },
      ...result,
      phases,
    });
  await dropDatabase(cluster, OLD);
} finally {
  await embedded.leave();
  if (given.data === undefined) await rm(dataFolder, { recursive: true, force: true });
}

async function makeOld(cluster: Cluster): Promise<void> {
  await dropDatabase(cluster, OLD);
  await withClient(cluster.url('postgres'), (client) => client.query(`create database ${OLD}`));
  await withClient(cluster.url(MADE), (from) =>
    withClient(cluster.url(OLD), async (to) => {
      await makeOldStore(from, to);
      await to.query('vacuum analyze');
      await to.query('checkpoint');
    }),
  );
}

async function convert(cluster: Cluster) {
  const url = cluster.url(OLD);
  const bytesBefore = await withClient(url, sizeOf);
  const reader = startReader(url);
  const phases: Record<string, number> = {};
  let phase = 'begin';
  let [began, phaseBegan] = [performance.now(), performance.now()];
  let bytesAtMost = bytesBefore;
  const enter = (next: string): void => {
    const now = performance.now();
    phases[phase] = Math.round(((phases[phase] ?? 0) * 1000 + now - phaseBegan) / 1000);
    [phase, phaseBegan] = [next, now];
  };
  /** Whether it came to its end. */
  const run = async (isInterrupted: boolean): Promise<boolean> => {
    const stop = new AbortController();
    const client = await openClient(url);
    try {
      await migrate(client, {
        signal: stop.signal,
        writeLog(line) {
          console.error(`  ${line}`);
          if (isInterrupted && INTERRUPTED_AT.test(line)) stop.abort(new Error('interrupted'));
          if (!/\d%/.test(line)) enter(line);
        },
      });
      return true;
    } catch (error) {
      if (stop.signal.aborted) return false;
      throw error;
    } finally {
      await client.end();
    }
  };
  const watching = setInterval(async () => {
    const bytes = await withClient(cluster.url('postgres'), async (client) => {
      const { rows } = await client.query('select pg_database_size($1)::float8 as bytes', [OLD]);
      return rows[0].bytes as number;
    }).catch(() => 0);
    bytesAtMost = Math.max(bytesAtMost, bytes);
  }, 1_000);
  const wasInterrupted = !(await run(true));
  if (wasInterrupted) await run(false);
  enter('end');
  clearInterval(watching);
  const seconds = Math.round((performance.now() - began) / 1000);
  const read = await reader.stop();
  const bytesAfter = await withClient(url, sizeOf);
  return {
    seconds,
    wasInterrupted,
    bytesBefore,
    bytesAtMost,
    bytesAfter,
    ...read,
    phases: JSON.stringify(phases),
  };
}

async function sizeOf(client: pg.ClientBase): Promise<number> {
  return (await readRelations(client)).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Asks for the newest page again and again, as a server of the earlier release does, until its tables are gone. */
function startReader(url: string) {
  let isStopped = false;
  let [reads, longestMs] = [0, 0];
  const reading = withClient(url, async (client) => {
    while (!isStopped) {
      const began = performance.now();
      await client.query(NEWEST);
      const tookMs = Math.round(performance.now() - began);
      const { rows } = await client.query(`select to_regclass('history_attempt') is not null as are_old`);
      // The new tables have no index for this statement.
      if (!rows[0].are_old) return;
      longestMs = Math.max(longestMs, tookMs);
      reads++;
      await delay(READ_INTERVAL_MS);
    }
  });
  // A failed read fails the benchmark when the reader is stopped.
  reading.catch(() => undefined);
  return {
    async stop() {
      isStopped = true;
      await reading;
      return { reads, longestReadMs: longestMs };
    },
  };
}

/** Counts and sums of hashes: a row that is missing, doubled or different changes them. */
async function requireSame(cluster: Cluster): Promise<void> {
  const digests = (name: string) =>
    withClient(cluster.url(name), async (client) => {
      const found = new Map<string, string>();
      for (const table of await dataTables(client)) {
        const { rows } = await client.query(
          `select count(*) || ' rows, ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) as digest from ${table} t`,
        );
        found.set(table, rows[0].digest);
      }
      return found;
    });
  const [made, converted] = [await digests(MADE), await digests(OLD)];
  for (const [table, digest] of made)
    if (converted.get(table) !== digest)
      throw new Error(
        `After the conversion, ${table} has other rows: ${converted.get(table)} instead of ${digest}.`,
      );
}
