/**
 * How fast is history read, at the rates that providers allow, beside Ponder on the same endpoints? And does it take more
 * memory the more there is of it?
 *
 *     npm run bench:backfill                     # all parts; a quarter of an hour
 *     npm run bench:backfill -- rates            # 600,000 blocks at 20, 200 and 2 × 200 calls a second, beside Ponder;
 *                                                # 6,000,000 at 200 and 2 × 200, without it
 *     npm run bench:backfill -- rates --no-peer  # the same without Ponder
 *     npm run bench:backfill -- volume           # 100,000 messages in each direction, as fast as it goes, with their bytes
 *                                                # on disk by table and index
 *     npm run bench:backfill -- volume --messages 20000      # with fewer of them
 *     npm run bench:backfill -- sparse           # 10,000,000 blocks with hardly any messages
 *
 * The chains are virtual (test/virtual-chain): nothing has to be deployed, and the endpoints keep to a rate and a latency.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Argument, Command } from 'commander';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { openStore } from '../src/store/store.ts';
import { type CcipChain, type CcipWorld, makeCcipWorld } from '../test/virtual-chain/ccip-chain.ts';
import { type Provider, startProvider } from '../test/virtual-chain/endpoint.ts';
import type { EndpointProfile } from '../test/virtual-chain/endpoint-profile.ts';
import { parseCount } from './arguments.ts';
import { fetchLogs, type LogFilters } from './backfill/fetch-logs.ts';
import { runLanescan, type ServedChain } from './backfill/lanescan-run.ts';
import { runPonder } from './backfill/ponder-run.ts';
import { meterTraffic, type Traffic } from './backfill/traffic.ts';
import { installPackage } from './child.ts';
import { clusterOf, postmasterOf, withClient } from './data/database.ts';
import { printDiskUse, readDiskUse, readWalPosition } from './measurements/disk.ts';
import { writeParts } from './results-file.ts';

const parts = ['rates', 'volume', 'sparse'] as const;
type Part = (typeof parts)[number];

const LATENCY_MS = 100;
const MAX_RANGE_BLOCKS = 2_000;
const SHORT_BLOCKS = 600_000;
/** So many that the first seconds, with one question after the other, do not decide. Ponder would take half an hour. */
const LONG_BLOCKS = 6_000_000;
const RATE_MESSAGES = 29;
/** With fewer of them, memory is not judged. */
const VOLUME_MESSAGES = 100_000;
const SPARSE_BLOCKS = 10_000_000;
const SPARSE_MESSAGES = 100;
/** The last quarter of the time may need so much more memory than the second did; what V8 keeps varies by tens of MiB. */
const MAX_GROWTH = 1.15;
const MAX_GROWTH_MEBIBYTES = 100;

const rates = [
  { name: '20/s', requestsPerSecond: 20, endpoints: 1, blocks: SHORT_BLOCKS },
  { name: '200/s', requestsPerSecond: 200, endpoints: 1, blocks: SHORT_BLOCKS },
  { name: '2 × 200/s', requestsPerSecond: 200, endpoints: 2, blocks: SHORT_BLOCKS },
  { name: '200/s', requestsPerSecond: 200, endpoints: 1, blocks: LONG_BLOCKS },
  { name: '2 × 200/s', requestsPerSecond: 200, endpoints: 2, blocks: LONG_BLOCKS },
] as const;

/** The rate is the client's to keep: both are told the same, and the peak shows whether they do. */
const distantEndpoint: EndpointProfile = {
  name: 'distant-endpoint',
  seen: 'invented',
  latencyMs: LATENCY_MS,
  logs: {
    blocks: {
      max: MAX_RANGE_BLOCKS,
      error: { code: -32602, message: 'range {count} exceeds limit of {max}' },
    },
  },
};

const command = new Command('npm run bench:backfill --')
  .description('How fast is history read, and how much memory and disk does that take?')
  .addArgument(new Argument('[parts...]', 'default: all').choices(parts))
  .option('--no-peer', 'without Ponder')
  .option(
    '--messages <number>',
    'messages in each direction, of the part volume',
    parseCount,
    VOLUME_MESSAGES,
  )
  .showHelpAfterError('Try: npm run bench:backfill -- --help')
  .parse();
const { peer: isBesidePeer, messages: volumeMessages } = command.opts<{ peer: boolean; messages: number }>();
const chosen = command.args.length === 0 ? parts : parts.filter((part) => command.args.includes(part));

