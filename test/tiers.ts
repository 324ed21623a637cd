/**
 * The two tiers of tests. `npm test` runs the quick tests, `npm run test:all` all of them, `vitest run --mode slow` the
 * rest.
 *
 * A test is quick unless it is tagged slow. One test, or a group of tests:
 *
 *     test('a million rows are exported', { tags: 'slow' }, async () => …
 *
 * A whole file, in its first line and with the reason:
 *
 *     // @module-tag slow: kills a process forty times
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const repository = path.join(import.meta.dirname, '..');

/** All test files, as paths from the repository's root. */
export function testFiles(folder = 'test'): readonly string[] {
  return readdirSync(path.join(repository, folder), { withFileTypes: true }).flatMap((entry) => {
    const file = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : testFiles(file);
    return entry.name.endsWith('.test.ts') ? [file] : [];
  });
}

/** Why a whole file is slow; undefined where it is not. */
export function slowBecause(file: string): string | undefined {
  const [firstLine = ''] = readFileSync(path.join(repository, file), 'utf8').split('\n', 1);
  return /^\/\/ @module-tag slow\b:?(.*)/.exec(firstLine)?.[1]?.trim();
}

export type Tier = 'quick' | 'slow' | 'all';

/** Whether a file has any test of this tier. */
export function hasTestsOf(file: string, tier: Tier): boolean {
  if (tier === 'quick') return slowBecause(file) === undefined;
  const hasSlowTest = () => readFileSync(path.join(repository, file), 'utf8').includes("tags: 'slow'");
  return tier === 'all' || slowBecause(file) !== undefined || hasSlowTest();
}
