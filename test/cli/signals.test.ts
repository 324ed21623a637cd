// @module-tag slow: starts and stops an embedded PostgreSQL for each signal
/** What stops the program, and that the embedded PostgreSQL stops with it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import {
  buildProgram,
  configFile,
  freshFolder,
  hasTerminal,
  type Running,
  sepoliaYaml,
  start,
} from './program.ts';

const program = path.resolve(import.meta.dirname, '../../bin/lanescan');
/** A server without members stops by itself after half a minute; a loaded machine takes longer. */
const WATCHDOG_MS = 150_000;

vi.setConfig({ testTimeout: 240_000 });
beforeAll(buildProgram);

/** The servers of this data folder and the Lanescan processes that use it, by process id. */
function processesOf(data: string): { readonly databases: number[]; readonly programs: number[] } {
  const all = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  const pidsOf = (pattern: (line: string) => boolean) =>
    all.filter(pattern).map((line) => Number.parseInt(line, 10));
  return {
    databases: pidsOf((line) => line.includes(`-D ${path.join(data, 'postgres')}`)),
    programs: pidsOf((line) => /node .*bin\/lanescan/.test(line) && line.includes(data)),
  };
}

const none = { databases: [], programs: [] };

function freshData(): string {
  const data = path.join(freshFolder(), 'data');
  onTestFinished(() => {
    const { databases, programs } = processesOf(data);
    for (const pid of programs) process.kill(pid, 'SIGKILL');
    for (const pid of databases) process.kill(pid, 'SIGQUIT');
  });
  return data;
}

/** Verbs, with what they have said once they are at work. */
const cases = [
  { verb: 'serve', args: ['--port', '0'], atWork: /listens on/, code: 0 },
  { verb: 'index', args: [], atWork: /sepolia/, code: 0 },
  { verb: 'import', args: ['-'], atWork: /Starting PostgreSQL/, code: 130 },
  { verb: 'demo', args: ['--port', '0'], atWork: /generating a month/, code: 130 },
];

test.for(cases)(
  '$verb stops at SIGHUP as at SIGTERM, and PostgreSQL with it',
  async ({ verb, args, atWork, code }) => {
    const data = freshData();
    const settings = verb === 'index' ? ['--config', configFile(sepoliaYaml('http://127.0.0.1:1'))] : [];
    for (const signal of ['SIGHUP', 'SIGTERM'] as const) {
      const running = start([verb, ...args, ...settings, '--data', data], { input: null });
      await running.untilSaid(atWork);
      await expect.poll(() => processesOf(data).databases.length).toBe(1);
      running.child.kill(signal);
      const outcome = await running.outcome;
      expect({ signal, code: outcome.code }, outcome.stderr).toEqual({ signal, code });
      expect(processesOf(data)).toEqual(none);
    }
  },
);

test('a signal that arrives several times in one moment still stops in good order', async () => {
  for (const [signal, times] of Object.entries({ SIGHUP: 3, SIGINT: 2 })) {
    const data = freshData();
    const server = start(['serve', '--port', '0', '--data', data]);
    await server.untilSaid(/listens on/);
    for (let n = 0; n < times; n++) {
      server.child.kill(signal as NodeJS.Signals);
      // Two that are pending at once are one to the kernel.
      await delay(20);
    }
    const { code, stderr } = await server.outcome;
    expect(code, stderr).toBe(0);
    expect(processesOf(data)).toEqual(none);
  }
});

test.skipIf(!hasTerminal)('a terminal that is closed leaves neither the server nor PostgreSQL', async () => {
  const data = freshData();
  const command = `exec ${program} serve --port 0 --data ${data}`;
  const terminal = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: path.dirname(data),
    env: { PATH: process.env.PATH, TERM: 'xterm' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await untilWritten(terminal, /listens on/);
  terminal.kill('SIGKILL');
  await expect.poll(() => processesOf(data)).toEqual(none);
});

/** The program as the child of a shell, which can then be killed. */
async function underShell(data: string, environment: Record<string, string>): Promise<ChildProcess> {
  const shell = spawn('sh', ['-c', `${program} serve --port 0 --data ${data}; true`], {
    cwd: path.dirname(data),
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await untilWritten(shell, /listens on/);
  return shell;
}

async function untilWritten({ stdout, stderr }: ChildProcess, pattern: RegExp): Promise<void> {
  let written = '';
  for (const stream of [stdout, stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      written += text;
    });
  }
  await expect.poll(() => written).toMatch(pattern);
}

test('started by npm it ends with npm; started by another process it outlives that', {
  tags: 'slow',
}, async () => {
  const [withNpm, alone] = [freshData(), freshData()];
  const npm = await underShell(withNpm, { npm_lifecycle_event: 'start' });
  const shell = await underShell(alone, {});
  shell.kill('SIGKILL');
  npm.kill('SIGKILL');
  await expect.poll(() => processesOf(withNpm)).toEqual(none);
  const { programs, databases } = processesOf(alone);
  expect({ programs: programs.length, databases: databases.length }).toEqual({ programs: 1, databases: 1 });
  process.kill(programs[0] ?? 0, 'SIGTERM');
  await expect.poll(() => processesOf(alone)).toEqual(none);
});

test('with several processes, kill -9 of the one that was started leaves no other and, soon, no PostgreSQL', {
  tags: 'slow',
}, async () => {
  const data = freshData();
  const server: Running = start(['serve', '--port', '0', '--processes', '2', '--data', data]);
  await server.untilSaid(/listens on/);
  server.child.kill('SIGKILL');
  await expect.poll(() => processesOf(data), { timeout: WATCHDOG_MS, interval: 500 }).toEqual(none);
});
