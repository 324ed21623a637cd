/**
 * How near to the allowed rate does a mirror come, does it resume after a kill, and does its memory stay level?
 *
 *     npm run bench:mirror                                   # 20,000 records at 200 requests a second: two minutes
 *     npm run bench:mirror -- --records 1000000 --rate 50 --data /var/tmp/bench-mirror    # about 6 hours
 *     npm run bench:mirror -- --whole                        # a server with whole records in its lists, as a Lanescan
 *
 * The server is a process of its own with the shapes of the hosted API, 100 ms of latency and a rate limit. The mirror is
 * killed three times in the first eighth. In the end every record is compared with the server's. With --data the run can be
 * interrupted at any moment, and goes on when the same command is started again.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { wireRecord } from '../src/domain/message.ts';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { openStore } from '../src/store/store.ts';
import { parseCount } from './arguments.ts';
import { startWorker } from './child.ts';
import { clusterOf, createEmpty } from './data/database.ts';
import { type MemoryByQuarter, type MirrorEnd, readMemory, runMirror } from './mirror/mirror-process.ts';
import { recordOf } from './mirror/records.ts';
import type { SourceCounts, SourceOrder } from './mirror/source-server.ts';
import { writeParts } from './results-file.ts';

const DATABASE = 'bench_mirror';
/** Shares of the records after which the mirror is killed. The process that is left to its end has most of them. */
const killShares = [0.03, 0.07, 0.12];
const SAVE_INTERVAL_MS = 5_000;
const MEMORY_SAMPLES = 2_000;
const MIN_MEMORY_INTERVAL_MS = 250;
const MAX_MEMORY_INTERVAL_MS = 10_000;
const GOAL_SHARE_OF_RATE = 0.9;
/** The last quarter of the time may have so much more memory than the first; what V8 keeps varies by tens of MiB. */
const MAX_GROWTH = 1.15;
const MAX_GROWTH_MEBIBYTES = 50;

interface Settings {
  readonly records: number;
  readonly requestsPerSecond: number;
  readonly isWhole: boolean;
}

/** One process of the mirror. */
interface Run extends Omit<SourceCounts, 'port'> {
  readonly end: MirrorEnd | 'interrupted';
}

interface Progress {
  readonly settings: Settings;
  /** The mirror knows its source by its URL. */
  readonly port: number;
  readonly runs: readonly Run[];
}

const { settings, dataFolder: givenFolder } = readOptions(process.argv.slice(2));
const dataFolder = path.resolve(givenFolder ?? (await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'))));
mkdirSync(dataFolder, { recursive: true });
const progressFile = path.join(dataFolder, 'progress.json');
let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    isStopping = true;
  });

const embedded = await openEmbedded({ dataFolder });
const cluster = clusterOf(embedded);
const source = startWorker<SourceOrder, SourceCounts>('./mirror/source-server.ts');
try {
  const progress = await measure();
  if (progress) {
    const compared = await compareRecords();
    report(progress, compared);
  } else if (givenFolder !== undefined) {
    console.error(`Stopped. The same command goes on in ${dataFolder}.`);
  }
} finally {
  await source.stop();
  await embedded.leave();
  if (givenFolder === undefined) await rm(dataFolder, { recursive: true, force: true });
}

/** Runs the mirror until it has everything; undefined where it was stopped before. */
async function measure(): Promise<Progress | undefined> {
  let progress = await openProgress();
  while (progress.runs.at(-1)?.end !== 'complete') {
    if (isStopping) return undefined;
    progress = await runOnce(progress);
  }
  return progress;
}

async function openProgress(): Promise<Progress> {
  const former = existsSync(progressFile)
    ? (JSON.parse(readFileSync(progressFile, 'utf8')) as Progress)
    : undefined;
  if (former && JSON.stringify(former.settings) !== JSON.stringify(settings))
    throw new Error(
      `${dataFolder} has a run with other settings: ${JSON.stringify(former.settings)}. Choose another --data.`,
    );
  const { port } = await source.run({ kind: 'start', settings: { ...settings, port: former?.port ?? 0 } });
  if (former) return former;
  await createEmpty(cluster, DATABASE);
  const progress = { settings, port, runs: [] };
  save(progress);
  return progress;
}

async function runOnce({ port, runs }: Progress): Promise<Progress> {
  await source.run({ kind: 'reset' });
  const { records, requestsPerSecond } = settings;
  const kills = runs.filter(({ end }) => end === 'killed').length;
  const before = runs.reduce((sum, run) => sum + run.records, 0);
  const killAt = (killShares[kills] ?? Number.POSITIVE_INFINITY) * records;
  let savedAt = performance.now();
  const current = async (end: Run['end']): Promise<Progress> => {
    const { port: _, ...counts } = await source.run({ kind: 'read' });
    return { settings, port, runs: [...runs, { ...counts, end }] };
  };
  const end = await runMirror({
    sourceUrl: `http://127.0.0.1:${port}`,
    databaseUrl: cluster.url(DATABASE),
    requestsPerSecond,
    memoryFile: memoryFileOf(runs.length),
    memoryIntervalMs: memoryIntervalMs(),
    decide: async () => {
      if (isStopping) return 'stop';
      const progress = await current('interrupted');
      if (performance.now() - savedAt > SAVE_INTERVAL_MS) {
        save(progress);
        savedAt = performance.now();
      }
      return before + (progress.runs.at(-1)?.records ?? 0) >= killAt ? 'kill' : 'continue';
    },
  });
  const progress = await current(end);
  save(progress);
  return progress;
}

