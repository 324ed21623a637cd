/** What the store makes of facts: records, history and report, in any order, again, taken back, and from several writers. */
import fc from 'fast-check';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Fact, factMessageId, isMessageFact, isRangeFact } from '../../../src/domain/facts.ts';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { foldFacts } from '../../../src/domain/fold.ts';
import { statusRank } from '../../../src/domain/lifecycle.ts';
import { type Message, summaryKeys, wireRecord } from '../../../src/domain/message.ts';
import { hashText } from '../../../src/store/facts/hash-bytes.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import type { OrphanedBlock } from '../../../src/store/write/lane-facts.ts';
import { dataTables, emptyTables, openTestStore } from '../../database.ts';
import {
  chainFactsAbout,
  digits,
  fuji,
  makeExecuted,
  makeFinalized,
  makeMessage,
  makeRange,
  makeRootBlessed,
  makeSent,
  makeSnapshot,
  makeSubject,
  makeToken,
  networkInfo,
  seenOn,
  sepolia,
  snapshotsOf,
} from '../../fixtures.ts';
import { connectTo } from '../../postgres.ts';

let store: Store & { url: string };
let client: pg.Client;

beforeEach(async () => {
  store = await openTestStore();
  client = await connectTo(store.url);
});
afterEach(async () => {
  await client.end();
  await store.close();
});

const idOf = (message: Message) => message.messageId.slice(2);
const stored = async ({ messageId }: Message) => (await store.findMessage(messageId.slice(2)))?.record;
const statusOf = async (message: Message) => {
  const record = await stored(message);
  return record === undefined ? undefined : (JSON.parse(record) as Message).status;
};
const rowsOf = async (table: string): Promise<string[]> =>
  (await client.query(`select t::text as row from ${table} t order by 1`)).rows.map(({ row }) => row);
async function everything(): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {};
  for (const table of await dataTables(client)) rows[table] = await rowsOf(table);
  return rows;
}
const nothing = { created: 0, updated: 0, removed: 0, unchanged: 0 };

interface HistoryRow {
  readonly position: string;
  readonly id: string;
  readonly change: string;
  readonly status: number;
  readonly previous_status: number | null;
  readonly occurred_at: Date | null;
  readonly network: string | null;
  readonly block_number: string | null;
  readonly transaction_hash: string | null;
}
async function history(message?: Message): Promise<HistoryRow[]> {
  const { rows } = await client.query(
    `select position, encode(message_id, 'hex') as id, (array['created', 'updated', 'removed'])[change] as change,
            status, previous_status, occurred_at, uint64(network)::text as network, block_number, transaction
     from history order by position`,
  );
  const all = rows.map(({ transaction, ...row }) => ({
    ...row,
    transaction_hash: transaction === null ? null : hashText(transaction),
  }));
  return message ? all.filter(({ id }) => id === idOf(message)) : all;
}

/** Every order of some things. */
function ordersOf<T>(things: readonly T[]): readonly (readonly T[])[] {
  if (things.length < 2) return [things];
  return things.flatMap((first, i) =>
    ordersOf(things.filter((_, j) => j !== i)).map((rest) => [first, ...rest]),
  );
}

const orphan = (fact: Exclude<Fact, { kind: 'Snapshot' }>): OrphanedBlock => ({
  network: fact.seen.network,
  blockHash: fact.seen.blockHash,
});

describe('the report', () => {
  it('counts what was created, updated, removed and left as it was', async () => {
    const [one, two, three] = [1, 2, 3].map((number) => makeMessage({ number })) as [
      Message,
      Message,
      Message,
    ];
    expect(await store.apply([])).toEqual(nothing);
    expect(await store.apply([makeSent(one), makeSent(two), makeSnapshot(three)])).toEqual({
      ...nothing,
      created: 3,
    });
    expect(await store.apply([makeSent(one), makeExecuted(two, true), makeSnapshot(three)])).toEqual({
      ...nothing,
      updated: 1,
      unchanged: 2,
    });
    expect(await store.apply([makeExecuted(makeMessage({ number: 9 }), true)])).toEqual({
      ...nothing,
      unchanged: 1,
    });
    expect(await store.apply([makeRange('Committed', one, 1, 3)])).toEqual({
      ...nothing,
      updated: 2,
      unchanged: 1,
    });
    expect(await store.apply([], [orphan(makeSent(one))])).toEqual({ ...nothing, removed: 1 });
  });

  it('counts a message once, however many facts speak of it', async () => {
    const message = makeMessage();
    const facts = [makeSent(message), makeExecuted(message, true), makeFinalized(message), makeSent(message)];
    expect(await store.apply(facts)).toEqual({ ...nothing, created: 1 });
  });
});

