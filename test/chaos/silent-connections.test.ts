// @module-tag slow: waits for time limits of silent connections
/**
 * Packets between the program and its database vanish: no FIN, no RST. What follows the history goes on within seconds, and
 * every verb that runs for long still ends when it is told to.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import { readStream, until } from '../api/live/live-server.ts';
import { buildProgram, freshFolder, type Running, start } from '../cli/program.ts';
import { createTestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { connectForTest, connectTo } from '../postgres.ts';
import { type Receiver, SECRET, startReceiver } from '../webhooks/receiver.ts';
import { type BlackHole, openBlackHole } from './black-hole.ts';

/** For what takes seconds on a machine that has nothing else to do. Without the watchdog it would take for ever. */
const PATIENCE_MS = 60_000;

beforeAll(buildProgram);

/** A database behind a black hole; the store and the client go past it. */
async function openSetting({ empty = false } = {}) {
  const database = await createTestDatabase({ empty });
  onTestFinished(() => database.drop());
  const way = await openBlackHole(database.url);
  const store = await openStore({ place: { url: database.url }, content: empty ? 'simulated' : 'real' });
  const direct = await connectTo(database.url);
  onTestFinished(async () => {
    await direct.end();
    await store.close();
  });
  return { way, store, direct, directUrl: database.url };
}

const add = (store: Store, number: number) => store.apply([makeSnapshot(makeMessage({ number }))]);

function run(args: readonly string[], way: BlackHole, config = '', input: string | null = ''): Running {
  const cwd = freshFolder();
  writeFileSync(path.join(cwd, 'lanescan.yaml'), config);
  const running = start(args, { cwd, env: { DATABASE_URL: way.url, SECRET }, input });
  onTestFinished(() => void running.child.kill('SIGKILL'));
  return running;
}

const webhookTo = ({ url }: Receiver) =>
  `webhooks: [{ name: ops, url: "${url}", secret: "\${SECRET}", allowPrivate: true }]\n`;

async function serve(way: BlackHole, config = '', ...more: string[]): Promise<Running & { url: string }> {
  const server = run(['serve', '--port', '0', ...more], way, config);
  const [, url = ''] = await server.untilSaid(/listens on (http:\/\/127\.0\.0\.1:\d+)/);
  return { ...server, url };
}

interface Readiness {
  readonly checks?: { readonly changes: { readonly feed: string; readonly listener: string } };
}

const readiness = async (url: string) => (await (await fetch(`${url}/readyz`)).json()) as Readiness;

test('a firewall forgets the connections: streams, webhooks and searches go on, and SIGTERM ends the server', async () => {
  const { way, store } = await openSetting();
  const receiver = await startReceiver();
  const server = await serve(way, webhookTo(receiver));
  const reader = await readStream(`${server.url}/v2/messages/stream`);
  const delivered = () => receiver.accepted.map(({ event }) => event.data.position);
  await add(store, 1);
  await until(() => reader.hasReached(1) && delivered().includes('1'), PATIENCE_MS);
  expect(await readiness(server.url)).toMatchObject({
    checks: { changes: { feed: 'current', listener: 'connected' } },
  });

  for (const round of [2, 3]) {
    way.swallowConnections();
    await add(store, round);
    await until(() => reader.hasReached(round) && delivered().includes(String(round)), PATIENCE_MS);
    await until(async () => (await fetch(`${server.url}/v2/messages?limit=${round}`)).status === 200);
    await until(
      async () => (await readiness(server.url)).checks?.changes.listener === 'connected',
      PATIENCE_MS,
    );
  }
  expect(reader.positions).toEqual([1, 2, 3]);
  expect(server.said().stderr).toMatch(
    /Replacing \d+ database connection\(s\) that died without being closed/,
  );

  way.swallowConnections();
  server.child.kill('SIGTERM');
  expect((await server.outcome).code).toBe(0);
});

