// @module-tag slow: restarts and kills whole servers behind a proxy
/** Behind nginx and HAProxy with the documented configuration, clients notice neither a restart nor a crash. */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { EventReader, numbersUpTo, until } from '../api/live/live-server.ts';
import type { SearchBody } from '../api/running-server.ts';
import { buildProgram } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { evmAddress, makeMessage, makeSnapshot } from '../fixtures.ts';
import { type ServerBehindProxy, startTwoServers } from './lanescan-servers.ts';
import { type Client, type Judge, startLoad } from './load.ts';
import { isInstalled, type ProxyName, startProxy } from './proxies.ts';

const MESSAGES = 200;
/** So many searches each process of each server answers before it is stopped, and in the end. */
const SEARCHES_PER_PROCESS = 100;

beforeAll(buildProgram);

const messages = numbersUpTo(MESSAGES).map((number) => makeMessage({ number }));
const idsOf = (records: readonly { readonly messageId: string }[]) =>
  records.map(({ messageId }) => messageId);
const newestFirst = idsOf(messages).reverse();

const isPageOf =
  (expected: readonly string[]): Judge =>
  (body) =>
    expect(idsOf((JSON.parse(body) as SearchBody).data)).toEqual(expected);
const isWholeExport: Judge = (body) =>
  expect(
    idsOf(
      body
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ),
  ).toEqual(newestFirst);
const isWait: Judge = (_body, answer) =>
  expect(answer.headers['x-lanescan-wait']).toMatch(/^(timeout|stopping)$/);

const newest: Client = {
  path: '/v2/messages?limit=5',
  keepAlive: true,
  judge: isPageOf(newestFirst.slice(0, 5)),
};
const waiting: Client = {
  path: `/v2/messages/${newestFirst[0]}?waitFor=SUCCESS&timeoutMs=500`,
  keepAlive: true,
  judge: isWait,
};
const shortAnswers: readonly Client[] = [
  newest,
  newest,
  { ...newest, keepAlive: false },
  { ...newest, keepAlive: false },
  waiting,
];
const ofSender = `sender=${evmAddress('sender')}`;
const longAnswers: readonly Client[] = [
  { path: `/v2/messages?limit=1000&${ofSender}`, keepAlive: true, judge: isPageOf(newestFirst) },
  { path: `/v2/messages/export?format=ndjson&${ofSender}`, keepAlive: false, judge: isWholeExport },
];

/** Writes without a pause: older messages of another sender, which change what every server has in its caches. */
function startWriter(store: Store) {
  let written = 0;
  let isOver = false;
  const write = async () => {
    while (!isOver) {
      const number = MESSAGES + ++written;
      const sendTimestamp = new Date(Date.UTC(2025, 0, 1) + number * 1000).toISOString();
      const message = makeMessage({ number, sender: evmAddress('another sender'), sendTimestamp });
      await store.apply([makeSnapshot(message)]);
    }
  };
  const writing = write();
  const stop = async () => {
    isOver = true;
    await writing;
  };
  onTestFinished(stop);
  return { stop };
}

/** An event stream that is opened again whenever it ends, as `EventSource` does. */
function startStream(url: string) {
  const reader = new EventReader();
  const failures: string[] = [];
  let isOver = false;
  const follow = async () => {
    while (!isOver) {
      try {
        const { statusCode } = await reader.connect(`${url}/v2/messages/stream?after=0`);
        if (statusCode !== 200) failures.push(`stream: status ${statusCode}`);
      } catch (error) {
        failures.push(`stream: ${(error as Error).message}`);
      }
      await reader.ended;
    }
  };
  const following = follow();
  const stop = async () => {
    isOver = true;
    await reader.disconnect();
    await following;
  };
  onTestFinished(stop);
  return { reader, failures, stop };
}

async function startAll(name: ProxyName, clients: readonly Client[]) {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  await store.apply(messages.map(makeSnapshot));
  const servers = await startTwoServers(store.url);
  const proxy = await startProxy(name, [servers[0].port, servers[1].port]);
  const stream = startStream(proxy.url);
  const load = startLoad(proxy.url, clients);
  const writer = startWriter(store);

  /** Stops everything and shows that nobody noticed anything. */
  const expectNoFailure = async (restarts: number) => {
    await writer.stop();
    const last = Number(await store.latestPosition());
    await until(() => stream.reader.hasReached(last));
    await load.stop();
    await stream.stop();
    expect([...load.failures, ...stream.failures]).toEqual([]);
    expect(stream.reader.positions, 'every change once, in order').toEqual(numbersUpTo(last));
    expect(load.succeeded).toBeGreaterThan((2 + restarts) * SEARCHES_PER_PROCESS);
  };
  return { servers, expectNoFailure };
}

/** The load is on both servers: the proxy has come back to the one that was away. */
async function untilBothAnswer(servers: readonly ServerBehindProxy[]): Promise<void> {
  for (const server of servers) {
    const before = await server.answered('/v2/messages');
    await until(async () => (await server.answered('/v2/messages')) >= before + SEARCHES_PER_PROCESS);
  }
}

describe.each(['nginx', 'haproxy'] as const)('behind %s', (name) => {
  test.skipIf(!isInstalled(name))(
    'two servers are restarted one after the other, and no request fails',
    {
      timeout: 1_200_000,
    },
    async () => {
      const { servers, expectNoFailure } = await startAll(name, [...shortAnswers, ...longAnswers]);
      await untilBothAnswer(servers);
      for (const server of servers) {
        await server.restart();
      }
      await untilBothAnswer(servers);
      await expectNoFailure(2);
    },
  );

  test.skipIf(!isInstalled(name))(
    'a server is killed, and the other one as soon as the first is back, and no request fails',
    {
      timeout: 1_200_000,
    },
    async () => {
      // An answer that is longer than a socket takes at once can be cut off in its middle; no proxy can hide that.
      const { servers, expectNoFailure } = await startAll(name, shortAnswers);
      await untilBothAnswer(servers);
      for (const server of servers) await server.crash();
      await untilBothAnswer(servers);
      await expectNoFailure(2);
    },
  );
});
