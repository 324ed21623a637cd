/** The stream of changes: in order, without a gap or a repetition, whatever happens to readers and servers. */
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createChangeFeed, type FeedChange } from '../../../src/api/live/change-feed.ts';
import type { Fact } from '../../../src/domain/facts.ts';
import { filterTable } from '../../../src/domain/filters/filter-table.ts';
import { matches } from '../../../src/domain/filters/matches.ts';
import { parseFilters } from '../../../src/domain/filters/search-parameters.ts';
import { type Message, summaryKeys } from '../../../src/domain/message.ts';
import type { Store } from '../../../src/store/store.ts';
import {
  chainFactsAbout,
  factsAbout,
  fuji,
  hashOf,
  makeExecuted,
  makeMessage,
  makeRange,
  makeSent,
  makeSnapshot,
  makeSubject,
  rangesAround,
} from '../../fixtures.ts';
import { connectForTest } from '../../postgres.ts';
import { expectError } from '../running-server.ts';
import { EventReader, numbersUpTo, readStream, startServers, until, untilFollowing } from './live-server.ts';

const message = makeMessage();
const messages = (count: number, first = 1) =>
  numbersUpTo(first + count - 1, first).map((number) => makeMessage({ number }));
const stream = (server: { url: string }, query = '') => `${server.url}/v2/messages/stream${query}`;
const latest = async (store: Store) => Number(await store.latestPosition());

describe('a stream', () => {
  test('begins now, says where, and brings every change in order', async () => {
    const [server] = await startServers({});
    await server.store.apply([makeSnapshot(makeMessage({ number: 9 }))]);
    const reader = await readStream(stream(server));
    const { headers } = reader.response ?? {};
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': expect.any(String),
    });
    expect(headers).not.toHaveProperty('content-encoding');
    expect(reader.controls).toMatchObject([{ id: '1', event: 'ready', data: { position: '1' } }]);

    const sent = makeSent(message);
    await server.store.apply([sent]);
    await server.store.apply([makeRange('Committed', message, 1, 1)]);
    await server.store.apply([makeExecuted(message, false)]);
    await server.store.apply([], [sent.seen]);
    await until(() => reader.changes.length === 4);
    const shown = reader.changes.map(({ id, event, data }) => [id, event, data.status, data.previousStatus]);
    expect(shown).toEqual([
      ['2', 'created', 'SENT', null],
      ['3', 'updated', 'COMMITTED', 'SENT'],
      ['4', 'updated', 'FAILED', 'COMMITTED'],
      ['5', 'removed', 'FAILED', 'FAILED'],
    ]);
    for (const { id, data } of reader.changes) {
      expect(data.position).toBe(id);
      expect(data.message.messageId).toBe(message.messageId);
      expect(data.message.status).toBe(data.status);
    }
  });

  test('shows the record as it was at each change, also to those who read it later', async () => {
    const [server] = await startServers({});
    const live = await readStream(stream(server));
    const first = makeExecuted(message, false, 5000);
    const second = makeExecuted(message, true, 5010);
    await server.store.apply([makeSent(message)]);
    await server.store.apply([first]);
    await server.store.apply([second]);
    const later = await readStream(stream(server, '?after=0'));
    await until(() => live.changes.length === 3 && later.changes.length === 3);
    expect(later.changes).toEqual(live.changes);
    expect(later.changes.map(({ data }) => data.message)).toMatchObject([
      { status: 'SENT', receiptTransactionHash: null, readyForManualExecution: false },
      { status: 'FAILED', receiptTransactionHash: first.seen.transactionHash, readyForManualExecution: true },
      {
        status: 'SUCCESS',
        receiptTransactionHash: second.seen.transactionHash,
        readyForManualExecution: false,
      },
    ]);
    const found = await server.ask(`/v2/messages/${message.messageId}`);
    expect(later.changes.at(-1)?.data.message).toEqual(found.json());
  });

  test('brings only the nine leading fields with view=summary', async () => {
    const [server] = await startServers({});
    await server.store.apply([makeSnapshot(message)]);
    const reader = await readStream(stream(server, '?after=0&view=summary'));
    await until(() => reader.changes.length === 1);
    expect(Object.keys(reader.changes[0]?.data.message ?? {})).toEqual(summaryKeys);
  });

  test('shows that it lives, and moves the position on past what its filters leave out', async () => {
    const [server] = await startServers({ heartbeatMs: 100 });
    const reader = await readStream(stream(server, '?status=SUCCESS'));
    await server.store.apply(messages(5).map(makeSnapshot));
    await until(() => reader.comments >= 3 && reader.lastEventId === '5');
    expect(reader.changes).toEqual([]);
  });

  test('is not opened by HEAD', async () => {
    const [server] = await startServers({ streams: 1 });
    for (let round = 0; round < 3; round++) {
      const { status, headers } = await server.ask('/v2/messages/stream', { method: 'HEAD' });
      expect([status, headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
    }
  });

  test('ends with a word when the server stops, and holds it up for no reader, awake or not', async () => {
    const [server] = await startServers({});
    const reader = await readStream(stream(server));
    const { port } = new URL(server.url);
    const asleep = connect(Number(port), '127.0.0.1');
    asleep.on('error', () => undefined);
    asleep.write('GET /v2/messages/stream?after=0 HTTP/1.1\r\nHost: x\r\n\r\n');
    asleep.pause();
    await server.store.apply(bulky(200));
    await untilFollowing(server, 2);
    await server.close();
    await reader.ended;
    expect(reader.controls.at(-1)).toMatchObject({ event: 'closing', data: { reason: expect.any(String) } });
    asleep.destroy();
  });
});

