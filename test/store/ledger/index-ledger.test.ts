/** The ledger of the indexer: one worker a network, one step one transaction, and nothing that is pending gets lost. */
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Sent } from '../../../src/domain/facts.ts';
import {
  type BlockRange,
  type IndexLedger,
  type IndexStep,
  LeaseLostError,
  type RegisteredContract,
  type UnreadableLog,
} from '../../../src/store/ledger/index-ledger.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { addressColumn } from '../../../src/store/write/message-row.ts';
import { createTestDatabase, dataTables, emptyTables, openTestStore } from '../../database.ts';
import {
  evmAddress,
  fuji,
  hashOf,
  makeExecuted,
  makeFinalized,
  makeMessage,
  makePolicy,
  makeRange,
  makeRootBlessed,
  makeSent,
  makeVerifierCompleted,
  sepolia,
} from '../../fixtures.ts';
import { connectForTest, connectTo } from '../../postgres.ts';

const network = sepolia.chainSelector;
const dest = fuji.chainSelector;
/** Long enough for the slowest machine. */
const LONG = 600;

let store: Store & { readonly url: string };
let ledger: IndexLedger;
let client: pg.Client;

beforeAll(async () => {
  store = await openTestStore();
  ledger = store.index;
  client = await connectTo(store.url);
});
afterAll(async () => {
  await client?.end();
  await store?.close();
});
beforeEach(async () => {
  await emptyTables(client);
  await ledger.lease(network, 'us', LONG);
});

const record = (step: IndexStep) => ledger.record(network, 'us', step);
const rows = async (table: string) => (await client.query(`select * from ${table}`)).rows;
const idOf = (number: number) => makeMessage({ number }).messageId.slice(2);

/** As time does it, by the database's own clock. */
async function runOut(selector = network): Promise<void> {
  await client.query(
    `update index_network set lease_until = now() - interval '1 millisecond' where selector = $1`,
    [BigInt.asIntN(64, BigInt(selector)).toString()],
  );
}

function history(from: number, to: number): BlockRange {
  return { from, to, purpose: 'history', contracts: null };
}

function makeContract(name: string, blockHash: string | null = null): RegisteredContract {
  return { address: evmAddress(name), namedBy: null, blockHash, body: { name } };
}

function makeUnread(blockNumber: number, logIndex = 0, emitter = 'ramp'): UnreadableLog {
  return {
    blockNumber,
    blockHash: hashOf('block', sepolia.name, blockNumber),
    transactionHash: hashOf('transaction', blockNumber),
    logIndex,
    address: evmAddress(emitter),
    topics: [hashOf('topic')],
    data: '0x1234',
    reason: 'it is too short',
  };
}

const block = (number: number) => ({ number, hash: hashOf('block', sepolia.name, number) });

/** A message of a lane with verifiers. */
function makeVerifiedSent(number: number): Sent {
  const execution = { encodedMessage: '0x01', offramp: evmAddress('offramp') };
  return { ...makeSent(makeMessage({ number, version: '2.0.0' })), execution };
}

describe('a lease', () => {
  test('is had by one for one network, who keeps it as long as it is renewed', async () => {
    expect(await ledger.lease(network, 'another', LONG)).toBe(false);
    expect(await ledger.lease(network, 'us', LONG)).toBe(true);
    expect(await ledger.lease(network, 'another', LONG)).toBe(false);
    expect(await ledger.lease(dest, 'another', LONG)).toBe(true);
    expect(await ledger.lease(dest, 'us', LONG)).toBe(false);
  });

  test('goes to the next holder that asks once it has expired or was released by its holder, and not back', async () => {
    await runOut();
    expect(await ledger.lease(network, 'another', LONG)).toBe(true);
    expect(await ledger.lease(network, 'us', LONG)).toBe(false);
    await ledger.release(network, 'us');
    expect(await ledger.lease(network, 'us', LONG)).toBe(false);
    await ledger.release(network, 'another');
    expect(await ledger.lease(network, 'us', LONG)).toBe(true);
  });

  test('runs out by the clock of the database, in the seconds that were asked for', async () => {
    await ledger.lease(network, 'us', 7);
    const [row] = (
      await client.query('select extract(epoch from lease_until - now())::float8 as left from index_network')
    ).rows;
    expect(row.left).toBeGreaterThan(0);
    expect(row.left).toBeLessThanOrEqual(7);
  });

  test('never has two holders, however many ask at once', async () => {
    for (let round = 0; round < 10; round++) {
      await runOut();
      const asked = Array.from({ length: 12 }, (_, who) => ledger.lease(network, `${round} ${who}`, LONG));
      expect((await Promise.all(asked)).filter((isHeld) => isHeld)).toHaveLength(1);
    }
  });
});

