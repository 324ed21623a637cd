/** Return data that somebody made to break or to deceive: it changes no record, and every path answers. */
import type { Hex } from 'viem';
import { expect, test } from 'vitest';
import type { Attempts, Failures, MessageReasons } from '../../../src/api/routes/history-schema.ts';
import { lanescan } from '../../cli/program.ts';
import { encodeError, encodeText, inReceiver, inToken, rateLimit } from '../../fixtures/revert-data.ts';
import { makeExecuted, makeExecutionDetails, makeMessage, makeSent } from '../../fixtures.ts';
import { startServer } from '../running-server.ts';

const recursive = () => {
  let data = encodeText('end');
  while (data.length < 8_000) data = inReceiver(data);
  return data;
};
/** As much of it as indexers keep. */
const kept = (data: string) => data.slice(0, 2 + 2 * 4_096);
const DISGUISE = 'pay\u202e\u0000\u001b[2J<script>alert(1)</script>\u2066\ud7ff';

const hostile: readonly string[] = [
  kept(encodeText('x'.repeat(1_000_000))),
  kept(encodeText(DISGUISE)),
  kept(recursive()),
  // The length of the text is beyond all data, and the text is not UTF-8.
  `0x08c379a0${'20'.padStart(64, '0')}${'f'.repeat(64)}${'fffec328'.repeat(16)}`,
  // Its offset points at itself.
  `0x08c379a0${'0'.padStart(64, '0')}`,
  `0x${'ff'.repeat(4_096)}`,
];

test('hostile return data changes no record and breaks no answer', async () => {
  const { store, ask } = await startServer();
  const messages = hostile.map((_, index) => makeMessage({ number: 400 + index, status: 'FAILED' }));
  await store.apply(messages.flatMap((message) => [makeSent(message), makeExecuted(message, false)]));
  const records = async () =>
    Promise.all(messages.map(async ({ messageId }) => (await ask(`/v2/messages/${messageId}`)).text));
  const before = await records();
  await store.apply(messages.map((message, index) => makeExecutionDetails(message, hostile[index] ?? '0x')));
  expect(await records()).toEqual(before);

  for (const { messageId } of messages) {
    const answer = await ask(`/v2/messages/${messageId}/attempts`);
    expect(answer.status).toBe(200);
    const [attempt] = answer.json<Attempts>().attempts;
    expect(attempt?.reason?.text.length).toBeLessThan(2_000);
    expect(attempt?.reason?.text).not.toMatch(/\p{Cc}|\p{Cf}/u);
    expect(attempt?.reason?.wrappers.length).toBeLessThanOrEqual(6);
  }
  const ids = messages.map(({ messageId }) => messageId).join(',');
  expect((await ask(`/v2/messages/reasons?messageId=${ids}`)).json<MessageReasons>().data).toHaveLength(
    hostile.length,
  );
  const { reasons } = (await ask('/v2/stats/failures?windowDays=90')).json<Failures>();
  for (const { title } of reasons) expect(title.length).toBeLessThanOrEqual(160);
  const exported = await ask('/v2/messages/export?format=ndjson&attempts=true');
  expect(exported.text.trim().split('\n')).toHaveLength(hostile.length);
});

test('no receiver and no pool speaks for CCIP: not in attempts, reasons, groups, exports or on the command line', async () => {
  const { store, ask, url } = await startServer([], { failureReportMaxAgeMs: 0 });
  const decade = rateLimit(315_360_000n);
  const cursed = encodeError('CursedByRMN()');
  const claims: readonly (readonly [data: Hex, saidBy: string, title: RegExp])[] = [
    [inReceiver(cursed), 'receiver', /^The receiver reverted with CursedByRMN$/],
    [
      inReceiver(encodeError('AlreadyExecuted(uint64)', 1n)),
      'receiver',
      /^The receiver reverted with AlreadyExecuted$/,
    ],
    [inReceiver(decade), 'receiver', /^The receiver reverted with TokenRateLimitReached$/],
    [inToken(inReceiver(cursed)), 'token-pool', /^The token or its pool reverted with CursedByRMN$/],
    [inToken(decade), 'token-pool', /^The token or its pool says: the token pool's rate limit is used up$/],
  ];
  const messages = claims.map((_, index) =>
    makeMessage({ number: 500 + index, sendTimestamp: new Date().toISOString() }),
  );
  await store.apply(
    messages.flatMap((message, index) => [
      makeSent(message),
      makeExecuted(message, false),
      makeExecutionDetails(message, claims[index]?.[0] ?? '0x'),
    ]),
  );
  const believed = /Risk Management Network|already been executed|Nothing is left|315,360,000/;
  for (const [index, { messageId }] of messages.entries()) {
    const [attempt] = (await ask(`/v2/messages/${messageId}/attempts`)).json<Attempts>().attempts;
    expect(attempt?.reason?.saidBy).toBe(claims[index]?.[1]);
    expect(attempt?.reason?.text).toMatch(/^The (receiver|token or its pool) (says|reverted)/);
    expect(`${attempt?.reason?.text} ${attempt?.reason?.advice}`).not.toMatch(believed);
  }
  const ids = messages.map(({ messageId }) => messageId).join(',');
  expect((await ask(`/v2/messages/reasons?messageId=${ids}`)).text).not.toMatch(believed);
  const { reasons } = (await ask('/v2/stats/failures')).json<Failures>();
  for (const [, , title] of claims) expect(reasons.some((group) => title.test(group.title))).toBe(true);
  expect(reasons).toHaveLength(claims.length);
  for (const format of ['csv', 'ndjson'])
    expect((await ask(`/v2/messages/export?format=${format}&attempts=true`)).text).not.toMatch(believed);
  const [first] = messages;
  const { stdout } = await lanescan(['show', first?.messageId ?? '', '--url', url]);
  expect(stdout).toMatch(/The receiver reverted with\s+CursedByRMN\(\)/);
  expect(stdout).toMatch(/Said by +the receiver, which may claim anything/);
  expect(stdout).not.toMatch(believed);
});
