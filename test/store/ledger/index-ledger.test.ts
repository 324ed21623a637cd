/** The ledger of the indexer: one worker a network, one step one transaction, and nothing that is pending gets lost. */
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Fact, Sent } from '../../../src/domain/facts.ts';
import {
  type BlockRange,
  type IndexLedger,
  type IndexStep,
  LeaseLostError,
  type RegisteredContract,
  type UnreadableLog,
} from '../../../src/store/ledger/index-ledger.ts';
import type { Task } from '../../../src/store/ledger/tasks.ts';
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
/** The same at the destination. */
const recordThere = async (step: IndexStep) => {
  await ledger.lease(dest, 'there', LONG);
  return ledger.record(dest, 'there', step);
};
const rows = async (table: string) => (await client.query(`select * from ${table}`)).rows;
const idOf = (number: number) => makeMessage({ number }).messageId.slice(2);

/** As time does it, by the database's own clock. */
async function runOut(selector = network): Promise<void> {
  await client.query(
    `update index_network set lease_until = now() - interval '1 millisecond' where selector = $1`,
    [BigInt.asIntN(64, BigInt(selector)).toString()],
  );
}

const history = (from: number, to: number): BlockRange => ({ from, to, purpose: 'history', contracts: null });
const failedRange = (from: number, to: number) => ({ ...history(from, to), reason: 'why not', retryInMs: 0 });
/** Of a ramp alone. */
const ofRamp = (from: number, to: number): BlockRange => ({
  ...history(from, to),
  purpose: 'contracts',
  contracts: [evmAddress('ramp')],
});

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
    const { rows } = await client.query(
      'select extract(epoch from lease_until - now())::float8 as left from index_network',
    );
    expect(rows[0].left).toBeGreaterThan(0);
    expect(rows[0].left).toBeLessThanOrEqual(7);
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
  failed: [failedRange(1, 1)],
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
    const { startBlock, followedFrom, blocks, contracts, anchors } = fullStep;
    expect(await ledger.state(network)).toEqual({
      ...{ startBlock, followedFrom, blocks, contracts, anchors },
      ...{ firstRouterBlock: 1, foreignLogs: 7, lacksAttempts: false, head: null },
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
    const error = await record(fullStep).catch((error) => error);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error.message).toMatch(/has expired, or another indexer has it/);
    expect(await everything()).toEqual(before);
  });

  test('of which a part fails leaves nothing behind', async () => {
    const before = await everything();
    const pending = [history(2, 9), history(9, 2)];
    const failed = [failedRange(9, 2)];
    for (const wrong of [{ pending }, { failed }])
      await expect(record({ ...fullStep, ...wrong })).rejects.toThrow(/check constraint/);
    expect(await everything()).toEqual(before);
  });

  test('remembers where following began, and the first word of a router, and adds up the logs of strangers', async () => {
    await record({ followedFrom: 50, routerBlock: 40, untrusted: 3 });
    await record({ followedFrom: 60, routerBlock: 30 });
    await record({ routerBlock: 35, untrusted: 4 });
    const state = { followedFrom: 50, firstRouterBlock: 30, foreignLogs: 7 };
    expect(await ledger.state(network)).toMatchObject(state);
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
    await record({ pending: [history(0, 40), ofRamp(0, 55), history(50, 60), routers] });
    expect((await ledger.pendingRanges(network)).map(({ to }) => to)).toEqual([10, 60, 40, 55]);
  });

  test('is replaced by other ranges in one step', async () => {
    await record({ pending: [history(10, 99), history(200, 299)] });
    const [, { id } = { id: '' }] = await ledger.pendingRanges(network);
    await record({ replaced: [id], pending: [history(10, 49)] });
    expect(await ledger.pendingRanges(network)).toMatchObject([history(200, 299), history(10, 49)]);
  });

  test('below the wanted beginning is given up, except what the routers and named contracts said', async () => {
    await record({ pending: [history(0, 9), history(10, 40), ofRamp(0, 9)] });
    await record({ startBlock: 20 });
    expect(await ledger.pendingRanges(network)).toMatchObject([history(20, 40), ofRamp(0, 9)]);
  });
});

