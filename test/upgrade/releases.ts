/** Builds of earlier releases, made from the git history of this repository, and run as processes. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

const repository = path.resolve(import.meta.dirname, '../..');

/**
 * The last commits before the next migration came: those whose writers do not declare their schema, and the release
 * before this one.
 */
export const releases = [
  { schema: 5, commit: 'a76a13730f27e9e39a8bab023233a7de96881db4' },
  { schema: 6, commit: '614f49e9b1fc71050d5c96555b37656b9f4ae691' },
  { schema: 7, commit: 'fadba916a1984c6064343708181984e284fad246' },
  { schema: 10, commit: 'e760d1c188cad135f1b194879ea5262e90da7cb7' },
] as const;

/** Why the earlier releases cannot be built here; undefined where they can. */
export function missingHistory(): string | undefined {
  for (const { commit } of releases) {
    try {
      execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: repository, stdio: 'ignore' });
    } catch {
      return `the git history has no commit ${commit} (a shallow clone, or no clone at all)`;
    }
  }
  return undefined;
}

export interface Release {
  /** The program as an earlier release had it. */
  readonly program: string;
  remove(): void;
}

/** Builds a release into a temporary folder, with the packages of this one. */
export function buildRelease(commit: string): Release {
  const folder = mkdtempSync(path.join(os.tmpdir(), `lanescan-${commit.slice(0, 7)}-`));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const files = [
      'bin',
      'scripts',
      'src',
      'package.json',
      'tsconfig.json',
      'tsconfig.build.json',
      'openapi.json',
    ];
    const archive = execFileSync('git', ['archive', commit, ...files], { cwd: repository, maxBuffer: 1e9 });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    symlinkSync(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'));
    const compiler = path.join(repository, 'node_modules/typescript/bin/tsc');
    execFileSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { cwd: folder, stdio: 'pipe' });
    execFileSync(process.execPath, ['scripts/copy-assets.mjs'], { cwd: folder });
    // Its pages are not needed here.
    mkdirSync(path.join(folder, 'dist/explorer'), { recursive: true });
    return { program: path.join(folder, 'bin/lanescan'), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

export interface Running {
  readonly child: ChildProcess & { readonly stdin: Writable };
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
  /** What it has written to both of its outputs so far. */
  output(): string;
  /** Resolves when the output matches; throws when the program ends before. */
  untilSaid(pattern: RegExp): Promise<RegExpExecArray>;
}

export function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): Running {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [program, ...args], { cwd, env: { PATH, HOME, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  child.stdin.on('error', () => undefined);
  return {
    child,
    ended: once(child, 'close').then(([code]) => ({ code, output })),
    output: () => output,
    async untilSaid(pattern) {
      for (;;) {
        const match = pattern.exec(output);
        if (match) return match;
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`It ended: ${output}`);
        await delay(20);
      }
    },
  };
}
