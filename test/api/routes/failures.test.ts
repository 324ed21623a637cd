/** Failed messages by reason: the counts are those of the messages, and one pass serves every window and lane. */
import { describe, expect, test } from 'vitest';
import type { Failures, MessageReasons } from '../../../src/api/routes/history-schema.ts';
import type { Fact } from '../../../src/domain/facts.ts';
import type { Message } from '../../../src/domain/message.ts';
import { encodeError, encodeText, inReceiver, inToken, rateLimit } from '../../fixtures/revert-data.ts';
import {
  fuji,
  hashOf,
  makeExecuted,
  makeExecutionDetails,
  makeMessage,
  makeSent,
  makeSnapshot,
  sepolia,
  solanaDevnet,
} from '../../fixtures.ts';
import { startServer } from '../running-server.ts';

const limited = (seconds: bigint) => inToken(rateLimit(seconds));
const LIMITED = "The token or its pool says: the token pool's rate limit is used up";

const DAY_MS = 86_400_000;
/** Messages of today, so that every window has them; `daysAgo` for older ones. */
const sentAt = (number: number, daysAgo = 0) =>
  new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - daysAgo * DAY_MS + number).toISOString();

function failedMessage(
  number: number,
  returnData: string | null,
  {
    daysAgo = 0,
    gasUsed = null as string | null,
    ...overrides
  }: Partial<Message> & {
    daysAgo?: number;
    gasUsed?: string | null;
  } = {},
): { readonly message: Message; readonly facts: readonly Fact[] } {
  const message = makeMessage({ number, sendTimestamp: sentAt(number, daysAgo), ...overrides });
  return {
    message,
    facts: [
      makeSent(message),
      makeExecuted(message, false, 5000 + number),
      ...(returnData === null ? [] : [makeExecutionDetails(message, returnData, 5000 + number, gasUsed)]),
    ],
  };
}

const serve = () => startServer([], { failureReportMaxAgeMs: 0 });

