/**
 * How fast is history read, and does it take more memory the more there is of it?
 *
 * A node serves two chains with 100,000 messages: sent on one, committed and executed on the other. The built program
 * reads them into an empty database (`lanescan index --once`). Beside it, in the same run and from the same node, the
 * very same requests for logs with nothing behind them (fetch and JSON.parse), and the store alone, applying the very
 * same facts. What counts are the ratios.
 *
 *     npm run bench:backfill              # 100,000 messages
 *     npm run bench:backfill -- 10000
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { stringify } from 'yaml';
import type { Fact } from '../src/domain/facts.ts';
import { findNetwork } from '../src/domain/networks.ts';
import { createContractBook } from '../src/ingest/chain/contract-book.ts';
import { RangeTooLarge } from '../src/ingest/chain/faults.ts';
import type { Hex } from '../src/ingest/evm/chain.ts';
import { createDecoder } from '../src/ingest/evm/decode/decoder.ts';
import { createChain } from '../src/ingest/evm/endpoints.ts';
import { createBlockReader, type EvmContractBook } from '../src/ingest/evm/reading.ts';
import type { EvmSource } from '../src/ingest/evm/settings.ts';
import { parseNetworkSources } from '../src/ingest/families.ts';
import { openEmbedded } from '../src/store/embedded.ts';
import { openStore } from '../src/store/store.ts';
import { type LogFilter, type ReplayNode, startReplayNode } from '../test/chain/replay-node.ts';
import { type ReplayNetwork, viewOf } from '../test/chain/replay-recording.ts';
import type { LabNetwork } from '../test/lab/lab.ts';
import { type BulkChains, makeBulkChains } from './bulk-chains.ts';

const MESSAGES = Number(process.argv[2] ?? 100_000);
const FINALITY = 5;
const SAMPLE_MS = 250;
/** The last quarter of the time may need so much more memory than the second did. */
const MAX_GROWTH = 1.15;

const folder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'));
const embedded = await openEmbedded({ dataFolder: path.join(folder, 'data') });
const closers: (() => unknown)[] = [];
try {
  console.error(`Making ${MESSAGES.toLocaleString('en')} messages`);
  const chains = await makeBulkChains(MESSAGES);
  closers.push(() => chains.lab.stop());
  const networks = [
    await serve(chains.source, chains.lab.a),
    await serve(chains.dest, chains.lab.b),
  ] as const;

  console.error('Indexing');
  const indexed = await index(networks);
  await check(indexed.database, chains);
  console.error('Fetching the same logs');
  const fetchedMs = await fetchLogs(networks, indexed.filters);
  console.error('Applying the same facts');
  const appliedMs = await apply(networks, indexed.filters, chains);
  print(indexed, fetchedMs, appliedMs);
} finally {
  for (const close of closers) await close();
  await embedded.leave();
  await rm(folder, { recursive: true, force: true });
}

interface Served {
  readonly node: ReplayNode;
  readonly name: string;
  readonly routers: readonly Hex[];
  readonly head: number;
  /** Every request for logs of a range, in the order in which they came. */
  readonly asked: LogFilter[];
}

async function serve(network: ReplayNetwork, lab: LabNetwork): Promise<Served> {
  const head = network.chain.length - 1;
  const asked: LogFilter[] = [];
  const node = await startReplayNode({
    network,
    view: () => viewOf(network.chain, head),
    misbehave(calls) {
      for (const { method, params } of calls) {
        const filter = params[0] as LogFilter;
        if (method === 'eth_getLogs' && filter.blockHash === undefined) asked.push(filter);
      }
      return {};
    },
  });
  closers.push(() => node.close());
  return { node, name: lab.name, routers: Object.values(lab.routers), head, asked };
}

function configurationOf(networks: readonly Served[]): object[] {
  return networks.map(({ node, name, routers }) => ({
    network: name,
    rpc: [node.url],
    routers,
    finality: FINALITY,
    requestsPerSecond: 10_000,
  }));
}

interface Sample {
  readonly atMs: number;
  readonly mebibytes: number;
}

