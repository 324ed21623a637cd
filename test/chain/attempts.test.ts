// @module-tag slow: starts chain nodes with failing receivers of every version; api/routes/attempts.test.ts is the quick pass
/**
 * Why executions fail, on real contracts of every version: what receivers and token pools did is what people are told,
 * and what a diagnosis predicts is what then happens.
 */
import { hex } from '@scure/base';
import type { Hex } from 'viem';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Attempts } from '../../src/api/routes/history-schema.ts';
import { attemptsOf as attemptsIn } from '../../src/domain/attempts.ts';
import { failureReason } from '../../src/domain/failures/failure-reason.ts';
import type { Message } from '../../src/domain/message.ts';
import { kindNumbers } from '../../src/store/facts/kinds.ts';
import { openTestStore } from '../database.ts';
import { type SentMessage, versions } from '../lab/lab.ts';
import { CallFailure } from '../lab/network.ts';
import { connectForTest } from '../postgres.ts';
import { indexOnce } from './indexing.ts';
import { createLabExecution } from './lab-execution.ts';
import { encode, poolCases, poolSite, receiverCases } from './reverting-contracts.ts';

const service = createLabExecution();
const { ask, index, diagnoseAnew, statusOf, transactionOf } = service;

async function attemptsOf(message: SentMessage): Promise<Attempts['attempts']> {
  const answer = await ask('attempts', message);
  expect(answer.status).toBe(200);
  return answer.json<Attempts>().attempts;
}

/** Enough for any gas limit of the cases. */
const GAS = 10_000_000n;

/** Sends the transaction that is served. Returns the code of the reason where it fails, undefined where it does not. */
async function execute(message: SentMessage): Promise<string | undefined> {
  const { to, data } = (await transactionOf(message)).transaction;
  const { b } = service.lab;
  try {
    await b.transact({ from: b.foundation.bystander, to: to as Hex, data: data as Hex, gas: GAS });
  } catch (error) {
    if (!(error instanceof CallFailure) || error.data === undefined) throw error;
    return failureReason({ returnData: hex.decode(error.data.slice(2)) }).code;
  }
  // 1.2 does not revert: it records another failure.
  await index();
  const last = (await attemptsOf(message)).at(-1);
  return last?.outcome === 'FAILED' ? last.reason?.code : undefined;
}

/** Data that is empty may mean either, where the contract does not tell how much gas was used. */
const empty = ['no-reason', 'out-of-gas'];
const alike = (code: string | undefined) => (empty.includes(code ?? '') ? empty[0] : code);

const TIMEOUT = 900_000;

