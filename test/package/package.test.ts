// @module-tag release: packs, installs from the registry and starts the program on several versions of Node
/** The package that users install: made by `npm pack`, installed into an empty folder, run there as a plain user. */
import { execFileSync, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { freshFolder } from '../cli/program.ts';
import { makeMessage } from '../fixtures.ts';
import { npm, packRepository, quiet } from './packing.ts';

const repository = path.resolve(import.meta.dirname, '../..');
vi.setConfig({ testTimeout: 600_000, hookTimeout: 900_000 });

/** Root runs the program as nobody, for a plain user is what it is made for. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

let listing: string[];
let command: string;
/** The program of each major version of Node; undefined where the registry has none for this platform. */
const nodes = new Map<number, string | undefined>();

beforeAll(async () => {
  const work = openFolder();
  const tarball = await packRepository(work);
  listing = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');

  const installed = path.join(work, 'installed');
  fs.mkdirSync(installed);
  fs.writeFileSync(path.join(installed, 'package.json'), '{ "private": true }');
  // Strict: a package that asks for a newer Node than ours, of a dependency's dependency too, ends the installation.
  await npm(['install', tarball, '--engine-strict', ...quiet], installed);
  command = path.join(installed, 'node_modules/.bin/lanescan');
  for (const major of [18, 22, 24]) nodes.set(major, await installNode(major, work));
  nodes.set(Number.parseInt(process.versions.node, 10), process.execPath);
});

/** A folder that a plain user may enter. */
function openFolder(): string {
  const folder = freshFolder();
  fs.chmodSync(folder, 0o777);
  return folder;
}

/** npm has the programs of Node as packages, one for each platform. */
async function installNode(major: number, work: string): Promise<string | undefined> {
  const { platform, arch } = process;
  const name = `${platform === 'darwin' && arch === 'arm64' ? 'node-bin' : 'node'}-${platform}-${arch}`;
  const folder = path.join(work, `node-${major}`);
  fs.mkdirSync(folder);
  try {
    await npm(['install', '--prefix', folder, `${name}@${major}`, ...quiet], folder);
  } catch {
    process.stderr.write(`NO NODE ${major}: the registry has no ${name}@${major}; it is NOT TESTED.\n`);
    return undefined;
  }
  return path.join(folder, 'node_modules', name, 'bin/node');
}

/** Runs the installed command with a version of Node first in the path, as a plain user in an empty folder. */
function lanescanWith(node: string, args: readonly string[], cwd: string) {
  const bin = openFolder();
  fs.symlinkSync(node, path.join(bin, 'node'));
  const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: cwd, LANG: 'C.UTF-8' };
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], ...user });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  const outcome = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...said }));
  });
  return { child, said, outcome };
}

test('has the built program and its papers, and nothing of the build or the tests', () => {
  const files = listing.map((name) => name.replace(/^package\//, ''));
  expect(files).toEqual(
    expect.arrayContaining([
      'bin/lanescan',
      'dist/cli/main.js',
      'dist/explorer/index.html',
      'dist/store/schema/migrations/0021-baseline.sql',
      'openapi.json',
      'README.md',
    ]),
  );
  // Of TypeScript, only the declarations of `lanescan/client`.
  expect(
    files.filter((name) => /tsbuildinfo|(?<!\.d)\.ts$|^(src|test|bench|explorer)\/|built-for/.test(name)),
  ).toEqual([]);
  expect(files).toContain('dist/client/client.d.ts');
});

test('brings no package that only builds or tests', () => {
  const modules = path.resolve(path.dirname(command), '..');
  const lock = JSON.parse(fs.readFileSync(path.join(repository, 'package-lock.json'), 'utf8')).packages;
  const runtime = Object.keys(lock).filter((place) => place !== '' && !lock[place].dev);
  const names = new Set(runtime.map((place) => place.replace(/.*node_modules\//, '')));
  const installed = fs
    .readdirSync(modules)
    .filter((name) => !name.startsWith('.') && name !== 'lanescan')
    .flatMap((name) =>
      name.startsWith('@')
        ? fs.readdirSync(path.join(modules, name)).map((part) => `${name}/${part}`)
        : [name],
    );
  expect(installed.filter((name) => !names.has(name))).toEqual([]);
});

test('on Node 18: says that it is too old and what to install', async ({ skip }) => {
  const node = nodes.get(18);
  if (node === undefined) return skip('no Node 18 for this platform in the registry');
  const { code, stdout, stderr } = await lanescanWith(node, ['--help'], openFolder()).outcome;
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^lanescan: Node 18\.[\d.]+ is too old\. Install Node 20\.19 or later: .*\n$/);
});

describe.each([20, 22, 24])('on Node %i', (major) => {
  test('import, search, doctor and demo work as a plain user', async ({ skip }) => {
    const node = nodes.get(major);
    if (node === undefined) return skip(`no Node ${major} here`);
    const cwd = openFolder();
    const run = (...args: string[]) => lanescanWith(node, args, cwd).outcome;
    const message = makeMessage();
    fs.writeFileSync(path.join(cwd, 'messages.ndjson'), `${JSON.stringify(message)}\n`);

    const imported = await run('import', 'messages.ndjson');
    expect(imported.code, imported.stderr).toBe(0);
    const found = await run('search', '--json');
    expect(found.code, found.stderr).toBe(0);
    expect(found.stdout).toContain(message.messageId);
    const examined = await run('doctor');
    expect(examined.code, examined.stdout + examined.stderr).toBe(0);

    const demo = lanescanWith(node, ['demo', '--port', '0', '--data', path.join(cwd, 'demo')], cwd);
    while (!/listens on http/.test(demo.said.stderr)) {
      if (demo.child.exitCode !== null) throw new Error(demo.said.stderr);
      await delay(50);
    }
    const [, url] = /listens on (http:\/\/[\d.:]+)/.exec(demo.said.stderr) ?? [];
    // With the client of the package, as another program uses it.
    const script = `import { createClient } from 'lanescan/client';
      const { data } = await createClient({ url: '${url}' }).search({ limit: 2 });
      console.log(data.length);`;
    const clientOutput = execFileSync(node, ['--input-type=module', '--eval', script], {
      cwd: path.resolve(path.dirname(command), '../..'),
      encoding: 'utf8',
    });
    expect(clientOutput).toBe('2\n');
    expect((await fetch(`${url}/`)).status).toBe(200);
    demo.child.kill('SIGTERM');
    expect((await demo.outcome).code, demo.said.stderr).toBe(0);
  });
});