/** Something of everything that a step can hold. */
const fullStep: IndexStep = {
  facts: [makeVerifiedSent(1), makeRange('Committed', makeMessage(), 1, 3)],
  blocks: [block(1)],
  anchors: [{ address: 'router', blockNumber: 1, transactionHash: 'a transaction' }],
  contracts: [makeContract('ramp')],
  startBlock: 1,
  followedFrom: 1,
  routerBlock: 1,
  pending: [history(2, 9)],
  failed: [{ ...history(1, 1), reason: 'why not', retryInMs: 0 }],
  unreadable: [makeUnread(1)],
  untrusted: 7,
};

async function everything(from = client): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const tables: Record<string, readonly unknown[]> = {};
  for (const table of await dataTables(from))
    tables[table] = (await from.query(`select * from ${table}`)).rows;
  return tables;
}

describe('a step', () => {
  test('becomes true as a whole', async () => {
    expect(await record(fullStep)).toMatchObject({ created: 1 });
    expect(await ledger.state(network)).toEqual({
      startBlock: 1,
      followedFrom: 1,
      firstRouterBlock: 1,
      blocks: [block(1)],
      contracts: [makeContract('ramp')],
      anchors: [{ address: 'router', blockNumber: 1, transactionHash: 'a transaction' }],
      foreignLogs: 7,
      lacksAttempts: false,
      head: null,
    });
    expect(await store.findMessage(idOf(1))).toBeDefined();
    expect(await ledger.pendingRanges(network)).toMatchObject([{ from: 2, to: 9 }]);
    expect(await ledger.dueFailures(network, 9)).toMatchObject([{ from: 1, to: 1, failures: 1 }]);
    expect(await rows('index_unreadable')).toHaveLength(1);
    expect(await ledger.dueTasks(dest, 'policy', 9)).toHaveLength(1);
  });

  test.each<readonly [string, () => Promise<unknown>]>([
    ['never had the network', () => ledger.release(network, 'us')],
    ['lets it run out', () => runOut()],
    [
      'was overtaken',
      async () => {
        await runOut();
        await ledger.lease(network, 'another', LONG);
      },
    ],
  ])('of somebody who %s writes nothing at all', async (_, lose) => {
    await lose();
    const before = await everything();
    const rpcError = await record(fullStep).catch((error) => error);
    expect(rpcError).toBeInstanceOf(LeaseLostError);
    expect(rpcError.message).toMatch(/has expired, or another indexer has it/);
    expect(await everything()).toEqual(before);
  });

  test('of which a part fails leaves nothing behind', async () => {
    const before = await everything();
    const upsideDown = { ...history(9, 2) };
    for (const step of [
      { ...fullStep, pending: [...(fullStep.pending ?? []), upsideDown] },
      { ...fullStep, failed: [{ ...upsideDown, reason: 'why not', retryInMs: 0 }] },
    ]) {
      await expect(record(step)).rejects.toThrow(/check constraint/);
    }
    expect(await everything()).toEqual(before);
  });

  test('remembers where following began, and the first word of a router', async () => {
    await record({ followedFrom: 50, routerBlock: 40 });
    await record({ followedFrom: 60, routerBlock: 30 });
    await record({ routerBlock: 35 });
    expect(await ledger.state(network)).toMatchObject({ followedFrom: 50, firstRouterBlock: 30 });
  });

  test('adds up the logs of strangers', async () => {
    await record({ untrusted: 3 });
    await record({});
    await record({ untrusted: 4 });
    expect(await ledger.state(network)).toMatchObject({ foreignLogs: 7 });
  });

  test('of one network leaves the others alone', async () => {
    await record(fullStep);
    expect(await ledger.state(dest)).toMatchObject({ blocks: [], contracts: [], followedFrom: null });
    expect(await ledger.pendingRanges(dest)).toEqual([]);
    expect(await ledger.dueFailures(dest, 9)).toEqual([]);
  });
});

