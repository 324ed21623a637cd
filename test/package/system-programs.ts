/** What tests need of the operating system, which not every machine has. */
import { spawnSync } from 'node:child_process';
import { systemPostgres } from '../chaos/system-postgres.ts';

/** Whether root can run all these programs and PostgreSQL here. Says on standard error what is not tested without them. */
export function canRunAsRoot(what: string, programs: readonly string[]): boolean {
  const isRoot = process.getuid?.() === 0;
  const absent = programs.filter((program) => spawnSync('which', [program]).status !== 0);
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