describe('filters', () => {
  const subjects = numbersUpTo(40).map((number) =>
    makeSubject(['1.6.0', '2.0.0', '1.5.0'][number % 3] ?? '', number),
  );
  /** Of these only chains tell: where an import tells too, the history knows one receipt of the two. */
  const chainTold = subjects.filter((_, index) => index % 3).map(({ messageId }) => messageId);
  const wanted: readonly string[] = [
    'status=SUCCESS,FAILED',
    'status=SENT',
    'readyForManualExecOnly=true',
    `sender=${message.sender}`,
    `destChainSelector=${fuji.chainSelector}&status=COMMITTED,BLESSED`,
    `sourceChainSelector=${fuji.chainSelector}`,
    `messageId=${hashOf('message', 2)}`,
    `destTransactionHash=${hashOf('tx', 5001)}&messageId=${chainTold}`,
    `q=${hashOf('tx', 5002)}&messageId=${chainTold}`,
    `sentAfter=2026-01-01T00:00:02Z`,
  ];

  test('let through exactly the changes after which matches() held, for random changes', {
    tags: 'slow',
  }, async () => {
    const [server] = await startServers({});
    const factsOf = subjects.map((subject, index) =>
      index % 3 ? fc.oneof(chainFactsAbout(subject), rangesAround(subject)) : factsAbout(subject),
    );
    const facts = fc.array(fc.oneof(...factsOf), { minLength: 3, maxLength: 6 });
    /** Every record as a search would have found it right after the change, or right before it was removed. */
    const truth: Message[] = [];
    const found = new Map<string, Message>();
    const live = await readStream(stream(server));
    const random = fc.sample(facts, { numRuns: 100, seed: 7 });
    for (const batch of [subjects.map((subject) => makeSent(subject)), ...random]) {
      await server.store.apply(batch, batch.length > 6 ? [] : orphans(batch));
      const { changes } = await server.store.changesAfter(String(truth.length), 100);
      for (const { messageId, change } of changes) {
        const before = found.get(messageId);
        const record = (await server.store.findMessage(messageId.slice(2)))?.record;
        const now = record === undefined ? before : (JSON.parse(record) as Message);
        expect(change === 'removed').toBe(record === undefined);
        if (now) found.set(messageId, now);
        truth.push(now as Message);
      }
    }
    expect(truth.length).toBeGreaterThan(100);
    await until(() => live.hasReached(truth.length));
    const everything = await readStream(stream(server, '?after=0'));
    await until(() => everything.hasReached(truth.length));
    for (const { positions, changes } of [live, everything]) {
      expect(positions).toEqual(numbersUpTo(truth.length));
      for (const [index, { data }] of changes.entries()) {
        const hasReceipt = chainTold.includes(data.message.messageId);
        expect(shownOf(data.message, hasReceipt)).toEqual(shownOf(truth[index], hasReceipt));
      }
    }
    let matched = 0;
    for (const query of wanted) {
      const { filters } = parseFilters([...new URLSearchParams(query)], {});
      const expected = numbersUpTo(truth.length).filter((position) => {
        const message = truth[position - 1];
        return message && matches(filters, message);
      });
      matched += expected.length;
      const reader = new EventReader();
      await reader.connect(stream(server, `?after=0&${query}`));
      await until(() => reader.changes.length >= expected.length);
      await reader.disconnect();
      expect(reader.positions, query).toEqual(expected);
    }
    expect(matched).toBeGreaterThan(100);
  });

  test('are those of the search, and nothing else is taken', async () => {
    const [server] = await startServers({});
    for (const [name, { example }] of Object.entries(filterTable)) {
      const path = `/v2/messages/stream?${new URLSearchParams({ [name]: example })}`;
      expect((await server.ask(path, { method: 'HEAD' })).status, name).toBe(200);
    }
    for (const [query, text] of [
      ['cursor=abc', /cursor is not a parameter of this path/],
      ['limit=5', /limit is not a parameter of this path/],
      ['view=tall', /view takes full or summary/],
      ['after=-1', /after takes a position/],
      ['after=now', /after takes a position/],
      ['after=', /after is empty/],
      ['aftr=1', /did you mean after\?/],
      ['status=DONE', /status takes SENT/],
      ['after=1', /latest change has position 0/],
      ['after=9999999999999999999', /latest change has position 0/],
    ] as const) {
      const answer = await server.ask(`/v2/messages/stream?${query}`);
      expect(expectError(answer, 400, 'INVALID_PARAMETERS').message).toMatch(text);
    }
    const header = await server.ask('/v2/messages/stream', { headers: { 'Last-Event-ID': 'x' } });
    expect(header.json()).toMatchObject({ details: [{ parameter: 'Last-Event-ID' }] });
  });
});