describe('the same facts twice', () => {
  it('change nothing at all: no row of any table', async () => {
    const messages = [1, 2, 3, 4].map((number) =>
      makeMessage({ number, tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] }),
    );
    const [one, two, three, four] = messages as [Message, Message, Message, Message];
    const facts: Fact[] = [
      makeSent(one),
      makeFinalized(one),
      makeExecuted(one, false),
      makeSent(two),
      makeRange('Committed', one, 1, 2),
      makeRange('Blessed', one, 1, 2),
      makeRootBlessed(one, 1, 2),
      makeSnapshot(makeMessage({ number: 3, status: 'SUCCESS' })),
      makeSent(four),
      makeSnapshot(makeMessage({ number: 4, status: 'FAILED' })),
      makeExecuted(makeMessage({ number: 5 }), true),
    ];
    await store.apply(facts);
    const before = await everything();
    expect(await store.apply(facts)).toEqual({ ...nothing, unchanged: 5 });
    expect(await store.apply([...facts].reverse())).toMatchObject({ created: 0, updated: 0, removed: 0 });
    for (const fact of facts) await store.apply([fact, fact]);
    expect(await everything()).toEqual(before);
    expect(await statusOf(three)).toBe('SUCCESS');
  });
});

describe('the history', () => {
  it('has one row for every change, with what the status was and what it rests on', async () => {
    const message = makeMessage();
    const sent = makeSent(message);
    const commit = makeRange('Committed', message, 1, 1);
    const failure = makeExecuted(message, false, 5000);
    const success = makeExecuted(message, true, 5001);
    for (const fact of [sent, commit, failure, success, success]) await store.apply([fact]);

    const row = (
      change: string,
      status: number,
      previous: number | null,
      { seen }: typeof sent | typeof commit | typeof failure,
    ) => ({
      id: idOf(message),
      change,
      status,
      previous_status: previous,
      occurred_at: new Date(seen.at),
      network: seen.network,
      block_number: String(seen.blockNumber),
      transaction_hash: seen.transactionHash,
    });
    expect(await history()).toEqual([
      { position: '1', ...row('created', statusRank('SENT'), null, sent) },
      { position: '2', ...row('updated', statusRank('COMMITTED'), statusRank('SENT'), commit) },
      { position: '3', ...row('updated', statusRank('FAILED'), statusRank('COMMITTED'), failure) },
      { position: '4', ...row('updated', statusRank('SUCCESS'), statusRank('FAILED'), success) },
    ]);
    const { rows } = await client.query('select position from message');
    expect(rows).toEqual([{ position: '4' }]);
  });

  it('has gapless positions from 1 on, also when batches fail in between', async () => {
    const broken = { ...makeRange('Committed', makeMessage(), 1, 1), toSequenceNumber: '0' };
    for (let number = 1; number <= 10; number++) {
      await store.apply([
        makeSent(makeMessage({ number })),
        makeSnapshot(makeMessage({ number: number + 100 })),
      ]);
      await expect(store.apply([makeSent(makeMessage({ number: 50 })), broken])).rejects.toThrow();
    }
    expect((await history()).map(({ position }) => position)).toEqual(
      Array.from({ length: 20 }, (_, i) => String(i + 1)),
    );
  });

  it('tells only what is known where a snapshot brought the change', async () => {
    await store.apply([makeSnapshot(makeMessage({ status: 'BLESSED' }))]);
    expect(await history()).toMatchObject([
      {
        change: 'created',
        status: statusRank('BLESSED'),
        occurred_at: null,
        network: null,
        block_number: null,
      },
    ]);
  });
});