describe('what is pending', () => {
  test('comes with routers first, then history, then single contracts, each from the newest down', async () => {
    const routers: BlockRange = { from: 0, to: 10, purpose: 'routers', contracts: [evmAddress('router')] };
    const contracts: BlockRange = { from: 0, to: 55, purpose: 'contracts', contracts: [evmAddress('ramp')] };
    await record({ pending: [history(0, 40), contracts, history(50, 60), routers] });
    expect((await ledger.pendingRanges(network)).map(({ to }) => to)).toEqual([10, 60, 40, 55]);
  });

  test('is replaced by other ranges in one step', async () => {
    await record({ pending: [history(10, 99), history(200, 299)] });
    const [, { id } = { id: '' }] = await ledger.pendingRanges(network);
    await record({ replaced: [id], pending: [history(10, 49)] });
    expect(await ledger.pendingRanges(network)).toMatchObject([history(200, 299), history(10, 49)]);
  });

  test('below the wanted beginning is given up, except what the routers and named contracts said', async () => {
    const contracts: BlockRange = { from: 0, to: 9, purpose: 'contracts', contracts: [evmAddress('ramp')] };
    await record({ pending: [history(0, 9), history(10, 40), contracts] });
    await record({ startBlock: 20 });
    const left = (await rows('index_backlog')).map(({ from_block: from, to_block: to, purpose }) => [
      Number(from),
      Number(to),
      purpose,
    ]);
    expect(left.sort()).toEqual([
      [0, 9, 'contracts'],
      [20, 40, 'history'],
    ]);
  });
});

describe('a failed range', () => {
  const failure = { ...history(5, 8), reason: 'the node is tired', retryInMs: 0 };

  test('comes up when its time has come: those that failed least first, then the longest due', async () => {
    await record({
      failed: [
        { ...failure, retryInMs: 3_600_000 },
        { ...failure, from: 4 },
      ],
    });
    const [{ id = '' } = {}] = await ledger.dueFailures(network, 1);
    await record({ postponed: [{ id, reason: 'still tired', retryInMs: 0 }], failed: [failure] });
    await record({ failed: [{ ...failure, from: 6 }] });
    expect((await ledger.dueFailures(network, 9)).map(({ from }) => from)).toEqual([5, 6, 4]);
    expect(await ledger.dueFailures(network, 1)).toHaveLength(1);
    await client.query(`update index_failure set retry_at = retry_at - interval '1 hour'`);
    expect(await ledger.dueFailures(network, 9)).toHaveLength(4);
  });
});

describe('an abandoned block', () => {
  test('takes back its facts, its contracts and its unreadable logs, and no others', async () => {
    const [kept, gone] = [makeSent(makeMessage({ number: 1 })), makeSent(makeMessage({ number: 2 }))];
    const { blockNumber, blockHash } = gone.seen;
    await record({
      facts: [kept, gone],
      blocks: [block(1001), { number: blockNumber, hash: blockHash }],
      contracts: [makeContract('kept', kept.seen.blockHash), makeContract('gone', blockHash)],
      unreadable: [makeUnread(kept.seen.blockNumber), makeUnread(blockNumber)],
    });
    expect(await record({ orphaned: [blockHash] })).toMatchObject({ removed: 1 });
    expect(await ledger.state(network)).toMatchObject({
      blocks: [block(1001)],
      contracts: [makeContract('kept', kept.seen.blockHash)],
    });
    expect(await store.findMessage(idOf(1))).toBeDefined();
    expect(await store.findMessage(idOf(2))).toBeUndefined();
    expect(await rows('index_unreadable')).toMatchObject([{ block_hash: kept.seen.blockHash }]);
  });

  test('and the one that takes its place change places in one step', async () => {
    const message = makeMessage({ number: 2 });
    const [before, after] = [makeSent(message), makeSent(message, { blockHash: hashOf('another block') })];
    const blockOf = ({ seen }: Sent) => ({ number: seen.blockNumber, hash: seen.blockHash });
    await record({ facts: [before], blocks: [blockOf(before)] });
    await record({ orphaned: [before.seen.blockHash], facts: [after], blocks: [blockOf(after)] });
    expect((await ledger.state(network)).blocks).toEqual([blockOf(after)]);
    expect(await ledger.sentFact(idOf(2))).toEqual(after);
  });
});

