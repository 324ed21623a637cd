/** Lives of the benchmark `bench:life`: facts like those of the decoders, stopped and continued, and compared with the store. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { clusterOf, createEmpty, requireSameRows, withClient } from '../../bench/data/database.ts';
import { attemptsOf, createLives, isAbandoned, type Member } from '../../bench/life/lives.ts';
import type { Measurement } from '../../bench/life/measurement.ts';
import { billionMessages } from '../../bench/life/report.ts';
import { DATABASE, runLife } from '../../bench/life/run.ts';
import { beginning, createTimeline, type TimelineState } from '../../bench/life/timeline.ts';
import { checkStore } from '../../bench/life/verdict.ts';
import type { Fact, Sent } from '../../src/domain/facts.ts';
import { readMessageV1 } from '../../src/domain/manual-execution/message-v1.ts';
import { parseMessage } from '../../src/domain/records/message-parser.ts';
import { openEmbedded } from '../../src/store/server/embedded.ts';
import { openStore } from '../../src/store/store.ts';
import { freshFolder, removeFreshFolders } from '../fresh-folder.ts';

afterAll(removeFreshFolders);

/** All steps from a state on, or so many of them, and the state after them. */
function play(messages: number, from: TimelineState = beginning, ticks = Number.POSITIVE_INFINITY) {
  const timeline = createTimeline(createLives(messages), from);
  const steps = [];
  for (let tick = 0; tick < ticks; tick++) {
    const next = timeline.next();
    if (!next) break;
    steps.push(...next);
  }
  return { steps, state: timeline.state() };
}

const isSent = (fact: Fact): fact is Sent => fact.kind === 'Sent';

describe('generated lives', () => {
  const { steps } = play(2_000);
  const orphaned = new Set(steps.flatMap((step) => step.orphaned));
  /** Those that stay on chain. */
  const facts = steps.flatMap((step) => step.facts).filter(({ seen }) => !orphaned.has(seen.blockHash));
  const sent = facts.filter(isSent);

  test('have the shares of versions, tokens and failures that the benchmark states', () => {
    const share = (is: (fact: Sent) => boolean) => sent.filter(is).length / sent.length;
    const numbers = Array.from({ length: 20_000 }, (_, n) => n);
    expect(share(({ message }) => message.version === '1.5.0')).toBeCloseTo(0.15, 1);
    expect(share(({ message }) => message.version === '1.6.0')).toBeCloseTo(0.55, 1);
    expect(share(({ message }) => message.version === '2.0.0')).toBeCloseTo(0.3, 1);
    expect(share(({ message }) => message.tokenAmounts.length > 0)).toBeCloseTo(0.5, 1);
    expect(numbers.filter((n) => attemptsOf(n)[0] === false).length / numbers.length).toBeCloseTo(0.02, 2);
  });

  test('have messages that the decoders could have read', () => {
    for (const { message, execution } of sent.slice(0, 500)) {
      const record = {
        ...message,
        ...{ status: 'SENT', receiptTransactionHash: null, receiptTimestamp: null, deliveryTime: null },
        readyForManualExecution: false,
      };
      expect(parseMessage(record)).toMatchObject({ ok: true, message: record, ignored: [], derived: [] });
      if (!execution || !('encodedMessage' in execution)) continue;
      const encoded = readMessageV1(execution.encodedMessage as `0x${string}`, Error);
      expect({
        number: String(encoded.messageNumber),
        data: encoded.data,
        amounts: encoded.tokenTransfer.map(({ amount }) => String(amount)),
      }).toEqual({
        number: message.sequenceNumber,
        data: message.data,
        amounts: message.tokenAmounts.map(({ amount }) => amount),
      });
    }
  });

  test('are committed in roots of one to four consecutive messages, each once', () => {
    const last = new Map<string, number>();
    const sizes = new Set<number>();
    for (const fact of facts) {
      if (fact.kind !== 'Committed') continue;
      const { lane, fromSequenceNumber: from, toSequenceNumber: to } = fact;
      expect(Number(from)).toBe((last.get(lane.onramp) ?? 0) + 1);
      sizes.add(Number(to) - Number(from) + 1);
      last.set(lane.onramp, Number(to));
    }
    expect([...sizes].sort()).toEqual([1, 2, 3, 4]);
    const committed = [...last.values()].reduce((sum, number) => sum + number, 0);
    expect(committed).toBe(sent.filter(({ message }) => message.version !== '2.0.0').length);
  });

  test('are sent once on chain, and executed as often as attempted', () => {
    const ids = (list: readonly { readonly messageId: string }[]) =>
      list.map(({ messageId }) => messageId).sort();
    const lives = createLives(2_000);
    const numbers = Array.from({ length: 2_000 }, (_, n) => n);
    expect(ids(sent.map(({ message }) => message))).toEqual(numbers.map(lives.messageId).sort());
    expect(ids(facts.filter((fact) => fact.kind === 'Executed'))).toEqual(
      numbers.flatMap((n) => attemptsOf(n).map(() => lives.messageId(n))).sort(),
    );
    expect(orphaned.size).toBeGreaterThan(numbers.filter((n) => isAbandoned('sent', n)).length);
  });

  test('go on where they were stopped', () => {
    const first = play(400, beginning, 7);
    const rest = play(400, JSON.parse(JSON.stringify(first.state)));
    expect([...first.steps, ...rest.steps]).toEqual(play(400).steps);
  });
});