describe('ranges', () => {
  const first = makeMessage({ number: 1 });
  const third = makeMessage({ number: 3 });
  const ninth = makeMessage({ number: 9 });

  it('reach the messages they cover, whether these came before or come after', async () => {
    await store.apply([makeSent(first), makeSent(ninth)]);
    await store.apply([makeRange('Committed', first, 1, 5)]);
    await store.apply([makeSent(third)]);
    expect(await Promise.all([first, third, ninth].map(statusOf))).toEqual([
      'COMMITTED',
      'COMMITTED',
      'SENT',
    ]);
    await store.apply([makeRange('Blessed', first, 3, 9)]);
    expect(await Promise.all([first, third, ninth].map(statusOf))).toEqual([
      'COMMITTED',
      'BLESSED',
      'BLESSED',
    ]);
  });

  it('of one batch reach messages of the same batch', async () => {
    await store.apply([
      makeRange('Committed', first, 1, 5),
      makeSent(first),
      makeSent(third),
      makeSent(ninth),
    ]);
    expect(await Promise.all([first, third, ninth].map(statusOf))).toEqual([
      'COMMITTED',
      'COMMITTED',
      'SENT',
    ]);
  });

  it('stay within their lane: source, destination and on-ramp', async () => {
    const arbitrum = networkInfo('ethereum-testnet-sepolia-arbitrum-1');
    const others = [
      makeMessage({ number: 11, sequenceNumber: '1', onramp: first.sender }),
      makeMessage({ number: 12, sequenceNumber: '1', destNetworkInfo: arbitrum }),
      makeMessage({ number: 13, sequenceNumber: '1', sourceNetworkInfo: fuji, destNetworkInfo: fuji }),
    ];
    await store.apply([first, ...others].map((message) => makeSent(message)));
    await store.apply([makeRange('Committed', first, 1, 5)]);
    expect(await statusOf(first)).toBe('COMMITTED');
    expect(await Promise.all(others.map(statusOf))).toEqual(['SENT', 'SENT', 'SENT']);
  });

  it('may be as long as a million, and end at the greatest sequence number there is', async () => {
    const greatest = 2n ** 64n - 1n;
    const numbered = (number: number, sequenceNumber: bigint) =>
      makeMessage({ number, sequenceNumber: sequenceNumber.toString() });
    const covering = (from: bigint) => ({
      ...makeRange('Committed', first, 0, 0),
      fromSequenceNumber: from.toString(),
      toSequenceNumber: greatest.toString(),
    });
    const distances = [0n, 1n, 255n, 256n, 257n, 511n, 512n, 513n, 9_998n, 9_999n];
    const covered = distances.map((distance, i) => numbered(200 + i, greatest - distance));
    const outside = numbered(300, greatest - 10_000n);
    const early = covered.filter((_, i) => i % 2 === 0);
    await store.apply([...early, outside].map((message) => makeSent(message)));
    await store.apply([covering(greatest - 9_999n)]);
    await store.apply(covered.map((message) => makeSent(message)));
    expect(new Set(await Promise.all(covered.map(statusOf)))).toEqual(new Set(['COMMITTED']));
    expect(await statusOf(outside)).toBe('SENT');

    await store.apply([], [orphan(covering(0n))]);
    expect(new Set(await Promise.all(covered.map(statusOf)))).toEqual(new Set(['SENT']));
    expect(await rowsOf('lane_fact')).toEqual([]);
    await expect(store.apply([covering(0n)])).rejects.toThrow(/which no root can/);
  });

  it('reach a message that only a snapshot knows of, and keep the snapshot', async () => {
    const snapshot = makeMessage({ number: 1, nonce: '77', executor: null });
    await store.apply([makeSnapshot(snapshot)]);
    const commit = makeRange('Committed', snapshot, 1, 1);
    await store.apply([commit]);
    expect(await stored(snapshot)).toBe(wireRecord({ ...snapshot, status: 'COMMITTED' }).json);
    await store.apply([], [orphan(commit)]);
    expect(await stored(snapshot)).toBe(wireRecord(snapshot).json);
  });
});