/** What a change says of its message. */
function shownOf(message: Message | undefined, hasReceipt: boolean) {
  const { messageId, status, readyForManualExecution, receiptTransactionHash, receiptTimestamp } =
    message ?? makeMessage();
  const receipt = hasReceipt && { receiptTransactionHash, receiptTimestamp };
  return { messageId, status, readyForManualExecution, ...receipt };
}

/** Now and then a block is taken back. */
function orphans(batch: readonly Fact[]) {
  return batch.flatMap((fact) =>
    fact.kind !== 'Snapshot' && fact.seen.blockNumber % 5 === 3
      ? [{ network: fact.seen.network, blockHash: fact.seen.blockHash }]
      : [],
  );
}

/** Messages with a payload, so that few of them fill any buffer. */
function bulky(count: number, first = 1): Fact[] {
  return messages(count, first).map((given: Message) =>
    makeSnapshot({ ...given, data: `0x${'ab'.repeat(30_000)}` }),
  );
}

describe('a reader that comes back', () => {
  test('goes on behind any position, at either server', async () => {
    const [one, other] = await startServers({}, {});
    for (const number of numbersUpTo(30)) await one.store.apply([makeSnapshot(makeMessage({ number }))]);
    const end = await latest(one.store);
    for (const after of [0, ...numbersUpTo(end)]) {
      const server = after % 2 ? one : other;
      const reader = new EventReader();
      reader.lastEventId = after % 3 ? String(after) : '';
      // The header of a browser that reconnects outranks the URL with which it began.
      await reader.connect(stream(server, after % 3 ? '?after=0' : `?after=${after}`));
      await until(() => reader.controls.length > 0 && reader.hasReached(end));
      await reader.disconnect();
      expect(reader.positions).toEqual(numbersUpTo(end, after + 1));
    }
  });

  test('misses and repeats nothing through forced reconnects between two servers while several write', {
    tags: 'slow',
  }, async () => {
    const [one, other] = await startServers({}, {});
    const servers = [one, other];
    const readers = await Promise.all(servers.map((server) => readStream(stream(server))));
    const writers = [one, other, one, other].map(async ({ store }, writer) => {
      for (const batch of numbersUpTo(12)) {
        const first = writer * 1000 + batch * 20;
        await store.apply(messages(1 + (batch % 5), first).map(makeSnapshot));
        await store.apply([makeExecuted(makeMessage({ number: first }), batch % 2 === 0)]);
      }
    });
    let isWriting = true;
    const written = Promise.all(writers).finally(() => {
      isWriting = false;
    });
    let reconnects = 0;
    while (isWriting || reconnects < 20) {
      for (const [index, reader] of readers.entries()) {
        await reader.disconnect();
        await reader.connect(stream(servers[(index + ++reconnects) % 2] ?? one));
        await delay(reconnects % 7);
      }
    }
    await written;
    const end = await latest(one.store);
    await until(() => readers.every((reader) => reader.hasReached(end)));
    for (const reader of readers) expect(reader.positions).toEqual(numbersUpTo(end));
  });

  test('is served what committed late, in its order', async () => {
    const [server] = await startServers({});
    const blocker = await connectForTest(server.store.url);
    const reader = await readStream(stream(server));
    await blocker.query('begin; lock table history in share mode');
    const late = server.store.apply([makeSnapshot(makeMessage({ number: 1 }))]);
    const later = server.store.apply([makeSnapshot(makeMessage({ number: 2 }))]);
    await delay(200);
    await reader.disconnect();
    await reader.connect(stream(server));
    await blocker.query('commit');
    await Promise.all([late, later]);
    await until(() => reader.hasReached(2));
    expect(reader.positions).toEqual([1, 2]);
  });
});