interface Indexed {
  readonly ms: number;
  readonly samples: readonly Sample[];
  readonly database: string;
  readonly requests: number;
  /** How each network was asked for its logs. */
  readonly filters: readonly (readonly LogFilter[])[];
}

/** The program as it is installed, from its start to its end. */
async function index(networks: readonly Served[]): Promise<Indexed> {
  const database = await createDatabase('bench_index');
  const config = path.join(folder, 'lanescan.yaml');
  writeFileSync(config, stringify({ networks: configurationOf(networks) }));
  const program = path.join(import.meta.dirname, '..', 'bin', 'lanescan');
  const before = networks.reduce((sum, { node }) => sum + node.requests, 0);
  const began = performance.now();
  const child = spawn(process.execPath, [program, 'index', '--once', '--config', config], {
    env: { PATH: process.env.PATH, NODE_OPTIONS: process.env.NODE_OPTIONS, DATABASE_URL: database },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(child, 'exit');
  const samples: Sample[] = [];
  const sampling = setInterval(() => {
    const resident = execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)], { encoding: 'utf8' });
    samples.push({ atMs: performance.now() - began, mebibytes: Number(resident) / 1024 });
  }, SAMPLE_MS);
  const [status] = await ended.finally(() => clearInterval(sampling));
  if (status !== 0) throw new Error(`lanescan index ended with status ${status}.`);
  const ms = performance.now() - began;
  const requests = networks.reduce((sum, { node }) => sum + node.requests, 0) - before;
  return { ms, samples, database, requests, filters: networks.map(({ asked }) => [...asked]) };
}

/** Fails unless every message is there, executed, and none is missing in between. */
async function check(database: string, { messages }: BulkChains): Promise<void> {
  const store = await openStore({ place: { url: database } });
  try {
    const now = new Date();
    const selection = { now, deliveredSince: '1970-01-01', namedRanges: 10, limit: 10 };
    const { lanes } = await store.lanes(selection);
    const [lane] = lanes;
    const [onramp] = lane?.onramps ?? [];
    const isRight =
      lanes.length === 1 &&
      lane?.messages === messages &&
      lane.byStatus.SUCCESS === messages &&
      onramp?.completeness.isComplete === true &&
      onramp.completeness.first === '1' &&
      onramp.completeness.last === String(messages);
    if (!isRight) throw new Error(`The store is not what the chains say: ${JSON.stringify(lanes)}`);
  } finally {
    await store.close();
  }
}

