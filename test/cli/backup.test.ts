/** Backup and restore of the embedded database, by the commands of docs/operations.md, while others write. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeMessage } from '../fixtures.ts';
import { buildProgram, freshFolder, lanescan, runProgram, shell, start } from './program.ts';

const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
const [, chapter = ''] = /^## Backup and restore\n(.*?)^## /ms.exec(guide) ?? [];
/** The commands of the chapter, in order: backup, restore, and those for a PostgreSQL server. */
const [backup = '', restore = ''] = [...chapter.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text]) => text);

const linesOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `${JSON.stringify(makeMessage({ number: from + i }))}\n`).join(
    '',
  );
const messagesIn = async (data: string) => {
  const { stdout } = await lanescan(['export', '--format', 'ndjson', '--data', data]);
  return stdout.trim().split('\n').length;
};

beforeAll(buildProgram);

describe('the embedded database', () => {
  test('is backed up while a server and an import use it, and restored', { tags: 'slow' }, async () => {
    const cwd = freshFolder();
    const data = path.join(cwd, 'data');
    await runProgram(['import', '-'], { cwd, input: linesOf(0, 200) });
    const server = start(['serve', '--port', '0'], { cwd });
    onTestFinished(() => void server.child.kill('SIGKILL'));
    await server.untilSaid(/listens on/);
    const importing = start(['import', '-'], { cwd, input: linesOf(200, 1_200) });
    const made = shell(backup, { cwd });
    expect(made.stdout).toMatch(/^backup-of-data: \d+ tables with [\d,]+ rows, compared with the original$/m);
    expect(made.code, made.stderr).toBe(0);
    expect((await importing.outcome).code).toBe(0);

    // Of one moment: every message with all of its rows, none in part.
    const copied = await messagesIn(path.join(cwd, 'backup-of-data'));
    expect(copied).toBeGreaterThanOrEqual(200);
    const deep = await runProgram(['doctor', '--deep', '--port', '0', '--data', 'backup-of-data'], { cwd });
    expect(deep.stdout).toContain('No problems');
    expect(await messagesIn(data)).toBe(1_200);

    server.child.kill('SIGTERM');
    await server.outcome;
    expect(shell(restore, { cwd })).toMatchObject({ code: 0 });
    expect(await messagesIn(data)).toBe(copied);
    // It goes on from there.
    const again = await runProgram(['import', '-'], { cwd, input: linesOf(0, 1_200) });
    expect(again.stdout).toContain(`${(1_200 - copied).toLocaleString('en')} new`);
  });

  test('is not copied onto something else, and a failure leaves nothing behind', async () => {
    const cwd = freshFolder();
    const taken = path.join(cwd, 'taken');
    writeFileSync(taken, '');
    const data = path.join(cwd, 'data');
    const absent = await lanescan(['backup', path.join(cwd, 'copy'), '--data', data]);
    expect(absent).toMatchObject({ code: 1, stderr: expect.stringContaining(`no database in ${data}`) });
    const onto = await lanescan(['backup', cwd, '--data', data]);
    expect(onto).toMatchObject({ code: 1, stderr: expect.stringContaining('exists already') });
    const onFile = await lanescan(['backup', taken, '--data', data]);
    expect(onFile).toMatchObject({ code: 1, stderr: expect.stringContaining('ENOTDIR') });
    rmSync(taken);
    expect(readdirSync(cwd)).toEqual([]);
  });
});

test('a PostgreSQL server is copied into an embedded database', { tags: 'slow' }, async () => {
  const { createTestDatabase } = await import('../database.ts');
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const env = { DATABASE_URL: database.url };
  await lanescan(['import', '-'], { env, input: linesOf(0, 30) });
  const copy = path.join(freshFolder(), 'copy');
  expect((await lanescan(['backup', copy], { env })).code).toBe(0);
  expect(existsSync(`${copy}.part`)).toBe(false);
  expect(await messagesIn(copy)).toBe(30);
});