test('a reviewed block keeps its place and the events of the review; others are retracted', async () => {
  const messages = [1, 2].map((number) => makeMessage({ number }));
  const { seen } = makeSent(makeMessage({ number: 1 }));
  const [genuine, invented] = messages.map((message) => makeSent(message, seen)) as [Sent, Sent];
  const block = { number: seen.blockNumber, hash: seen.blockHash };
  const finalized = {
    ...makeFinalized(makeMessage({ number: 1 })),
    seen: { ...seen, transactionHash: null },
  };
  await record({ facts: [genuine, invented, finalized], blocks: [block] });
  expect(await record({ facts: [genuine, invented], reviewed: [block.hash] })).toMatchObject({
    removed: 0,
  });
  expect(await record({ facts: [genuine, finalized], reviewed: [block.hash] })).toMatchObject({
    removed: 1,
  });
  expect(JSON.parse((await store.findMessage(idOf(1)))?.record ?? '')).toMatchObject({
    status: 'SOURCE_FINALIZED',
  });
  expect(await store.findMessage(idOf(2))).toBeUndefined();
  expect((await ledger.state(network)).blocks).toEqual([block]);
});

describe('a final block', () => {
  test('is forgotten, and what it named is believed for good', async () => {
    await record({
      blocks: [block(1), block(2), block(3)],
      contracts: [makeContract('early', block(1).hash), makeContract('late', block(3).hash)],
    });
    await record({ forgetBelow: 3 });
    const state = await ledger.state(network);
    expect(state.blocks).toEqual([block(3)]);
    expect(state.contracts).toHaveLength(2);
    await record({ orphaned: [block(1).hash, block(3).hash] });
    expect((await ledger.state(network)).contracts).toEqual([makeContract('early')]);
  });

  test('tells which messages were sent in it', async () => {
    const sent = [1, 2, 3].map((number) => makeSent(makeMessage({ number })));
    await record({ facts: [...sent, makeFinalized(makeMessage({ number: 1 }))] });
    const hashes = sent.slice(0, 2).map(({ seen }) => seen.blockHash);
    const found = await ledger.sentIn(network, hashes);
    expect(found.map(({ messageId }) => messageId).sort()).toEqual([idOf(1), idOf(2)].sort());
    expect(await ledger.sentIn(dest, hashes)).toEqual([]);
  });
});

describe('a log that was not understood', () => {
  test('is not pending twice', async () => {
    await record({ unreadable: [makeUnread(5), makeUnread(9)] });
    await record({ failed: [{ ...history(9, 9), reason: 'why not', retryInMs: 0 }] });
    await record({ rescanUnreadable: true });
    await record({ rescanUnreadable: true });
    expect(await rows('index_backlog')).toHaveLength(1);
  });

  test('is gone when its block was read and it was understood, and stays where it was not', async () => {
    const logs = [
      makeUnread(4),
      makeUnread(5, 0),
      makeUnread(5, 1),
      makeUnread(5, 2, 'other'),
      makeUnread(6),
    ];
    await record({ unreadable: logs });
    const read: BlockRange = { from: 5, to: 5, purpose: 'contracts', contracts: [evmAddress('ramp')] };
    await record({ read, unreadable: [makeUnread(5, 1)] });
    const left = (await rows('index_unreadable')).map((row) => [Number(row.block_number), row.log_index]);
    expect(left.sort()).toEqual([
      [4, 0],
      [5, 1],
      [5, 2],
      [6, 0],
    ]);
    await record({ read: history(0, 5) });
    expect(await rows('index_unreadable')).toMatchObject([{ block_number: '6' }]);
  });
});

