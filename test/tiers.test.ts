/** Which tests run in which tier: see tiers.ts. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { hasTestsOf, tagOf, testFiles, tiers } from './tiers.ts';

const repository = path.join(import.meta.dirname, '..');

async function listedFiles(...flags: readonly string[]): Promise<readonly string[]> {
  const vitest = path.join(repository, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'list', '--filesOnly', '--json', ...flags];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repository });
  const listed: readonly { readonly file: string }[] = JSON.parse(stdout);
  return listed.map(({ file }) => path.relative(repository, file)).sort();
}

const everyFile = [...testFiles()].sort();
const isSlow = (file: string) => tagOf(file) !== undefined;

describe('a test file', () => {
  test('runs exactly once in the tier of all tests', { tags: 'slow' }, async () => {
    expect(await listedFiles()).toEqual(everyFile);
  });

  test('runs in the quick tier unless it says that it is slow', { tags: 'slow' }, async () => {
    expect(await listedFiles('--mode', 'quick')).toEqual(everyFile.filter((file) => !isSlow(file)));
  });

  test.each(['slow', 'release'] as const)(
    'runs in the %s tier where it has such a test',
    { tags: 'slow' },
    async (tier) => {
      expect(await listedFiles('--mode', tier)).toEqual(everyFile.filter((file) => hasTestsOf(file, tier)));
      for (const file of everyFile)
        expect(
          Object.keys(tiers).some((any) => hasTestsOf(file, any as typeof tier)),
          file,
        ).toBe(true);
    },
  );

  test('that is slow says why', () => {
    for (const file of everyFile.filter(isSlow)) expect(tagOf(file)?.because, file).toMatch(/\w{3}/);
  });
});

test('every wait says how long it may take, because `vi.waitFor` gives up after a second by default', () => {
  const hasty = everyFile.flatMap((file) => {
    const source = readFileSync(path.join(repository, file), 'utf8');
    return [...source.matchAll(/vi\.wait(For|Until)\(/g)]
      .filter(({ index, 0: call }) => argumentCount(source.slice(index + call.length)) < 2)
      .map(({ index }) => `${file}:${source.slice(0, index).split('\n').length}`);
  });
  expect(hasty).toEqual([]);
});

/** How many arguments a call has; `rest` begins behind its opening parenthesis. */
function argumentCount(rest: string): number {
  let depth = 0;
  let count = 1;
  for (let index = 0; index < rest.length; index++) {
    const character = rest.charAt(index);
    if ('([{'.includes(character)) depth++;
    if (')]}'.includes(character) && depth-- === 0) break;
    // A trailing comma begins no argument.
    if (character === ',' && depth === 0 && !/^\s*\)/.test(rest.slice(index + 1))) count++;
  }
  return count;
}

/** Folders whose tests are all slow, each with the reason. */
const slowFolders = [
  // Restarts servers behind real proxies.
  'test/proxy',
  // Rebuilds the derived rows of whole stores.
  'test/store/derived',
];

test('every folder of tests has a part in the quick tier, but for those that cannot', () => {
  const folders = new Set(everyFile.map((file) => path.dirname(file)));
  const quick = new Set(everyFile.filter((file) => !isSlow(file)).map((file) => path.dirname(file)));
  expect([...quick, ...slowFolders].sort()).toEqual([...folders].sort());
});
