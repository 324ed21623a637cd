/** Attempts to execute messages: after reorganisations, in exports, and in the changes that brought them. */
import { describe, expect, test } from 'vitest';
import type { Attempts } from '../../../src/api/routes/history-schema.ts';
import type { Message } from '../../../src/domain/message.ts';
import { parseMessage } from '../../../src/domain/records/message-parser.ts';
import { readCsv } from '../../export/csv.ts';
import { encodeError, inReceiver } from '../../fixtures/revert-data.ts';
import { makeExecuted, makeExecutionDetails, makeMessage, makeSent } from '../../fixtures.ts';
import { readStream, startServers, until } from '../live/live-server.ts';
import { startServer } from '../running-server.ts';

const PAUSED = inReceiver(encodeError('EnforcedPause()'));
const message = makeMessage();
const failed = (blockNumber: number, subject = message) => [
  makeExecuted(subject, false, blockNumber),
  makeExecutionDetails(subject, PAUSED, blockNumber),
];

describe('an attempt that a reorganisation removed', () => {
  test('stays in the list as removed, and stands again when its block comes back', async () => {
    const { store, ask } = await startServer();
    const attempts = async () =>
      (await ask(`/v2/messages/${message.messageId}/attempts`)).json<Attempts>().attempts;
    const [executed] = failed(5000);
    if (!executed) throw new Error('No execution');
    await store.apply([makeSent(message), ...failed(5000)]);
    expect(await attempts()).toMatchObject([{ blockNumber: 5000, removedAt: null }]);

    await store.apply([...failed(5002)], [executed.seen]);
    const [removed, standing] = await attempts();
    expect(removed).toMatchObject({
      blockNumber: 5000,
      outcome: 'FAILED',
      reason: { code: 'EnforcedPause' },
      removedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(standing).toMatchObject({
      blockNumber: 5002,
      removedAt: null,
      reason: { code: 'EnforcedPause' },
    });

    const [second] = failed(5002);
    await store.apply(failed(5000), second && [second.seen]);
    expect((await attempts()).map(({ blockNumber, removedAt }) => [blockNumber, removedAt === null])).toEqual(
      [
        [5000, true],
        [5002, false],
      ],
    );
  });

  test('leaves a message without an attempt that stands: its status goes back', async () => {
    const { store, ask } = await startServer();
    await store.apply([makeSent(message), ...failed(5000)]);
    await store.apply([], [makeExecuted(message, false, 5000).seen]);
    const record = (await ask(`/v2/messages/${message.messageId}`)).json<Message>();
    expect(record.status).toBe('SENT');
    const { attempts } = (await ask(`/v2/messages/${message.messageId}/attempts`)).json<Attempts>();
    expect(attempts).toMatchObject([{ outcome: 'FAILED', removedAt: expect.any(String) }]);
  });
});

describe('an export with attempts', () => {
  const rescued = makeMessage({ number: 2 });
  const waiting = makeMessage({ number: 3 });
  const serve = async () => {
    const server = await startServer();
    await server.store.apply([makeSent(message), ...failed(5000)]);
    await server.store.apply([makeSent(rescued), ...failed(5001, rescued)]);
    await server.store.apply([makeExecuted(rescued, true, 5003), makeSent(waiting)]);
    return server;
  };

  test('has them behind each record as NDJSON, and is the same export without them', async () => {
    const { ask } = await serve();
    const plain = (await ask('/v2/messages/export?format=ndjson')).text.trimEnd().split('\n');
    const answer = await ask('/v2/messages/export?format=ndjson&attempts=true');
    expect(answer.headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    const lines = answer.text.trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    for (const [index, line] of lines.entries()) {
      const { executionAttempts, ...record } = JSON.parse(line);
      expect(JSON.stringify(record)).toBe(plain[index]);
      const single = await ask(`/v2/messages/${record.messageId}/attempts`);
      expect(executionAttempts).toEqual(single.json<Attempts>().attempts);
    }
    expect(lines.map((line) => JSON.parse(line).executionAttempts.length)).toEqual([0, 2, 1]);
  });

  test('can be imported: attempts are not part of the record', async () => {
    const { ask } = await serve();
    const [, line = ''] = (await ask('/v2/messages/export?format=ndjson&attempts=true')).text.split('\n');
    const parsed = parseMessage(JSON.parse(line));
    expect(parsed).toMatchObject({ ok: true, ignored: ['$.executionAttempts'], kept: [] });
    expect(parsed.ok && parsed.message).not.toHaveProperty('executionAttempts');
  });

  test('has them as JSON in a column of CSV, with the reason of the last one beside', async () => {
    const { ask } = await serve();
    const rows = readCsv((await ask('/v2/messages/export?attempts=true')).text);
    const plain = readCsv((await ask('/v2/messages/export')).text);
    for (const [index, row] of rows.entries()) expect(row).toMatchObject(plain[index] ?? {});
    expect(rows.map(({ executionAttempts = '' }) => JSON.parse(executionAttempts).length)).toEqual([0, 2, 1]);
    expect(rows.map(({ failureCode, failureReason }) => [failureCode, failureReason])).toEqual([
      ['', ''],
      ['', ''],
      ['EnforcedPause', 'The receiver says: the called contract is paused.'],
    ]);
    expect(Object.keys(rows[0] ?? {}).slice(-3)).toEqual([
      'executionAttempts',
      'failureCode',
      'failureReason',
    ]);
  });

  test('takes true or false', async () => {
    const { ask } = await startServer();
    const answer = await ask('/v2/messages/export?attempts=yes');
    expect(answer.status).toBe(400);
    expect(answer.json().details).toEqual([{ parameter: 'attempts', problem: 'takes true or false' }]);
    expect((await ask('/v2/messages/export?attempts=true')).text.trimEnd()).toMatch(/,failureReason$/);
  });
});

test('a change carries the attempt that it brought, live and replayed; other changes carry none', async () => {
  const [server, other] = await startServers({}, {});
  const live = await readStream(`${server.url}/v2/messages/stream`);
  const first = makeExecuted(message, false, 5000);
  await server.store.apply([makeSent(message)]);
  await server.store.apply(failed(5000));
  await server.store.apply([], [first.seen]);
  // Two at once, as a backfill brings them: the change carries the latest.
  await server.store.apply([...failed(5005), makeExecuted(message, true, 5010)]);
  const replayed = await readStream(`${other.url}/v2/messages/stream?after=0&view=summary`);
  await until(() => live.changes.length === 4 && replayed.changes.length === 4);
  const brief = ({ data: { status, attempt } }: (typeof live.changes)[number]) => [
    status,
    attempt && [attempt.blockNumber, attempt.outcome, attempt.reason?.code, attempt.removedAt !== null],
  ];
  expect(live.changes.map(brief)).toEqual([
    ['SENT', undefined],
    ['FAILED', [5000, 'FAILED', 'EnforcedPause', false]],
    ['SENT', undefined],
    ['SUCCESS', [5010, 'SUCCESS', undefined, false]],
  ]);
  // Who reads it later sees that the attempt was removed since.
  expect(replayed.changes.map(brief)[1]).toEqual(['FAILED', [5000, 'FAILED', 'EnforcedPause', true]]);
  expect(replayed.changes.map(brief)[3]).toEqual(live.changes.map(brief)[3]);
});