test('nothing is missed when the connection that listens breaks', async () => {
  const [server] = await startServers({});
  const reader = await readStream(stream(server));
  const client = await connectForTest(server.store.url);
  const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
                     where application_name = 'lanescan listener' and datname = current_database()`;
  for (const round of numbersUpTo(3)) {
    await until(async () => (await client.query(terminate)).rowCount === 1);
    await server.store.apply(messages(4, round * 10).map(makeSnapshot));
  }
  await until(() => reader.hasReached(12));
  expect(reader.positions).toEqual(numbersUpTo(12));
});

describe('a slow reader', () => {
  test('is dropped with a reason, and goes on where it was', { tags: 'slow' }, async () => {
    const [server] = await startServers({ stalledMs: 600, bufferedBytes: 200_000 });
    const reader = await readStream(stream(server));
    const attentive = await readStream(stream(server));
    reader.response?.pause();
    for (const batch of numbersUpTo(6)) await server.store.apply(bulky(50, batch * 50));
    await until(() => attentive.hasReached(300));
    // The server runs in this process: its timer, which is shorter, ends before this one.
    await delay(1_500);
    reader.response?.resume();
    await reader.ended;
    expect(reader.controls.at(-1)).toMatchObject({
      event: 'dropped',
      data: { reason: expect.stringMatching(/the client read nothing for 0.6 s; reconnect/) },
    });
    const before = reader.changes.length;
    expect(before).toBeLessThan(300);
    await reader.connect(stream(server));
    await until(() => reader.hasReached(300));
    expect(reader.positions).toEqual(numbersUpTo(300));
    expect(attentive.positions).toEqual(numbersUpTo(300));
    expect(attentive.controls).toHaveLength(1);
  });

  test('that still takes what it is sent falls back to the history, and gets everything', {
    tags: 'slow',
  }, async () => {
    const [server] = await startServers({ bufferedBytes: 50_000 });
    const reader = await readStream(stream(server));
    for (const batch of numbersUpTo(5)) {
      reader.response?.pause();
      await server.store.apply(bulky(60, batch * 60));
      await delay(50);
      reader.response?.resume();
    }
    await until(() => reader.hasReached(300));
    expect(reader.positions).toEqual(numbersUpTo(300));
  });
});

test('one read of the history at a time runs for streams that catch up; the others wait for their turn', async () => {
  const [server] = await startServers({});
  await server.store.apply(messages(3).map(makeSnapshot));
  const locker = await connectForTest(server.store.url);
  const monitor = await connectForTest(server.store.url);
  await locker.query('begin; lock table history in access exclusive mode');
  const places = [0, 0, 0, 1, 1, 2];
  const readers = await Promise.all(places.map((place) => readStream(stream(server, `?after=${place}`))));
  const blocked = async () => {
    const { rows } = await monitor.query(
      `select count(*)::integer as count from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0].count as number;
  };
  await until(async () => (await blocked()) >= 1);
  // Time for reads that would come too early.
  await delay(200);
  expect(await blocked()).toBe(1);
  await locker.query('rollback');
  await until(() => readers.every((reader) => reader.hasReached(3)));
  for (const [index, place] of places.entries())
    expect(readers[index]?.positions).toEqual([1, 2, 3].slice(place));
});

