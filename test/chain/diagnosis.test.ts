// @module-tag slow: starts chain nodes with the contracts of every version, and executes many messages
/** Diagnoses on real contracts: whatever refuses a message, what is foretold is what then happens. */
import { hex } from '@scure/base';
import type { Hex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Diagnosis, ManualExecution } from '../../src/api/execution/execution-schema.ts';
import type { Attempts } from '../../src/api/routes/history-schema.ts';
import { createDestinations } from '../../src/cli/config/destinations.ts';
import { failureReason } from '../../src/domain/failures/failure-reason.ts';
import type { Message } from '../../src/domain/message.ts';
import { type RunningServer, serveStore, startServer } from '../api/running-server.ts';
import { type Lab, type Lane, type SentMessage, startLab, versions } from '../lab/lab.ts';
import { CallFailure } from '../lab/network.ts';
import { indexOnce, labSource } from './indexing.ts';
import { poolCases, poolSite, receiverCases } from './reverting-contracts.ts';

/** Enough for any gas limit of the cases. */
const GAS = 10_000_000n;

let lab: Lab;
let server: RunningServer;
const stopping = new AbortController();

beforeAll(async () => {
  lab = await startLab();
  server = await startServer();
}, 600_000);
afterAll(async () => {
  stopping.abort();
  await server?.close();
  await lab?.stop();
});

/** Twice: a destination may have found nothing to ask about a message before its source told of it. */
async function index(): Promise<void> {
  await indexOnce(server.store, lab);
  await indexOnce(server.store, lab);
}

/** By a server that has cached nothing. */
async function diagnose({ messageId }: SentMessage): Promise<Diagnosis> {
  const fresh = await serveStore(
    { ...server.store, close: async () => undefined },
    {
      destinations: createDestinations({
        sources: lab.networks.map((network) => labSource(network)),
        signal: stopping.signal,
        writeLog: () => undefined,
      }),
    },
  );
  try {
    const answer = await fresh.ask(`/v2/messages/${messageId}/diagnosis`);
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
    return answer.json<Diagnosis>();
  } finally {
    await fresh.close();
  }
}

/** Sends the transaction that is served. Returns the code of the reason where it fails, undefined where it does not. */
async function execute(message: SentMessage): Promise<string | undefined> {
  const served = await server.ask(`/v2/messages/${message.messageId}/manual-execution`);
  expect(served.status).toBe(200);
  const { to, data } = served.json<ManualExecution>().transaction;
  try {
    await lab.b.transact({ from: lab.b.foundation.bystander, to: to as Hex, data: data as Hex, gas: GAS });
  } catch (error) {
    if (!(error instanceof CallFailure) || error.data === undefined) throw error;
    return failureReason({ returnData: hex.decode(error.data.slice(2)) }).code;
  }
  // 1.2 does not revert: it records another failure.
  await index();
  const attempts = (await server.ask(`/v2/messages/${message.messageId}/attempts`)).json<Attempts>().attempts;
  const last = attempts.at(-1);
  return last?.outcome === 'FAILED' ? last.reason?.code : undefined;
}

/** Data that is empty may mean either, as far as the contract tells how much gas was used. */
const empty = ['no-reason', 'out-of-gas'];
const alike = (code: string | undefined) => (empty.includes(code ?? '') ? empty[0] : code);

async function failOnce(
  lane: Lane,
  messages: readonly SentMessage[],
  attempt: (place: number) => Promise<unknown>,
) {
  if (lane.version !== '2.0') await lane.commit(messages);
  if (lane.version === '1.2' || lane.version === '1.5') await lane.bless(messages);
  for (const place of messages.keys()) await attempt(place);
  await index();
}

const TIMEOUT = 900_000;
/** 1.2 is retired: before releases. attempts.test.ts has its reasons in the slow tier. */
const retired = { tags: 'release', timeout: TIMEOUT };

describe.each(versions)('on %s', (version) => {
  const options = version === '1.2' ? retired : { timeout: TIMEOUT };

  test('the diagnosis of a receiver that reverts is what the execution then comes to', options, async () => {
    const lane = lab.lane(version, 'a');
    await lane.replaceRamps();
    const messages: SentMessage[] = [];
    for (const _ of receiverCases) messages.push(await lane.sendOne({ data: '0x1234' }));
    await failOnce(lane, messages, async (place) => {
      const message = messages[place] as SentMessage;
      await lane.refuseWith(message, receiverCases[place]?.manner ?? '0x');
      await lane.execute(message, { fail: true });
    });
    for (const [place, { name, code, text }] of receiverCases.entries()) {
      const message = messages[place] as SentMessage;
      const { outcome, reason } = await diagnose(message);
      expect({ outcome, code: alike(reason?.code) }, name).toEqual({ outcome: 'fails', code: alike(code) });
      // A simulation is told all of it, also where the event of 2.0 has cut it off.
      if (!empty.includes(code)) expect(reason?.text, name).toMatch(text);
      // The off-ramp of 2.0 returns 132 bytes: of an error inside of another, the outer one.
      const returned =
        version === '2.0' && name === 'an error inside of another' ? 'CallFailed' : reason?.code;
      expect(alike(await execute(message)), name).toBe(alike(returned));
    }
    const [healed] = messages as [SentMessage];
    await lane.refuse([healed], false);
    expect(await diagnose(healed)).toMatchObject({ outcome: 'succeeds', reason: null });
    expect(await execute(healed)).toBeUndefined();
    await index();
    expect((await server.ask(`/v2/messages/${healed.messageId}`)).json<Message>().status).toBe('SUCCESS');
  });

  test(
    'the diagnosis of a token pool that reverts, and no longer does, is what then happens',
    options,
    async () => {
      const lane = lab.lane(version, 'a');
      await lane.replaceRamps();
      const site = poolSite(lab, version);
      const messages: SentMessage[] = [];
      for (const _ of poolCases) messages.push(await lane.sendOne({ tokens: [{ amount: 900_000n }] }));
      await failOnce(lane, messages, async (place) => {
        await poolCases[place]?.refuse(site);
        expect((await lane.execute(messages[place] as SentMessage)).state).toBe('failure');
        await poolCases[place]?.allow(site);
      });
      for (const [place, { name, code, fixableBy, refuse, allow }] of poolCases.entries()) {
        const message = messages[place] as SentMessage;
        await refuse(site);
        const { outcome, reason } = await diagnose(message);
        const executed = await execute(message);
        await allow(site);
        expect({ outcome, code: reason?.code, fixableBy: reason?.fixableBy }, name).toEqual({
          outcome: 'fails',
          code,
          fixableBy,
        });
        expect(executed, name).toBe(code);
        expect((await diagnose(message)).outcome, name).toBe('succeeds');
        expect(await execute(message), name).toBeUndefined();
      }
      await index();
      for (const { messageId } of messages)
        expect((await server.ask(`/v2/messages/${messageId}`)).json<Message>().status).toBe('SUCCESS');
    },
  );
});
