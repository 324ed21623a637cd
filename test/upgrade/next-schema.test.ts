/** This release beside the schema of the next one: what its programs say that run during the upgrade, and later. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { knownSchema } from '../../src/store/schema/migrate.ts';
import { freePort } from '../chaos/deployment.ts';
import { buildProgram, freshFolder, lanescan, type Running, start } from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeMessage } from '../fixtures.ts';
import { connectTo, queryOnce } from '../postgres.ts';
import { makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { startProvider } from '../virtual-chain/endpoint.ts';
import { SECRET, startReceiver } from '../webhooks/receiver.ts';
import { markUpgraded } from './other-schemas.ts';

const running: Running[] = [];
let database: TestDatabase;
let next: number;

beforeEach(async () => {
  await buildProgram();
  database = await createTestDatabase();
  next = (await knownSchema()) + 1;
});
afterEach(async () => {
  for (const { child, outcome } of running.splice(0)) {
    child.kill('SIGKILL');
    await outcome;
  }
  await database.drop();
});

const words = () =>
  `The database was upgraded by a newer Lanescan (schema ${next}; this program knows ${next - 1}). Nothing was written. Upgrade this program`;

function run(...args: readonly string[]): Running {
  const started = start(args, { env: { DATABASE_URL: database.url, OPS_SECRET: SECRET }, input: null });
  running.push(started);
  return started;
}

const positionOf = async () =>
  Number((await queryOnce(database.url, 'select position from store'))[0]?.position);

async function upgrade(): Promise<void> {
  const client = await connectTo(database.url);
  await markUpgraded(client);
  await client.end();
}

const lines = (count: number, first = 1) =>
  Array.from(
    { length: count },
    (_, index) => `${JSON.stringify(makeMessage({ number: first + index }))}\n`,
  ).join('');

test('an import ends in words, and has written whole batches only', {
  tags: 'slow',
}, async () => {
  const importing = run('import', '-');
  importing.child.stdin.write(lines(2_100));
  await expect.poll(positionOf).toBe(2_000);
  await upgrade();
  importing.child.stdin.end(lines(100, 2_101));
  const { code, stderr } = await importing.outcome;
  expect(stderr).toContain(`lanescan: ${words()}, then start it again.\n`);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(code).toBe(1);
  expect(await positionOf()).toBe(2_000);
});

test('indexers end or leave it, webhooks wait, and a server goes on answering; all of them say why', {
  tags: 'slow',
}, async () => {
  const { a: chain } = makeCcipWorld({ blocks: 400, messages: 40, head: 300, blockSeconds: 1 });
  const node = await startProvider(chain);
  onTestFinished(node.close);
  const receiver = await startReceiver();
  const config = path.join(freshFolder(), 'lanescan.yaml');
  const settings = { rpc: [node.url.href], routers: [chain.router], start: 0, finality: 5, pollSeconds: 0.1 };
  const port = await freePort();
  writeFileSync(
    config,
    stringify({
      port: Number(port),
      networks: [{ network: chain.network.name, requestsPerSecond: 5_000, ...settings }],
      webhooks: [{ name: 'ops', url: receiver.url, secret: `\${OPS_SECRET}`, allowPrivate: true }],
    }),
  );
  const indexing = run('index', '--config', config);
  await expect.poll(positionOf).toBeGreaterThan(10);
  const serving = run('serve', '--index', '--config', config);
  await serving.untilSaid(/another indexer works on it/);
  await serving.untilSaid(/Webhook ops: this server delivers/);

  await upgrade();
  chain.grow(3);
  const ended = await indexing.outcome;
  expect(ended.stderr).toContain(words());
  expect(ended.stderr).not.toMatch(/^\s+at /m);
  expect(ended.code).toBe(1);
  await serving.untilSaid(
    /Webhook ops waits for the database: The database was upgraded by a newer Lanescan/,
  );
  await serving.untilSaid(/Indexing has ended\. The database was upgraded by a newer Lanescan/);
  const answer = await fetch(`http://127.0.0.1:${port}/v2/messages?limit=1`);
  expect(answer.status).toBe(200);
  expect(serving.said().stderr).not.toMatch(/^\s+at /m);
  serving.child.kill('SIGTERM');
  expect((await serving.outcome).code).toBe(0);

  for (const args of [
    ['import', '-'],
    ['serve'],
    ['search'],
    ['webhooks', 'replay', 'ops', '--parked', '--config', config],
  ]) {
    const { code, stderr } = await lanescan(args, {
      env: { DATABASE_URL: database.url, OPS_SECRET: SECRET },
    });
    expect(`${args[0]}: ${stderr}`).toContain(
      `The database has migration ${next}-future, which this version`,
    );
    expect(code).toBe(1);
  }
});
