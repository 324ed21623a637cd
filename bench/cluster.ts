/**
 * A Citus cluster beside one node: the rate of imports, whether all searches give the same answers, and how long each takes.
 *
 *     CITUS_URL=postgresql://… POSTGRES_URL=postgresql://… npm run bench:cluster
 *
 * CITUS_URL is a database on the coordinator, POSTGRES_URL one on a plain PostgreSQL of the same version, both by a superuser, all
 * nodes on this machine. The databases that are made (`bench_…`) stay for the next run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { listOf, parseCount, partOf } from './arguments.ts';
import { startWorker } from './child.ts';
import { openDistributed, readPostmasters, serverAt, shareCursorKey } from './cluster/databases.ts';
import { compareAnswers, type EqualityResult } from './cluster/equality.ts';
import { compareImports, type ImportRates } from './cluster/imports.ts';
import {
  combinationSearches,
  type Latency,
  measureLatencies,
  workloadSearches,
} from './cluster/latencies.ts';
import { openDatabase, withClient } from './data/database.ts';
import { median } from './interleave.ts';
import type { LoadOrder, LoadReport } from './load/client.ts';
import { writeParts } from './results-file.ts';
import { startLanescan } from './server.ts';

const parts = ['import', 'answers', 'searches', 'combinations'] as const;
type Part = (typeof parts)[number];

const given = new Command('npm run bench:cluster --')
  .option('--size <messages>', 'messages in each database', parseCount, 1_000_000)
  .option(
    '--shards <counts>',
    'shards of each table; several are measured one after the other',
    listOf(parseCount),
    [4],
  )
  .option('--only <parts>', parts.join(', '), listOf(partOf(parts)), [...parts])
  .option('--rounds <number>', 'turns of each side', parseCount, 5)
  .option('--requests <number>', 'requests of one turn', parseCount, 20)
  .option('--import-records <number>', 'records of an import', parseCount, 100_000)
  .option('--import-rounds <number>', 'imports of each side', parseCount, 2)
  .option('--no-write', 'do not write bench/results/cluster.json')
  .parse()
  .opts<{
    size: number;
    shards: number[];
    only: Part[];
    rounds: number;
    requests: number;
    importRecords: number;
    importRounds: number;
    write: boolean;
  }>();
const coordinatorUrl = requireUrl('CITUS_URL');
const singleUrl = requireUrl('POSTGRES_URL');

/** At most this many times one node. */
const [GOAL_RATIO, LIMIT_RATIO, GOAL_IMPORT] = [4, 10, 0.4];

const versions = {
  single: await readVersion(singleUrl),
  cluster: await readVersion(coordinatorUrl),
};
const folder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-cluster-'));
const load = startWorker<LoadOrder, LoadReport>('./load/worker.ts');
try {
  for (const shards of given.shards) await measure(shards);
} finally {
  await load.stop();
  await rm(folder, { recursive: true, force: true });
}

