/** What the service says while its database is away, and that it comes back by itself. */
import { describe, expect, test } from 'vitest';
import type { TestDatabase } from '../../database.ts';
import { connectForTest, queryOnce, urlOfDatabase } from '../../postgres.ts';
import { expectError, expectFreshRequestId, type SearchBody, startServerForTest } from '../running-server.ts';
import { expectUnavailable, message, serveOnCable } from './database-cable.ts';

const databasePaths = ['/readyz', '/v2/messages', '/messages?limit=5', `/v2/messages/${message.messageId}`];

const administer = ({ url }: TestDatabase, statement: string) =>
  queryOnce(urlOfDatabase(url, 'postgres'), statement);

test('while the database answers /healthz and /readyz say so', async () => {
  const server = await startServerForTest();
  const health = await server.ask('/healthz');
  expect({ status: health.status, body: health.json<unknown>() }).toEqual({
    status: 200,
    body: { status: 'ok' },
  });
  // A busy server calls `unknown` what it cannot read in time.
  const ready = async () => {
    const { status, json } = await server.ask('/readyz');
    return { status, body: json<unknown>() };
  };
  await expect.poll(ready).toEqual({
    status: 200,
    body: {
      status: 'ready',
      simulated: false,
      checks: {
        database: 'ok',
        indexing: 'not configured',
        mirror: 'not configured',
        changes: { feed: 'idle', listener: 'idle' },
      },
    },
  });
  expectFreshRequestId(health.headers);
  expectFreshRequestId((await server.ask('/readyz')).headers);
});

test('an idle connection is kept for 72 s, longer than proxies keep theirs', async () => {
  const server = await startServerForTest();
  // Node promises the client what it holds itself to.
  const { headers } = await server.ask('/healthz', { headers: { Connection: 'keep-alive' } });
  expect(headers['keep-alive']).toBe('timeout=72');
});

test('/readyz says unknown where the state of indexers and mirrors cannot be read in time', async () => {
  const server = await startServerForTest();
  const locker = await connectForTest(server.store.url);
  await locker.query('begin; lock table network_progress, mirror in access exclusive mode');
  const ready = await server.ask('/readyz');
  expect(ready.status).toBe(200);
  expect(ready.json<{ checks: object }>().checks).toMatchObject({
    database: 'ok',
    indexing: 'unknown',
    mirror: 'unknown',
  });
  // Both reads still wait in the database: nothing but the server's own patience has ended.
  const { rows } = await locker.query(
    "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  expect(rows).toHaveLength(2);
});

describe('while the database is away', () => {
  test('what needs it gets 503 with Retry-After, what does not goes on, and all of it comes back', async () => {
    const { server, cable } = await serveOnCable(3);
    expect((await server.ask('/v2/messages')).json<SearchBody>().data).toEqual([message]);

    await cable.pullOut();
    for (const path of [...databasePaths, ...databasePaths]) expectUnavailable(await server.ask(path));
    for (const path of ['/healthz', '/openapi.json', '/docs']) {
      expect((await server.ask(path)).status, path).toBe(200);
    }
    expectError(await server.ask('/v2/messages?limit=0'), 400, 'INVALID_PARAMETERS');
    expectError(await server.ask('/nothing'), 404, 'NOT_FOUND');
    const head = await server.ask('/readyz', { method: 'HEAD' });
    expect({ status: head.status, text: head.text }).toEqual({ status: 503, text: '' });

    await cable.plugIn();
    for (const path of databasePaths) expect((await server.ask(path)).status, path).toBe(200);
    expect((await server.ask('/v2/messages')).json<SearchBody>().data).toEqual([message]);
  });

  test('requests that are in flight when it goes get 503, and none is left hanging', async () => {
    const { server, cable } = await serveOnCable(3);
    const asked = Array.from({ length: 40 }, () => server.ask('/v2/messages'));
    await asked[0];
    await cable.pullOut();
    for (const answer of await Promise.all(asked)) {
      if (answer.status !== 200) expectUnavailable(answer);
    }
    await cable.plugIn();
    expect((await server.ask('/v2/messages')).status).toBe(200);
  });

  test('the log has the cause, with the id of the request', async () => {
    const { server, cable } = await serveOnCable(3);
    await cable.pullOut();
    const { requestId } = (await server.ask('/v2/messages')).json();
    const lines = server.log.map((line) => JSON.parse(line)).filter(({ reqId }) => reqId === requestId);
    expect(lines.map(({ level }) => level)).toEqual([50, 30]);
    expect(lines[0].reason).toMatch(/ECONNREFUSED|terminated/);
  });

  test('connections that the database ends are replaced', async () => {
    const { server, database } = await serveOnCable(3);
    const name = new URL(database.url).pathname.slice(1);
    await Promise.all(Array.from({ length: 3 }, () => server.ask('/v2/messages')));
    await administer(
      database,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
    // Each connection can fail one request before the server has noticed its end.
    const status = async () => {
      const answer = await server.ask('/v2/messages');
      if (answer.status !== 200) expectUnavailable(answer);
      return answer.status;
    };
    await expect.poll(status).toBe(200);
  });

  test('a database that is dropped, or that lets nobody in, is away too', async () => {
    const { server, database } = await serveOnCable(3);
    const name = new URL(database.url).pathname.slice(1);
    await administer(database, `alter database ${name} allow_connections false`);
    await administer(
      database,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
    for (let i = 0; i < 3; i++) expectUnavailable(await server.ask('/readyz'));
    await administer(database, `alter database ${name} allow_connections true`);
    expect((await server.ask('/readyz')).status).toBe(200);
    await database.drop();
    for (let i = 0; i < 3; i++) expectUnavailable(await server.ask('/readyz'));
  });
});

test('a fault of our own is a 500 that shows nothing of the inside, and stands in the log under its request id', async () => {
  const server = await startServerForTest([message]);
  const client = await connectForTest(server.store.url);

  await client.query('alter table message rename to message_elsewhere');
  for (const path of databasePaths.slice(1)) {
    const answer = await server.ask(path);
    const body = expectError(answer, 500, 'INTERNAL_SERVER_ERROR');
    expect(body.details).toEqual([]);
    expect(answer.text).not.toMatch(/message_elsewhere|does not exist|42P01/);
    const logged = server.log.map((line) => JSON.parse(line)).find(({ err }) => err);
    expect(logged.err.message).toContain('does not exist');
    expect(server.log.some((line) => line.includes(body.requestId))).toBe(true);
  }
  expect((await server.ask('/readyz')).status).toBe(200);

  await client.query('alter table message_elsewhere rename to message');
  expect((await server.ask('/v2/messages')).json<SearchBody>().data).toEqual([message]);
});
