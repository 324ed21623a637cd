// @module-tag slow: stops and recovers databases many times
/**
 * The end of PostgreSQL's log is gone, as a loss of power leaves it: what was on disk before is there, the history has no
 * gap, the statistics are right, and importing again brings the rest.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { statusRank } from '../../src/domain/lifecycle.ts';
import { createDerivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { buildProgram, runProgram, start } from '../cli/program.ts';
import { connectTo } from '../postgres.ts';
import { type Archive, problemsOf, temporaryFolder, writeArchive } from './deployment.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const FILES = 16;
/** The checkpoint comes behind so many files, and behind so many nothing is damaged. */
const CHECKPOINT_BEHIND = 4;
const SAFE = 7;
const SEGMENT_BYTES = 16 * 1024 * 1024;

/** How the log comes out of it: shorter, blank from somewhere on, or with other things in it. */
const damages: Readonly<Record<string, (length: number, randomness: Randomness) => Buffer | undefined>> = {
  'cut off': () => undefined,
  blank: (length) => Buffer.alloc(length),
  garbled: (length, randomness) => Buffer.from(Array.from({ length }, () => randomness.integer(0, 255))),
};
const cases = Object.keys(damages).flatMap((damage) =>
  Array.from({ length: isFull ? 15 : 1 }, (_, index) => ({ damage, seed: String(index + 1) })),
);

let folder: string;
let archive: Archive;
/** Of the log, in bytes since its beginning: what is safe, and where it ends. */
let safeEnd: number;
let end: number;

beforeAll(async () => {
  await buildProgram();
  folder = await temporaryFolder(afterAll);
  archive = await writeArchive(folder, FILES, 40);
  const dataFolder = path.join(folder, 'data');
  const server = start(['serve', '--port', '0', '--data', dataFolder]);
  await server.untilSaid(/listens on/);
  // By URL, not by the folder: a member would start the killed database again.
  const url = `postgresql:///lanescan?host=${encodeURIComponent(path.join(dataFolder, 'postgres'))}&user=lanescan`;
  const store = await openStore({ place: { url } });
  const client = await connectTo(url);
  // Pages go to disk only behind the log that speaks of them; we shorten the log, so no page may have gone.
  await client.query('alter system set bgwriter_lru_maxpages = 0');
  await client.query('select pg_reload_conf()');
  await importFiles(store, archive.files.slice(0, CHECKPOINT_BEHIND));
  await client.query('checkpoint');
  await importFiles(store, archive.files.slice(CHECKPOINT_BEHIND, SAFE));
  safeEnd = await endOfLog(client);
  await importFiles(store, archive.files.slice(SAFE));
  end = await endOfLog(client);
  await client.end();
  await store.close();
  server.child.kill('SIGKILL');
  await server.outcome;
  const record = readFileSync(path.join(dataFolder, 'postgres/postmaster.pid'), 'utf8');
  process.kill(Number(record.split('\n')[0]), 'SIGKILL');
  // Its helpers notice, and go.
  await delay(500);
}, 300_000);

async function importFiles(store: Store, files: readonly string[]): Promise<void> {
  for (const file of files) {
    const records = archive.records.get(file) ?? [];
    await store.apply(records.map((message) => ({ kind: 'Snapshot', message })));
  }
}

async function endOfLog(client: pg.Client): Promise<number> {
  const { rows } = await client.query(`select pg_current_wal_flush_lsn() - '0/0' as bytes`);
  return Number(rows[0].bytes);
}

/** Damages everything behind a position of the log. */
async function damageLog(
  cluster: string,
  from: number,
  damage: string,
  randomness: Randomness,
): Promise<void> {
  const make = damages[damage];
  for (let at = from; ; at = (Math.floor(at / SEGMENT_BYTES) + 1) * SEGMENT_BYTES) {
    const number = Math.floor(at / SEGMENT_BYTES);
    const name = [1, number >> 8, number & 255].map((part) =>
      part.toString(16).toUpperCase().padStart(8, '0'),
    );
    const file = path.join(cluster, 'pg_wal', name.join(''));
    if (!existsSync(file)) return;
    const offset = at % SEGMENT_BYTES;
    const bytes = make?.(Math.min(SEGMENT_BYTES - offset, end - from + 8_192), randomness);
    if (!bytes && offset === 0) {
      await rm(file);
      continue;
    }
    const handle = await open(file, 'r+');
    if (bytes) await handle.write(bytes, 0, bytes.length, offset);
    else await handle.truncate(offset);
    await handle.close();
  }
}

/** What these files say, each message with the furthest status. */
function toldBy(files: readonly string[]): Map<string, number> {
  const told = new Map<string, number>();
  for (const { messageId, status } of files.flatMap((file) => archive.records.get(file) ?? [])) {
    told.set(messageId, Math.max(told.get(messageId) ?? 0, statusRank(status)));
  }
  return told;
}

describe('with the end of the log', () => {
  test.for(cases)('$damage (seed $seed)', async ({ damage, seed }) => {
    const randomness = createDerivation(seed).randomness(damage);
    const dataFolder = path.join(folder, `after-${damage}-${seed}`.replace(' ', '-'));
    // Owners and permissions stay as they are, which the copy of Node does not do.
    execFileSync('cp', ['-a', path.join(folder, 'data'), dataFolder]);
    onTestFinished(() => rm(dataFolder, { recursive: true, force: true }));
    const at = randomness.integer(safeEnd, end);
    await damageLog(path.join(dataFolder, 'postgres'), at, damage, randomness);

    expect(await problemsOf(dataFolder, toldBy(archive.files.slice(0, SAFE)))).toEqual([]);
    const again = await runProgram(['import', '--data', dataFolder, ...archive.files]);
    const problems = again.stderr.replace(/^\{"level":30,.*"msg":"(Starting|Waiting|Importing).*\n/gm, '');
    expect({ code: again.code, stderr: problems }).toEqual({
      code: 0,
      stderr: '',
    });
    const created = [...again.stdout.matchAll(/: ([\d,]+) new/g)].map(([, count]) =>
      Number(count?.replace(',', '')),
    );
    process.stderr.write(
      `power loss, log ${damage} ${end - at} bytes before its end: ${created.reduce((sum, count) => sum + count)} of ` +
        `${FILES * 40} messages were gone and came back\n`,
    );
    expect(await problemsOf(dataFolder, toldBy(archive.files))).toEqual([]);
  });
});
