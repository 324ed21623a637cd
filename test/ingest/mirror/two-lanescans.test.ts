// @module-tag slow: starts and kills the program many times
/** One Lanescan follows another: killed at any moment, it ends with the same store. */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { compareNewestFirst } from '../../../src/domain/filters/matches.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { startServerForTest, startSimulatedServer } from '../../api/running-server.ts';
import { buildProgram, lanescan, type Setting, start } from '../../cli/program.ts';
import { createTestDatabase } from '../../database.ts';
import { sampleMessages } from '../../fixtures/sample-messages.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { openStoreForTest, stored, until } from './running-mirror.ts';
import { startStandIn } from './stand-in.ts';

const crowd = Array.from({ length: 1_500 }, (_, index) =>
  makeMessage({ number: 100 + index, status: index % 10 === 0 ? 'SENT' : 'SUCCESS' }),
);

beforeAll(() => buildProgram());

async function openCopy(): Promise<{ store: Store; setting: Setting }> {
  const store = await openStoreForTest();
  return { store, setting: { env: { DATABASE_URL: store.url } } };
}

test('--once brings a Lanescan whole, and what has moved the next time', async () => {
  const server = await startServerForTest([...sampleMessages, ...crowd]);
  const { store, setting } = await openCopy();
  const first = await lanescan(['mirror', server.url, '--once', '--rate', '500'], setting);
  expect(first).toMatchObject({ code: 0 });
  expect(first.stdout).toBe(
    `${server.url}: ${(sampleMessages.length + crowd.length).toLocaleString('en')} new, 0 updated\n`,
  );
  expect(await stored(store)).toEqual(await stored(server.store));

  const moved = crowd.filter(({ status }) => status === 'SENT').slice(0, 120);
  await server.store.apply(
    [
      ...moved.map((message) => ({ ...message, status: 'COMMITTED' as const })),
      makeMessage({ number: 99_999 }),
    ].map(makeSnapshot),
  );
  const second = await lanescan(['mirror', `${server.url}/`, '--once', '--rate', '500'], setting);
  expect(second.stdout).toBe(`${server.url}: 1 new, 120 updated\n`);
  expect(await stored(store)).toEqual(await stored(server.store));
});

test('filters go to the source, and a mistake in them is wrong usage', async () => {
  const server = await startServerForTest(sampleMessages);
  const { store, setting } = await openCopy();
  await lanescan(['mirror', server.url, '--once', '--rate', '500', '--status', 'FAILED'], setting);
  const expected = (await stored(server.store)).filter(({ status }) => status === 'FAILED');
  expect(await stored(store)).toEqual(expected);

  const wrong = await lanescan(['mirror', server.url, '--status', 'LOST'], setting);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/--status takes SENT/) });
  for (const flags of [
    ['--since', 'yesterday'],
    ['--rate', '0'],
    ['--poll', 'often'],
  ]) {
    const refused = await lanescan(['mirror', server.url, ...flags], setting);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`${flags[0]} takes`) });
  }
  const noUrl = await lanescan(['mirror', 'nowhere'], setting);
  expect(noUrl).toMatchObject({ code: 1, stderr: expect.stringMatching(/not a valid URL\. Give the part/) });
});

test('a mirror follows a Lanescan that changes, and stops when told', async () => {
  const server = await startServerForTest(crowd.slice(0, 700));
  const { store, setting } = await openCopy();
  const mirror = start(['mirror', server.url, '--rate', '500', '--poll', '0.2'], setting);
  const isSame = async () =>
    JSON.stringify(await stored(store)) === JSON.stringify(await stored(server.store));
  await until(isSame);
  await server.store.apply(crowd.slice(700, 800).map(makeSnapshot));
  await until(isSame);
  mirror.child.kill('SIGTERM');
  expect(await mirror.outcome).toMatchObject({ code: 0, stdout: expect.stringMatching(/: 800 new, /) });
});

test('killed again and again, it ends with the store of the source', async () => {
  const standIn = await startStandIn(...crowd.slice(0, 600));
  const { store, setting } = await openCopy();
  const args = ['mirror', standIn.url, '--once', '--rate', '400'];
  for (let kill = 0; kill < 4; kill++) {
    const from = standIn.requests.length;
    const mirror = start(args, setting);
    await until(async () => standIn.requests.length > from + 20 + kill * 23);
    mirror.child.kill('SIGKILL');
    await mirror.outcome;
    // Meanwhile the world goes on.
    standIn.add(makeMessage({ number: 50_000 + kill, status: 'SUCCESS' }));
  }
  expect((await stored(store)).length).toBeLessThan(604);
  const requests = standIn.requests.length;
  expect(requests).toBeLessThan(600);
  expect(await lanescan(args, setting)).toMatchObject({ code: 0 });
  const expected = [...standIn.records.values()].sort(compareNewestFirst);
  expect(await stored(store)).toEqual(expected);
  // What the killed ones had stored was not asked for again: a kill costs at most the 100 requests that were prepared.
  const asked = standIn.requests.filter(({ path }) => path.startsWith('/v2/messages/0x')).length;
  expect(asked).toBeLessThan(expected.length + 4 * 100);
});

test('simulated and real data do not meet, from either side', async () => {
  const demo = await startSimulatedServer(sampleMessages);
  onTestFinished(() => demo.close());
  const { store, setting } = await openCopy();
  const refused = await lanescan(['mirror', demo.url, '--once'], setting);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/serves a simulated network/) });
  expect(await stored(store)).toEqual([]);

  const database = await createTestDatabase({ empty: true });
  const simulated = await openStore({ place: { url: database.url }, content: 'simulated' });
  onTestFinished(async () => {
    await simulated.close();
    await database.drop();
  });
  const own = { env: { DATABASE_URL: database.url } };
  expect(await lanescan(['mirror', demo.url, '--once', '--rate', '500'], own)).toMatchObject({ code: 0 });
  expect(await stored(simulated)).toEqual(await stored(demo.store));
  const real = await startServerForTest(sampleMessages);
  const mixed = await lanescan(['mirror', real.url, '--once'], own);
  expect(mixed).toMatchObject({ code: 1, stderr: expect.stringMatching(/never mixed into it/) });
});
