/** What tests of the package need: programs of the operating system, and the package that `npm pack` makes of this repository. */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { systemPostgres } from '../chaos/system-postgres.ts';

/** Whether root can run all these programs and PostgreSQL here. Says on standard error what is not tested without them. */
export function canRunAsRoot(what: string, programs: string): boolean {
  const isRoot = process.getuid?.() === 0;
  const absent = programs.split(' ').filter((program) => spawnSync('which', [program]).status !== 0);
  const missing = [
    ...(isRoot ? [] : ['root']),
    ...absent,
    ...(systemPostgres === undefined ? ['PostgreSQL 15'] : []),
  ];
  if (missing.length === 0) return true;
  process.stderr.write(`\nNOT TESTED: ${what}. Missing: ${missing.join(', ')}.\n\n`);
  return false;
}

/** Arguments of bubblewrap that mount a file or folder of this machine at each of these places. */
export function mountsAt(
  how: '--bind' | '--ro-bind',
  sources: Readonly<Record<string, string>>,
): readonly string[] {
  return Object.entries(sources).flatMap(([place, source]) => [how, source, place]);
}

import * as fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

const repository = path.resolve(import.meta.dirname, '../..');

export const quiet: readonly string[] = ['--no-audit', '--no-fund', '--loglevel=error'];

export function npm(args: readonly string[], cwd: string): Promise<unknown> {
  return promisify(execFile)('npm', args, { cwd });
}

/** The path of the tarball, which is made in the folder. */
export async function packRepository(folder: string): Promise<string> {
  // A copy, for packing removes and builds dist/, which other tests are using.
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', list, { cwd: repository, encoding: 'utf8' }).split('\0');
  const clone = path.join(folder, 'clone');
  for (const file of files.filter((name) => name !== '' && fs.existsSync(path.join(repository, name)))) {
    fs.cpSync(path.join(repository, file), path.join(clone, file));
  }
  fs.symlinkSync(path.join(repository, 'node_modules'), path.join(clone, 'node_modules'));
  await npm(['pack', '--pack-destination', folder, ...quiet], clone);
  const tarball = fs.readdirSync(folder).find((name) => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error(`npm pack made no package in ${folder}`);
  return path.join(folder, tarball);
}