describe('a question about a message', () => {
  test('of a lane with verifiers is asked at its destination', async () => {
    await record({ facts: [makeVerifiedSent(1), makeSent(makeMessage({ number: 2 }))] });
    for (const kind of ['policy', 'verification'] as const) {
      expect(await ledger.dueTasks(dest, kind, 9)).toEqual([{ messageId: idOf(1), kind, attempts: 0 }]);
      expect(await ledger.dueTasks(network, kind, 9)).toEqual([]);
    }
  });

  test('goes away when it is answered, and comes later when it is not', async () => {
    await record({ facts: [makeVerifiedSent(1)] });
    await ledger.lease(dest, 'there', LONG);
    const [policy] = await ledger.dueTasks(dest, 'policy', 9);
    const [verification] = await ledger.dueTasks(dest, 'verification', 9);
    if (!policy || !verification) throw new Error('there should be two');
    await ledger.record(dest, 'there', {
      tasksDone: [policy],
      tasksPostponed: [{ ...verification, dueInMs: 3_600_000 }],
    });
    expect(await ledger.dueTasks(dest, 'policy', 9)).toEqual([]);
    expect(await ledger.dueTasks(dest, 'verification', 9)).toEqual([]);
    await client.query('update index_chore set due_at = now()');
    expect(await ledger.dueTasks(dest, 'verification', 9)).toEqual([{ ...verification, attempts: 1 }]);
  });

  test('about a message that was taken back goes away, unless it has been sent again meanwhile', async () => {
    await record({ facts: [makeVerifiedSent(1)] });
    await ledger.lease(dest, 'there', LONG);
    const tasks = [
      ...(await ledger.dueTasks(dest, 'policy', 9)),
      ...(await ledger.dueTasks(dest, 'verification', 9)),
    ];
    expect(tasks).toHaveLength(2);
    await ledger.record(dest, 'there', { tasksObsolete: tasks });
    expect(await rows('index_chore')).toHaveLength(2);

    await record({ orphaned: [makeVerifiedSent(1).seen.blockHash] });
    await ledger.record(dest, 'there', { tasksObsolete: tasks });
    expect(await rows('index_chore')).toEqual([]);
  });

  test('about its verifications needs no answer any more when it is executed, whichever comes first', async () => {
    const [early, late] = [makeMessage({ number: 1 }), makeMessage({ number: 2 })];
    await ledger.lease(dest, 'there', LONG);
    await record({ facts: [makeVerifiedSent(1)] });
    await ledger.record(dest, 'there', { facts: [makeExecuted(early, true), makeExecuted(late, true)] });
    await record({ facts: [makeVerifiedSent(2)] });
    expect(await ledger.dueTasks(dest, 'verification', 9)).toEqual([]);
    expect(await ledger.dueTasks(dest, 'policy', 9)).toHaveLength(2);
  });

  test('is not asked again because the sending was read again', async () => {
    await record({ facts: [makeVerifiedSent(1)] });
    await client.query('update index_chore set attempts = 5');
    await record({ facts: [makeVerifiedSent(1)] });
    expect(await ledger.dueTasks(dest, 'policy', 9)).toMatchObject([{ attempts: 5 }]);
  });

  test('is asked again when the block on which the answer rests is abandoned, and of no other', async () => {
    const message = makeMessage({ number: 1, version: '2.0.0' });
    await ledger.lease(dest, 'there', LONG);
    await record({ facts: [makeVerifiedSent(1), makeVerifiedSent(2), makeSent(makeMessage({ number: 3 }))] });
    const policy = makePolicy(message, { required: ['Alice'] }, 3200);
    const executed = makeExecuted(message, true, 3201);
    const { messageId: id } = message;
    const answered = { messageId: id.slice(2), kind: 'policy', attempts: 0 } as const;
    await ledger.record(dest, 'there', {
      facts: [policy, executed, makeExecuted(makeMessage({ number: 3 }), true, 3201)],
      tasksDone: [answered, { ...answered, messageId: idOf(2) }],
    });
    const asked = async () => {
      const kinds = ['policy', 'verification'] as const;
      const due = await Promise.all(kinds.map((kind) => ledger.dueTasks(dest, kind, 9)));
      return due.flat().map(({ messageId, kind }) => `${kind} ${messageId}`);
    };
    const other = `verification ${idOf(2)}`;
    expect(await asked()).toEqual([other]);
    await record({ facts: [makeVerifiedSent(1)] });
    expect(await asked()).toEqual([other]);
    await ledger.record(dest, 'there', { orphaned: [policy.seen.blockHash] });
    expect(await asked()).toEqual([`policy ${answered.messageId}`, other]);
    await ledger.record(dest, 'there', { orphaned: [executed.seen.blockHash] });
    expect((await asked()).sort()).toEqual(
      [`policy ${answered.messageId}`, `verification ${answered.messageId}`, other].sort(),
    );
  });

  test('finds what was told of its sending, as long as that stands', async () => {
    const sent = makeVerifiedSent(1);
    await record({ facts: [sent] });
    expect(await ledger.sentFact(idOf(1))).toEqual(sent);
    await record({ orphaned: [sent.seen.blockHash] });
    expect(await ledger.sentFact(idOf(1))).toBeUndefined();
  });
});