describe('the blessing of a root', () => {
  const message = makeMessage({ number: 2, version: '1.5.0' });
  const sent = makeSent(message);
  const commit = makeRange('Committed', message, 1, 3);
  const blessing = makeRootBlessed(message, 1, 3);

  it('reaches the messages of the root, in whichever order they are told, and how often', {
    tags: 'slow',
  }, async () => {
    for (const order of ordersOf([sent, commit, blessing])) {
      for (const repeated of [false, true]) {
        await emptyTables(client);
        for (const fact of order) await store.apply(repeated ? [fact, fact] : [fact]);
        if (repeated) for (const fact of order) await store.apply([fact]);
        expect(await statusOf(message)).toBe('BLESSED');
        expect(await rowsOf('root_blessing')).toHaveLength(1);
        expect((await history(message)).at(-1)).toMatchObject({
          status: statusRank('BLESSED'),
          network: blessing.seen.network,
          block_number: String(blessing.seen.blockNumber),
          transaction_hash: blessing.seen.transactionHash,
        });
      }
    }
    await emptyTables(client);
    await store.apply([blessing, commit, sent]);
    expect(await statusOf(message)).toBe('BLESSED');
  });

  it('is taken back with its block, or with that of the commit, whatever came first', {
    tags: 'slow',
  }, async () => {
    for (const order of ordersOf([sent, commit, blessing])) {
      for (const [orphaned, status] of [
        [blessing, 'COMMITTED'],
        [commit, 'SENT'],
      ] as const) {
        await emptyTables(client);
        for (const fact of order) await store.apply([fact]);
        await store.apply([], [orphan(orphaned)]);
        expect(await statusOf(message)).toBe(status);
        await store.apply([orphaned]);
        expect(await statusOf(message)).toBe('BLESSED');
        await store.apply([], [orphan(commit), orphan(blessing)]);
        expect(await statusOf(message)).toBe('SENT');
        expect(await rowsOf('root_blessing')).toEqual([]);
      }
    }
  });

  it('goes with its commit when the root is removed, until it is committed again', async () => {
    const removal = { ...blessing, kind: 'RootRemoved' as const, seen: seenOn(fuji, 4200) };
    for (const order of ordersOf([sent, commit, removal])) {
      await emptyTables(client);
      for (const fact of order) await store.apply([fact]);
      expect(await statusOf(message)).toBe('SENT');
      await store.apply([makeRange('Committed', message, 1, 3, 4300)]);
      expect(await statusOf(message)).toBe('COMMITTED');
      await store.apply([], [orphan(removal)]);
      expect(await statusOf(message)).toBe('COMMITTED');
    }
  });

  it('may be retracted before it ever met its commit', async () => {
    await store.apply([blessing]);
    await store.apply([], [orphan(blessing)]);
    await store.apply([sent, commit]);
    expect(await statusOf(message)).toBe('COMMITTED');
  });

  it('moves with its commit when a reorganisation moves both to other blocks', async () => {
    await store.apply([sent, commit, blessing]);
    const again = [makeRange('Committed', message, 1, 3, 4050), makeRootBlessed(message, 1, 3, 4150)];
    await store.apply(again, [orphan(commit), orphan(blessing)]);
    expect(await statusOf(message)).toBe('BLESSED');
    const { facts } = (await store.messageHistory(idOf(message))) ?? { facts: [] };
    expect(facts.map((fact) => [fact.kind, fact.kind === 'Snapshot' || fact.seen.blockNumber])).toEqual([
      ['Committed', 4050],
      ['Blessed', 4150],
    ]);
  });

  it('is of one network and of one root only', async () => {
    const elsewhere = { ...blessing, seen: seenOn(sepolia, 4100) };
    await store.apply([sent, commit, elsewhere, makeRootBlessed(message, 1, 4)]);
    expect(await statusOf(message)).toBe('COMMITTED');
  });

  it('does not bless again what its own event has blessed', async () => {
    const blessed = makeRange('Blessed', message, 1, 3, 4001);
    await store.apply([sent, blessed, blessing]);
    const { facts } = (await store.messageHistory(idOf(message))) ?? { facts: [] };
    expect(facts).toEqual([blessed]);
  });

  it('is rejected with a root that is none', async () => {
    await expect(store.apply([{ ...blessing, merkleRoot: '0x12' }])).rejects.toThrow(/malformed root: 0x12/);
  });
});

describe('the destination', () => {
  it('may speak before the source', async () => {
    const message = makeMessage();
    const executed = makeExecuted(message, true);
    expect(await store.apply([executed, makeRange('Committed', message, 1, 1)])).toEqual({
      ...nothing,
      unchanged: 1,
    });
    expect(await stored(message)).toBeUndefined();
    expect(await history()).toEqual([]);
    expect(await store.apply([makeSent(message)])).toEqual({ ...nothing, created: 1 });
    expect(JSON.parse((await stored(message)) ?? '')).toMatchObject({
      status: 'SUCCESS',
      receiptTransactionHash: executed.seen.transactionHash,
    });
  });
});

