/** The workflows and release scripts: what they name exists. They themselves run on the hosting service only. */
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const repository = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => fs.readFileSync(path.join(repository, file), 'utf8');
const manifest = JSON.parse(read('package.json'));

interface Workflow {
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly 'timeout-minutes': number;
        readonly strategy?: { readonly matrix: { readonly node: readonly number[] } };
        readonly needs?: string;
        readonly permissions?: Readonly<Record<string, string>>;
        readonly steps: readonly {
          readonly run?: string;
          readonly uses?: string;
          readonly with?: Readonly<Record<string, unknown>>;
        }[];
      }
    >
  >;
  readonly permissions: Readonly<Record<string, string>>;
}

const files = fs.readdirSync(path.join(repository, '.github/workflows'));
const workflows = new Map(files.map((file) => [file, parse(read(`.github/workflows/${file}`)) as Workflow]));
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps);

describe.each([...workflows])('%s', (_, workflow) => {
  test('runs npm scripts and programs of this repository that exist', () => {
    const commands = stepsOf(workflow).map(({ run = '' }) => run);
    const scripts = commands.flatMap((run) =>
      [...run.matchAll(/npm run (\S+)/g)].map(([, name = '']) => name),
    );
    expect(scripts.filter((name) => manifest.scripts[name] === undefined)).toEqual([]);
    const programs = commands.flatMap((run) =>
      [...run.matchAll(/node (\S+\.mjs)/g)].map(([, file = '']) => file),
    );
    expect(programs.filter((file) => !fs.existsSync(path.join(repository, file)))).toEqual([]);
  });

  test('may only read the repository unless a job asks for more, and ends in a bounded time', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    for (const job of Object.values(workflow.jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0);
  });
});

test('the versions of Node that are tested begin with the oldest that package.json allows', () => {
  const tested = workflows.get('test.yaml')?.jobs.quick?.strategy?.matrix.node;
  const [, oldest] = /^>=(\d+)\./.exec(manifest.engines.node) ?? [];
  expect(tested?.[0]).toBe(Number(oldest));
});

test('a release publishes the package, then the image of the same commit for both architectures', () => {
  const { package: npmPackage, image } = workflows.get('release.yaml')?.jobs ?? {};
  const publish = npmPackage?.steps.find(({ run = '' }) => run.startsWith('npm publish'));
  expect(publish?.run).toContain('--provenance');
  expect(image).toMatchObject({ needs: 'package', permissions: { packages: 'write' } });
  const build = image?.steps.find(({ uses = '' }) => uses.startsWith('docker/build-push-action@'));
  expect(build?.with).toMatchObject({ push: true, platforms: 'linux/amd64,linux/arm64', sbom: true });
});

test('dependency updates cover every package of the repository', () => {
  const { updates } = parse(read('.github/dependabot.yml'));
  const folders = [
    'package.json',
    'test/lab/package.json',
    'test/older-postgres/package.json',
    'bench/peers/package.json',
  ]
    .filter((file) => fs.existsSync(path.join(repository, file)))
    .map((file) => `/${path.dirname(file).replace(/^\.$/, '')}`);
  expect(updates[0].directories).toEqual(folders);
});

describe('release notes', () => {
  const notesOf = (...args: string[]) =>
    spawnSync(process.execPath, ['scripts/release-notes.mjs', ...args], {
      cwd: repository,
      encoding: 'utf8',
    });

  test('are the section of the changelog', () => {
    const { status, stdout } = notesOf(manifest.version);
    expect(status).toBe(0);
    expect(read('CHANGELOG.md')).toContain(stdout.trim());
    expect(stdout.length).toBeGreaterThan(100);
  });

  test('of a version without a section end in an error that says what to do', () => {
    const { status, stdout, stderr } = notesOf('0.0.99');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toBe('CHANGELOG.md has no section for 0.0.99. Add "## 0.0.99" before tagging.\n');
  });
});