test('messages that wait for their execution are those to the network that are committed and neither executed nor open', async () => {
  const subject = makeMessage();
  const sent = [1, 2, 3, 4].map((number) => makeSent(makeMessage({ number })));
  await store.apply([
    ...sent,
    makeRange('Committed', subject, 1, 3),
    makeExecuted(makeMessage({ number: 2 }), true),
  ]);
  const all = await ledger.awaitingExecution(dest, { after: null, limit: 9 });
  expect(all.map(({ messageId }) => messageId)).toEqual([idOf(1), idOf(3)].sort());
  expect(all[0]?.ranges).toMatchObject([
    { kind: 'Committed', fromSequenceNumber: '1', toSequenceNumber: '3' },
  ]);
  const [first] = await ledger.awaitingExecution(dest, { after: null, limit: 1 });
  expect(await ledger.awaitingExecution(dest, { after: first?.messageId ?? null, limit: 9 })).toEqual(
    all.slice(1),
  );
  expect(await ledger.awaitingExecution(network, { after: null, limit: 9 })).toEqual([]);
});

test('the blocks in which facts were seen come from the highest down, of every kind of fact, each once', async () => {
  const message = makeMessage({ number: 1 });
  await store.apply([
    makeSent(message),
    makeExecuted(message, false, 5000),
    makeExecuted(message, true, 5001),
    makePolicy(message, { required: ['Alice'] }, 3200),
    makeVerifierCompleted(message, 'Alice', 5001),
    makeRange('Committed', message, 1, 3, 4000),
    makeRootBlessed(message, 7, 9, 4100),
  ]);
  const numbers = async (...page: readonly [number, number]) =>
    (await ledger.factBlocks(dest, ...page)).map(({ number }) => number);
  expect(await numbers(9999, 99)).toEqual([5001, 5000, 4100, 4000, 3200]);
  expect(await numbers(5001, 2)).toEqual([5000, 4100]);
  expect(await ledger.factBlocks(network, 9999, 99)).toEqual([
    { number: message.sendBlockNumber, hash: hashOf('block', sepolia.name, message.sendBlockNumber) },
  ]);
});