const folder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'));
const embedded = await openEmbedded({ dataFolder: path.join(folder, 'data') });
const cluster = clusterOf(embedded);
const postmaster = postmasterOf(embedded);
let databases = 0;
try {
  const results: Partial<Record<Part, unknown>> = {};
  for (const part of chosen) {
    console.error(`Measuring ${part}`);
    results[part] = await { rates: measureRates, volume: measureVolume, sparse: measureSparse }[part]();
  }
  writeParts('backfill', parts, results);
} finally {
  await embedded.leave();
  await rm(folder, { recursive: true, force: true });
}

/** An empty one. */
async function createDatabase(): Promise<string> {
  const name = `bench_${++databases}`;
  await withClient(cluster.url('postgres'), (client) => client.query(`create database ${name}`));
  return cluster.url(name);
}

// ---- Rates

interface Reading extends Traffic {
  /** The time that the rate allows for these calls, beside the time that they took. */
  readonly shareOfRate: number;
}

async function measureRates(): Promise<readonly object[]> {
  const isPeerThere = isBesidePeer && installPackage('bench/ponder');
  const rows: object[] = [];
  for (const { name, requestsPerSecond, endpoints, blocks } of rates) {
    const { a } = makeCcipWorld({ blocks, messages: RATE_MESSAGES });
    const settings = { requestsPerSecond, maxRange: MAX_RANGE_BLOCKS };
    const allowed = requestsPerSecond * endpoints;
    const lanescan = await withProviders(a, endpoints, async (served) => {
      const readTraffic = meterTraffic(served.providers);
      const database = await createDatabase();
      await runLanescan(folder, database, postmaster, [served], settings);
      await checkMessages(database, RATE_MESSAGES);
      return readingOf(readTraffic(), allowed);
    });
    const ponder =
      isPeerThere && blocks === SHORT_BLOCKS
        ? await withProviders(a, endpoints, async (served) => {
            const readTraffic = meterTraffic(served.providers);
            await runPonder(path.join(folder, 'ponder.log'), await createDatabase(), served, settings);
            return readingOf(readTraffic(), allowed);
          })
        : undefined;
    printRate(`${name}, ${blocks.toLocaleString('en')} blocks`, lanescan, ponder);
    rows.push({
      rate: name,
      blocks,
      lanescan,
      ...(ponder && {
        ponder,
        ratios: {
          callsToPonder: rounded(lanescan.calls / ponder.calls),
          timesFasterThanPonder: rounded(ponder.seconds / lanescan.seconds),
        },
      }),
    });
  }
  return rows;
}

async function withProviders<T>(
  chain: CcipChain,
  count: number,
  work: (served: ServedChain) => Promise<T>,
): Promise<T> {
  const providers: Provider[] = [];
  for (let index = 0; index < count; index++)
    providers.push(await startProvider(chain, { profile: distantEndpoint }));
  try {
    return await work({ chain, providers });
  } finally {
    for (const provider of providers) await provider.close();
  }
}

function readingOf(traffic: Traffic, allowedPerSecond: number): Reading {
  const { calls, seconds } = traffic;
  return {
    ...traffic,
    seconds: rounded(seconds),
    shareOfRate: rounded(calls / allowedPerSecond / seconds),
  };
}

function printRate(name: string, lanescan: Reading, ponder: Reading | undefined): void {
  const row = (who: string, { seconds, calls, shareOfRate, peakPerSecond }: Reading) =>
    console.log(
      `${name.padEnd(29)}${who.padEnd(10)}${seconds.toFixed(1).padStart(8)} s${String(calls).padStart(7)} calls` +
        `${shareOfRate.toFixed(2).padStart(7)} of what the rate allows, at most ${peakPerSecond} in a second`,
    );
  row('lanescan', lanescan);
  if (ponder) row('ponder', ponder);
}

// ---- Volume and memory

