/**
 * How fast is it, beside what the machine allows and beside what others would build?
 *
 *     npm run bench -- --quick                     100,000 messages, a few seconds a workload
 *     npm run bench                                100,000, 1,000,000 and 10,000,000 messages
 *     npm run bench -- --size 1m --only searches   one size, one part
 *
 * Databases stay in the folder given with --data and are there at once for the next run; without it they are removed.
 * Every part fails when an answer is wrong.
 */
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openEmbedded } from '../src/store/embedded.ts';
import { shareInUse } from './cpu.ts';
import { clusterOf, readSizes, withClient } from './data/database.ts';
import { measureCombinations } from './measure-combinations.ts';
import { measureConnections } from './measure-connections.ts';
import { measureEndurance } from './measure-endurance.ts';
import { measureGrowth } from './measure-growth.ts';
import { measureImport } from './measure-import.ts';
import { arePeersInstalled, measurePeers } from './measure-peers.ts';
import { measureSearch, warmUp } from './measure-searches.ts';
import { type Findings, printTable, writeResults } from './report.ts';
import { readWorkloads, type Workload } from './requests.ts';
import { openRig, type Rig } from './rig.ts';
import { startLanescan } from './server.ts';

const parts = [
  'searches',
  'pages',
  'connections',
  'combinations',
  'peers',
  'growth',
  'import',
  'endurance',
] as const;
type Part = (typeof parts)[number];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    size: { type: 'string' },
    data: { type: 'string' },
    only: { type: 'string', default: parts.join() },
    workload: { type: 'string', default: '' },
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    connections: { type: 'string', default: '32' },
    processes: { type: 'string', default: String(os.availableParallelism()) },
    'cpu-profile': { type: 'string' },
  },
});

const wanted = values.only.split(',').map((name) => {
  const part = parts.find((known) => known === name.trim());
  if (!part) throw new Error(`--only takes ${parts.join(', ')}; ${name} is none`);
  return part;
});
const isQuick = values.quick;
const sizes = (values.size ?? (isQuick ? '100k' : '100k,1m,10m')).split(',').map(parseSize);
const dataFolder = path.resolve(values.data ?? (await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'))));
mkdirSync(dataFolder, { recursive: true });

const embedded = await openEmbedded({ dataFolder });
const rig = await openRig(
  {
    sizes,
    dataFolder,
    seconds: Number(values.seconds ?? (isQuick ? 1 : 5)),
    rounds: Number(values.rounds ?? (isQuick ? 2 : 5)),
    connections: Number(values.connections),
    processes: Number(values.processes),
  },
  clusterOf(embedded),
);
const startedAt = new Date();
const usedByOthers = await shareInUse();
const postgres = await withClient(rig.cluster.url('postgres'), async (client) => {
  const { rows } = await client.query('show server_version');
  return rows[0].server_version as string;
});
const findings: Findings = {
  sizes: [],
  searches: [],
  connections: [],
  peers: [],
  combinations: [],
  growth: [],
  imports: [],
  endurance: [],
};
try {
  const isChosen = ({ name }: { name: string }) => new RegExp(values.workload).test(name);
  await measure(rig, isChosen);
} finally {
  await rig.close();
  await embedded.leave();
  if (values.data === undefined) await rm(dataFolder, { recursive: true, force: true });
}
printTable(findings);
const file = await writeResults(findings, {
  startedAt,
  usedByOthers,
  settings: rig.settings,
  isQuick,
  parts: wanted,
  postgres,
});
console.log(`\nWritten to ${path.relative(process.cwd(), file)}`);

async function measure(rig: Rig, isChosen: (workload: Workload) => boolean): Promise<void> {
  const isWanted = (...names: Part[]) => names.some((name) => wanted.includes(name));
  const searches = readWorkloads<Workload[]>('searches').filter(isChosen);
  const pages = readWorkloads<Workload[]>('pages').filter(isChosen);

  for (const size of isWanted('searches', 'pages', 'connections', 'combinations') ? sizes : []) {
    const database = await rig.database(size);
    findings.sizes.push({ size, ...(await readSizes(database.url)) });
    const profile = values['cpu-profile'];
    const server = await startLanescan({
      url: database.url,
      log: rig.logFile('serve'),
      processes: rig.settings.processes,
      ...(profile !== undefined && { nodeArgs: ['--cpu-prof', `--cpu-prof-dir=${profile}`] }),
    });
    try {
      await warmUp(rig, server.port, database);
      const workloads = [...(isWanted('searches') ? searches : []), ...(isWanted('pages') ? pages : [])];
      for (const workload of workloads) {
        if ((workload.page ?? 0) * 20 > size / 2) continue;
        note(`${workload.name}, ${size.toLocaleString('en')} messages`);
        findings.searches.push(await measureSearch(rig, server, database, workload));
      }
      if (isWanted('connections')) {
        note('connections');
        findings.connections.push(await measureConnections(rig, server, database));
      }
      if (isWanted('combinations')) {
        note('combinations');
        findings.combinations.push(await measureCombinations(rig, database, server, isQuick ? 20 : 100));
      }
    } finally {
      await server.stop();
    }
  }
  for (const size of isWanted('peers') ? sizes : []) {
    if (!arePeersInstalled()) throw new Error('The peers are not installed: npm ci --prefix bench/peers');
    note('peers');
    findings.peers.push(...(await measurePeers(rig, await rig.database(size))));
  }
  if (isWanted('growth') && sizes.length > 1) {
    note('growth');
    const workloads = searches.filter(({ growth }) => growth);
    findings.growth.push(...(await measureGrowth(rig, workloads, isQuick ? 30 : 200)));
  }
  if (isWanted('import')) {
    note('import');
    findings.imports.push(await measureImport(rig, isQuick ? 20_000 : 200_000, isQuick ? 1 : 3));
  }
  if (isWanted('endurance')) {
    note('endurance');
    // An hour of twenty requests a second.
    findings.endurance.push(await measureEndurance(rig, Math.min(...sizes), isQuick ? 6 : 60, 1_200));
  }
}

function note(what: string): void {
  console.error(`Measuring ${what}`);
}

function parseSize(text: string): number {
  const [, number, unit] = /^(\d+)(k|m)?$/i.exec(text.trim()) ?? [];
  if (number === undefined) throw new Error(`--size takes sizes such as 100k,1m,10m; ${text} is none`);
  return Number(number) * (unit === undefined ? 1 : unit.toLowerCase() === 'k' ? 1_000 : 1_000_000);
}
