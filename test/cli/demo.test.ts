/** `lanescan demo`: a lively network, labelled as simulated wherever it shows, apart from everything real. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { statuses } from '../../src/domain/lifecycle.ts';
import { makeMessage } from '../fixtures.ts';
import { buildProgram, freshFolder, type Running, runProgram, start } from './program.ts';

const folder = freshFolder();
/** Where the demo keeps its database without `--data`. */
const data = path.join(folder, 'data/demo');
let demo: Running;
let url = '';

beforeAll(async () => {
  await buildProgram();
  demo = start(['demo', '--port', '0', '--seed', 'test'], { cwd: folder });
  url = await demo.untilListening();
});
afterAll(async () => {
  demo.child.kill('SIGTERM');
  expect((await demo.outcome).code).toBe(0);
});

interface Listed {
  readonly messageId: string;
  readonly status: string;
  readonly sendTimestamp: string;
}

async function search(parameters: string): Promise<Listed[]> {
  const answer = await fetch(`${url}/v2/messages?${parameters}`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-lanescan-simulated')).toBe('true');
  return ((await answer.json()) as { data: Listed[] }).data;
}

test('has a month of history in which every status and messages that need action occur', async () => {
  const monthAgo = new Date(Date.now() - 28 * 86_400_000).toISOString();
  expect(await search(`sentBefore=${monthAgo}&limit=1`)).toHaveLength(1);
  // Some last for seconds only: now and then no message has them.
  for (const status of statuses) {
    await vi.waitFor(
      async () => expect(await search(`status=${status}&limit=1`), status).toHaveLength(1),
      30_000,
    );
  }
  expect((await search('readyForManualExecOnly=true&limit=1000')).length).toBeGreaterThan(20);
  const { stderr } = demo.said();
  const [, told = ''] = /([\d,]+) simulated messages on 12 networks/.exec(stderr) ?? [];
  const messages = Number(told.replaceAll(',', ''));
  expect(messages).toBeGreaterThan(19_000);
  expect(messages).toBeLessThan(21_000);
});

test('goes on sending, and what it sent moves through the lifecycle', async () => {
  const [newest] = await search('limit=1&view=summary');
  const before = await search('limit=200&view=summary&status=SENT,SOURCE_FINALIZED,VERIFYING,COMMITTED');
  const statusBefore = new Map(before.slice(0, 90).map(({ messageId, status }) => [messageId, status]));
  await vi.waitFor(async () => {
    const [now] = await search('limit=1&view=summary');
    expect(now?.messageId).not.toBe(newest?.messageId);
    const later = await search(`limit=200&view=summary&messageId=${[...statusBefore.keys()]}`);
    expect(later.some(({ messageId, status }) => status !== statusBefore.get(messageId))).toBe(true);
  }, 300_000);
});

test('outlives its database, which is started again, and goes on sending', { tags: 'slow' }, async () => {
  const [before] = await search('limit=1&view=summary');
  const [pid] = readFileSync(path.join(data, 'postgres/postmaster.pid'), 'utf8').split('\n');
  process.kill(Number(pid), 'SIGKILL');
  await demo.untilSaid(/runs again/);
  await vi.waitFor(
    async () => expect((await search('limit=1&view=summary'))[0]?.messageId).not.toBe(before?.messageId),
    { timeout: 120_000, interval: 500 },
  );
});

test('says that it is simulated: in the log, in readiness, on the page, in the terminal', {
  tags: 'slow',
}, async () => {
  expect(demo.said().stderr).toContain('SIMULATED');
  expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ simulated: true });
  expect(await (await fetch(`${url}/docs`)).text()).toContain('Simulated data');
  const { stderr } = await runProgram(['search', '--limit', '1', '--data', data], { cwd: folder });
  expect(stderr).toContain('SIMULATED');
});

test('is found by the commands of the README, and they say that it is the demo', async () => {
  const { code, stdout, stderr } = await runProgram(['search', '--limit', '1'], { cwd: folder });
  expect(stderr).toContain("Reading the demo's database in ./data/demo: ./data has no database.");
  expect(stdout).toMatch(/0x[0-9a-f]{64}/);
  expect(code).toBe(0);
  const elsewhere = await runProgram(['lanes', '--data', './data'], { cwd: folder });
  expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining('no database in ./data') });
});

test('answers every curl line of the README, and the README names only verbs that exist', async () => {
  const readme = readFileSync(path.join(import.meta.dirname, '../../README.md'), 'utf8');
  const asked = [...readme.matchAll(/^curl 'http:\/\/127\.0\.0\.1:8080([^']+)'/gm)].map(([, at]) => at);
  expect(asked.length).toBeGreaterThan(2);
  for (const at of asked) expect((await fetch(`${url}${at}`)).status, at).toBe(200);

  const { stdout: help } = await runProgram(['--help']);
  const verbs = new Set([...readme.matchAll(/^npx lanescan (\w+)/gm)].map(([, verb]) => verb));
  expect(verbs.size).toBeGreaterThan(5);
  for (const verb of verbs) expect(help).toMatch(new RegExp(`^  ${verb} `, 'm'));
});

test('never mixes with real records, in either direction', { tags: 'slow' }, async () => {
  const input = `${JSON.stringify(makeMessage())}\n`;
  const refused = await runProgram(['import', '-', '--data', data], { cwd: folder, input });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('simulated network') });

  const real = path.join(folder, 'real');
  expect(await runProgram(['import', '-', '--data', real], { cwd: folder, input })).toMatchObject({
    code: 0,
  });
  const other = await runProgram(['demo', '--port', '0', '--data', real], { cwd: folder });
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('real records') });
  const kept = await runProgram(['search', '--json', '--data', real], { cwd: folder });
  expect(kept.stdout.trim().split('\n')).toHaveLength(1);
});