test('a billion messages are counted in workers of half a terabyte', () => {
  expect(billionMessages(4_126)).toEqual({
    terabytes: expect.closeTo(4.126),
    workers: 8,
    messagesPerShard: 125_000_000,
  });
});

test('a run is stopped, continued, measured, and compared with the store', { tags: 'slow' }, async () => {
  const dataFolder = freshFolder();
  const messages = 600;
  const settled = 0;
  const embedded = await openEmbedded({ dataFolder });
  onTestFinished(() => embedded.leave());
  const cluster = clusterOf(embedded);
  const measurements: Measurement[] = [];
  let reached = 0;
  const run = (isStopping: () => boolean) =>
    runLife(cluster, {
      ...{ messages, settled, dataFolder, isStopping },
      onProgress(sent, measurement) {
        reached = sent;
        if (measurement) measurements.push(measurement);
      },
    });
  expect(await run(() => reached >= messages / 2)).toBeUndefined();
  expect(reached).toBeLessThan(messages);
  const result = await run(() => false);
  expect(result?.measurements).toEqual(measurements);
  expect(result?.verdict).toMatchObject({ messages, compared: messages });
  await expect(runLife(cluster, { messages: messages + 1, settled, dataFolder })).rejects.toThrow(
    'Choose another --data',
  );

  const [last] = measurements.slice(-1);
  expect(last).toMatchObject({ month: null, messages, whileWriting: false });
  expect(measurements.length).toBeGreaterThan(3);
  // PostgreSQL counts late: of single stretches the number may be too low.
  expect(Math.max(...measurements.map(({ since }) => since.rowsWrittenPerMessage))).toBeGreaterThan(5);
  for (const { disk, searches, leafDensity, tables } of measurements) {
    const bytes = disk.relations.reduce((sum, relation) => sum + relation.bytes, 0);
    expect(disk.bytesPerMessage).toBe(Math.round(bytes / disk.messages));
    expect(disk.walBytesPerMessage).toBeGreaterThan(1_000);
    expect(searches.searches).toBeGreaterThanOrEqual(200);
    expect(searches.p99Ms).toBeGreaterThanOrEqual(searches.p50Ms);
    expect(tables.length).toBeGreaterThan(10);
    for (const density of Object.values(leafDensity)) expect(density).toBeLessThanOrEqual(1);
  }

  const lives = createLives(messages);
  const n = Array.from({ length: messages }, (_, number) => number).find(
    (number) => attemptsOf(number).length === 1 && !isAbandoned('executed', number),
  ) as number;
  const sequence = play(messages)
    .steps.flatMap(({ facts }) => facts.filter(isSent))
    .find(({ message }) => message.messageId === lives.messageId(n))?.message.sequenceNumber;
  const member: Member = { n, sequence: Number(sequence) };
  const store = await openStore({ place: { url: cluster.url(DATABASE) } });
  onTestFinished(() => store.close());
  const wrong = { ...member, sequence: member.sequence + 1 };
  await expect(checkStore(store, lives, [wrong])).rejects.toThrow('sequenceNumber of message');
  const [executed] = lives.executed(member, 0, 0);
  const later = { ...executed.seen, blockNumber: executed.seen.blockNumber + 1, blockHash: '0xabcd' };
  await store.apply([{ ...executed, success: false, seen: later }]);
  await expect(checkStore(store, lives, [member])).rejects.toThrow('attempts of message');
  await store.apply([], [executed.seen]);
  await expect(checkStore(store, lives, [])).rejects.toThrow('statuses of the records');
});

test('lives begin in a store with settled messages', { tags: 'slow' }, async () => {
  const dataFolder = freshFolder();
  const [settled, messages] = [200, 120];
  const embedded = await openEmbedded({ dataFolder });
  onTestFinished(() => embedded.leave());
  const cluster = clusterOf(embedded);
  let written = 0;
  const run = (more: { settled: number; isStopping?: () => boolean }) =>
    runLife(cluster, {
      ...{ messages, dataFolder, ...more },
      onSettled(count) {
        written = count;
      },
    });
  await expect(run({ settled: 900_000_000 })).rejects.toThrow('900,000,000 messages need about');
  // With the rows, and without indexes and statistics.
  expect(await run({ settled, isStopping: () => written === settled })).toBeUndefined();
  await expect(run({ settled: settled - 1 })).rejects.toThrow('Choose another --data');
  const result = await run({ settled });
  expect(result?.verdict).toMatchObject({ messages: settled + messages, compared: settled + messages });
  expect(result?.measurements[0]).toMatchObject({ month: 0, messages: settled, whileWriting: false });
  expect(result?.measurements.at(-1)).toMatchObject({ month: null, messages: settled + messages });

  const empty = 'bench_empty';
  await createEmpty(cluster, empty);
  const indexesOf = (name: string) =>
    withClient(cluster.url(name), async (client) => {
      const { rows } = await client.query(
        `select indexdef from pg_indexes where schemaname = 'public' order by indexname`,
      );
      return rows;
    });
  expect(await indexesOf(DATABASE)).toEqual(await indexesOf(empty));
  await expect(requireSameRows(cluster.url(DATABASE), cluster.url(empty))).rejects.toThrow(
    'rows that the program does not make',
  );
  const store = await openStore({ place: { url: cluster.url(DATABASE) } });
  onTestFinished(() => store.close());
  const { signal } = new AbortController();
  expect(await store.derived.compare({ signal })).toEqual({
    ...{ messages: settled + messages, unchecked: [] },
    disagreements: [],
  });
});