describe('progress', () => {
  const figures = {
    headBlock: 120,
    headAt: Date.UTC(2026, 0, 1, 12),
    finalizedBlock: 100,
    indexedBlock: 110,
    indexedAt: Date.UTC(2026, 0, 1, 11),
  };

  test('is told with what is pending, has failed and was not understood', async () => {
    const contracts: BlockRange = { from: 0, to: 99, purpose: 'contracts', contracts: [evmAddress('ramp')] };
    await record({
      startBlock: 10,
      pending: [history(10, 19), history(40, 59), contracts],
      failed: [
        { ...history(30, 33), reason: 'why not', retryInMs: 0, since: new Date(Date.UTC(2026, 0, 1)) },
        { ...history(35, 35), reason: 'why not', retryInMs: 0 },
      ],
      unreadable: [makeUnread(5), makeUnread(6)],
      untrusted: 3,
    });
    expect(await ledger.reportProgress(network, figures, null)).toEqual({ owedBlocks: 100, failedRanges: 2 });
    expect(await store.networkProgress()).toEqual([
      {
        selector: network,
        headBlock: 120,
        headAt: new Date(figures.headAt),
        finalizedBlock: 100,
        indexedBlock: 110,
        indexedAt: new Date(figures.indexedAt),
        updatedAt: expect.any(Date),
        problem: null,
        problemKind: null,
        isLeased: true,
        seenAt: expect.any(Date),
        readAt: expect.any(Date),
        startBlock: 10,
        owedBlocks: 100,
        failedRanges: 2,
        failedBlocks: 5,
        oldestFailureAt: new Date(Date.UTC(2026, 0, 1)),
        unreadableLogs: 2,
        foreignLogs: 3,
        findings: [{ kind: 'logs-unreadable', count: 2 }],
      },
    ]);
  });

  test('that nobody knows anew stays as it was, beside the problem', async () => {
    await ledger.reportProgress(network, figures, null);
    await ledger.reportProgress(network, null, { kind: 'unreachable', text: 'no endpoint answers' });
    expect(await store.networkProgress()).toMatchObject([
      { headBlock: 120, indexedBlock: 110, problem: 'no endpoint answers' },
    ]);
    await ledger.reportProgress(network, { ...figures, indexedBlock: 111 }, null);
    expect(await store.networkProgress()).toMatchObject([{ indexedBlock: 111, problem: null }]);
  });

  test('of a network on which nobody ever worked has a problem and nothing else', async () => {
    await ledger.reportProgress(dest, null, { kind: 'unreachable', text: 'no endpoint answers' });
    expect(await store.networkProgress()).toMatchObject([
      { selector: dest, headBlock: null, owedBlocks: 0, problem: 'no endpoint answers', startBlock: null },
    ]);
  });
});

test('a reset leaves nothing of the ledger', async () => {
  const database = await createTestDatabase({ empty: true });
  const simulated = await openStore({ place: { url: database.url }, content: 'simulated' });
  onTestFinished(async () => {
    await simulated.close();
    await database.drop();
  });
  await simulated.index.lease(network, 'us', LONG);
  await simulated.index.record(network, 'us', fullStep);
  await simulated.index.reportProgress(network, null, null);
  await simulated.reset();
  const other = await connectForTest(database.url);
  const { store: _store, store_revision, publication, cursor_key, ...emptied } = await everything(other);
  expect(Object.values(emptied).flat()).toEqual([]);
});

test('the kind may stand anywhere in a fact, and a blessing covers only what was committed', async () => {
  const message = makeMessage();
  const { kind, ...rest } = makeRange('Committed', message, 1, 5);
  await store.apply([
    { ...rest, kind },
    makeRange('Committed', message, 6, 9),
    makeRange('Blessed', message, 6, 9, 4001),
  ]);
  const lane = { sourceSelector: network, destSelector: dest, onramp: addressColumn(message.onramp, 'EVM') };
  expect(await ledger.checks.committedRuns(lane)).toEqual([{ from: '1', to: '9' }]);
  await record({ counters: [{ ...lane, kind: 'committed', lastNumber: '9', isWhole: true }] });
  expect((await store.countedLanes({})).map(({ present }) => present)).toEqual([[{ from: '1', to: '9' }]]);
});
