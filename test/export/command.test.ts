/** `lanescan export`: the same file as over HTTP, to standard output or to a place of its own. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RunningServer, serveStore } from '../api/running-server.ts';
import {
  buildProgram,
  freshFolder,
  lanescan,
  runProgram,
  type Setting,
  shell,
  start,
} from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeManyMessages } from '../fixtures/many-messages.ts';
import { sampleMessages } from '../fixtures/sample-messages.ts';
import { makeSnapshot } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';

let server: RunningServer;
let setting: Setting;
beforeAll(async () => {
  const store = await openTestStore();
  await makeManyMessages(store, 5_000);
  await store.apply(sampleMessages.map(makeSnapshot));
  server = await serveStore(store);
  setting = { env: { DATABASE_URL: store.url } };
  await buildProgram();
});
afterAll(() => server.close());

test('it writes what the API answers, in either format, with the filters of the search', async () => {
  const csv = await lanescan(['export', '--status', 'FAILED', '--dest', 'avalanche-testnet-fuji'], setting);
  expect(csv.code).toBe(0);
  expect(csv.stdout).toBe(
    (await server.ask('/v2/messages/export?status=FAILED&destChainSelector=14767482510784806043')).text,
  );
  expect(csv.stderr).toMatch(/^\d+ messages exported\n$/);
  const ndjson = await lanescan(['export', '--format', 'ndjson'], setting);
  expect(ndjson.stdout).toBe((await server.ask('/v2/messages/export?format=ndjson')).text);
});

test('a file appears under its name when it is whole; its name tells the format', async () => {
  const folder = freshFolder();
  const plain = path.join(folder, 'all.ndjson');
  writeFileSync(plain, 'what was there before');
  expect((await lanescan(['export', '--output', plain], setting)).code).toBe(0);
  expect(readFileSync(plain, 'utf8')).toBe((await server.ask('/v2/messages/export?format=ndjson')).text);
  const packed = path.join(folder, 'all.csv.gz');
  const outcome = await lanescan(['export', '--output', packed], setting);
  expect(outcome).toMatchObject({ code: 0, stderr: expect.stringMatching(/exported to .*all\.csv\.gz/) });
  expect(gunzipSync(readFileSync(packed)).toString()).toBe((await server.ask('/v2/messages/export')).text);
  expect(readdirSync(folder).sort()).toEqual(['all.csv.gz', 'all.ndjson']);

  const nowhere = await lanescan(['export', '--output', path.join(folder, 'no/such/place.csv')], setting);
  expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringMatching(/Cannot write .* --output/) });
});

test('a pipe gets it compressed, and one that closes early ends it quietly', { tags: 'slow' }, async () => {
  const packed = shell('lanescan export --format ndjson --gzip | gunzip | wc -l', setting);
  expect(packed.stdout.trim()).toBe(String(5_000 + sampleMessages.length - 1));
  const head = shell('set -o pipefail; lanescan export | head -1', setting);
  expect(head).toMatchObject({ code: 0, stdout: expect.stringMatching(/^messageId,/) });
});

test('interrupted, it leaves nothing that looks like a file', { tags: 'slow' }, async () => {
  const folder = freshFolder();
  const locker = await connectTo(server.store.url);
  // Nothing can be read while the table is locked: the signal comes in the middle.
  await locker.query('begin; lock table message in access exclusive mode');
  const stopped = start(['export', '--output', 'half.csv'], { ...setting, cwd: folder });
  while (!readdirSync(folder).some((name) => name.endsWith('.part'))) await delay(20);
  stopped.child.kill('SIGINT');
  expect(await stopped.outcome).toMatchObject({ code: 130, stderr: expect.stringMatching(/Interrupted/) });
  await locker.end();
  expect(readdirSync(folder)).toEqual([]);
});

test('what the API rejects is wrong usage, told in terms of the flags', async () => {
  const wrong = await lanescan(['export', '--sender', 'nobody', '--sent-after', 'today'], setting);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toMatch(/--sender takes an address/);
  expect(wrong.stderr).toMatch(/--sent-after takes an ISO 8601 time/);
  expect((await lanescan(['export', '--format', 'xml'], setting)).code).toBe(2);
  expect((await runProgram(['export', '--help'])).stdout).toMatch(/lanescan export --output messages\.csv/);
});
