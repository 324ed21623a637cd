/** The history of a message: its stages as the chains tell them, its changes as they were recorded. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { historyRoutes } from '../../../src/api/routes/history-route.ts';
import type { History } from '../../../src/api/routes/history-schema.ts';
import type { Fact } from '../../../src/domain/facts.ts';
import { MAX_HISTORY_ROWS } from '../../../src/domain/filters/query.ts';
import type { Message } from '../../../src/domain/message.ts';
import { changeNumbers } from '../../../src/store/write/changes.ts';
import {
  fuji,
  hashOf,
  makeExecuted,
  makeFinalized,
  makeMessage,
  makeRange,
  makeSent,
  makeSnapshot,
  makeSubject,
  makeVerifierCompleted,
  sepolia,
} from '../../fixtures.ts';
import { queryOnce } from '../../postgres.ts';
import { serverForAll } from '../running-server.ts';

const documented = new Ajv2020({ strict: false, validateFormats: false }).compile(
  historyRoutes[0]?.success.schema ?? false,
);

const server = serverForAll();

let number = 100;
const fresh = (version = '1.6.0') => makeSubject(version, ++number);
const own = (kind: 'Committed' | 'Blessed', message: Message, block: number) =>
  makeRange(kind, message, Number(message.sequenceNumber), Number(message.sequenceNumber), block);

async function historyOf({ messageId }: Pick<Message, 'messageId'>): Promise<History> {
  const answer = await server.ask(`/v2/messages/${messageId}/history`);
  expect(answer.status).toBe(200);
  const isAsDocumented = documented(answer.json());
  expect({ isAsDocumented, errors: documented.errors }).toEqual({ isAsDocumented: true, errors: null });
  return answer.json<History>();
}

const told = async (facts: readonly Fact[]) => {
  for (const fact of facts) await server.store.apply([fact]);
};
const life = (message: Message): Fact[] => [
  makeSent(message),
  makeFinalized(message, 3000),
  own('Committed', message, 4000),
  own('Blessed', message, 4100),
  makeExecuted(message, true, 5000),
];
const statusesOf = (entries: readonly { readonly status: string }[]) => entries.map(({ status }) => status);
const wholeLife = ['SENT', 'SOURCE_FINALIZED', 'COMMITTED', 'BLESSED', 'SUCCESS'];

describe('a message', () => {
  test('that was watched live has each step as a stage and as a change', async () => {
    const message = fresh();
    await told(life(message));
    const { messageId, status, stages, changes } = await historyOf(message);
    expect({ messageId, status }).toEqual({ messageId: message.messageId, status: 'SUCCESS' });
    expect(statusesOf(stages)).toEqual(wholeLife);
    expect(stages[2]).toEqual({
      status: 'COMMITTED',
      at: '2026-01-01T01:06:40.000Z',
      network: fuji.chainSelector,
      networkName: fuji.name,
      blockNumber: 4000,
      transactionHash: hashOf('tx', 4000),
      dwellMs: 100_000,
    });
    expect(stages[1]).toMatchObject({ network: sepolia.chainSelector, transactionHash: null });
    expect(stages.at(-1)).toMatchObject({ dwellMs: null });
    const dwell = stages.reduce((sum, { dwellMs }) => sum + Number(dwellMs), 0);
    expect(dwell).toBe(5000_000 - (Date.parse(message.sendTimestamp) - Date.UTC(2026, 0, 1)));
    expect(statusesOf(changes)).toEqual(wholeLife);
    expect(changes.map(({ previousStatus }) => previousStatus)).toEqual([null, ...wholeLife.slice(0, -1)]);
    expect(changes.map(({ change }) => change)).toEqual(['created', ...Array(4).fill('updated')]);
    for (const [index, change] of changes.entries()) {
      const { at, dwellMs: _, ...place } = stages[index] ?? {};
      expect(change).toMatchObject({ ...place, occurredAt: at, reorg: false });
      expect(Date.parse(String(change.recordedAt))).toBeGreaterThan(Date.now() - 60_000);
    }
  });

  test('that was read in at once, or backwards, has the same stages', async () => {
    const [live, atOnce, backwards] = [fresh(), fresh(), fresh()] as const;
    await told(life(live));
    await server.store.apply(life(atOnce));
    await told(life(backwards).reverse());
    const expected = (await historyOf(live)).stages.slice(1);
    for (const message of [atOnce, backwards]) {
      const { stages, changes } = await historyOf(message);
      expect(stages.slice(1)).toEqual(expected);
      expect(statusesOf(changes)).toEqual(['SUCCESS']);
    }
  });

  test('of which only an import tells has what the record says', async () => {
    const executed = makeMessage({ number: ++number, status: 'SUCCESS' });
    const moving = makeMessage({ number: ++number, status: 'COMMITTED' });
    await server.store.apply([makeSnapshot(executed), makeSnapshot(moving)]);
    const { stages } = await historyOf(executed);
    expect(stages).toMatchObject([
      { status: 'SENT', at: executed.sendTimestamp, blockNumber: executed.sendBlockNumber, dwellMs: 60_000 },
      { status: 'SUCCESS', at: executed.receiptTimestamp, transactionHash: executed.receiptTransactionHash },
    ]);
    expect((await historyOf(moving)).stages).toMatchObject([
      { status: 'SENT', dwellMs: null },
      { status: 'COMMITTED', at: null, network: null, networkName: null, dwellMs: null },
    ]);
  });

  test('that failed twice and then succeeded shows each attempt', async () => {
    const message = fresh();
    await told([
      makeSent(message),
      makeExecuted(message, false, 5000),
      makeExecuted(message, false, 5060),
      makeExecuted(message, true, 5100),
    ]);
    const { stages, changes } = await historyOf(message);
    expect(stages.slice(1)).toMatchObject([
      { status: 'FAILED', blockNumber: 5000, dwellMs: 60_000 },
      { status: 'FAILED', blockNumber: 5060, dwellMs: 40_000 },
      { status: 'SUCCESS', blockNumber: 5100, dwellMs: null },
    ]);
    expect(changes.slice(1)).toMatchObject([
      { status: 'FAILED', previousStatus: 'SENT', blockNumber: 5000, reorg: false },
      { status: 'FAILED', previousStatus: 'FAILED', blockNumber: 5060, reorg: false },
      { status: 'SUCCESS', previousStatus: 'FAILED', blockNumber: 5100, reorg: false },
    ]);
  });

  test('on a lane with verifiers is verified by the last that was needed', async () => {
    const message = fresh('2.0.0');
    await told([
      makeSent(message),
      makeFinalized(message, 3000),
      makeVerifierCompleted(message, 'Alice', 3500),
      makeVerifierCompleted(message, 'Carol', 3510),
      makeVerifierCompleted(message, 'Bob', 3520),
      makeExecuted(message, true, 5000),
    ]);
    const { stages } = await historyOf(message);
    expect(statusesOf(stages)).toEqual(['SENT', 'SOURCE_FINALIZED', 'VERIFYING', 'VERIFIED', 'SUCCESS']);
    expect(stages[3]).toMatchObject({ blockNumber: 3520, dwellMs: 1_480_000 });
  });
});

describe('a message with more than fits into an answer', () => {
  /** Changes after those that there are, as the history would have them of failed attempts. */
  async function addChanges({ messageId }: Message, count: number): Promise<void> {
    const { url } = server.store;
    await queryOnce(
      url,
      `insert into history (position, message_id, recorded_at, change, status, previous_status, ready)
       select (select position from store) + n, $1, now(), ${changeNumbers.updated}, 6, 6, true from generate_series(1, $2::int) n`,
      [Buffer.from(messageId.slice(2), 'hex'), count],
    );
    await queryOnce(url, 'update store set position = position + $1', [count]);
  }

  test('lists its latest changes in order, and says that there are more', async () => {
    const message = fresh();
    await told([makeSent(message), makeExecuted(message, false, 5000)]);
    await addChanges(message, MAX_HISTORY_ROWS - 2);
    const whole = await historyOf(message);
    expect(whole.changes).toHaveLength(MAX_HISTORY_ROWS);
    expect(whole.changes[0]).toMatchObject({ change: 'created' });
    expect(whole).not.toHaveProperty('truncated');

    await addChanges(message, 5);
    const { changes, stages, truncated } = await historyOf(message);
    expect(truncated).toBe(true);
    expect(statusesOf(stages)).toEqual(['SENT', 'FAILED']);
    const last = Number(await server.store.latestPosition());
    const expected = Array.from({ length: MAX_HISTORY_ROWS }, (_, n) => last - MAX_HISTORY_ROWS + 1 + n);
    expect(changes.map(({ position }) => Number(position))).toEqual(expected);
  });

  test('keeps the other stages where it has too many attempts', async () => {
    const message = fresh();
    const attempts = Array.from({ length: MAX_HISTORY_ROWS + 3 }, (_, n) =>
      makeExecuted(message, false, 5000 + n),
    );
    await server.store.apply([...life(message), ...attempts]);
    const { stages, truncated } = await historyOf(message);
    expect(truncated).toBe(true);
    const seldom = statusesOf(stages).filter((status) => status !== 'FAILED');
    expect(seldom).toEqual(wholeLife);
    expect(stages.length).toBeLessThanOrEqual(MAX_HISTORY_ROWS + wholeLife.length);
  });
});

