/**
 * How fast is it, beside what the machine allows and beside what others would build?
 *
 *     npm run bench -- --quick                     100,000 messages, workloads with goals, a few seconds each
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
import { openEmbedded } from '../src/store/server/embedded.ts';
import { installPackage } from './child.ts';
import { shareInUse } from './cpu.ts';
import { clusterOf, withClient } from './data/database.ts';
import { readDiskUse } from './measurements/disk.ts';
import { measureCombinations } from './measurements/measure-combinations.ts';
import { measureConnections } from './measurements/measure-connections.ts';
import { measureEndurance } from './measurements/measure-endurance.ts';
import { measureGrowth } from './measurements/measure-growth.ts';
import { measureImport } from './measurements/measure-import.ts';
import { measurePeers } from './measurements/measure-peers.ts';
import { measureSearch, requestsOf, warmUp } from './measurements/measure-searches.ts';
import { type Part, readOptions } from './options.ts';
import { type Findings, noteLeftOut, printTable, writeResults } from './report.ts';
import { hasPages } from './requests.ts';
import { openRig, type Rig } from './rig.ts';
import { startLanescan } from './server.ts';

const options = readOptions(process.argv.slice(2));
const { isQuick, searches, pages } = options;
const { sizes } = options.settings;
const isWanted = (...names: Part[]) => names.some((name) => options.parts.includes(name));
// Whatever cannot be had is better known before an hour has passed.
if (isWanted('peers') && !installPackage('bench/peers')) {
  console.error('Without the peers nothing was measured. Other parts can be chosen with --only.');
  process.exit(1);
}
const dataFolder = path.resolve(
  options.dataFolder ?? (await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'))),
);
mkdirSync(dataFolder, { recursive: true });

const usedByOthers = await shareInUse();
const embedded = await openEmbedded({ dataFolder });
const rig = await openRig({ ...options.settings, dataFolder }, clusterOf(embedded));
const startedAt = new Date();
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
  await measure(rig);
} catch (error) {
  // A run in which something went wrong is no result; what it has found so far may help to see why.
  printTable(findings);
  throw error;
} finally {
  await rig.close();
  await embedded.leave();
  if (options.dataFolder === undefined) await rm(dataFolder, { recursive: true, force: true });
}
printTable(findings);
const file = await writeResults(options.resultsFolder, findings, {
  startedAt,
  usedByOthers,
  settings: rig.settings,
  isQuick,
  parts: options.parts,
  postgres,
});
console.log(`\nWritten to ${path.relative(process.cwd(), file)}`);

async function measure(rig: Rig): Promise<void> {
  // First, because it copies a database, to which nothing else may be connected.
  if (isWanted('endurance')) {
    note('endurance');
    // An hour of twenty requests a second.
    findings.endurance.push(await measureEndurance(rig, Math.min(...sizes), isQuick ? 6 : 60, 1_200));
  }
  for (const size of isWanted('searches', 'pages', 'connections', 'combinations') ? sizes : []) {
    const database = await rig.database(size);
    findings.sizes.push(await withClient(database.url, (client) => readDiskUse(client, size, null)));
    const profile = options.profileFolder;
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
        if (!hasPages(workload, size, requestsOf(rig.settings))) {
          noteLeftOut(workload.name, size);
          continue;
        }
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
    note('peers');
    findings.peers.push(...(await measurePeers(rig, await rig.database(size))));
  }
  if (isWanted('growth')) {
    note('growth');
    const workloads = searches.filter(({ growth }) => growth);
    findings.growth.push(...(await measureGrowth(rig, workloads, isQuick ? 30 : 200)));
  }
  if (isWanted('import')) {
    note('import');
    findings.imports.push(await measureImport(rig, isQuick ? 50_000 : 200_000, isQuick ? 1 : 3));
  }
}

function note(what: string): void {
  console.error(`Measuring ${what}`);
}
