// @module-tag slow: starts chain nodes with failing receivers of every version; api/routes/attempts.test.ts is the quick pass
/** Why executions fail, on real contracts of every version: what the receiver did is what people are told. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Attempts } from '../../src/api/routes/history-schema.ts';
import { attemptsOf as attemptsIn } from '../../src/domain/attempts.ts';
import type { Message } from '../../src/domain/message.ts';
import { type RunningServer, startServer } from '../api/running-server.ts';
import { openTestStore } from '../database.ts';
import { type Lab, type SentMessage, startLab, versions } from '../lab/lab.ts';
import { indexOnce } from './indexing.ts';
import { encode, poolCases, poolSite, receiverCases } from './reverting-contracts.ts';

let lab: Lab;
let server: RunningServer;

beforeAll(async () => {
  lab = await startLab();
  server = await startServer();
}, 180_000);
afterAll(async () => {
  await server?.close();
  await lab?.stop();
});

async function attemptsOf({ messageId }: SentMessage): Promise<Attempts['attempts']> {
  const answer = await server.ask(`/v2/messages/${messageId}/attempts`);
  expect(answer.status).toBe(200);
  return answer.json<Attempts>().attempts;
}

describe.each(versions)('on %s', (version) => {
  test('the reason of every refusal is told, and who tried', {
    tags: version === '1.6' ? [] : ['slow'],
  }, async () => {
    const lane = lab.lane(version, 'a');
    await lane.replaceRamps();
    const messages: SentMessage[] = [];
    for (const _ of receiverCases) messages.push(await lane.sendOne({ data: '0x1234' }));
    if (version !== '2.0') await lane.commit(messages);
    if (version === '1.2' || version === '1.5') await lane.bless(messages);
    for (const [index, { manner }] of receiverCases.entries()) {
      const message = messages[index] as SentMessage;
      await lane.refuseWith(message, manner);
      await lane.execute(message, { fail: true });
    }
    const rescued = messages[0] as SentMessage;
    await lane.executeByHand(rescued);
    await indexOnce(server.store, lab);

    for (const [index, { name, code, text, textOf20 }] of receiverCases.entries()) {
      const message = messages[index] as SentMessage;
      const attempts = await attemptsOf(message);
      const [first] = attempts;
      expect(first, name).toMatchObject({
        outcome: 'FAILED',
        caller: expect.stringMatching(/^0x[0-9a-f]{40}$/i),
      });
      expect(first?.gasUsed, name).toEqual(version === '1.6' ? expect.stringMatching(/^\d+$/) : null);
      const isCut = version === '2.0' && textOf20 !== undefined;
      // Without the gas that was used, a revert without data may always be for want of gas.
      const expected = code === 'no-reason' && version !== '1.6' ? 'out-of-gas' : code;
      if (!isCut || code === 'Error') expect(first?.reason?.code, name).toBe(expected);
      expect(first?.reason?.text, name).toMatch(isCut ? textOf20 : text);
      expect(first?.reason?.wrappers[0]?.name, name).toBe('ReceiverError');
      expect(attempts.slice(1).map(({ outcome }) => outcome)).toEqual(message === rescued ? ['SUCCESS'] : []);
    }
  });
});

describe.each(versions)('a token pool of %s', (version) => {
  test('that refuses is told as such, with the reason', async () => {
    const lane = lab.lane(version, 'a');
    await lane.replaceRamps();
    const site = poolSite(lab, version);
    const messages: SentMessage[] = [];
    for (const _ of poolCases) messages.push(await lane.sendOne({ tokens: [{ amount: 900_000n }] }));
    if (version !== '2.0') await lane.commit(messages);
    if (version === '1.2' || version === '1.5') await lane.bless(messages);
    for (const [index, { refuse, allow }] of poolCases.entries()) {
      await refuse(site);
      const { state } = await lane.execute(messages[index] as SentMessage);
      await allow(site);
      expect(state).toBe('failure');
    }
    await indexOnce(server.store, lab);
    for (const [index, { name, code, text, fixableBy }] of poolCases.entries()) {
      const [attempt] = await attemptsOf(messages[index] as SentMessage);
      expect(attempt?.reason, name).toMatchObject({
        code,
        fixableBy,
        text: expect.stringMatching(text),
      });
      expect(attempt?.reason?.text, name).not.toMatch(/unknown|undefined/);
      expect(
        attempt?.reason?.wrappers.map((wrapper) => wrapper.name),
        name,
      ).toContain('TokenHandlingError');
    }
  });
});

test('an attempt in a block that a reorganisation removed is shown as removed', async () => {
  const lane = lab.lane('1.6', 'a');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await lane.commit([message]);
  await lane.refuseWith(message, encode('EnforcedPause'));
  const fork = await lab.b.fork();
  const { blockHash } = await lane.execute(message, { fail: true });
  await indexOnce(server.store, lab);
  expect(await attemptsOf(message)).toMatchObject([{ blockHash, removedAt: null }]);
  await fork.abandon();
  await indexOnce(server.store, lab);
  expect(await attemptsOf(message)).toMatchObject([
    { blockHash, outcome: 'FAILED', removedAt: expect.any(String), reason: { code: 'EnforcedPause' } },
  ]);
  const again = await lane.execute(message, { fail: true });
  await indexOnce(server.store, lab);
  expect(
    (await attemptsOf(message)).map((attempt) => [attempt.blockHash, attempt.removedAt === null]),
  ).toEqual(
    expect.arrayContaining([
      [blockHash, false],
      [again.blockHash, true],
    ]),
  );
});

test('a message that nobody has executed has no attempts; one that is not known is not found', async () => {
  const message = await lab.lane('1.6', 'b').sendOne();
  await indexOnce(server.store, lab);
  expect(await attemptsOf(message)).toEqual([]);
  const unknown = await server.ask(`/v2/messages/0x${'ab'.repeat(32)}/attempts`);
  expect(unknown.status).toBe(404);
});

test('a store of an earlier version reads in what its executions returned', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const lane = lab.lane('1.6', 'b');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await lane.commit([message]);
  await lane.refuseWith(message, encode('EnforcedPause'));
  await lane.execute(message, { fail: true });
  await indexOnce(store, lab);
  const reasonNow = async () => {
    const found = await store.messageExecutions(message.messageId.slice(2));
    const attempts = attemptsIn(JSON.parse(found?.record ?? '') as Message, found?.facts ?? []);
    expect(attempts).toHaveLength(1);
    return attempts[0]?.reason?.code;
  };
  expect(await reasonNow()).toBe('EnforcedPause');

  // As the migration leaves a store that was indexed before there were details.
  const client = new pg.Client(store.url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`delete from fact where kind = 'ExecutionDetails'`);
  await client.query('update index_network set lacks_attempts = true');
  expect(await reasonNow()).toBeUndefined();

  await indexOnce(store, lab);
  expect(await reasonNow()).toBe('EnforcedPause');
  const { rows } = await client.query('select distinct lacks_attempts from index_network');
  expect(rows).toEqual([{ lacks_attempts: false }]);
});