test('a failed range comes up when its time has come: those that failed least first, then the longest due', async () => {
  const failure = { ...history(5, 8), reason: 'the node is tired', retryInMs: 0 };
  const later = { ...failure, retryInMs: 3_600_000 };
  await record({ failed: [later, { ...failure, from: 4 }] });
  const [{ id = '' } = {}] = await ledger.dueFailures(network, 1);
  await record({ postponed: [{ id, reason: 'still tired', retryInMs: 0 }], failed: [failure] });
  await record({ failed: [{ ...failure, from: 6 }] });
  expect((await ledger.dueFailures(network, 9)).map(({ from }) => from)).toEqual([5, 6, 4]);
  expect(await ledger.dueFailures(network, 1)).toHaveLength(1);
  await client.query(`update index_failure set retry_at = retry_at - interval '1 hour'`);
  expect(await ledger.dueFailures(network, 9)).toHaveLength(4);
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
  const [message, other] = [makeMessage({ number: 1 }), makeMessage({ number: 2 })];
  const genuine = makeSent(message);
  const { seen } = genuine;
  const invented = makeSent(other, seen);
  const block = { number: seen.blockNumber, hash: seen.blockHash };
  const finalized = { ...makeFinalized(message), seen: { ...seen, transactionHash: null } };
  await record({ facts: [genuine, invented, finalized], blocks: [block] });
  const review = (...facts: Fact[]) => record({ facts, reviewed: [block.hash] });
  expect(await review(genuine, invented)).toMatchObject({ removed: 0 });
  expect(await review(genuine, finalized)).toMatchObject({ removed: 1 });
  const { record: text = '' } = (await store.findMessage(idOf(1))) ?? {};
  expect(JSON.parse(text)).toMatchObject({ status: 'SOURCE_FINALIZED' });
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
    await record({ failed: [failedRange(9, 9)] });
    await record({ rescanUnreadable: true });
    await record({ rescanUnreadable: true });
    expect(await rows('index_backlog')).toHaveLength(1);
  });

  test('is gone when its block was read and it was understood, and stays where it was not', async () => {
    const ofBlock5 = [makeUnread(5, 0), makeUnread(5, 1), makeUnread(5, 2, 'other')];
    await record({ unreadable: [makeUnread(4), ...ofBlock5, makeUnread(6)] });
    await record({ read: ofRamp(5, 5), unreadable: [makeUnread(5, 1)] });
    const left = (await rows('index_unreadable')).map((row) => `${row.block_number} ${row.log_index}`);
    expect(left.sort()).toEqual(['4 0', '5 1', '5 2', '6 0']);
    await record({ read: history(0, 5) });
    expect(await rows('index_unreadable')).toMatchObject([{ block_number: '6' }]);
  });
});