async function measureVolume(): Promise<object> {
  // A block has one message in each direction.
  const world = makeCcipWorld({ blocks: volumeMessages, messages: volumeMessages, messagesPerRoot: 25 });
  const messages = 2 * volumeMessages;
  const { ms, mebibytesByQuarter, cpuSeconds, calls, fetchMs, disk } = await indexBoth(world, messages);
  console.log(
    `${messages.toLocaleString('en')} messages: ${(ms / 1000).toFixed(1)} s, ` +
      `${Math.round((messages * 1000) / ms).toLocaleString('en')} a second, ${calls.toLocaleString('en')} calls; ` +
      `fetching the same logs alone: ${(fetchMs / 1000).toFixed(1)} s`,
  );
  const cpuMicroseconds = Object.fromEntries(
    Object.entries(cpuSeconds).map(([name, seconds]) => [name, Math.round((seconds * 1e6) / messages)]),
  );
  const cpuTexts = Object.entries(cpuMicroseconds).map(([name, time]) => `${name} ${time}`);
  console.log(`Processor time per message, µs: ${cpuTexts.join(', ')}`);
  printDiskUse(disk);
  printMemory(mebibytesByQuarter, volumeMessages >= VOLUME_MESSAGES);
  return {
    messages,
    seconds: { index: rounded(ms / 1000), fetch: rounded(fetchMs / 1000) },
    messagesPerSecond: Math.round((messages * 1000) / ms),
    ratioToFetch: rounded(ms / fetchMs),
    cpuMicroseconds,
    calls,
    residentMiBByQuarter: mebibytesByQuarter,
    disk,
  };
}

async function measureSparse(): Promise<object> {
  const world = makeCcipWorld({ blocks: SPARSE_BLOCKS, messages: SPARSE_MESSAGES, ramps: 4 });
  const { ms, mebibytesByQuarter, calls } = await indexBoth(world, 2 * SPARSE_MESSAGES);
  console.log(
    `${SPARSE_BLOCKS.toLocaleString('en')} blocks on each of two chains: ${(ms / 1000).toFixed(1)} s, ` +
      `${calls.toLocaleString('en')} calls`,
  );
  printMemory(mebibytesByQuarter);
  return {
    blocks: SPARSE_BLOCKS,
    seconds: rounded(ms / 1000),
    calls,
    residentMiBByQuarter: mebibytesByQuarter,
  };
}

async function indexBoth(world: CcipWorld, messages: number) {
  const filters: LogFilters[] = [];
  const served = [
    { chain: world.a, providers: [await startProvider(world.a)] },
    { chain: world.b, providers: [await startProvider(world.b)] },
  ] as const;
  const providers = served.flatMap((one) => one.providers);
  try {
    const readTraffic = meterTraffic(providers);
    for (const provider of providers) {
      const own: unknown[] = [];
      filters.push({ url: provider.url.href, filters: own });
      const { onCall } = provider;
      provider.onCall = (call) => {
        onCall(call);
        if (call.method === 'eth_getLogs') own.push(call.params[0]);
      };
    }
    const database = await createDatabase();
    const walFrom = await withClient(database, readWalPosition);
    const run = await runLanescan(folder, database, postmaster, served, { requestsPerSecond: 10_000 });
    const disk = await withClient(database, (client) => readDiskUse(client, messages, walFrom));
    await checkMessages(database, messages);
    const { calls } = readTraffic();
    const fetchMs = await fetchLogs(folder, filters);
    return { ...run, calls, fetchMs, disk };
  } finally {
    for (const provider of providers) await provider.close();
  }
}

/** Throws where memory grew, unless the run was too short for that: V8 takes the memory that it may have first. */
function printMemory(byQuarter: readonly number[], isLongEnough = true): void {
  console.log(`Resident memory, the highest of each quarter of the time: ${byQuarter.join(', ')} MiB`);
  const [, second = 0, , last = 0] = byQuarter;
  if (isLongEnough && last > second * MAX_GROWTH && last > second + MAX_GROWTH_MEBIBYTES)
    throw new Error(`Memory grew: ${last} MiB at the end, ${second} before.`);
}

/** Fails unless the store has so many messages: what is fast and wrong counts for nothing. */
async function checkMessages(databaseUrl: string, messages: number): Promise<void> {
  const store = await openStore({ place: { url: databaseUrl } });
  try {
    const { lanes } = await store.lanes({
      now: new Date(),
      deliveredSince: '1970-01-01',
      namedRanges: 10,
      limit: 10,
    });
    const stored = lanes.reduce((sum, lane) => sum + lane.messages, 0);
    const isComplete = lanes.every(({ onramps }) =>
      onramps.every(({ completeness }) => completeness.isComplete),
    );
    if (stored !== messages || !isComplete)
      throw new Error(`The store has ${stored} of ${messages} messages, complete: ${isComplete}.`);
  } finally {
    await store.close();
  }
}

function rounded(value: number): number {
  return Number(value.toFixed(2));
}
