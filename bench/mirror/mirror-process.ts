/** `lanescan mirror --once` as it is installed, killed after a number of records or left to its end, with its memory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { program } from '../server.ts';

export interface MirrorProcessOptions {
  readonly sourceUrl: string;
  readonly databaseUrl: string;
  readonly requestsPerSecond: number;
  readonly memoryFile: string;
  readonly memoryIntervalMs: number;
  /** Asked now and then: `kill` ends the process with SIGKILL, `stop` with SIGTERM. */
  readonly decide: () => Promise<'continue' | 'kill' | 'stop'>;
}

export type MirrorEnd = 'complete' | 'killed' | 'stopped';

interface MemorySample {
  readonly atSeconds: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
}

/** By quarter of the time of one process, in MiB. */
export interface MemoryByQuarter {
  readonly seconds: number;
  readonly samples: number;
  /** The highest. */
  readonly resident: readonly number[];
  /** The lowest, soon after a garbage collection: about what is alive. */
  readonly heap: readonly number[];
}

const DECIDE_INTERVAL_MS = 1_000;
const sampler = pathToFileURL(path.join(import.meta.dirname, 'memory-sampler.mjs')).href;

export async function runMirror(options: MirrorProcessOptions): Promise<MirrorEnd> {
  const child = spawn(
    program,
    ['mirror', options.sourceUrl, '--once', '--rate', String(options.requestsPerSecond)],
    {
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        DATABASE_URL: options.databaseUrl,
        NODE_OPTIONS: `--import=${sampler}`,
        BENCH_MEMORY_FILE: options.memoryFile,
        BENCH_MEMORY_INTERVAL_MS: String(options.memoryIntervalMs),
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const ended = once(child, 'exit');
  let end: MirrorEnd = 'complete';
  while (end === 'complete' && child.exitCode === null && child.signalCode === null) {
    await Promise.race([ended, delay(DECIDE_INTERVAL_MS)]);
    const decision = await options.decide();
    if (decision === 'continue' || child.exitCode !== null) continue;
    end = decision === 'kill' ? 'killed' : 'stopped';
    child.kill(decision === 'kill' ? 'SIGKILL' : 'SIGTERM');
  }
  const [status, signal] = await ended;
  if (end === 'complete' && status !== 0) throw new Error(`lanescan mirror ended with ${status ?? signal}.`);
  return end;
}

export function readMemory(file: string): MemoryByQuarter | undefined {
  if (!existsSync(file)) return undefined;
  const samples = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as MemorySample);
  const seconds = samples.at(-1)?.atSeconds ?? 0;
  const quarters = [0, 1, 2, 3].map((quarter) =>
    samples.filter(
      ({ atSeconds }) => Math.min(3, Math.floor((4 * atSeconds) / Math.max(seconds, 1))) === quarter,
    ),
  );
  const mebibytes = (bytes: number) => (Number.isFinite(bytes) ? Math.round(bytes / 2 ** 20) : 0);
  return {
    seconds,
    samples: samples.length,
    resident: quarters.map((quarter) =>
      mebibytes(Math.max(...quarter.map(({ residentBytes }) => residentBytes))),
    ),
    heap: quarters.map((quarter) => mebibytes(Math.min(...quarter.map(({ heapBytes }) => heapBytes)))),
  };
}