describe.each(versions)('on %s', (version) => {
  /** Each has failed once, by the case at the same place. */
  const byReceiver: SentMessage[] = [];
  const byPool: SentMessage[] = [];
  let rescued: SentMessage;
  const site = () => poolSite(service.lab, version);

  beforeAll(async () => {
    const lane = service.lab.lane(version, 'a');
    await lane.replaceRamps();
    for (const _ of receiverCases) byReceiver.push(await lane.sendOne({ data: '0x1234' }));
    rescued = await lane.sendOne({ data: '0x1234' });
    for (const _ of poolCases) byPool.push(await lane.sendOne({ tokens: [{ amount: 900_000n }] }));
    await lane.prepare([...byReceiver, rescued, ...byPool]);
    for (const [place, message] of [...byReceiver, rescued].entries()) {
      await lane.refuseWith(message, receiverCases[place]?.manner ?? '0x');
      await lane.execute(message, { fail: true });
    }
    await lane.executeByHand(rescued);
    for (const [place, { refuse, allow }] of poolCases.entries()) {
      await refuse(site());
      expect((await lane.execute(byPool[place] as SentMessage)).state).toBe('failure');
      await allow(site());
    }
    await index();
  }, TIMEOUT);

  test('the reason of every failure is told, and who tried', async () => {
    for (const [place, { name, code, text, textOf20 }] of receiverCases.entries()) {
      const attempts = await attemptsOf(byReceiver[place] as SentMessage);
      expect(attempts, name).toMatchObject([
        { outcome: 'FAILED', caller: expect.stringMatching(/^0x[0-9a-f]{40}$/i) },
      ]);
      const [{ gasUsed, reason } = {}] = attempts;
      expect(gasUsed, name).toEqual(version === '1.6' ? expect.stringMatching(/^\d+$/) : null);
      const isCut = version === '2.0' && textOf20 !== undefined;
      // Without the gas that was used, a revert without data may always be for want of gas.
      const expected = code === 'no-reason' && version !== '1.6' ? 'out-of-gas' : code;
      if (!isCut || code === 'Error') expect(reason?.code, name).toBe(expected);
      expect(reason?.text, name).toMatch(isCut ? textOf20 : text);
      expect(reason?.wrappers[0]?.name, name).toBe('ReceiverError');
    }
    expect((await attemptsOf(rescued)).map(({ outcome }) => outcome)).toEqual(['FAILED', 'SUCCESS']);
    for (const [place, { name, code, text, fixableBy }] of poolCases.entries()) {
      const [{ reason } = {}] = await attemptsOf(byPool[place] as SentMessage);
      expect(reason, name).toMatchObject({ code, fixableBy, text: expect.stringMatching(text) });
      expect(reason?.text, name).not.toMatch(/unknown|undefined/);
      const wrappers = reason?.wrappers.map((wrapper) => wrapper.name);
      expect(wrappers, name).toContain('TokenHandlingError');
    }
  });

  // 1.2 is retired: before releases.
  const options = { timeout: TIMEOUT, ...(version === '1.2' && { tags: 'release' }) };

  test('the diagnosis of a receiver that reverts is what the execution then comes to', options, async () => {
    for (const [place, { name, code, text }] of receiverCases.entries()) {
      const message = byReceiver[place] as SentMessage;
      const { outcome, reason } = await diagnoseAnew(message);
      expect({ outcome, code: alike(reason?.code) }, name).toEqual({ outcome: 'fails', code: alike(code) });
      // A simulation is told all of it, also where the event of 2.0 has cut it off.
      if (!empty.includes(code)) expect(reason?.text, name).toMatch(text);
      // The off-ramp of 2.0 returns 132 bytes: of an error inside of another, the outer one.
      const returned =
        version === '2.0' && name === 'an error inside of another' ? 'CallFailed' : reason?.code;
      expect(alike(await execute(message)), name).toBe(alike(returned));
    }
    const [healed] = byReceiver as [SentMessage];
    await service.lab.lane(version, 'a').refuse([healed], false);
    expect(await diagnoseAnew(healed)).toMatchObject({ outcome: 'succeeds', reason: null });
    expect(await execute(healed)).toBeUndefined();
    expect(await statusOf(healed)).toBe('SUCCESS');
  });

  test(
    'the diagnosis of a token pool that reverts, and no longer does, is what then happens',
    options,
    async () => {
      for (const [place, { name, code, fixableBy, refuse, allow }] of poolCases.entries()) {
        const message = byPool[place] as SentMessage;
        await refuse(site());
        const diagnosis = await diagnoseAnew(message);
        const executed = await execute(message);
        await allow(site());
        expect(diagnosis, name).toMatchObject({ outcome: 'fails', reason: { code, fixableBy } });
        expect(executed, name).toBe(code);
        expect((await diagnoseAnew(message)).outcome, name).toBe('succeeds');
        expect(await execute(message), name).toBeUndefined();
        expect(await statusOf(message)).toBe('SUCCESS');
      }
    },
  );
});

test('an attempt in a block that a reorganisation removed is shown as removed', async () => {
  const lane = service.lab.lane('1.6', 'a');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await lane.commit([message]);
  await lane.refuseWith(message, encode('EnforcedPause'));
  const fork = await service.lab.b.fork();
  const { blockHash } = await lane.execute(message, { fail: true });
  await index();
  expect(await attemptsOf(message)).toMatchObject([{ blockHash, removedAt: null }]);
  await fork.abandon();
  await index();
  expect(await attemptsOf(message)).toMatchObject([
    { blockHash, outcome: 'FAILED', removedAt: expect.any(String), reason: { code: 'EnforcedPause' } },
  ]);
  const again = await lane.execute(message, { fail: true });
  await index();
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
  const message = await service.lab.lane('1.6', 'b').sendOne();
  await index();
  expect(await attemptsOf(message)).toEqual([]);
  expect((await ask('attempts', { messageId: `0x${'ab'.repeat(32)}` })).status).toBe(404);
});

test('a store of an earlier version reads in what its executions returned', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const lane = service.lab.lane('1.6', 'b');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await lane.commit([message]);
  await lane.refuseWith(message, encode('EnforcedPause'));
  await lane.execute(message, { fail: true });
  await indexOnce(store, service.lab);
  const reasonNow = async () => {
    const found = await store.messageExecutions(message.messageId.slice(2));
    const attempts = attemptsIn(JSON.parse(found?.record ?? '') as Message, found?.facts ?? []);
    expect(attempts).toHaveLength(1);
    return attempts[0]?.reason?.code;
  };
  expect(await reasonNow()).toBe('EnforcedPause');

  // As the migration leaves a store that was indexed before there were details.
  const client = await connectForTest(store.url);
  await client.query(`delete from fact where kind = ${kindNumbers.ExecutionDetails}`);
  await client.query('update index_network set lacks_attempts = true');
  expect(await reasonNow()).toBeUndefined();

  await indexOnce(store, service.lab);
  expect(await reasonNow()).toBe('EnforcedPause');
  const { rows } = await client.query('select distinct lacks_attempts from index_network');
  expect(rows).toEqual([{ lacks_attempts: false }]);
});
