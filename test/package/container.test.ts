/**
 * The container image, as far as it can be tested without a container runtime: the steps of the Dockerfile are carried out
 * in a folder, and its result runs in bubblewrap as the image would, read-only and as a plain user. Base images and
 * `docker build` are not run here.
 */
import { spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../chaos/deployment.ts';
import { freshFolder } from '../cli/program.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => fs.readFileSync(path.join(repository, file), 'utf8');

interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** The instructions of each stage, without comments and with continued lines joined. */
function stagesOf(dockerfile: string): readonly (readonly Instruction[])[] {
  const lines = dockerfile
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const stages: Instruction[][] = [];
  for (const line of lines) {
    const [, name = '', text = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (name === 'FROM') stages.push([]);
    stages.at(-1)?.push({ name, text });
  }
  return stages;
}

const [build = [], image = []] = stagesOf(read('Dockerfile'));
const textsOf = (stage: readonly Instruction[], name: string) =>
  stage.filter((instruction) => instruction.name === name).map(({ text }) => text);

describe('the Dockerfile', () => {
  test('copies what exists and .dockerignore lets through', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'));
    const copied = [...textsOf(build, 'COPY'), ...textsOf(image, 'COPY')]
      .filter((text) => !text.startsWith('--from'))
      .flatMap((text) => text.split(' ').slice(0, -1));
    expect(copied.length).toBeGreaterThan(8);
    for (const file of copied) {
      expect(fs.existsSync(path.join(repository, file)), file).toBe(true);
      expect(allowed).toContain(`!${file}`);
    }
  });

  test('ends as a plain user, with a volume for the data and a health check', () => {
    expect(textsOf(image, 'USER')).toEqual(['node']);
    expect(textsOf(image, 'VOLUME')).toEqual(['/data']);
    expect(textsOf(image, 'HEALTHCHECK')[0]).toContain('/healthz');
    expect(textsOf(image, 'ENV')[0]).toContain('LANESCAN_DATA=/data');
  });
});

const hasBubblewrap =
  spawnSync('bwrap', ['--unshare-user', '--uid', '1000', '--ro-bind', '/', '/', 'true']).status === 0;

test.skipIf(!hasBubblewrap)(
  'the image runs read-only and as a plain user, and its health check tells whether it answers',
  { tags: 'release', timeout: 900_000 },
  async () => {
    const folder = freshFolder();
    const built = path.join(folder, 'build');
    fs.mkdirSync(built);
    const npm = { cwd: built, encoding: 'utf8', env: { ...process.env, NODE_ENV: '' } } as const;
    for (const { name, text } of build) {
      const [target = '', ...sources] = text.split(' ').reverse();
      if (name === 'COPY')
        for (const source of sources)
          fs.cpSync(path.join(repository, source), path.join(built, target, target === './' ? source : ''), {
            recursive: true,
          });
      if (name !== 'RUN') continue;
      const { status, stderr } = spawnSync('sh', ['-c', text], npm);
      expect({ text, status, stderr: status === 0 ? '' : stderr }).toEqual({ text, status: 0, stderr: '' });
    }
    const app = path.join(folder, 'app');
    fs.mkdirSync(app);
    for (const part of ['node_modules', 'dist']) fs.renameSync(path.join(built, part), path.join(app, part));
    for (const part of ['bin', 'package.json', 'openapi.json'])
      fs.cpSync(path.join(repository, part), path.join(app, part), { recursive: true });
    for (const name of ['typescript', 'vitest', '@biomejs/biome'])
      expect(fs.existsSync(path.join(app, 'node_modules', name)), name).toBe(false);

    const port = await freePort();
    const data = path.join(folder, 'data');
    fs.mkdirSync(data);
    // The user of the base image.
    const users = path.join(folder, 'passwd');
    fs.writeFileSync(users, 'node:x:1000:1000::/home/node:/bin/sh\n');
    const sandbox = [
      ...['--unshare-user', '--uid', '1000', '--gid', '1000', '--unshare-pid', '--die-with-parent'],
      ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp'],
      ...['--ro-bind', app, '/tmp/app', '--bind', data, '/tmp/data', '--chdir', '/tmp/app', '--clearenv'],
      ...['--ro-bind', users, '/etc/passwd'],
      ...['--setenv', 'PATH', `${path.dirname(process.execPath)}:/usr/bin:/bin`],
      ...['--setenv', 'LANESCAN_DATA', '/tmp/data', '--setenv', 'LANESCAN_PORT', port],
    ];
    const server = spawn('bwrap', [...sandbox, '/tmp/app/bin/lanescan', 'serve'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const ended = new Promise((resolve) => server.once('close', resolve));
    onTestFinished(async () => {
      server.kill('SIGKILL');
      await ended;
    });
    await expect.poll(() => said).toContain('listens on');

    const [, command = ''] = / CMD (\[.*\])$/.exec(textsOf(image, 'HEALTHCHECK')[0] ?? '') ?? [];
    const check = () => spawnSync('bwrap', [...sandbox, ...(JSON.parse(command) as string[])]).status;
    expect(check()).toBe(0);
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('<title>Lanescan')]);
    expect(fs.existsSync(path.join(data, 'postgres/PG_VERSION'))).toBe(true);
    server.kill('SIGKILL');
    await ended;
    expect(check()).toBe(1);
  },
);
