// @module-tag slow: fills queues and waits for their time limits; availability.test.ts is the quick pass
/** What happens when too much is asked, or when the database says nothing: short answers, and recovery by itself. */
import { expect, test } from 'vitest';
import { connectForTest } from '../../postgres.ts';
import { type Answer, metricOf, type RunningServer, type SearchBody } from '../running-server.ts';
import { expectUnavailable, message, serveOnCable } from './database-cable.ts';

async function timed(asked: Promise<Answer>): Promise<Answer & { readonly ms: number }> {
  const startedAt = performance.now();
  const answer = await asked;
  return { ...answer, ms: performance.now() - startedAt };
}

/**
 * Whoever asks the database waits for it for two seconds. That the fastest of some answers took less shows that it was
 * given without asking; the others may have been slow because the machine is.
 */
function expectAtOnce(taken: readonly number[]): void {
  expect(Math.min(...taken)).toBeLessThan(1_500);
}

async function untilBack(server: RunningServer): Promise<void> {
  await expect.poll(async () => (await server.ask('/v2/messages')).status).toBe(200);
}

/** A server with one message, and somebody else in its database who can lock the table. */
async function serveBlockable(connections: number) {
  const { server, database } = await serveOnCable(connections);
  const blocker = await connectForTest(database.url);
  return { server, blocker };
}

test('more readers than can wait are rejected at once, the others are answered, and then all are again', async () => {
  const { server, blocker } = await serveBlockable(2);
  await blocker.query('begin; lock table message in access exclusive mode');
  // Two connections, and a hundred waiting for each of them.
  const asked = Array.from({ length: 280 }, (_, i) => timed(server.ask(`/v2/messages?limit=${i + 1}`)));
  const refusedEarly: (Answer & { ms: number })[] = [];
  for (const answer of asked) answer.then((given) => given.status === 503 && refusedEarly.push(given));
  // At least: on a slow machine some have waited in vain before the last have come.
  const refusable = 280 - 2 - 200;
  await expect.poll(() => refusedEarly.length, { interval: 10 }).toBeGreaterThanOrEqual(refusable);
  const waiting = await metricOf(server, 'lanescan_database_waiting{pool="readers"}');
  const ready = await server.ask('/readyz');
  const health = await server.ask('/healthz');
  await blocker.query('commit');

  for (const answer of refusedEarly) expectUnavailable(answer);
  expect(Number(waiting)).toBeLessThanOrEqual(200);
  expectUnavailable(ready);
  // What needs no database does not suffer.
  expect(health.status).toBe(200);
  expect(await metricOf(server, 'lanescan_http_refusals_total{reason="overload"}')).toMatch(/^[1-9]\d*$/);

  const answers = await Promise.all(asked);
  // On a slow machine some of those who waited have done so in vain.
  const answered = answers.filter(({ status }) => status === 200).length;
  expect(answered).toBeGreaterThanOrEqual(2);
  expect(answered).toBeLessThanOrEqual(202);
  for (const answer of answers) if (answer.status !== 200) expect(answer.status).toBe(503);
  for (let i = 0; i < 20; i++) expect((await server.ask('/v2/messages')).status).toBe(200);
  expect(await metricOf(server, 'lanescan_database_waiting{pool="readers"}')).toBe('0');
  // Rejections are the plan, not faults.
  expect(server.log.filter((line) => line.includes('request failed')).length).toBe(0);
});

test('those who wait for a connection in vain are told after two seconds', async () => {
  const { server, blocker } = await serveBlockable(1);
  await blocker.query('begin; lock table message in access exclusive mode');
  const first = server.ask('/v2/messages');
  const waitsForLock = 'select from pg_locks where not granted';
  await expect.poll(async () => (await blocker.query(waitsForLock)).rowCount).toBe(1);
  const second = await timed(server.ask('/v2/messages'));
  expectUnavailable(second);
  expect(second.ms).toBeGreaterThan(1_500);
  await blocker.query('commit');
  expect((await first).status).toBe(200);
});

test('while the database is known to be silent the answer comes at once, and it comes back by itself', async () => {
  const { cable, server } = await serveOnCable(3);
  expect((await server.ask('/v2/messages')).status).toBe(200);

  cable.fallSilent();
  expectUnavailable(await server.ask('/v2/messages'));
  const taken: number[] = [];
  for (const path of ['/v2/messages', '/readyz', `/v2/messages/${message.messageId}`, '/v2/messages']) {
    const answer = await timed(server.ask(path));
    expectUnavailable(answer);
    taken.push(answer.ms);
  }
  expectAtOnce(taken);
  const crowd = await Promise.all(Array.from({ length: 50 }, () => server.ask('/v2/messages')));
  for (const answer of crowd) expectUnavailable(answer);
  expect(await metricOf(server, 'lanescan_database_up')).toBe('0');
  // Unknown is not zero.
  expect(await metricOf(server, 'lanescan_messages_in_flight')).toBeUndefined();

  cable.speakAgain();
  await untilBack(server);
  const answer = await server.ask('/v2/messages');
  expect(answer.json<SearchBody>().data).toEqual([message]);
  expect(await metricOf(server, 'lanescan_database_up')).toBe('1');
  expect(await metricOf(server, 'lanescan_messages_in_flight')).toBe('1');
});

// What takes long here is the wait for an answer that never comes: longer than the database's own time-out.
test('a database that falls silent in the middle of a conversation is given up after a while, and found again', async () => {
  const { cable, server } = await serveOnCable(2);
  await Promise.all([server.ask('/v2/messages'), server.ask('/v2/messages')]);

  cable.freeze();
  // Two take the connections that look alive, the others wait for them.
  const asked = Array.from({ length: 5 }, () => server.ask('/v2/messages'));
  for (const answer of await Promise.all(asked)) expectUnavailable(answer);
  const taken: number[] = [];
  for (let i = 0; i < 5; i++) {
    const answer = await timed(server.ask('/v2/messages'));
    expectUnavailable(answer);
    taken.push(answer.ms);
  }
  expectAtOnce(taken);
  cable.thaw();
  await untilBack(server);
});