async function measure(shards: number): Promise<void> {
  const { size, rounds, requests } = given;
  const setting = { size, shards, versions };
  if (isChosen('import')) {
    const rates = await compareImports({
      singleUrl,
      coordinatorUrl,
      records: given.importRecords,
      shards,
      rounds: given.importRounds,
      folder,
    });
    printImports(rates, shards);
    write({ import: { ...setting, ...rates } });
  }
  if (!isChosen('answers', 'searches', 'combinations')) return;
  const single = await openDatabase(await serverAt(singleUrl), size);
  const cluster = await openDistributed(coordinatorUrl, size, shards);
  if (cluster.distributionSeconds !== null)
    console.log(
      `Distributed ${count(size)} messages over ${shards} shards in ${cluster.distributionSeconds} s`,
    );
  await shareCursorKey(single.url, cluster.url);
  const servers = await Promise.all(
    [single, cluster].map(({ url }, side) =>
      startLanescan({ url, log: `${folder}/serve-${side}.log`, processes: 1 }),
    ),
  );
  const [onSingle, onCluster] = servers;
  if (!onSingle || !onCluster) throw new Error('A server is missing');
  const ports = { single: onSingle.port, cluster: onCluster.port };
  const sides = {
    single: { port: ports.single, families: [onSingle.pid, ...(await readPostmasters(single.url))] },
    cluster: { port: ports.cluster, families: [onCluster.pid, ...(await readPostmasters(cluster.url))] },
  };
  try {
    if (isChosen('answers')) {
      const equality = await compareAnswers(ports, single);
      printEquality(equality);
      write({ answers: { ...setting, ...equality } });
      if (equality.differences.length > 0) process.exitCode = 1;
    }
    for (const part of ['searches', 'combinations'] as const) {
      if (!isChosen(part)) continue;
      const searches = part === 'searches' ? workloadSearches(single) : combinationSearches(single);
      const latencies = await measureLatencies(load, sides, searches, { rounds, requests });
      const summary = summarize(latencies);
      printLatencies(part, shards, latencies, summary);
      write({ [part]: { ...setting, rounds, requests, ...summary, latencies: latencies.map(rounded) } });
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

function isChosen(...names: readonly Part[]): boolean {
  return names.some((name) => given.only.includes(name));
}

function write(results: Partial<Record<Part, unknown>>): void {
  if (given.write) writeParts('cluster', parts, results);
}

function summarize(latencies: readonly Latency[]) {
  const of = (ratios: readonly number[]) => ({
    median: toTenth(median(ratios)),
    worst: toTenth(Math.max(...ratios)),
    aboveGoal: ratios.filter((ratio) => ratio > GOAL_RATIO).length,
    aboveLimit: ratios.filter((ratio) => ratio > LIMIT_RATIO).length,
  });
  return {
    ratios: of(latencies.map(({ ratio }) => ratio)),
    cpuRatios: of(latencies.map(({ cpuRatio }) => cpuRatio)),
  };
}

function printImports({ records, single, cluster, ratio }: ImportRates, shards: number): void {
  console.log(
    `\nImport of ${count(records)} records, ${shards} shards: one node ${count(single)}/s, cluster ${count(cluster)}/s, ` +
      `ratio ${ratio.toFixed(2)} (goal: at least ${GOAL_IMPORT})`,
  );
}

function printEquality({
  combinations,
  workloadRequests,
  pages,
  records,
  differences,
}: EqualityResult): void {
  console.log(
    `\nAnswers: ${combinations} combinations of filters and ${workloadRequests} other requests, ${count(pages)} pages with ` +
      `${count(records)} records: ${differences.length} differences`,
  );
  for (const difference of differences) console.log(`  ${difference}`);
}

function printLatencies(
  part: string,
  shards: number,
  latencies: readonly Latency[],
  summary: ReturnType<typeof summarize>,
): void {
  const columns = ['one node', 'cluster', 'ratio', 'CPU: one', 'cluster', 'ratio'];
  console.log(
    `\n${`${part}, ${shards} shards, p50 in ms`.padEnd(60)}${columns.map((name) => name.padStart(11)).join('')}`,
  );
  for (const latency of [...latencies].sort((a, b) => b.ratio - a.ratio)) {
    const { single, cluster, ratio, cpuSingle, cpuCluster, cpuRatio } = latency;
    const figures = [single, cluster, ratio, cpuSingle, cpuCluster, cpuRatio];
    console.log(
      `${latency.name.slice(0, 60).padEnd(60)}${figures.map((figure) => figure.toFixed(2).padStart(11)).join('')}`,
    );
  }
  for (const [name, { median: middle, worst, aboveGoal, aboveLimit }] of Object.entries(summary)) {
    console.log(
      `${name}: median ${middle}, worst ${worst}; above ${GOAL_RATIO}: ${aboveGoal}, above ${LIMIT_RATIO}: ${aboveLimit} ` +
        `of ${latencies.length}`,
    );
  }
}

function rounded({ name, ...figures }: Latency): object {
  const entries = Object.entries(figures).map(([key, value]) => [key, Math.round(value * 100) / 100]);
  return { name, ...Object.fromEntries(entries) };
}

function toTenth(value: number): number {
  return Math.round(value * 10) / 10;
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

async function readVersion(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query(
      `select current_setting('server_version') || coalesce((
         select ', Citus ' || extversion from pg_extension where extname = 'citus'), '') as version`,
    );
    return rows[0].version;
  });
}

function requireUrl(name: string): string {
  const url = process.env[name];
  if (url) return url;
  console.error(`Set ${name}; see the beginning of bench/cluster.ts.`);
  process.exit(2);
}
