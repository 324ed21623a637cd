// @module-tag slow: runs the linter over hundreds of imports; `npm run check` is the quick pass
/**
 * The import rules between folders: the linter rejects every forbidden import and accepts every allowed one.
 *
 * `biome.json` holds the rules. This file states them a second time, as a table, plants an import for every pair of
 * folders into an empty project with the same configuration, and compares what the linter rejects with the table.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';

const repository = path.join(import.meta.dirname, '../..');

const engine = 'src/ingest/engine';
const evm = 'src/ingest/evm';
const svm = 'src/ingest/svm';
const families = 'src/ingest/families.ts';
const sources = ['src/ingest', 'src/ingest/import', 'src/ingest/mirror', 'src/ingest/demo'];
const reads = 'src/store/reads';
/** The only file of that folder that others import. */
const readsEntrance = 'src/store/reads/reads.ts';
const text = 'src/text';
const client = 'src/client';
const below = ['src/base', 'src/domain', 'src/store', readsEntrance];
/** Beside the store. */
const beside = [...below, text];

/** What each folder, or file, may import beside itself. The longest name that fits a path decides. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  'src/base': [],
  'src/domain': ['src/base'],
  'src/store': ['src/base', 'src/domain', readsEntrance],
  [reads]: below,
  [readsEntrance]: [...below, reads],
  [text]: ['src/base', 'src/domain'],
  [client]: ['src/base', 'src/domain'],
  'src/ingest': [...beside, client, ...sources, engine, families],
  'src/ingest/import': [...beside, client, ...sources, engine, families],
  'src/ingest/mirror': [...beside, client, ...sources, engine, families],
  'src/ingest/demo': [...beside, client, ...sources, engine, families],
  [families]: [...beside, client, ...sources, engine, evm, svm],
  [engine]: [...beside, client, 'src/ingest'],
  [evm]: [...beside, client, 'src/ingest', engine],
  [svm]: [...beside, client, 'src/ingest', engine],
  'src/webhooks': beside,
  'src/api': beside,
  'src/cli': [...beside, client, ...sources, engine, families, 'src/webhooks', 'src/api'],
  explorer: ['src/base', 'src/domain', text, client],
};

const nodeModules = ['node:fs', 'node:fs/promises'];
const sql = ['pg', 'pg/lib/client.js', 'pg-copy-streams'];
const routes = ['fastify', 'fastify/fastify.js'];
const allowedInBase = ['@scure/base', 'typebox'];
const allowedInDomain = [...allowedInBase, '@noble/hashes/sha3.js'];
const packages = [...nodeModules, ...sql, ...routes, ...allowedInDomain, 'fs', 'pino', 'viem', 'viem/chains'];

/** Packages that a folder does not import; others are free. */
const forbiddenPackages: Readonly<Record<string, readonly string[]>> = {
  [text]: packages,
  [client]: packages,
  'src/base': packages.filter((name) => !allowedInBase.includes(name)),
  'src/domain': packages.filter((name) => !allowedInDomain.includes(name)),
  'src/ingest': [...sql, ...routes],
  'src/ingest/import': [...sql, ...routes],
  'src/ingest/mirror': [...sql, ...routes],
  'src/ingest/demo': [...sql, ...routes],
  [families]: [...sql, ...routes],
  [engine]: [...sql, ...routes, 'viem', 'viem/chains'],
  [evm]: [...sql, ...routes],
  [svm]: [...sql, ...routes, 'viem', 'viem/chains'],
  'src/webhooks': [...sql, ...routes],
  'src/api': sql,
  explorer: nodeModules,
};

/** The entry of the table that a file belongs to. */
function layerOf(file: string): string {
  const layers = Object.keys(mayImport).filter((layer) => file === layer || file.startsWith(`${layer}/`));
  const [longest] = layers.sort((a, b) => b.length - a.length);
  if (!longest)
    throw new Error(`${file} has no import rules. Add its folder to biome.json and to this table.`);
  return longest;
}

function isAllowed(importer: string, specifier: string): boolean {
  const layer = layerOf(importer);
  if (!specifier.startsWith('.')) return !forbiddenPackages[layer]?.includes(specifier);
  const target = layerOf(path.posix.join(path.posix.dirname(importer), specifier));
  return target === layer || (mayImport[layer] ?? []).includes(target);
}

