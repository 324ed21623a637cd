// @module-tag slow: kills a server of two; waiting.test.ts and stream.test.ts are the quick pass
/** Two processes of the built program over one database: a position of one is good at the other. */
import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { buildProgram, start } from '../../cli/program.ts';
import { createTestDatabase } from '../../database.ts';
import { makeExecuted, makeMessage, makeSnapshot } from '../../fixtures.ts';
import { EventReader, numbersUpTo, until, untilFollowing } from './live-server.ts';

test('a reader and a waiter of a server that is killed go on at the other; SIGTERM ends it though they stay', async () => {
  await buildProgram();
  const database = await createTestDatabase();
  const store = await openStore({ place: { url: database.url } });
  const programs = [1, 2].map(() => start(['serve', '--port', '0'], { env: { DATABASE_URL: database.url } }));
  const [first, second] = await Promise.all(
    programs.map(async (program) => {
      const [, url = ''] = await program.untilSaid(/listens on (http:\/\/[\d.:]+)/);
      return { ...program, url };
    }),
  );
  if (!first || !second) throw new Error('They did not start');
  const reader = new EventReader();
  await reader.connect(`${first.url}/v2/messages/stream`);
  await until(() => reader.controls.length === 1);
  const message = makeMessage();
  const waitPath = `/v2/messages/${message.messageId}?waitFor=SUCCESS`;
  const lost = fetch(`${first.url}${waitPath}`).catch(() => 'lost');

  await store.apply(numbersUpTo(10).map((number) => makeSnapshot(makeMessage({ number }))));
  await until(() => reader.hasReached(5));
  first.child.kill('SIGKILL');
  await Promise.all([first.outcome, reader.ended]);
  expect(await lost).toBe('lost');

  const waiting = fetch(`${second.url}${waitPath}`);
  await reader.connect(`${second.url}/v2/messages/stream`);
  await store.apply([makeExecuted(message, true)]);
  expect((await waiting).headers.get('x-lanescan-wait')).toBe('reached');
  await until(() => reader.hasReached(11));
  expect(reader.positions).toEqual(numbersUpTo(11));

  const unanswered = fetch(
    `${second.url}/v2/messages/${makeMessage({ number: 2 }).messageId}?waitFor=SUCCESS`,
  );
  // The stream and the wait.
  await untilFollowing(second, 2);
  second.child.kill('SIGTERM');
  expect((await unanswered).headers.get('x-lanescan-wait')).toBe('stopping');
  await reader.ended;
  expect(reader.controls.at(-1)?.event).toBe('closing');
  expect((await second.outcome).code).toBe(0);
  await store.close();
  await database.drop();
});
