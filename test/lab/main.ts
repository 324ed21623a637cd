/** `npm run lab`: the lab with traffic, indexed and served live, until Ctrl-C. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeConfiguration } from './config.ts';
import type { SolanaLabNetwork } from './svm/solana-network.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const port = process.env.PORT ?? '8080';
const seed = process.env.LAB_SEED ?? 'lab';
const messagesPerSecond = Number(process.env.LAB_RATE ?? '2');
const say = (line = '') => process.stdout.write(`${line}\n`);

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort());

const folder = mkdtempSync(path.join(os.tmpdir(), 'lanescan-lab-'));
try {
  await run();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function run(): Promise<void> {
  say(
    'Starting two local networks and deploying CCIP 1.2, 1.5, 1.6 and 2.0 on both, and Solana beside them …',
  );
  const [{ startLab }, { drive }, { driveSolana, startSolanaNetwork }] = await quietly(() =>
    Promise.all([import('./lab.ts'), import('./driver.ts'), import('./svm/solana-network.ts')]),
  );
  const lab = await startLab({ blockEveryMs: 2000 });
  let server: ChildProcess | undefined;
  let solana: SolanaLabNetwork | undefined;
  try {
    solana = await startSolanaNetwork(lab.a);
    const config = writeConfiguration(lab, folder, { others: [solana.configuration] });
    server = startServer(config);
    server.once('exit', () => {
      // Nobody asked it to: it has said why.
      if (!stopping.signal.aborted) process.exitCode = 1;
      stopping.abort();
    });
    await untilServed(stopping.signal);
    if (stopping.signal.aborted) return;
    say();
    const places = [
      ['Lanescan', `http://127.0.0.1:${port}`, 'documentation at /docs, messages at /v2/messages'],
      ...lab.networks.map(({ name, url, chainId }) => [name, url, `JSON-RPC, chain ${chainId}`]),
      ['solana-devnet', solana.url, 'JSON-RPC, a virtual cluster'],
      ['settings', config, ''],
    ];
    for (const [what = '', where = '', note = ''] of places)
      say(`  ${what.padEnd(14)}${where.padEnd(26)}${note}`.trimEnd());
    say();
    say(`Messages are on their way on ${lab.lanes.length + 2} lanes. Ctrl-C stops everything.`);
    const { signal } = stopping;
    await Promise.all([
      drive(lab, { seed, messagesPerSecond, signal }),
      driveSolana(solana, lab.a.foundation.receiver.address, seed, signal),
    ]);
  } finally {
    say('Stopping …');
    await stopServer(server);
    await solana?.stop();
    await lab.stop();
  }
}

function startServer(config: string): ChildProcess {
  const program = path.join(repository, 'bin/lanescan');
  const places = ['--config', config, '--data', path.join(folder, 'data')];
  const args = ['serve', '--index', ...places, '--port', port, '--log-level', 'warn'];
  return spawn(process.execPath, [program, ...args], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

async function untilServed(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const response = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (response?.ok) return;
    await delay(100);
  }
}

async function stopServer(server: ChildProcess | undefined): Promise<void> {
  if (!server || server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill('SIGTERM');
  await ended;
}

/** A package of the official client complains that it has no native part, which nobody needs. */
async function quietly<T>(load: () => Promise<T>): Promise<T> {
  const write = process.stderr.write;
  process.stderr.write = () => true;
  try {
    return await load();
  } finally {
    process.stderr.write = write;
  }
}