function save(progress: Progress): void {
  writeFileSync(progressFile, `${JSON.stringify(progress, null, 2)}\n`);
}

function memoryFileOf(run: number): string {
  return path.join(dataFolder, `memory-${run + 1}.ndjson`);
}

function memoryIntervalMs(): number {
  const expectedMs = (settings.records / settings.requestsPerSecond) * 1000;
  return Math.min(Math.max(expectedMs / MEMORY_SAMPLES, MIN_MEMORY_INTERVAL_MS), MAX_MEMORY_INTERVAL_MS);
}

/** Compares all records, in their order; throws at the first that differs. */
async function compareRecords(): Promise<number> {
  const store = await openStore({ place: { url: cluster.url(DATABASE) } });
  try {
    let n = settings.records;
    for await (const batch of store.exportRecords({}))
      for (const record of batch) {
        n--;
        if (n < 0) throw new Error(`The store has more than ${settings.records} records.`);
        const expected = wireRecord(recordOf(n)).json;
        if (record !== expected)
          throw new Error(`Record ${n} differs.\nThe store has ${record}\nThe server has ${expected}`);
      }
    if (n !== 0) throw new Error(`The store lacks ${n} of ${settings.records} records.`);
    return settings.records;
  } finally {
    await store.close();
  }
}

// ---- Report

function report({ runs }: Progress, comparedRecords: number): void {
  const { records, requestsPerSecond, isWhole } = settings;
  const rows = runs.map((run) => {
    const requests = run.lists + run.details;
    const seconds = Math.max(run.seconds, 1);
    return { ...run, requests, seconds: rounded(seconds), shareOfRate: shareOf(requests, seconds) };
  });
  const requests = sumOf(rows.map((row) => row.requests));
  const seconds = sumOf(rows.map((row) => row.seconds));
  const longest = rows.reduce((a, b) => (b.seconds > a.seconds ? b : a));
  const memoryMiB = readMemory(memoryFileOf(rows.indexOf(longest)));
  const result = {
    records,
    requestsPerSecond,
    lists: isWhole ? 'whole records' : 'summaries',
    comparedRecords,
    kills: runs.filter(({ end }) => end === 'killed').length,
    requests,
    refused: sumOf(rows.map(({ refused }) => refused)),
    seconds: Math.round(seconds),
    recordsPerSecond: rounded(records / seconds),
    shareOfRate: shareOf(requests, seconds),
    undisturbedShareOfRate: longest.shareOfRate,
    memoryMiB,
    runs: rows,
  };
  console.log(
    `${records.toLocaleString('en')} records, all compared; ${requests.toLocaleString('en')} requests in ` +
      `${Math.round(seconds).toLocaleString('en')} s, ${result.kills} kills, ${result.refused} requests rejected`,
  );
  if (memoryMiB) printMemory(memoryMiB);
  // With whole records the machine is the limit: one request brings 500.
  const goals = [
    ...(isWhole ? [] : [`share of the allowed rate ${result.shareOfRate} (goal ${GOAL_SHARE_OF_RATE})`]),
    `memory ${memoryMiB && isLevel(memoryMiB) ? 'level' : 'grew'}`,
  ];
  console.log(`Goals: ${goals.join('; ')}`);
  writeParts('mirror', ['details', 'whole'], { [isWhole ? 'whole' : 'details']: result });
}

function shareOf(requests: number, seconds: number): number {
  return rounded(requests / settings.requestsPerSecond / seconds);
}

function printMemory({ resident, heap, seconds }: MemoryByQuarter): void {
  console.log(
    `Memory of the longest process (${seconds.toLocaleString('en')} s), by quarter: ` +
      `resident at most ${resident.join(', ')} MiB; heap at least ${heap.join(', ')} MiB`,
  );
}

function isLevel({ resident, heap }: MemoryByQuarter): boolean {
  return [resident, heap].every(
    ([first = 0, , , last = 0]) => last <= first * MAX_GROWTH || last <= first + MAX_GROWTH_MEBIBYTES,
  );
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function rounded(value: number): number {
  return Number(value.toFixed(3));
}

// ---- Options

function readOptions(args: readonly string[]): { settings: Settings; dataFolder: string | undefined } {
  const given = new Command('npm run bench:mirror --')
    .description('How near to the allowed rate does a mirror come, and does its memory stay level?')
    .option('--records <number>', 'records of the server', parseCount, 20_000)
    .option('--rate <number>', 'requests a second that the server allows', parseCount, 200)
    .option('--whole', 'the lists of the server have whole records instead of summaries')
    .option('--data <folder>', 'keep the database and the progress there, to be resumed')
    .showHelpAfterError('Try: npm run bench:mirror -- --help')
    .parse(args, { from: 'user' })
    .opts<{ records: number; rate: number; whole?: true; data?: string }>();
  return {
    settings: {
      records: given.records,
      requestsPerSecond: given.rate,
      isWhole: given.whole ?? false,
    },
    dataFolder: given.data,
  };
}
