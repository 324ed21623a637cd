/** The built program as a process: run to its end, started and watched, or run on a terminal of a chosen width. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommandLine } from '../../src/cli/main.ts';
import { freshFolder } from '../fresh-folder.ts';

export { freshFolder };

const repository = path.resolve(import.meta.dirname, '../..');
const program = path.join(repository, 'bin/lanescan');
const builtStamp = path.join(repository, 'dist/.built-for-tests');
const buildLock = path.join(os.tmpdir(), 'lanescan-test-build.lock');

/** Builds the program unless it is newer than its source. Files that are tested at once build once. */
export async function buildProgram(): Promise<void> {
  for (;;) {
    if (isBuilt()) return;
    try {
      mkdirSync(buildLock);
      break;
    } catch {
      if (Date.now() - (statSync(buildLock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > 120_000) {
        rmSync(buildLock, { recursive: true, force: true });
      }
      await delay(100);
    }
  }
  try {
    const startedAt = new Date();
    execFileSync('npm', ['run', '--silent', 'build'], {
      cwd: repository,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    writeFileSync(builtStamp, '');
    utimesSync(builtStamp, startedAt, startedAt);
  } finally {
    rmSync(buildLock, { recursive: true, force: true });
  }
}

function isBuilt(): boolean {
  const stamp = statSync(builtStamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = ['src', 'explorer'].flatMap((folder) =>
    readdirSync(path.join(repository, folder), { recursive: true, withFileTypes: true }),
  );
  return sources.every((file) => statSync(path.join(file.parentPath, file.name)).mtimeMs < stamp);
}

export interface Setting {
  readonly env?: Readonly<Record<string, string>>;
  /** A fresh folder unless given. */
  readonly cwd?: string;
  /** What standard input gives; null keeps it open and silent. Without it, it is empty. */
  readonly input?: string | Buffer | null;
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of the test run must not decide results. */
function environmentOf({ env }: Setting): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, TERM: 'xterm', LANG: 'C.UTF-8', ...env };
}

/**
 * The command line run to its end inside this process: everything but the start of Node, which would take up
 * most of the time of the many tests that need no process of their own.
 */
export async function lanescan(args: readonly string[], { env, input = '' }: Setting = {}): Promise<Outcome> {
  const said = { stdout: '', stderr: '' };
  const collector = (name: 'stdout' | 'stderr') =>
    new Writable({
      decodeStrings: false,
      write(text: string, _encoding, done) {
        said[name] += text;
        done();
      },
    });
  const stand = Object.assign(new EventEmitter(), {
    argv: ['node', 'lanescan', ...args],
    env: env ?? {},
    stdin: Readable.from([Buffer.from(input ?? '')]),
    stdout: collector('stdout'),
    stderr: collector('stderr'),
  });
  const code = await runCommandLine(stand as unknown as NodeJS.Process);
  return { code, ...said };
}

/** The command line with this database. */
export function lanescanOn({ url }: { readonly url: string }, ...args: readonly string[]): Promise<Outcome> {
  return lanescan(args, { env: { DATABASE_URL: url } });
}

/** A lanescan.yaml in a fresh folder; the answer is its path. */
export function configFile(text: string): string {
  const file = path.join(freshFolder(), 'lanescan.yaml');
  writeFileSync(file, text);
  return file;
}

/** `networks` of a lanescan.yaml: Sepolia, with these endpoints. */
export const sepoliaYaml = (...rpc: readonly string[]) =>
  `networks:
  - network: ethereum-testnet-sepolia
    rpc: ${JSON.stringify(rpc)}
    routers: ["0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59"]
`;

/** The built program run to its end. */
export function runProgram(args: readonly string[], setting: Setting = {}): Promise<Outcome> {
  return start(args, setting).outcome;
}

export type Running = ReturnType<typeof start>;

export function start(args: readonly string[], setting: Setting = {}) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: setting.cwd ?? freshFolder(),
    env: environmentOf(setting),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  }
  child.stdin.on('error', () => undefined);
  if (setting.input !== null) child.stdin.end(setting.input);
  const untilSaid = async (pattern: RegExp) => {
    for (;;) {
      const match = pattern.exec(said.stderr);
      if (match) return match;
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`It ended: ${said.stderr}`);
      await delay(20);
    }
  };
  return {
    child: child as ChildProcess & { readonly pid: number; readonly stdin: Writable },
    outcome: once(child, 'close').then(([code]): Outcome => ({ code, ...said })),
    /** What it has written so far. */
    said: () => ({ ...said }),
    /** Resolves when standard error matches. */
    untilSaid,
    /** Resolves with its URL when it listens. */
    untilListening: async () => (await untilSaid(/listens on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? '',
  };
}

/** A shell command in which `lanescan` is the program. */
export function shell(command: string, setting: Setting = {}): Outcome {
  const place = { cwd: setting.cwd ?? freshFolder(), env: environmentOf(setting) };
  const script = `lanescan() { ${program} "$@"; }\n${command}`;
  const options = { ...place, encoding: 'utf8', maxBuffer: 1e9 } as const;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script], options);
  return { code: status, stdout, stderr };
}

/** script(1) of util-linux makes a terminal; elsewhere these tests are skipped, and the run names them. */
export const hasTerminal = existsSync('/usr/bin/script') && process.platform === 'linux';

/** The lines that a terminal of this width gets, colours and all; standard error goes to the same terminal. */
export function onTerminal(
  columns: number,
  command: string,
  setting: Setting = {},
): { code: number | null; lines: string[] } {
  const inside = `stty cols ${columns} rows 50; ${command.replace(/^lanescan/, `exec ${program}`)}`;
  const { status, stdout } = spawnSync('script', ['-qec', inside, '/dev/null'], {
    cwd: setting.cwd ?? freshFolder(),
    env: environmentOf(setting),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return { code: status, lines: stdout.replaceAll('\r\n', '\n').trimEnd().split('\n') };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are made of them
export const withoutColours = (text: string) => text.replace(/\u001b\[[0-9;]*m/g, '');