describe('a snapshot', () => {
  const isSnapshot = async () =>
    (await client.query('select is_snapshot from message')).rows.map((row) => row.is_snapshot);
  const factCount = async () => (await rowsOf('fact')).length;
  const message = makeMessage();

  it('alone is the record, without a row of facts', async () => {
    await store.apply([makeSnapshot(message)]);
    expect(await isSnapshot()).toEqual([true]);
    expect(await factCount()).toBe(0);
    await store.apply([makeSnapshot(makeMessage({ status: 'SUCCESS' })), makeSnapshot(message)]);
    expect(await isSnapshot()).toEqual([true]);
    expect(await factCount()).toBe(0);
    expect(await stored(message)).toBe(wireRecord(makeMessage({ status: 'SUCCESS' })).json);
  });

  it('gets a row of its own once a chain speaks, and is never lost', async () => {
    const rich = makeMessage({ status: 'COMMITTED', executor: { address: message.sender } });
    await store.apply([makeSnapshot(rich)]);
    await store.apply([makeExecuted(message, false)]);
    expect(await isSnapshot()).toEqual([false]);
    expect(await factCount()).toBe(2);
    expect(JSON.parse((await stored(message)) ?? '')).toMatchObject({
      status: 'FAILED',
      executor: rich.executor,
    });

    await store.apply([makeSnapshot(makeMessage({ status: 'BLESSED', executor: rich.executor }))]);
    expect(await factCount()).toBe(2);
    await store.apply([], [orphan(makeExecuted(message, false))]);
    expect(JSON.parse((await stored(message)) ?? '')).toMatchObject({
      status: 'BLESSED',
      executor: rich.executor,
    });
    expect(await isSnapshot()).toEqual([true]);
    expect(await factCount()).toBe(0);
  });

  it('survives when the chain takes back all it had said, though the record does not change', async () => {
    const sent = makeSent(message);
    await store.apply([sent]);
    await store.apply([makeSnapshot(message)]);
    expect(await store.apply([], [orphan(sent)])).toEqual({ ...nothing, unchanged: 1 });
    expect(await stored(message)).toBe(wireRecord(message).json);
    expect(await store.apply([makeSnapshot(message)])).toEqual({ ...nothing, unchanged: 1 });
    await store.apply([makeExecuted(message, true)]);
    expect(await statusOf(message)).toBe('SUCCESS');
    await store.apply([], [orphan(makeExecuted(message, true))]);
    expect(await stored(message)).toBe(wireRecord(message).json);
  });

  it('that a chain confirms without a change is still there when the chain takes it back', async () => {
    const success = makeMessage({ status: 'SUCCESS' });
    const sent = makeSent(message);
    await store.apply([makeSnapshot(success)]);
    expect(await store.apply([sent, makeRange('Committed', message, 1, 1)])).toEqual({
      ...nothing,
      unchanged: 1,
    });
    await store.apply([makeSnapshot(success)]);
    expect(await store.apply([], [orphan(sent), orphan(makeRange('Committed', message, 1, 1))])).toEqual({
      ...nothing,
      unchanged: 1,
    });
    await store.apply([makeFinalized(message)]);
    expect(await stored(message)).toBe(wireRecord(success).json);
  });
});

