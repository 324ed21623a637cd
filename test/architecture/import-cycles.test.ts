/**
 * No file imports itself through others, types included: a file can be understood after those that it imports.
 *
 * A test, not the linter's noImportCycles, which takes ten seconds for the same.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const repository = path.join(import.meta.dirname, '../..');

const files = ['src', 'explorer'].flatMap((folder) =>
  readdirSync(path.join(repository, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !file.includes('node_modules'))
    .map((file) => path.posix.join(folder, file.replaceAll('\\', '/'))),
);

type Graph = ReadonlyMap<string, readonly string[]>;

function importsOf(file: string): readonly string[] {
  const text = readFileSync(path.join(repository, file), 'utf8');
  const specifiers = text.matchAll(/^\s*(?:import|export)\s(?:[^'";]*?from\s*)?'(\.[^']+)'/gm);
  return [...specifiers].map(([, specifier = '']) => path.posix.join(path.posix.dirname(file), specifier));
}

/** The files of one cycle for each import that closes one. */
function cyclesOf(graph: Graph): readonly (readonly string[])[] {
  const cycles: (readonly string[])[] = [];
  const done = new Set<string>();
  const visit = (file: string, importers: readonly string[]): void => {
    const start = importers.indexOf(file);
    if (start >= 0) cycles.push(importers.slice(start));
    if (start >= 0 || done.has(file)) return;
    for (const imported of graph.get(file) ?? []) visit(imported, [...importers, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return cycles;
}

test('no import cycle exists in src or explorer', () => {
  const graph: Graph = new Map(files.map((file) => [file, importsOf(file)]));
  expect([...graph.values()].flat().length).toBeGreaterThan(files.length);
  expect(cyclesOf(graph)).toEqual([]);
});

test('a cycle is reported with its files', () => {
  const graph = { a: ['b'], b: ['c', 'd'], c: ['b'], d: [] };
  expect(cyclesOf(new Map(Object.entries(graph)))).toEqual([['b', 'c']]);
});
