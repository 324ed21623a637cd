/** The guides to export and mirror: every command in them runs, against a server of this very test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { csvColumns } from '../../../src/domain/records/export-format.ts';
import { startServerForTest } from '../../api/running-server.ts';
import { buildProgram, freshFolder, start } from '../../cli/program.ts';
import { openTestStore } from '../../database.ts';
import { sampleMessages } from '../../fixtures/sample-messages.ts';

const guide = (name: string) =>
  readFileSync(path.resolve(import.meta.dirname, '../../../docs', name), 'utf8');

/** The lines of its shell blocks. */
function commandsOf(text: string): string[] {
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = '']) => block.trim().split('\n'));
}

const program = path.resolve(import.meta.dirname, '../../../bin/lanescan');

beforeAll(() => buildProgram());

test('the guide to the export names the columns there are, in their order', () => {
  const table = guide('api/export.md').match(/^\| `.*$/gm) ?? [];
  const named = table.flatMap((line) =>
    [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  expect(named).toEqual(csvColumns);
});

test('the commands of the guides run', { tags: 'slow' }, async () => {
  const server = await startServerForTest(sampleMessages);
  const copy = await openTestStore();
  onTestFinished(() => copy.close());
  const cwd = freshFolder();
  const run = async (command: string, url: string) => {
    const here = command.replace(/https?:\/\/[\w.]+(:8080)?(?=[/ ]|$)/, server.url);
    const setting = { cwd, env: { DATABASE_URL: url } };
    if (/^lanescan mirror/.test(here) && !here.includes('--once')) {
      const following = start(here.split(' ').slice(1), setting);
      const asked = server.log.length;
      while (server.log.length === asked) await delay(50);
      following.child.kill('SIGTERM');
      expect(await following.outcome).toMatchObject({ code: 0 });
      return;
    }
    const child = spawn('bash', ['-c', `lanescan() { node ${program} "$@"; }\n${here}`], {
      cwd,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...setting.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    const [code] = await once(child, 'close');
    expect(code, `${here}\n${said}`).toBe(0);
  };
  const exporting = commandsOf(guide('api/export.md'));
  const mirroring = commandsOf(guide('mirror.md'));
  expect(exporting.length).toBeGreaterThan(4);
  expect(mirroring.length).toBe(3);
  for (const command of exporting) await run(command, server.store.url);
  for (const command of mirroring) await run(command, copy.url);
  const files = readdirSync(cwd);
  expect(files).toHaveLength(8);
  expect(files).toEqual(expect.arrayContaining(['rest.ndjson', 'why.csv', 'why.ndjson']));
  expect(files).toContainEqual(expect.stringMatching(/^lanescan-messages-.*Z\.csv$/));
  expect(readFileSync(path.join(cwd, 'january.ndjson'), 'utf8').trimEnd().split('\n')).toHaveLength(
    sampleMessages.length,
  );
});