test('/readyz says when the feed is behind, and when it cannot know whether it is', async () => {
  const { way, store, direct } = await openSetting();
  const server = await serve(way);
  const reader = await readStream(`${server.url}/v2/messages/stream`);
  const feed = async () => (await readiness(server.url)).checks?.changes.feed;
  // A change that the history does not have: the feed cannot come to it.
  await direct.query('update store set position = position + 1');
  await until(async () => (await feed()) === 'behind', PATIENCE_MS);
  await direct.query('update store set position = position - 1');
  await until(async () => (await feed()) === 'current', PATIENCE_MS);
  // Looks at the position need the store's table; readiness does not.
  await direct.query('begin; lock table store in access exclusive mode');
  await until(async () => (await feed()) === 'unknown', PATIENCE_MS);
  await direct.query('rollback');
  await until(async () => (await feed()) === 'current', PATIENCE_MS);
  await add(store, 1);
  await until(() => reader.hasReached(1), PATIENCE_MS);
});

describe('SIGTERM while the database is out of reach ends', () => {
  const network = `networks:
  - { network: ethereum-testnet-sepolia, rpc: ["http://127.0.0.1:9"], routers: ["0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59"], start: 1 }
`;

  async function expectEnd({ child, outcome }: Running): Promise<string> {
    child.kill('SIGTERM');
    const { code, stderr } = await outcome;
    expect(code, stderr).not.toBeNull();
    expect(stderr).not.toMatch(/This is a bug in Lanescan|unsettled top-level await/);
    return stderr;
  }

  test('serve, with a stream, a webhook and a search under way', async () => {
    const { way, store } = await openSetting();
    const receiver = await startReceiver();
    const server = await serve(way, webhookTo(receiver));
    const reader = await readStream(`${server.url}/v2/messages/stream`);
    await add(store, 1);
    await until(() => reader.hasReached(1) && receiver.accepted.length === 1, PATIENCE_MS);
    way.swallowEverything();
    const search = fetch(`${server.url}/v2/messages`).catch(() => undefined);
    await delay(500);
    await expectEnd(server);
    await search;
  });

  test('serve --processes, also when one of them does not react at all', async () => {
    const { way } = await openSetting();
    const server = await serve(way, '', '--processes', '2');
    const children = execFileSync('pgrep', ['-P', String(server.child.pid)], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number);
    expect(children).toHaveLength(2);
    process.kill(children[0] ?? 0, 'SIGSTOP');
    way.swallowEverything();
    expect(await expectEnd(server)).toMatch(
      new RegExp(`process ${children[0]} did not end in time and is killed`),
    );
    for (const pid of children) expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
  });

  test('import', async () => {
    const { way, direct, directUrl } = await openSetting();
    // Not the one that looks: within a transaction it would see the same sessions again and again.
    const locker = await connectForTest(directUrl);
    await locker.query('begin; select from store for update');
    const records = `${JSON.stringify(makeMessage())}\n`;
    const importing = run(['import', '-'], way, '', records);
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await direct.query(waiting)).rowCount === 1, PATIENCE_MS);
    way.swallowEverything();
    await expectEnd(importing);
  });

  test('index', async () => {
    const { way, direct } = await openSetting();
    const indexing = run(['index'], way, network);
    await until(
      async () => ((await direct.query('select from index_network')).rowCount ?? 0) > 0,
      PATIENCE_MS,
    );
    way.swallowEverything();
    await expectEnd(indexing);
  });

  test('mirror', async () => {
    const { way } = await openSetting();
    const mirroring = run(['mirror', 'http://127.0.0.1:9'], way);
    await mirroring.untilSaid(/./);
    await until(() => way.open > 0, PATIENCE_MS);
    way.swallowEverything();
    await expectEnd(mirroring);
  });

  test('demo, in the middle of its history', async () => {
    const { way, direct } = await openSetting({ empty: true });
    const demo = run(['demo', '--port', '0'], way);
    await until(
      async () => (await direct.query('select position from store')).rows[0].position > 0,
      PATIENCE_MS,
    );
    way.swallowEverything();
    await expectEnd(demo);
  });

  test('a verb that waits for another one to finish migrating', async () => {
    const { way, direct } = await openSetting();
    await direct.query('select pg_advisory_lock(7264910331)');
    const server = run(['serve', '--port', '0'], way);
    const waiting = `select from pg_stat_activity where query like 'select pg_try_advisory_lock%'
        and datname = current_database() and pid <> pg_backend_pid()`;
    await until(async () => (await direct.query(waiting)).rowCount === 1, PATIENCE_MS);
    await expectEnd(server);
    await direct.query('select pg_advisory_unlock(7264910331)');
  });
});
