/** ARCHITECTURE.md is a map: the files that it names by their path exist. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const repository = path.resolve(import.meta.dirname, '../..');
const map = readFileSync(path.join(repository, 'ARCHITECTURE.md'), 'utf8');
const named = [...map.matchAll(/`([a-z][a-z0-9-]*(?:\/[a-z0-9-]+)+(?:\.test)?\.ts)`/g)].map(
  ([, file = '']) => file,
);

test('names files that exist', () => {
  expect(named.length).toBeGreaterThan(30);
  const roots = [
    '',
    'src',
    'src/ingest',
    'src/ingest/engine',
    'src/ingest/evm',
    'src/store',
    'explorer/src',
    'test',
  ];
  const missing = named.filter(
    (file) => !roots.some((root) => existsSync(path.join(repository, root, file))),
  );
  expect(missing).toEqual([]);
});
