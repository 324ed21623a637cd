// @module-tag slow: starts the program and PostgreSQL many times
/** Several Lanescan processes on one embedded database: they start, stop and are killed. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { makeMessage } from '../fixtures.ts';
import { serverPids } from '../store/server/server-processes.ts';
import { buildProgram, freshFolder, runProgram, start } from './program.ts';

beforeAll(buildProgram);

test('import, search and show work while serve runs, and the last to leave stops the database, whichever was killed', async () => {
  const cwd = freshFolder();
  const data = path.join(cwd, 'my data');
  const message = makeMessage({ number: 7 });
  writeFileSync(path.join(cwd, 'records.ndjson'), `${JSON.stringify(message)}\n`);
  const on = (...args: string[]) => [...args, '--data', data];

  const server = start(on('serve', '--port', '0'), { cwd });
  const url = await server.untilListening();
  expect(serverPids(data)).toHaveLength(1);

  const imported = await runProgram(on('import', 'records.ndjson'), { cwd });
  expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('1 new') });
  const [found, shown, answer] = await Promise.all([
    runProgram(on('search', '--json'), { cwd }),
    runProgram(on('show', message.messageId, '--json'), { cwd }),
    fetch(`${url}/v2/messages/${message.messageId}`).then((response) => response.json()),
  ]);
  expect(JSON.parse(found.stdout)).toEqual(message);
  expect(JSON.parse(shown.stdout)).toEqual(message);
  expect(answer).toEqual(message);
  expect(serverPids(data)).toHaveLength(1);

  // A second server keeps the database that the first one, now killed, had started.
  const second = start(on('serve', '--port', '0'), { cwd });
  const secondUrl = await second.untilListening();
  server.child.kill('SIGKILL');
  await server.outcome;
  expect((await fetch(`${secondUrl}/v2/messages`)).status).toBe(200);
  expect((await runProgram(on('search', '--json'), { cwd })).stdout).toContain(message.messageId);
  expect(serverPids(data)).toHaveLength(1);

  second.child.kill('SIGTERM');
  expect((await second.outcome).code).toBe(0);
  expect(serverPids(data)).toEqual([]);

  const afterwards = await runProgram(on('show', message.messageId, '--json'), { cwd });
  expect(JSON.parse(afterwards.stdout)).toEqual(message);
  expect(serverPids(data)).toEqual([]);
});

test('a server that is told to stop while its killed database is being started again stops in good order', async () => {
  const data = path.join(freshFolder(), 'data');
  for (const pauseMs of [0, 30, 60, 120, 250]) {
    const server = start(['serve', '--port', '0', '--data', data]);
    await server.untilSaid(/listens on/);
    const [pid] = readFileSync(path.join(data, 'postgres/postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(pid), 'SIGKILL');
    await delay(pauseMs);
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.outcome;
    expect({ pauseMs, code }, stderr).toEqual({ pauseMs, code: 0 });
  }
});

test('a folder that cannot be used is rejected in one line that says what to do', async () => {
  const cwd = freshFolder();
  writeFileSync(path.join(cwd, 'occupied'), 'not a folder');
  const { code, stdout, stderr } = await runProgram(['search', '--data', 'occupied'], { cwd });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^lanescan: .*occupied.*it is a file, not a folder.*--data.*\n$/);
});