test.each([
  ['1,000 changes', messages(1_010), 1_000],
  // Two records are within 4,000,000 bytes, three are not.
  ['4,000,000 bytes', messages(5).map((one) => ({ ...one, data: `0x${'5a'.repeat(900_000)}` })), 2],
])('a feed remembers %s; what is older is in the history', async (_bound, written, remembered) => {
  const [{ store }] = await startServers({});
  const feed = createChangeFeed(store);
  onTestFinished(() => feed.close());
  const start = await feed.position();
  let seen = start;
  feed.followFrom(start, (changes) => {
    seen = changes.at(-1)?.position ?? seen;
  });
  await store.apply(written.map(makeSnapshot));
  const end = start + written.length;
  await until(() => seen === end);
  const handed: number[] = [];
  const follower = (changes: readonly FeedChange[]) =>
    handed.push(...changes.map(({ position }) => position));
  expect(feed.followFrom(end - remembered - 1, follower)).toBeUndefined();
  expect(feed.followFrom(end - remembered, follower)).toBeTypeOf('function');
  expect(handed).toEqual(numbersUpTo(end, end - remembered + 1));
});

test('places are limited by address and in all, and are given back', async () => {
  const [server, crowded] = await startServers({ streamsPerAddress: 2 }, { streams: 1 });
  const [first] = [await readStream(stream(server)), await readStream(stream(server))];
  const alone = await readStream(stream(crowded));
  const path = '/v2/messages/stream';
  const rejected = await server.ask(path);
  expect(rejected.headers['retry-after']).toBe('2');
  const { message } = expectError(rejected, 429, 'TOO_MANY_CONNECTIONS');
  expect(message).toMatch(/Your address has 2 streams open/);
  expect((await crowded.ask(path)).json().message).toMatch(/All 1 streams/);
  expect((await server.ask('/v2/messages')).status).toBe(200);
  await first.disconnect();
  await alone.disconnect();
  for (const { ask } of [server, crowded])
    await until(async () => (await ask(path, { method: 'HEAD' })).status === 200);
});
