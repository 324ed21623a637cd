/** Whatever an older version has stored, no statistic, list or command fails on it. */
import { beforeAll, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { serverForAll } from '../api/running-server.ts';
import { lanescan } from '../cli/program.ts';
import {
  fuji,
  makeExecuted,
  makeExecutionDetails,
  makeMessage,
  makeSent,
  makeSnapshot,
  makeToken,
  sepolia,
} from '../fixtures.ts';

const MAX = Number.MAX_SAFE_INTEGER;
const UINT64 = (2n ** 64n - 1n).toString();
const UINT256 = (2n ** 256n - 1n).toString();
/** PostgreSQL's JSON functions convert neither of the two. */
const HOSTILE_TEXT = 'a\u0000b\ud800c';

const recent = new Date(Date.now() - 3_600_000).toISOString();
const extremes: readonly Partial<Message>[] = [
  { deliveryTime: 9_000_000_000_000_000 },
  { deliveryTime: MAX },
  { deliveryTime: -MAX },
  { sendTimestamp: '9999-12-31T23:59:59.999Z', receiptTimestamp: '9999-12-31T23:59:59.999Z' },
  { sendTimestamp: '9999-12-31T23:59:59.999Z', deliveryTime: MAX },
  { sendTimestamp: '1970-01-01T00:00:00.000Z', receiptTimestamp: '1970-01-01T00:00:00.000Z' },
  { sequenceNumber: UINT64, nonce: UINT64 },
  { sequenceNumber: '0' },
  { sendBlockNumber: MAX, sendLogIndex: MAX, finality: MAX },
  { extraArgs: { gasLimit: UINT256, allowOutOfOrderExecution: true } },
  { tokenAmounts: [{ ...makeToken(sepolia, fuji, 'USDC'), amount: UINT256, destGasAmount: UINT256 }] },
  { note: HOSTILE_TEXT } as Partial<Message>,
];
/** Not through the parser: as stored by a version that had other bounds. */
const stored = extremes.flatMap((extreme, index) =>
  (['SUCCESS', 'FAILED', 'SENT'] as const).map((status, place): Message => {
    const number = 10 * (index + 1) + place;
    const { sendTimestamp, ...message } = makeMessage({ number, status, sendTimestamp: recent });
    return { ...message, sendTimestamp, ...extreme } as Message;
  }),
);

/** Messages that describe lanes and networks of their own. */
const described = [1, 2].map((number): Message => {
  const network = {
    ...sepolia,
    chainSelector: String(76 + number),
    name: HOSTILE_TEXT,
    displayName: HOSTILE_TEXT,
  };
  const message = makeMessage({ number, sourceNetworkInfo: network, status: 'SUCCESS' });
  return number === 1 ? message : { ...message, sourceNetworkInfo: fuji, destNetworkInfo: network };
});

const server = serverForAll();
beforeAll(async () => {
  // Enough for a latency, and most of a lane's deliveries last absurdly long.
  await server.store.apply([...stored, ...described].map(makeSnapshot));
  // Failed executions that an index has seen, so that reasons and gas limits are looked up.
  const failed = stored.filter(({ status }) => status === 'FAILED');
  await server.store.apply(
    failed.flatMap((message, index) => [
      makeSent({ ...message, sendBlockNumber: 1_000_000, note: undefined } as Message),
      makeExecuted(message, false, 5000 + index),
      makeExecutionDetails(message, '0x', 5000 + index, '199000'),
    ]),
  );
});

const lane = `sourceChainSelector=${sepolia.chainSelector}&destChainSelector=${fuji.chainSelector}`;
test.each([
  '/v2/lanes',
  '/v2/lanes?windowDays=365',
  `/v2/lanes/latency?${lane}`,
  '/v2/stats',
  '/v2/stats/failures',
  '/v2/stats/failures?windowDays=365',
  '/v2/networks',
  '/v2/tokens',
  '/v2/messages?limit=1000',
  '/v2/messages?view=summary',
  '/v2/messages/export',
  '/v2/messages/export?format=csv&attempts=true',
  '/v2/lookup?q=0x',
  '/v2/labels',
  '/metrics',
  '/readyz',
])('%s answers', async (path) => {
  const answer = await server.ask(path);
  expect(answer.status, answer.text.slice(0, 2_000)).toBeLessThan(500);
});

test('every message answers, with all that belongs to it', { tags: 'slow' }, async () => {
  for (const { messageId } of [...stored, ...described]) {
    for (const part of [
      '',
      '/history',
      '/attempts',
      '/execution-inputs',
      '/manual-execution',
      '/diagnosis',
    ]) {
      const answer = await server.ask(`/v2/messages/${messageId}${part}`);
      expect(answer.status, `${part} ${answer.text}`).toBeLessThan(500);
    }
  }
});

test('what a lane is expected to take stays a time that a clock can be moved by', async () => {
  const answer = await server.ask('/v2/lanes');
  const { data } = answer.json<{ data: { delivery: { p50Ms: number; p99Ms: number }; overdue: number }[] }>();
  for (const { delivery } of data) {
    expect(Date.now() - delivery.p99Ms).toBeGreaterThan(Date.UTC(1900, 0));
    expect(() => new Date(Date.now() - delivery.p99Ms).toISOString()).not.toThrow();
  }
});

test('the checks of the index find messages by their block, whatever else their records say', async () => {
  const note = stored.find((message) => 'note' in message && message.status === 'FAILED');
  const key = {
    sourceSelector: sepolia.chainSelector,
    destSelector: fuji.chainSelector,
    onramp: note?.onramp.slice(2).toLowerCase() ?? '',
  };
  const number = note?.sequenceNumber ?? '';
  expect(await server.store.index.checks.sendBlock(key, number)).toBe(1_000_000);
  const runs = await server.store.index.checks.sentRunsBetween(key, { from: 999_999, to: 1_000_001 });
  expect(runs).toContainEqual({ from: number, to: number });
});

test.each([
  [['lanes'], 0],
  [['lanes', '--json'], 0],
  [['audit'], 1],
  [['audit', '--json'], 1],
  [['search', '--limit', '1000'], 0],
  [['show', stored[0]?.messageId ?? ''], 0],
] as const)('lanescan %j runs to its end', { tags: 'slow' }, async (args, expected) => {
  const { code, stderr } = await lanescan(args, { env: { DATABASE_URL: server.store.url } });
  expect(code, stderr).toBe(expected);
});
