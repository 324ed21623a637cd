/** One table: each figure beside its limits, its peers and the goal; and all of it as JSON. */
import { mkdir, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { cpuOf } from './interleave.ts';
import { type DiskUse, printDiskUse } from './measurements/disk.ts';
import { type CombinationsResult, ROWS_BOUND } from './measurements/measure-combinations.ts';
import type { ConnectionsResult } from './measurements/measure-connections.ts';
import type { EnduranceResult } from './measurements/measure-endurance.ts';
import type { GrowthResult } from './measurements/measure-growth.ts';
import type { ImportResult } from './measurements/measure-import.ts';
import type { PeersResult } from './measurements/measure-peers.ts';
import type { SearchResult } from './measurements/measure-searches.ts';
import { machineFacts } from './results-file.ts';
import type { RunSettings } from './rig.ts';

export interface Findings {
  readonly sizes: DiskUse[];
  readonly searches: SearchResult[];
  readonly connections: ConnectionsResult[];
  readonly peers: PeersResult[];
  readonly combinations: CombinationsResult[];
  readonly growth: GrowthResult[];
  readonly imports: ImportResult[];
  readonly endurance: EnduranceResult[];
}

/** What must be shown, as the project has set it for itself. */
const goals = {
  ofSmallerLimit: 0.45,
  repeatedOfHttp: 0.8,
  timesPeer: 3,
  timesOrmDeep: 50,
  depth: 1.2,
  growth: 1.3,
  worstCombination: 25,
  importOfCopy: 0.5,
  memoryGrowth: 1.1,
} as const;

export interface Verdict {
  readonly claim: string;
  readonly figure: number;
  readonly goal: string;
  readonly isMet: boolean;
}

/** Of the processors before a run: with more than that in the hands of others, ratios still mean something, figures do not. */
const MOST_FOR_OTHERS = 0.2;

export function printTable(findings: Findings): void {
  for (const { messages, bytesPerMessage } of findings.sizes)
    console.log(
      `${count(messages)} messages: ${bytesPerMessage} bytes a message on disk; 10,000,000 take ${(bytesPerMessage / 100).toFixed(0)} GB`,
    );
  printSearches(findings.searches);
  for (const result of findings.connections) printConnections(result);
  printPeers(findings.peers);
  for (const result of findings.combinations) printCombinations(result);
  printGrowth(findings.growth);
  for (const { records, standings, ratios, memoryMb, disk } of findings.imports) {
    console.log(`\nImport of ${count(records)} records`);
    for (const { name, rate } of standings)
      console.log(`  ${name.padEnd(28)}${count(rate).padStart(10)} records/s`);
    console.log(
      `  beside COPY of the messages ${ratios.messages.toFixed(2)}, of all rows ${ratios.allRows.toFixed(2)}; ` +
        `memory in tenths of the way ${memoryMb.join(' ')} MB`,
    );
    printDiskUse(disk);
  }
  for (const result of findings.endurance) {
    const { afterFirstMinute, most, end } = result.memoryMb;
    console.log(
      `\n${count(result.requests)} mixed requests with ${count(result.written)} messages written meanwhile: ` +
        `${count(result.requestsASecond)}/s (${count(result.undisturbed)}/s before), memory ${afterFirstMinute} MB after ` +
        `the first minute, ${most} MB at most, ${end} MB at the end; ${count(result.freshReads)} reads of what had just ` +
        'been acknowledged, none stale',
    );
  }
  const verdicts = judge(findings);
  if (verdicts.length === 0) return;
  console.log('\nGoals');
  for (const { claim, figure, goal, isMet } of verdicts) {
    console.log(
      `  ${isMet ? 'met    ' : 'NOT MET'}  ${figure.toFixed(2).padStart(9)}  ${goal.padEnd(14)} ${claim}`,
    );
  }
}

function printSearches(searches: readonly SearchResult[]): void {
  if (searches.length === 0) return;
  const heads = [
    'requests/s',
    'p50 ms',
    'p99 ms',
    'of HTTP',
    'of framework',
    'of database',
    'prepared',
    'of pgbench',
    'µs CPU: server',
    'database',
  ];
  console.log(
    `\n${'messages'.padEnd(12)}${'workload'.padEnd(28)}${heads.map((head) => head.padStart(15)).join('')}`,
  );
  for (const { workload, size, standings, ratios } of searches) {
    const ours = standings.find(({ name }) => name === 'lanescan');
    if (!ours) continue;
    const ratio = (name: string) => ratios[name]?.toFixed(2) ?? '';
    const cells = [
      count(ours.rate),
      ours.p50?.toFixed(1) ?? '',
      ours.p99?.toFixed(1) ?? '',
      ratio('HTTP limit'),
      ratio('framework alone'),
      ratio('database limit'),
      ratio('database limit, prepared'),
      ratio('pgbench'),
      count(ours.cpu?.server ?? 0),
      count(ours.cpu?.database ?? 0),
    ];
    console.log(
      `${count(size).padEnd(12)}${workload.padEnd(28)}${cells.map((cell) => cell.padStart(15)).join('')}${shedNote(ours.shed)}`,
    );
  }
}

function shedNote(shed = 0): string {
  return shed > 0 ? `  ${(100 * shed).toFixed(1)} % shed` : '';
}

function printConnections({ size, standings }: ConnectionsResult): void {
  console.log(`\nNewest page over more and more connections, ${count(size)} messages`);
  for (const { name, rate, shed = 0, p50, p99, cpu } of standings) {
    console.log(
      `  ${name.padStart(4)}${count(rate).padStart(8)}/s  p50 ${p50?.toFixed(1).padStart(7)} ms  p99 ` +
        `${p99?.toFixed(1).padStart(7)} ms  ${count(cpu?.server ?? 0).padStart(6)} µs CPU of the server` +
        shedNote(shed),
    );
  }
}

function printPeers(peers: readonly PeersResult[]): void {
  for (const { workload, size, standings, ratios } of peers) {
    console.log(`\n${workload}, ${count(size)} messages`);
    for (const standing of standings) {
      const ratio = ratios[standing.name];
      console.log(
        `  ${standing.name.padEnd(16)}${count(standing.rate).padStart(8)}/s  p50 ${standing.p50?.toFixed(1).padStart(8)} ms` +
          `  ${count(cpuOf(standing)).padStart(8)} µs CPU${ratio === undefined ? '' : `  ours is ${ratio.toFixed(1)} times as fast`}`,
      );
    }
  }
}

function printCombinations({
  size,
  combinations,
  medianP99,
  worstP99,
  mostRowsRead,
}: CombinationsResult): void {
  const beyond = combinations.filter(({ rowsRead }) => rowsRead > ROWS_BOUND).length;
  console.log(
    `\n${combinations.length} combinations of filters, ${count(size)} messages: p99 ${medianP99.toFixed(1)} ms in the middle, ` +
      `${worstP99.toFixed(1)} ms at worst; at most ${count(mostRowsRead)} rows read; ${beyond} read more than ${count(ROWS_BOUND)}`,
  );
  const worst = [...combinations].sort((a, b) => b.rowsRead - a.rowsRead || b.p99 - a.p99).slice(0, 12);
  for (const { name, cast, rowsRead, pages, p99, plan } of worst) {
    console.log(
      `  ${count(rowsRead).padStart(10)} rows ${count(pages).padStart(9)} pages ${p99.toFixed(1).padStart(9)} ms  ${cast}: ${name} (${plan})`,
    );
  }
}

function printGrowth(growth: readonly GrowthResult[]): void {
  if (growth.length === 0) return;
  console.log('\nTen times the data: median of one request at a time, and the ratio to the size before');
  for (const { workload, medians, ratios } of growth) {
    const cells = Object.entries(medians).map(
      ([size, time]) => `${count(Number(size))}: ${time.toFixed(2)} ms`,
    );
    console.log(
      `  ${workload.padEnd(28)}${cells.join('  ').padEnd(60)}${ratios.map((ratio) => ratio.toFixed(2)).join('  ')}`,
    );
  }
}

function count(number: number): string {
  return Number.isFinite(number) ? Math.round(number).toLocaleString('en') : 'no end of';
}

/** What the findings say of the goals; nothing is said of what was not measured. */
export function judge(findings: Findings): Verdict[] {
  const verdicts: Verdict[] = [];
  const atLeast = (claim: string, figure: number, goal: number) =>
    verdicts.push({ claim, figure, goal: `at least ${goal}`, isMet: figure >= goal });
  const atMost = (claim: string, figure: number, goal: number) =>
    verdicts.push({ claim, figure, goal: `at most ${goal}`, isMet: figure <= goal });
  const on = (size: number) => `${count(size)} messages`;

  for (const { workload, size, goals: wanted, ratios, standings } of findings.searches) {
    // Of the ways to ask the database the quickest is its limit; of the two limits the lower one counts.
    const ofDatabase = Math.min(
      ...['database limit', 'database limit, prepared'].map((name) => ratios[name] ?? Number.NaN),
    );
    const ofSmaller = Math.max(ofDatabase, ratios['HTTP limit'] ?? Number.NaN);
    if (wanted.includes('limit'))
      atLeast(`${workload}, of the smaller limit, ${on(size)}`, ofSmaller, goals.ofSmallerLimit);
    if (wanted.includes('repeated')) {
      atLeast(`${workload}, of the HTTP limit, ${on(size)}`, ratios['HTTP limit'] ?? 0, goals.repeatedOfHttp);
    }
    const first = findings.searches.find((other) => other.workload === 'page 1' && other.size === size);
    const ours = standings.find(({ name }) => name === 'lanescan');
    const onFirst = first?.standings.find(({ name }) => name === 'lanescan');
    if (wanted.includes('depth') && ours && onFirst) {
      atMost(`${workload} beside page 1, ${on(size)}`, onFirst.rate / ours.rate, goals.depth);
    }
  }
  for (const { workload, size, ratios } of findings.peers) {
    for (const [name, ratio] of Object.entries(ratios)) {
      const isDeep = workload.includes('10,000');
      atLeast(
        `${workload}, times ${name}, ${on(size)}`,
        ratio,
        isDeep ? goals.timesOrmDeep : goals.timesPeer,
      );
    }
  }
  for (const { size, medianP99, worstP99, mostRowsRead } of findings.combinations) {
    atMost(
      `worst combination beside the median one, p99, ${on(size)}`,
      worstP99 / medianP99,
      goals.worstCombination,
    );
    atMost(`rows read by any combination, ${on(size)}`, mostRowsRead, ROWS_BOUND);
  }
  for (const { workload, ratios } of findings.growth) {
    atMost(`${workload}, ten times the data`, Math.max(...ratios), goals.growth);
  }
  for (const { ratios } of findings.imports)
    atLeast('import beside raw COPY', ratios.messages, goals.importOfCopy);
  for (const { growth } of findings.endurance) {
    atMost('memory at the end beside that after the first minute', growth, goals.memoryGrowth);
  }
  return verdicts;
}

/** Nothing is left out in silence. */
export function noteLeftOut(workload: string, size: number): void {
  console.error(`Left out: ${workload}, for which ${count(size)} messages are too few`);
}

/** A run of some parts must not replace the results of others. */
function fileName({
  isQuick,
  parts,
  settings,
}: {
  isQuick: boolean;
  parts: readonly string[];
  settings: RunSettings;
}): string {
  const sizes = settings.sizes.map((size) => (size < 1e6 ? `${size / 1e3}k` : `${size / 1e6}m`));
  return [isQuick ? 'quick' : 'bench', ...parts, ...sizes].join('-');
}

export async function writeResults(
  folder: string,
  findings: Findings,
  run: {
    startedAt: Date;
    usedByOthers: number;
    settings: RunSettings;
    isQuick: boolean;
    parts: readonly string[];
    postgres: string;
  },
): Promise<string> {
  await mkdir(folder, { recursive: true });
  const { dataFolder: _, ...settings } = run.settings;
  const results = {
    date: run.startedAt.toISOString(),
    minutes: Math.round((Date.now() - run.startedAt.getTime()) / 60_000),
    isQuick: run.isQuick,
    parts: run.parts,
    settings,
    machine: {
      ...machineFacts(),
      model: os.cpus()[0]?.model,
      platform: `${os.platform()} ${os.release()} ${os.arch()}`,
      postgres: run.postgres,
      usedByOthers: run.usedByOthers,
      isBusy: run.usedByOthers > MOST_FOR_OTHERS,
    },
    verdicts: judge(findings),
    findings,
  };
  if (results.machine.isBusy)
    console.log(`\nBUSY: others used ${Math.round(100 * run.usedByOthers)} % of the machine at the start`);
  const file = path.join(folder, `${fileName(run)}.json`);
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
  return file;
}