describe('orphaned blocks', () => {
  const message = makeMessage();
  const sent = makeSent(message);
  const commit = makeRange('Committed', message, 1, 4);
  const success = makeExecuted(message, true);

  it('take their facts back, and the status with them', async () => {
    await store.apply([sent, commit, success]);
    expect(await statusOf(message)).toBe('SUCCESS');
    await store.apply([], [orphan(success)]);
    expect(await statusOf(message)).toBe('COMMITTED');
    await store.apply([], [orphan(commit)]);
    expect(await statusOf(message)).toBe('SENT');
    expect(await rowsOf('lane_fact')).toEqual([]);
    expect(await history(message)).toMatchObject([
      { change: 'created', status: 7 },
      { change: 'updated', status: 2, previous_status: 7 },
      { change: 'updated', status: 0, previous_status: 2 },
    ]);
  });

  it('make a message disappear whose sending they held, and the history says so', async () => {
    const withTokens = makeMessage({ tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] });
    await store.apply([makeSent(withTokens), success]);
    expect(await store.apply([], [orphan(sent)])).toEqual({ ...nothing, removed: 1 });
    expect(await stored(message)).toBeUndefined();
    expect(await rowsOf('message_token')).toEqual([]);
    expect((await store.search(parseSearch([]))).records).toEqual([]);
    expect((await history()).at(-1)).toMatchObject({ change: 'removed', status: 7, previous_status: 7 });
  });

  it('may be followed by inclusion in another block, at once or later', async () => {
    const again = makeMessage({ sendBlockNumber: 1009, sendTimestamp: '2026-01-01T01:00:00.000Z' });
    const sentAgain = makeSent(again);
    await store.apply([sent, success]);
    expect(await store.apply([sentAgain], [orphan(sent)])).toEqual({ ...nothing, updated: 1 });
    expect(JSON.parse((await stored(message)) ?? '')).toMatchObject({
      sendBlockNumber: 1009,
      status: 'SUCCESS',
    });
    await store.apply([], [orphan(sentAgain)]);
    expect(await stored(message)).toBeUndefined();
    expect(await store.apply([sent])).toEqual({ ...nothing, created: 1 });
    expect(await history(message)).toMatchObject([
      { position: '1', change: 'created' },
      { position: '2', change: 'updated' },
      { position: '3', change: 'removed' },
      { position: '4', change: 'created', previous_status: null },
    ]);
  });

  it('are those of one network only', async () => {
    const elsewhere = { network: fuji.chainSelector, blockHash: sent.seen.blockHash };
    await store.apply([sent]);
    expect(await store.apply([], [elsewhere])).toEqual(nothing);
    expect(await statusOf(message)).toBe('SENT');
  });

  it('that nobody has heard of change nothing', async () => {
    await store.apply([sent]);
    const before = await everything();
    expect(await store.apply([], [{ network: sepolia.chainSelector, blockHash: '0xnever' }])).toEqual(
      nothing,
    );
    expect(await everything()).toEqual(before);
  });
});

describe('a batch that fails', () => {
  it('leaves nothing behind, and the store as usable as before', async () => {
    const message = makeMessage({ number: 1 });
    await store.apply([makeSent(message)]);
    const before = await everything();
    const failing: Fact[][] = [
      [
        makeSent(makeMessage({ number: 2 })),
        { ...makeRange('Committed', message, 1, 1), toSequenceNumber: '0' },
      ],
      [makeExecuted(message, true), makeSnapshot({ ...makeMessage({ number: 3 }), sender: 'nobody' })],
      [
        makeExecuted(message, true),
        makeSnapshot({ ...makeMessage({ number: 3 }), sendTimestamp: 'some day' }),
      ],
      [makeRange('Committed', message, 1, 1), { ...makeExecuted(message, true), seen: seenOn(fuji, 0.5) }],
    ];
    for (const facts of failing) {
      await expect(store.apply(facts, [orphan(makeSent(message))])).rejects.toThrow();
      expect(await everything()).toEqual(before);
    }
    // More failures than there are connections: none of them may be stuck in a transaction.
    await Promise.allSettled(Array.from({ length: 6 }, () => store.apply(failing[1] ?? [])));
    expect(await store.apply([makeExecuted(message, true)])).toEqual({ ...nothing, updated: 1 });
  });
});

