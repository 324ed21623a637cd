/** Return data that somebody made to break or to deceive: it changes no record, and every path answers. */
import { encodeErrorResult, parseAbi } from 'viem';
import { expect, test } from 'vitest';
import type { Attempts } from '../../src/api/schemas/attempts.ts';
import type { Failures, MessageReasons } from '../../src/api/schemas/failures.ts';
import { makeExecuted, makeExecutionDetails, makeMessage, makeSent } from '../fixtures.ts';
import { startServer } from './running-server.ts';

const abi = parseAbi(['error Error(string message)', 'error ReceiverError(bytes err)']);
const text = (message: string) => encodeErrorResult({ abi, errorName: 'Error', args: [message] });
const recursive = () => {
  let data = text('end');
  while (data.length < 8_000) data = encodeErrorResult({ abi, errorName: 'ReceiverError', args: [data] });
  return data;
};
/** As much of it as indexers keep. */
const kept = (data: string) => data.slice(0, 2 + 2 * 4_096);
const DISGUISE = 'pay\u202e\u0000\u001b[2J<script>alert(1)</script>\u2066\ud7ff';

const hostile: readonly string[] = [
  kept(text('x'.repeat(1_000_000))),
  kept(text(DISGUISE)),
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