describe('a reorganisation', () => {
  test('that takes a status back is an entry, and the stages forget what is gone', async () => {
    const message = fresh();
    const executed = makeExecuted(message, true, 5001);
    await told([makeSent(message), own('Committed', message, 4000), executed]);
    await server.store.apply([], [executed.seen]);
    await told([makeExecuted(message, false, 5009)]);
    const { status, stages, changes } = await historyOf(message);
    expect(status).toBe('FAILED');
    expect(statusesOf(stages)).toEqual(['SENT', 'COMMITTED', 'FAILED']);
    expect(changes.map(({ status, reorg }) => [status, reorg])).toEqual([
      ['SENT', false],
      ['COMMITTED', false],
      ['SUCCESS', false],
      ['COMMITTED', true],
      ['FAILED', false],
    ]);
  });

  test('that removes a message leaves its history, and goes on when it is sent again', async () => {
    const message = fresh();
    const sent = makeSent(message);
    await told([sent, own('Committed', message, 4000)]);
    await server.store.apply([], [sent.seen]);
    const gone = await historyOf(message);
    expect(gone).toMatchObject({ status: null, stages: [] });
    expect(gone.changes.at(-1)).toMatchObject({
      change: 'removed',
      status: 'COMMITTED',
      previousStatus: 'COMMITTED',
      reorg: true,
    });
    expect((await server.ask(`/v2/messages/${message.messageId}`)).status).toBe(404);

    await told([makeSent(message, { blockNumber: 7000, blockHash: hashOf('another block') })]);
    const again = await historyOf(message);
    expect(again.status).toBe('COMMITTED');
    expect(again.changes.map(({ change, reorg }) => [change, reorg])).toEqual([
      ['created', false],
      ['updated', false],
      ['removed', true],
      ['created', false],
    ]);
    const positions = again.changes.map(({ position }) => Number(position));
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
  });
});