describe('GET /v2/stats/failures', () => {
  test('groups by reason, whatever the figures, and names lanes and newest messages', async () => {
    const { store, ask } = await serve();
    const back = { sourceNetworkInfo: fuji, destNetworkInfo: sepolia };
    const all = [
      failedMessage(1, limited(10n)),
      failedMessage(2, limited(3_600n)),
      failedMessage(3, limited(99n), back),
      failedMessage(4, inReceiver(encodeText('order 17 is closed'))),
      failedMessage(5, inReceiver(encodeText('order 18 is closed'))),
      failedMessage(6, inReceiver(encodeText('something else'))),
      failedMessage(7, inReceiver(encodeError('Panic(uint256)', 18n))),
      failedMessage(8, inReceiver(encodeError('EnforcedPause()'))),
      failedMessage(9, inToken(encodeError('EnforcedPause()'))),
      failedMessage(10, inReceiver(encodeError('TooSpicy(uint8)', 9))),
      failedMessage(11, inReceiver('0x'), { gasUsed: '900000' }),
      failedMessage(12, inReceiver('0x'), { gasUsed: '100' }),
      failedMessage(13, null),
    ];
    await store.apply(all.flatMap(({ facts }) => facts));
    const rescued = failedMessage(14, limited(1n));
    await store.apply([...rescued.facts, makeExecuted(rescued.message, true, 6000)]);

    const body = (await ask('/v2/stats/failures')).json<Failures>();
    expect(body).toMatchObject({ failed: 13, counted: 13, otherReasons: null });
    expect(body).not.toHaveProperty('truncated');
    const brief = body.reasons.map(({ code, title, fixableBy, messages }) => [
      code,
      title,
      fixableBy,
      messages,
    ]);
    expect(brief.slice(0, 2)).toEqual([
      ['TokenRateLimitReached', LIMITED, 'anyone', 3],
      ['Error', 'The receiver reverted with “order 18 is closed”', 'receiver-owner', 2],
    ]);
    const unknown = encodeError('TooSpicy(uint8)', 9).slice(0, 10);
    expect(brief.slice(2)).toEqual(
      expect.arrayContaining([
        ['Error', 'The receiver reverted with “something else”', 'receiver-owner', 1],
        ['Panic', 'The receiver stopped: a division by zero', 'receiver-owner', 1],
        ['EnforcedPause', 'The receiver says: the called contract is paused', 'receiver-owner', 1],
        ['EnforcedPause', 'The token or its pool says: the called contract is paused', 'pool-owner', 1],
        ['unknown-error', `The receiver reverted with an unknown error (${unknown})`, 'receiver-owner', 1],
        ['out-of-gas', 'Out of gas: the receiver reverted without a reason, at the gas limit', 'anyone', 1],
        ['no-reason', 'The receiver reverted without a reason', 'receiver-owner', 1],
        ['not-known', 'The reason is not known here', 'unknown', 1],
      ]),
    );
    expect(body.reasons[0]).toMatchObject({
      readyForManualExecution: 3,
      laneCount: 2,
      lanes: [
        { sourceNetworkInfo: sepolia, destNetworkInfo: fuji, messages: 2 },
        { ...back, messages: 1 },
      ],
      newest: [3, 2, 1].map((number) => ({ messageId: hashOf('message', number) })),
    });
    expect(body.days).toHaveLength(30);
    expect(body.days.at(-1)).toMatchObject({ messages: 14, failed: 13 });
  });

  test('takes a window and a lane, and rejects what it does not know', async () => {
    const { store, ask } = await serve();
    const back = { sourceNetworkInfo: fuji, destNetworkInfo: sepolia };
    const all = [
      failedMessage(1, limited(1n)),
      failedMessage(2, limited(1n), { ...back, daysAgo: 3 }),
      failedMessage(3, inReceiver(encodeError('EnforcedPause()')), { daysAgo: 40 }),
    ];
    await store.apply(all.flatMap(({ facts }) => facts));
    const figures = async (query: string) => {
      const { failed, counted, reasons, days } = (await ask(`/v2/stats/failures${query}`)).json<Failures>();
      expect(days.reduce((sum, day) => sum + day.failed, 0)).toBe(failed);
      expect(counted).toBe(failed);
      return [failed, reasons.length, days.length];
    };
    expect(await figures('')).toEqual([2, 1, 30]);
    expect(await figures('?windowDays=2')).toEqual([1, 1, 2]);
    expect(await figures('?windowDays=60')).toEqual([3, 2, 60]);
    expect(await figures(`?sourceChainSelector=${fuji.chainSelector}`)).toEqual([1, 1, 30]);
    expect(await figures(`?destChainSelector=${solanaDevnet.chainSelector}`)).toEqual([0, 0, 30]);
    expect((await ask('/v2/stats/failures?reason=x')).status).toBe(400);
  });

  test('lists 50 reasons and counts the rest; hostile texts stay text', async () => {
    const { store, ask } = await serve();
    const words = (n: number) => `<b>${String.fromCharCode(97 + (n % 26))}${'x'.repeat(n)}\u202e\u0000`;
    const all = Array.from({ length: 60 }, (_, n) => failedMessage(n + 1, inReceiver(encodeText(words(n)))));
    await store.apply(all.flatMap(({ facts }) => facts));
    const body = (await ask('/v2/stats/failures')).json<Failures>();
    expect(body.reasons).toHaveLength(50);
    expect(body.otherReasons).toEqual({ reasons: 10, messages: 10 });
    for (const { title } of body.reasons) expect(title.length).toBeLessThanOrEqual(160);
  });

  test('follows the messages: what is rescued leaves, what is new comes', async () => {
    const { store, ask } = await serve();
    const { message, facts } = failedMessage(1, limited(1n));
    const failedNow = async () => (await ask('/v2/stats/failures')).json<Failures>().counted;
    expect(await failedNow()).toBe(0);
    await store.apply(facts);
    expect(await failedNow()).toBe(1);
    await store.apply([makeExecuted(message, true, 9000)]);
    expect(await failedNow()).toBe(0);
  });
});

test('reasons of given messages come in their order; others are left out', async () => {
  const { store, ask } = await serve();
  const paused = failedMessage(1, inReceiver(encodeError('EnforcedPause()')));
  const rescued = failedMessage(2, limited(1n));
  const imported = makeMessage({ number: 3, status: 'FAILED' });
  await store.apply([...paused.facts, ...rescued.facts, makeExecuted(rescued.message, true, 9000)]);
  await store.apply([makeSnapshot(imported), makeSnapshot(makeMessage({ number: 4 }))]);
  const ids = [3, 2, 1, 4, 5].map((number) => hashOf('message', number));
  const { data } = (await ask(`/v2/messages/reasons?messageId=${ids.join(',')}`)).json<MessageReasons>();
  expect(data).toMatchObject([
    { messageId: imported.messageId, reason: null },
    { messageId: paused.message.messageId, reason: { code: 'EnforcedPause', fixableBy: 'receiver-owner' } },
  ]);
  expect(data).toHaveLength(2);
  expect((await ask('/v2/messages/reasons')).json().details).toEqual([
    { parameter: 'messageId', problem: 'is required' },
  ]);
  const many = Array.from({ length: 101 }, (_, n) => hashOf('many', n)).join(',');
  expect((await ask(`/v2/messages/reasons?messageId=${many}`)).status).toBe(400);
});