/** Milliseconds for the same requests for logs. */
async function fetchLogs(networks: readonly Served[], filters: Indexed['filters']): Promise<number> {
  const file = path.join(folder, 'filters.json');
  writeFileSync(
    file,
    JSON.stringify(networks.map(({ node }, at) => ({ url: node.url, filters: filters[at] }))),
  );
  const script = path.join(import.meta.dirname, 'backfill-fetch.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  for await (const text of child.stdout.setEncoding('utf8')) said += text;
  const ms = Number(said);
  if (!(ms > 0)) throw new Error('The logs could not be fetched.');
  return ms;
}

/** Milliseconds that the store alone takes for the facts of the same ranges; reading them does not count. */
async function apply(
  networks: readonly Served[],
  filters: Indexed['filters'],
  { messages }: BulkChains,
): Promise<number> {
  const store = await openStore({ place: { url: await createDatabase('bench_apply') } });
  let appliedMs = 0;
  try {
    const sources = parseNetworkSources(configurationOf(networks), 'the bench', {}) as readonly EvmSource[];
    const readers = sources.map((source, at) => factsInTurn(source, filters[at] ?? []));
    // In turns, as the program reads both networks at once.
    for (let left = readers; left.length > 0; ) {
      const steps = await Promise.all(left.map((reader) => reader.next()));
      for (const { value } of steps) {
        const began = performance.now();
        if (value) await store.apply(value);
        appliedMs += performance.now() - began;
      }
      left = left.filter((_, at) => !steps[at]?.done);
    }
    const { count } = await store.countMessages();
    if (count < Math.min(messages, 100_000)) throw new Error(`Only ${count} messages were applied.`);
  } finally {
    await store.close();
  }
  return appliedMs;
}

async function* factsInTurn(
  source: EvmSource,
  asked: readonly LogFilter[],
): AsyncGenerator<readonly Fact[], void> {
  const network = findNetwork(source.network.name);
  if (!network) return;
  const chain = createChain(source, { userAgent: 'bench' });
  const book: EvmContractBook = createContractBook();
  const reader = createBlockReader(chain, book, createDecoder(network));
  try {
    const { contracts } = await chain.run((node) => reader.readCurrent(node, source.routers));
    book.add(contracts);
    for (const { fromBlock, toBlock, address } of asked) {
      // Those of single contracts are asked for again with everybody's.
      if (address !== undefined) continue;
      const reading = await chain
        .run((node) =>
          reader.read(node, {
            from: Number(fromBlock),
            to: Number(toBlock),
            contracts: null,
            mayBeAbandoned: false,
          }),
        )
        .catch((error: unknown) => {
          // It was too large for the program as well, which asked for its parts after it.
          if (error instanceof RangeTooLarge) return { facts: [] };
          throw error;
        });
      yield reading.facts.flatMap((fact): readonly Fact[] =>
        fact.kind === 'Sent'
          ? [fact, { kind: 'SourceFinalized', messageId: fact.message.messageId, seen: fact.seen }]
          : [fact],
      );
    }
  } finally {
    chain.close();
  }
}

function print({ ms, samples, requests }: Indexed, fetchedMs: number, appliedMs: number): void {
  const rows = [
    { what: 'fetching the logs, nothing else', ms: fetchedMs },
    { what: 'applying the facts, no chain', ms: appliedMs },
    { what: 'lanescan index --once', ms },
  ];
  const cell = (text: string, width: number) => text.padStart(width);
  console.log(
    `${'of the same messages'.padEnd(34)}${cell('seconds', 9)}${cell('a second', 10)}${cell('ratio', 8)}`,
  );
  for (const row of rows) {
    console.log(
      row.what.padEnd(34) +
        cell((row.ms / 1000).toFixed(1), 9) +
        cell(Math.round((MESSAGES * 1000) / row.ms).toLocaleString('en'), 10) +
        cell((row.ms / fetchedMs).toFixed(1), 8),
    );
  }
  const quarters = [0, 1, 2, 3].map((quarter) => {
    const within = samples.filter(({ atMs }) => Math.floor((4 * atMs) / ms) === quarter);
    return Math.max(0, ...within.map(({ mebibytes }) => mebibytes));
  });
  const [, second = 0, , last = 0] = quarters;
  const shown = quarters.map((mebibytes) => Math.round(mebibytes));
  console.log(`Resident memory, the highest of each quarter of the time: ${shown.join(', ')} MiB`);
  console.log(`${requests.toLocaleString('en')} requests to the nodes`);

  const results = {
    messages: MESSAGES,
    seconds: {
      index: Number((ms / 1000).toFixed(1)),
      fetch: Number((fetchedMs / 1000).toFixed(1)),
      apply: Number((appliedMs / 1000).toFixed(1)),
    },
    ratios: {
      indexToFetch: Number((ms / fetchedMs).toFixed(1)),
      indexToApply: Number((ms / appliedMs).toFixed(2)),
    },
    residentMiBByQuarter: shown,
  };
  const machine = {
    cores: os.cpus().length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    arch: os.arch(),
    node: process.version,
  };
  const target = path.join(import.meta.dirname, 'results');
  mkdirSync(target, { recursive: true });
  const date = new Date().toISOString().slice(0, 10);
  if (MESSAGES >= 100_000) {
    writeFileSync(
      path.join(target, 'backfill.json'),
      `${JSON.stringify({ date, machine, ...results }, null, 2)}\n`,
    );
  }
  if (last > second * MAX_GROWTH)
    throw new Error(`Memory grew: ${shown[3]} MiB at the end, ${shown[1]} before.`);
}

async function createDatabase(name: string): Promise<string> {
  const client = new pg.Client({ ...embedded.connection, database: 'postgres' });
  await client.connect();
  try {
    await client.query(`create database ${name}`);
  } finally {
    await client.end();
  }
  const { host, user } = embedded.connection;
  return `postgresql:///${name}?host=${encodeURIComponent(host)}&user=${user}`;
}