describe('a question about a message', () => {
  const dueTasks = async () => [
    ...(await ledger.dueTasks(dest, 'policy', 9)),
    ...(await ledger.dueTasks(dest, 'verification', 9)),
  ];

  test('of a lane with verifiers is asked at its destination', async () => {
    await record({ facts: [makeVerifiedSent(1), makeSent(makeMessage({ number: 2 }))] });
    for (const kind of ['policy', 'verification'] as const) {
      expect(await ledger.dueTasks(dest, kind, 9)).toEqual([{ messageId: idOf(1), kind, attempts: 0 }]);
      expect(await ledger.dueTasks(network, kind, 9)).toEqual([]);
    }
  });

  test('goes away when it is answered, and comes later when it is not', async () => {
    await record({ facts: [makeVerifiedSent(1)] });
    const [policy, verification] = (await dueTasks()) as [Task, Task];
    const tasksPostponed = [{ ...verification, dueInMs: 3_600_000 }];
    await recordThere({ tasksDone: [policy], tasksPostponed });
    expect(await dueTasks()).toEqual([]);
    await client.query('update index_chore set due_at = now()');
    expect(await dueTasks()).toEqual([{ ...verification, attempts: 1 }]);
  });

  test('about a message that was taken back goes away, unless it has been sent again meanwhile', async () => {
    const sent = makeVerifiedSent(1);
    await record({ facts: [sent] });
    expect(await ledger.sentFact(idOf(1))).toEqual(sent);
    const tasks = await dueTasks();
    expect(tasks).toHaveLength(2);
    await recordThere({ tasksObsolete: tasks });
    expect(await rows('index_chore')).toHaveLength(2);

    await record({ orphaned: [sent.seen.blockHash] });
    expect(await ledger.sentFact(idOf(1))).toBeUndefined();
    await recordThere({ tasksObsolete: tasks });
    expect(await rows('index_chore')).toEqual([]);
  });

  test('about its verifications needs no answer any more when it is executed, whichever comes first', async () => {
    const [early, late] = [makeMessage({ number: 1 }), makeMessage({ number: 2 })];
    await record({ facts: [makeVerifiedSent(1)] });
    await recordThere({ facts: [makeExecuted(early, true), makeExecuted(late, true)] });
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
    await record({ facts: [makeVerifiedSent(1), makeVerifiedSent(2), makeSent(makeMessage({ number: 3 }))] });
    const policy = makePolicy(message, { required: ['Alice'] }, 3200);
    const executed = makeExecuted(message, true, 3201);
    const answered = { messageId: idOf(1), kind: 'policy', attempts: 0 } as const;
    await recordThere({
      facts: [policy, executed, makeExecuted(makeMessage({ number: 3 }), true, 3201)],
      tasksDone: [answered, { ...answered, messageId: idOf(2) }],
    });
    const asked = async () => (await dueTasks()).map(({ messageId, kind }) => `${kind} ${messageId}`);
    const other = `verification ${idOf(2)}`;
    expect(await asked()).toEqual([other]);
    await record({ facts: [makeVerifiedSent(1)] });
    expect(await asked()).toEqual([other]);
    await recordThere({ orphaned: [policy.seen.blockHash] });
    expect(await asked()).toEqual([`policy ${idOf(1)}`, other]);
    await recordThere({ orphaned: [executed.seen.blockHash] });
    const all = [`policy ${idOf(1)}`, `verification ${idOf(1)}`, other];
    expect((await asked()).sort()).toEqual(all.sort());
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
  const stats = {
    headBlock: 120,
    headAt: Date.UTC(2026, 0, 1, 12),
    finalizedBlock: 100,
    indexedBlock: 110,
    indexedAt: Date.UTC(2026, 0, 1, 11),
  };

  test('is told with what is pending, has failed and was not understood', async () => {
    await record({
      startBlock: 10,
      pending: [history(10, 19), history(40, 59), ofRamp(0, 99)],
      failed: [{ ...failedRange(30, 33), since: new Date(Date.UTC(2026, 0, 1)) }, failedRange(35, 35)],
      unreadable: [makeUnread(5), makeUnread(6)],
      untrusted: 3,
    });
    expect(await ledger.reportProgress(network, stats, null)).toEqual({ owedBlocks: 100, failedRanges: 2 });
    expect(await store.networkProgress()).toEqual([
      {
        selector: network,
        ...stats,
        headAt: new Date(stats.headAt),
        indexedAt: new Date(stats.indexedAt),
        ...{ updatedAt: expect.any(Date), seenAt: expect.any(Date), readAt: expect.any(Date) },
        ...{ problem: null, problemKind: null, isLeased: true, startBlock: 10, owedBlocks: 100 },
        ...{ failedRanges: 2, failedBlocks: 5, oldestFailureAt: new Date(Date.UTC(2026, 0, 1)) },
        ...{ unreadableLogs: 2, foreignLogs: 3, findings: [{ kind: 'logs-unreadable', count: 2 }] },
      },
    ]);
  });

  test('that nobody knows anew stays as it was, beside the problem', async () => {
    await ledger.reportProgress(network, stats, null);
    await ledger.reportProgress(network, null, { kind: 'unreachable', text: 'no endpoint answers' });
    expect(await store.networkProgress()).toMatchObject([
      { headBlock: 120, indexedBlock: 110, problem: 'no endpoint answers' },
    ]);
    await ledger.reportProgress(network, { ...stats, indexedBlock: 111 }, null);
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