const sourceFiles = ['src', 'explorer'].flatMap((folder) =>
  readdirSync(path.join(repository, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => `${folder}/${file.replaceAll('\\', '/')}`)
    .filter((file) => /\.tsx?$/.test(file) && !file.includes('node_modules')),
);
const folders = [...new Set(sourceFiles.map((file) => path.posix.dirname(file)))];

/** Every folder with code, and a folder below each, so that the rules hold at depths that do not exist yet. */
const plantedFolders = folders.flatMap((folder) =>
  folder === 'explorer' ? [folder] : [folder, `${folder}/deeper`],
);
const importers = [...plantedFolders.map((folder) => `${folder}/planted.ts`), families, readsEntrance];
const targets = [...plantedFolders.map((folder) => `${folder}/target.ts`), families, readsEntrance];
/** Files that are named like a folder are not that folder. */
const lookalikes = ['./api.ts', './store.ts', './evm.ts', './cli-like/chain.ts', './demo.ts'];

const forms: readonly ((specifier: string, name: string) => string)[] = [
  (specifier, name) => `import { ${name} } from '${specifier}';`,
  (specifier, name) => `import type { ${name} } from '${specifier}';`,
  (specifier, name) => `export { ${name} } from '${specifier}';`,
  (specifier) => `await import('${specifier}');`,
];

function specifiersFor(importer: string): readonly string[] {
  const isExplorer = importer.startsWith('explorer/');
  const relative = targets
    // The build of src/ takes no file from outside it (`rootDir` of tsconfig.build.json).
    .filter((target) => target !== importer && (isExplorer || !target.startsWith('explorer/')))
    .map((target) => path.posix.relative(path.posix.dirname(importer), target))
    .map((target) => (target.startsWith('.') ? target : `./${target}`));
  return [...relative, ...lookalikes, ...packages];
}

/** The lines that the linter rejects, as `file:line`. */
async function rejectedLines(project: string): Promise<Set<string>> {
  const biome = path.join(repository, 'node_modules/@biomejs/biome/bin/biome');
  const rule = ['--only=style/noRestrictedImports', '--max-diagnostics=none', '--reporter=github'];
  const output = await new Promise<string>((resolve) =>
    execFile(
      process.execPath,
      [biome, 'lint', '--vcs-enabled=false', ...rule],
      { cwd: project, maxBuffer: 2 ** 28 },
      (_error, stdout, stderr) => resolve(stdout + stderr),
    ),
  );
  const found = [...output.matchAll(/noRestrictedImports,file=([^,]+),line=(\d+),/g)];
  if (found.length === 0) throw new Error(`The linter rejected nothing:\n${output}`);
  return new Set(found.map(([, file, line]) => `${file}:${line}`));
}

test('the linter rejects every forbidden import, from every depth and in every form, and no other', async () => {
  const project = mkdtempSync(path.join(tmpdir(), 'lanescan-imports-'));
  try {
    cpSync(path.join(repository, 'biome.json'), path.join(project, 'biome.json'));
    const planted = importers.flatMap((importer) => {
      const lines = specifiersFor(importer).flatMap((specifier, i) =>
        forms.map((form, j) => ({ specifier, text: form(specifier, `name${i}_${j}`) })),
      );
      mkdirSync(path.join(project, path.dirname(importer)), { recursive: true });
      writeFileSync(path.join(project, importer), lines.map(({ text }) => `${text}\n`).join(''));
      return lines.map(({ specifier, text }, index) => ({ importer, specifier, text, line: index + 1 }));
    });

    const rejected = await rejectedLines(project);

    const isRejected = ({ importer, line }: { importer: string; line: number }) =>
      rejected.has(`${importer}:${line}`);
    const shown = ({ importer, text }: { importer: string; text: string }) => `${importer}: ${text}`;
    const forbidden = planted.filter(({ importer, specifier }) => !isAllowed(importer, specifier));
    const allowed = planted.filter(({ importer, specifier }) => isAllowed(importer, specifier));
    expect(forbidden.filter((plant) => !isRejected(plant)).map(shown)).toEqual([]);
    expect(allowed.filter(isRejected).map(shown)).toEqual([]);
    for (const layer of Object.keys(mayImport))
      expect(
        forbidden.some(({ importer }) => layerOf(importer) === layer),
        `nothing was planted in ${layer}`,
      ).toBe(true);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
});

/**
 * Imports in forms that the linter does not look at: types (`import('x').T`), `require`, and a specifier that is not a
 * plain string. Gives the specifiers that are forbidden or cannot be known.
 */
function unseenViolations(file: string, text: string): string[] {
  return [...text.matchAll(/\b(?:import|require)\s*\(\s*([^()]*?)\s*,?\s*\)/g)].flatMap(
    ([, argument = '']) => {
      const specifier = /^(['"`])([^$]*)\1$/.exec(argument)?.[2];
      return specifier !== undefined && isAllowed(file, specifier) ? [] : [`${file}: ${argument}`];
    },
  );
}

test('imports in forms that the linter does not see obey the same rules', () => {
  const violations = sourceFiles.flatMap((file) =>
    unseenViolations(file, readFileSync(path.join(repository, file), 'utf8')),
  );
  // The package with PostgreSQL is chosen by platform, and may not be installed.
  expect(violations).toEqual(['src/store/server/embedded-binaries.ts: packageName']);

  const store = '../store/store.ts';
  expect(unseenViolations('src/domain/x.ts', `type Row = import('${store}').Row;`)).toHaveLength(1);
  expect(unseenViolations('src/domain/x.ts', `await import(\`${store}\`)`)).toHaveLength(1);
  expect(unseenViolations('src/domain/x.ts', `require("${store}")`)).toHaveLength(1);
  expect(unseenViolations('src/api/x.ts', `type Row = import('${store}').Row;`)).toEqual([]);
});
