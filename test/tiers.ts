/**
 * The three tiers of tests:
 *
 * - quick: `npm test`, before each commit.
 * - slow: `npm run test:slow`, in CI for each push together with the quick ones.
 * - release: `npm run test:release`, before a release. These tests take minutes and show a rare case of what a slow test
 *   shows already: every step of an upgrade interrupted, an endpoint given up after real minutes, a retired version.
 *
 * `npm run test:all` runs all three, and so does `npx vitest run <file>`.
 *
 * A test is quick unless it is tagged slow or release. One test, or a group of tests:
 *
 *     test('a million rows are exported', { tags: 'slow' }, async () => …
 *
 * A whole file, in its first line and with the reason; its tests may still be tagged release:
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

/** The tier of a whole file, and why; undefined where single tests decide. */
export function tagOf(file: string): { readonly tag: string; readonly because: string } | undefined {
  const [firstLine = ''] = readFileSync(path.join(repository, file), 'utf8').split('\n', 1);
  const [, tag, because = ''] = /^\/\/ @module-tag (slow|release)\b:?(.*)/.exec(firstLine) ?? [];
  return tag === undefined ? undefined : { tag, because: because.trim() };
}

/** Each tier with the tags of its tests. */
export const tiers = {
  quick: 'not slow and not release',
  slow: 'slow and not release',
  release: 'release',
} as const;

export type Tier = keyof typeof tiers;

export function isTier(text: string): text is Tier {
  return Object.hasOwn(tiers, text);
}

export function tierOf(tags: readonly string[]): Tier {
  return tags.includes('release') ? 'release' : tags.includes('slow') ? 'slow' : 'quick';
}

/** Whether a file has any test of this tier. */
export function hasTestsOf(file: string, tier: Tier): boolean {
  const tag = tagOf(file)?.tag;
  if (tier === 'quick') return tag === undefined;
  const hasTest = readFileSync(path.join(repository, file), 'utf8').includes(`tags: '${tier}'`);
  return tag === tier || (hasTest && tag !== 'release');
}