describe('records', () => {
  const nasty = [
    'back\\slash \\N \\. \\x41 \\\\',
    'tab\t newline\n return\r\n form\f vertical\v backspace\b',
    'nul \u0000 escape \u001b delete \u007f',
    'emoji 😀 👩‍👩‍👧‍👦 lone \ud800 \udfff bom \ufeff separators \u2028\u2029',
    '"quotes" \'single\' {"json":[1]} $1 ;-- %s',
    '\\.',
    '\\N',
  ];

  it('survive byte for byte, whatever characters their texts have', async () => {
    const messages = nasty.map((name, number) =>
      makeMessage({
        number,
        sourceNetworkInfo: { ...sepolia, name, chainId: name, displayName: name },
        tokenAmounts: [{ ...makeToken(sepolia, fuji, 'LINK'), extraData: name }],
      }),
    );
    await store.apply(messages.slice(0, 4).map((message) => makeSent(message)));
    await store.apply(messages.map(makeSnapshot));
    for (const message of messages) {
      expect(await stored(message)).toBe(wireRecord(message).json);
      const query = parseSearch([
        ['messageId', message.messageId],
        ['view', 'summary'],
      ]);
      const summary = Object.fromEntries(summaryKeys.map((key) => [key, message[key]]));
      expect((await store.search(query)).records).toEqual([JSON.stringify(summary)]);
    }
    for (const message of messages) await store.apply([makeExecuted(message, true)]);
    for (const message of messages) {
      const { sourceNetworkInfo, tokenAmounts } = JSON.parse((await stored(message)) ?? '') as Message;
      expect({ sourceNetworkInfo, tokenAmounts }).toEqual({
        sourceNetworkInfo: message.sourceNetworkInfo,
        tokenAmounts: message.tokenAmounts,
      });
    }
  });

  it('survive whatever text fast-check thinks of', { tags: 'slow' }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'binary', minLength: 1 }), { minLength: 1 }),
        async (names) => {
          const messages = names.map((name, number) =>
            makeMessage({ number: 1000 + number, sourceNetworkInfo: { ...sepolia, name } }),
          );
          await emptyTables(client);
          await store.apply(messages.map(makeSnapshot));
          for (const message of messages) expect(await stored(message)).toBe(wireRecord(message).json);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('may be megabytes long', { tags: 'slow' }, async () => {
    const data = `0x${digits('a').repeat(15_000)}`;
    const messages = Array.from({ length: 8 }, (_, number) => makeMessage({ number, data }));
    await store.apply(messages.map((message) => makeSent(message)));
    for (const message of messages) expect(await stored(message)).toBe(wireRecord(message).json);
  });

  it('may come by the thousand', { tags: 'slow' }, async () => {
    const messages = Array.from({ length: 3000 }, (_, number) => makeMessage({ number }));
    expect(await store.apply(messages.map(makeSnapshot))).toEqual({ ...nothing, created: 3000 });
    expect(await store.apply(messages.map(makeSnapshot))).toEqual({ ...nothing, unchanged: 3000 });
    expect((await history()).length).toBe(3000);
  });
});

