/** `lanescan index --once` as it is installed, from its start to its end, with its memory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import type { CcipChain } from '../../test/virtual-chain/ccip-chain.ts';
import type { Provider } from '../../test/virtual-chain/endpoint.ts';
import { startCpuClock } from '../cpu.ts';
import { program, residentBytes } from '../server.ts';

export interface ServedChain {
  readonly chain: CcipChain;
  readonly providers: readonly Provider[];
}

export interface LanescanSettings {
  /** Calls a second to each endpoint. */
  readonly requestsPerSecond: number;
  /** Blocks in one request for logs, at most. */
  readonly maxRange?: number;
}

export interface LanescanRun {
  readonly ms: number;
  /** The highest resident memory of each quarter of the time. */
  readonly mebibytesByQuarter: readonly number[];
  /** Seconds of processor time, up to a quarter of a second before its end: its own, PostgreSQL's, and of the chains. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
}

const SAMPLE_MS = 250;

/** @param postmaster the process that started all others of PostgreSQL */
export async function runLanescan(
  folder: string,
  databaseUrl: string,
  postmaster: number,
  served: readonly ServedChain[],
  { requestsPerSecond, maxRange }: LanescanSettings,
): Promise<LanescanRun> {
  const config = path.join(folder, 'lanescan.yaml');
  const networks = served.map(({ chain, providers }) => ({
    network: chain.network.name,
    rpc: providers.map(({ url }) => url.href),
    routers: [chain.router],
    requestsPerSecond,
    ...(maxRange !== undefined && { maxRange }),
  }));
  writeFileSync(config, stringify({ networks }));
  const began = performance.now();
  const child = spawn(program, ['index', '--once', '--config', config], {
    env: { PATH: process.env.PATH, NODE_OPTIONS: process.env.NODE_OPTIONS, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const pid = child.pid ?? 0;
  const clock = startCpuClock({ indexer: pid, database: { family: postmaster }, chains: process.pid });
  let used: Readonly<Record<string, number>> = {};
  const samples: { readonly atMs: number; readonly mebibytes: number }[] = [];
  const sampling = setInterval(() => {
    const mebibytes = residentBytes(pid) / 2 ** 20;
    if (mebibytes === 0) return;
    samples.push({ atMs: performance.now() - began, mebibytes });
    used = clock.stop();
  }, SAMPLE_MS);
  const [status] = await once(child, 'exit').finally(() => clearInterval(sampling));
  if (status !== 0) throw new Error(`lanescan index ended with status ${status}.`);
  const ms = performance.now() - began;
  const mebibytesByQuarter = [0, 1, 2, 3].map((quarter) => {
    const within = samples.filter(({ atMs }) => Math.floor((4 * atMs) / ms) === quarter);
    return Math.round(Math.max(0, ...within.map(({ mebibytes }) => mebibytes)));
  });
  const cpuSeconds = Object.fromEntries(Object.entries(used).map(([name, time]) => [name, time / 1e6]));
  return { ms, mebibytesByQuarter, cpuSeconds };
}
