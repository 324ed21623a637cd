/** Files in `results/`: figures with the date and the machine that they were measured on. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const folder = path.join(import.meta.dirname, 'results');

export function machineFacts() {
  return {
    cores: os.cpus().length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    arch: os.arch(),
    node: process.version,
  };
}

/** Of today, UTC. */
export function measuredOn(): string {
  return new Date().toISOString().slice(0, 10);
}

/** @param name without the extension */
export function writeResults(name: string, results: object): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

/** Of a benchmark with parts: a part that was not measured keeps its former result, unless it is no longer among `known`. */
export function writeParts<P extends string>(
  name: string,
  known: readonly P[],
  results: Readonly<Partial<Record<P, unknown>>>,
): void {
  const file = path.join(folder, `${name}.json`);
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {};
  const former = Object.entries(before).filter(([part]) => known.includes(part as P));
  const machine = machineFacts();
  const dated = Object.entries(results).map(([part, result]) => [
    part,
    { date: measuredOn(), machine, result },
  ]);
  writeResults(name, Object.fromEntries([...former, ...dated]));
}