describe('facts in any order, in any batches, from three writers at once', () => {
  const versions = ['1.5.0', '1.6.0', '2.0.0', null] as const;
  const subjects = Array.from({ length: 20 }, (_, number) =>
    makeSubject(versions[number % versions.length] ?? null, number + 1),
  );
  const lane = subjects[0] as Message;
  const factAbout = fc
    .constantFrom(...subjects)
    .chain((subject) =>
      fc.oneof(
        { arbitrary: chainFactsAbout(subject), weight: 3 },
        { arbitrary: snapshotsOf(subject), weight: 1 },
      ),
    );
  const range = fc
    .tuple(
      fc.constantFrom('Committed' as const, 'Blessed' as const),
      fc.integer({ min: 1, max: 20 }),
      fc.nat(8),
      fc.integer({ min: 4000, max: 4010 }),
    )
    .map(([kind, from, length, block]) => makeRange(kind, lane, from, from + length, block));
  /** Some of them of roots that are committed, more than once perhaps, or never. */
  const blessing = fc
    .tuple(fc.integer({ min: 1, max: 20 }), fc.nat(8), fc.integer({ min: 4100, max: 4110 }))
    .map(([from, length, block]) => makeRootBlessed(lane, from, from + length, block));
  const blessedRoot = fc
    .tuple(fc.integer({ min: 1, max: 20 }), fc.nat(8), fc.integer({ min: 4000, max: 4010 }))
    .chain(([from, length, block]) =>
      fc.subarray<Fact>([
        makeRange('Committed', lane, from, from + length, block),
        makeRange('Committed', lane, from, from + length, block + 1),
        makeRootBlessed(lane, from, from + length, block + 100),
      ]),
    );
  const someFacts = fc
    .array(
      fc.oneof(
        { arbitrary: factAbout.map((fact) => [fact]), weight: 18 },
        { arbitrary: range.map((fact) => [fact]), weight: 2 },
        { arbitrary: blessing.map((fact) => [fact]), weight: 1 },
        { arbitrary: blessedRoot, weight: 1 },
      ),
      { minLength: 20, maxLength: 90 },
    )
    .map((groups) => groups.flat());
  const batches = someFacts.chain((facts) =>
    fc.record({
      facts: fc.constant(facts),
      order: fc.shuffledSubarray(facts, { minLength: facts.length }),
      sizes: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 5, maxLength: 5 }),
      orphanedBlocks: fc.subarray(facts.filter((fact) => fact.kind !== 'Snapshot').slice(0, 12)),
    }),
  );

  const covers = (fact: Fact, message: Message) =>
    isRangeFact(fact)
      ? BigInt(fact.fromSequenceNumber) <= BigInt(message.sequenceNumber) &&
        BigInt(message.sequenceNumber) <= BigInt(fact.toSequenceNumber)
      : isMessageFact(fact) && factMessageId(fact) === message.messageId;

  /** With what blessings of roots say about the runs that were committed under them. */
  const withBlessedRuns = (facts: readonly Fact[]): readonly Fact[] => [
    ...facts,
    ...facts.flatMap((fact) =>
      facts.flatMap((commit) =>
        fact.kind === 'RootBlessed' && commit.kind === 'Committed' && commit.merkleRoot === fact.merkleRoot
          ? [{ ...commit, kind: 'Blessed' as const, seen: fact.seen }]
          : [],
      ),
    ),
  ];

  /** The records that all these facts amount to, by id. */
  const folded = (facts: readonly Fact[]) =>
    new Map(
      subjects.flatMap((subject) => {
        const message = foldFacts(withBlessedRuns(facts).filter((fact) => covers(fact, subject)));
        return message ? [[subject.messageId, wireRecord(message).json] as const] : [];
      }),
    );

  async function storedRecords(): Promise<Map<string, string>> {
    const { rows } = await client.query(
      `select '0x' || encode(message_id, 'hex') as id, record from message`,
    );
    return new Map(rows.map(({ id, record }) => [id, record]));
  }

  /** No constraint of the schema holds it: the writer reads the facts of a message before it adds to them. */
  async function expectNoFactTwice(): Promise<void> {
    const { rows } = await client.query(
      'select count(*) - count(distinct (message_id, fact_id)) as repeated from fact',
    );
    expect(rows[0].repeated).toBe('0');
  }

  async function expectSoundHistory(): Promise<void> {
    const rows = await history();
    expect(rows.map(({ position }) => Number(position))).toEqual(rows.map((_, i) => i + 1));
    const statusById = new Map<string, number>();
    for (const { id, change, status, previous_status } of rows) {
      expect(previous_status).toBe(statusById.get(id) ?? null);
      expect(change).toBe(change === 'removed' ? 'removed' : statusById.has(id) ? 'updated' : 'created');
      if (change === 'removed') statusById.delete(id);
      else statusById.set(id, status);
    }
    const { rows: messages } = await client.query(
      `select encode(message_id, 'hex') as id, status, store.position as latest
       from message, store`,
    );
    expect(new Map(messages.map(({ id, status }) => [id, status]))).toEqual(statusById);
    if (messages[0]) expect(messages[0].latest).toBe(String(rows.length));
  }

  it('end in exactly the fold of all, and again when blocks are orphaned', {
    tags: 'slow',
  }, async () => {
    const writers = [
      store,
      await openStore({ place: { url: store.url } }),
      await openStore({ place: { url: store.url } }),
    ];
    try {
      await fc.assert(
        fc.asyncProperty(batches, async ({ facts, order, sizes, orphanedBlocks }) => {
          await emptyTables(client);
          const queue = [...order];
          let turn = 0;
          await Promise.all(
            writers.map(async (writer) => {
              while (queue.length > 0) await writer.apply(queue.splice(0, sizes[turn++ % sizes.length]));
            }),
          );
          expect(await storedRecords()).toEqual(folded(facts));
          await expectSoundHistory();
          await expectNoFactTwice();

          const orphans = orphanedBlocks.map((fact) => orphan(fact as Exclude<Fact, { kind: 'Snapshot' }>));
          const remaining = facts.filter(
            (fact) =>
              fact.kind === 'Snapshot' ||
              !orphans.some(
                ({ network, blockHash }) =>
                  fact.seen.network === network && fact.seen.blockHash === blockHash,
              ),
          );
          await store.apply([], orphans);
          expect(await storedRecords()).toEqual(folded(remaining));
          // Whatever is told now must meet all that was known: a snapshot lost before would show.
          const finality = subjects.map((subject) => makeFinalized(subject, 3009));
          await store.apply(finality);
          expect(await storedRecords()).toEqual(folded([...remaining, ...finality]));
          await expectSoundHistory();
          // The orphaned blocks come back, and all that was known is told once more, by two writers.
          await Promise.all(writers.slice(0, 2).map((writer) => writer.apply(order)));
          expect(await storedRecords()).toEqual(folded([...facts, ...finality]));
          await expectNoFactTwice();
        }),
        { numRuns: 30 },
      );
    } finally {
      await Promise.all(writers.slice(1).map((writer) => writer.close()));
    }
  });
});
