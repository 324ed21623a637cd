import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { type FilterName, filterNames } from '../../../src/domain/filters/filter-table.ts';
import { compareNewestFirst, matches } from '../../../src/domain/filters/matches.ts';
import type { View } from '../../../src/domain/filters/query.ts';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { type Message, type NetworkInfo, summaryKeys, wireRecord } from '../../../src/domain/message.ts';
import type { Store } from '../../../src/store/store.ts';
import { openTestStore } from '../../database.ts';
import {
  canonical,
  evmAddress,
  fuji,
  hashOf,
  makeExecuted,
  makeMessage,
  makeRange,
  makeSent,
  makeSnapshot,
  makeToken,
  sepolia,
  solanaDevnet,
  svmAddress,
  svmSignature,
} from '../../fixtures.ts';

const specFilters: readonly FilterName[] = filterNames.slice(0, 6);

const networks: readonly NetworkInfo[] = [sepolia, fuji, solanaDevnet];
const accountOn = (network: NetworkInfo, number: number) =>
  network.chainFamily === 'SVM' ? svmAddress('account', number) : evmAddress('account', number);
const transactionOn = (network: NetworkInfo, kind: string, number: number) =>
  network.chainFamily === 'SVM' ? svmSignature(kind, number) : hashOf(kind, number);

const timeOf = (step: number) => new Date(Date.UTC(2026, 0, 1) + step * 1500).toISOString();

/** Few accounts, networks, tokens, transactions and moments, so that nearly everything is shared. */
const someMessage = fc
  .record({
    source: fc.constantFrom(...networks),
    dest: fc.constantFrom(...networks),
    sender: fc.nat(3),
    receiver: fc.nat(3),
    origin: fc.nat(3),
    sentAt: fc.nat(20),
    sendTransaction: fc.nat(30),
    receiptTransaction: fc.nat(30),
    tokens: fc.array(fc.constantFrom('LINK', 'USDC', 'LINK', 'WETH'), { maxLength: 3 }),
    status: fc.constantFrom(...statuses),
    ready: fc.boolean(),
    displayName: fc.constantFrom('plain', 'mit 😀', null),
  })
  .map((parts) => (number: number) => {
    const { source, dest } = parts;
    return makeMessage({
      number,
      sourceNetworkInfo: { ...source, displayName: parts.displayName },
      destNetworkInfo: dest,
      sender: accountOn(source, parts.sender),
      receiver: accountOn(dest, parts.receiver),
      origin: accountOn(source, parts.origin),
      sendTimestamp: timeOf(parts.sentAt),
      sendTransactionHash: transactionOn(source, 'send', parts.sendTransaction),
      tokenAmounts: parts.tokens.map((symbol) => makeToken(source, dest, symbol)),
      status: parts.status,
      readyForManualExecution: parts.ready,
      ...(statuses.indexOf(parts.status) >= 6 && {
        receiptTransactionHash: transactionOn(dest, 'receipt', parts.receiptTransaction),
      }),
    });
  });

const all: Message[] = fc
  .sample(someMessage, { numRuns: 400, seed: 400 })
  .map((make, number) => make(number))
  .sort(compareNewestFirst);

let store: Store & { url: string };
beforeAll(async () => {
  store = await openTestStore();
  await store.apply(all.map(makeSnapshot));
});
afterAll(() => store.close());

// ---- Queries

/** Other ways to write an EVM address or a hash; SVM's have one only. */
const respelled = (text: string): fc.Arbitrary<string> => {
  if (!text.startsWith('0x')) return fc.constant(text);
  const body = text.slice(2);
  const spellings = [text, text.toLowerCase(), `0x${body.toUpperCase()}`, `0X${body}`];
  if (body.length === 40) spellings.push(`0x${'0'.repeat(24)}${body.toLowerCase()}`);
  return fc.constantFrom(...spellings);
};

interface Parameter {
  readonly name: FilterName;
  /** What is sent. */
  readonly text: string;
  /** The same in its plainest spelling. */
  readonly plain: string;
}

const spelledParameter = (name: FilterName, plain: string): fc.Arbitrary<Parameter> =>
  respelled(plain).map((text) => ({ name, plain, text }));
const listed = (name: FilterName, items: fc.Arbitrary<string[]>): fc.Arbitrary<Parameter> =>
  items
    .chain((plain) => fc.tuple(fc.constant(plain), fc.tuple(...plain.map(respelled))))
    .map(([plain, texts]) => ({ name, plain: plain.join(','), text: texts.join(',') }));

const strangers = [evmAddress('stranger'), svmAddress('stranger'), '0x1'];

/** A parameter that `target` satisfies, or, now and then, one that another message or none does. */
function parameter(name: FilterName, target: Message): fc.Arbitrary<Parameter> {
  const other = fc.constantFrom(...all);
  const wanted = fc.oneof({ arbitrary: fc.constant(target), weight: 6 }, { arbitrary: other, weight: 1 });
  const spelled = (value: (message: Message) => string | null | undefined) =>
    fc
      .oneof(
        { arbitrary: wanted.map((message) => value(message) ?? strangers[0] ?? ''), weight: 12 },
        { arbitrary: fc.constantFrom(...strangers), weight: 1 },
      )
      .chain((text) => spelledParameter(name, text));
  const exact = (value: (message: Message) => string) =>
    wanted.map((message) => ({ name, plain: value(message), text: value(message) }));
  const transaction = (value: (message: Message) => string | null) =>
    wanted.chain((message) => spelledParameter(name, value(message) ?? hashOf('stranger')));
  const shifted = (direction: 1 | -1) =>
    fc.tuple(wanted, fc.constantFrom(0, 1, 1500, 9000)).map(([message, distance]) => {
      const time = Date.parse(message.sendTimestamp) + direction * distance;
      const text = new Date(Math.max(time, 0)).toISOString();
      return { name, plain: text, text: text.replace('Z', '+00:00') };
    });

  switch (name) {
    case 'sender':
      return spelled((message) => message.sender);
    case 'receiver':
      return spelled((message) => message.receiver);
    case 'address':
      return wanted.chain((message) =>
        fc
          .constantFrom(message.sender, message.receiver, message.origin)
          .chain((text) => spelledParameter(name, text)),
      );
    case 'sourceTokenAddress':
      return spelled((message) => message.tokenAmounts[0]?.sourceTokenAddress);
    case 'chainSelector':
      return wanted.chain(({ sourceNetworkInfo, destNetworkInfo }) =>
        fc
          .constantFrom(sourceNetworkInfo.chainSelector, destNetworkInfo.chainSelector)
          .map((text) => ({ name, plain: text, text })),
      );
    case 'sourceChainSelector':
      return exact((message) => message.sourceNetworkInfo.chainSelector);
    case 'destChainSelector':
      return exact((message) => message.destNetworkInfo.chainSelector);
    case 'readyForManualExecOnly':
      return fc.constantFrom('true', 'false').map((text) => ({ name, plain: text, text }));
    case 'sourceTransactionHash':
      return transaction((message) => message.sendTransactionHash);
    case 'destTransactionHash':
      return transaction((message) => message.receiptTransactionHash);
    case 'status':
      return fc
        .tuple(wanted, fc.subarray([...statuses], { maxLength: 3 }))
        .map(([message, more]) => [...new Set([message.status, ...more])].join(','))
        .map((text) => ({ name, plain: text, text }));
    case 'sentAfter':
      return shifted(-1);
    case 'sentBefore':
      return shifted(1);
    case 'messageId':
      return listed(
        name,
        fc
          .tuple(wanted, fc.array(other, { maxLength: 30 }))
          .map(([message, more]) => [...new Set([message, ...more].map(({ messageId }) => messageId))]),
      );
    case 'q': {
      const term = (message: Message) =>
        fc.constantFrom(
          message.sender,
          message.receiver,
          message.sendTransactionHash,
          message.receiptTransactionHash ?? message.sender,
          message.messageId,
          ...message.tokenAmounts.flatMap((token) => [
            token.sourceTokenAddress,
            token.destTokenAddress,
            token.sourcePoolAddress,
          ]),
        );
      return wanted.chain((message) => listed(name, fc.array(term(message), { minLength: 1, maxLength: 3 })));
    }
  }
}

interface Walk {
  readonly parameters: readonly Parameter[];
  readonly view: View;
  /** Page sizes, used in turn. */
  readonly limits: readonly number[];
}

const walksWith = (names: readonly FilterName[]): fc.Arbitrary<Walk> =>
  fc.constantFrom(...all).chain((target) =>
    fc.record({
      parameters: fc.tuple(...names.map((name) => parameter(name, target))),
      view: fc.constantFrom('full' as const, 'summary' as const),
      limits: fc.array(fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 1000 })), {
        minLength: 1,
        maxLength: 4,
      }),
    }),
  );

const anyWalk = fc.subarray([...filterNames], { minLength: 1, maxLength: 6 }).chain(walksWith);

const recordOf = (message: Message, view: View): string =>
  view === 'full'
    ? wireRecord(message).json
    : JSON.stringify(Object.fromEntries(summaryKeys.map((key) => [key, message[key]])));

const isPossible = ({ parameters }: Walk) => {
  const time = (name: FilterName) => Date.parse(parameters.find((one) => one.name === name)?.plain ?? '');
  return !(time('sentAfter') >= time('sentBefore'));
};

/** All pages, from the first to the last, by following cursors. */
async function records({ parameters, view, limits }: Walk): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | null = null;
  for (let page = 0; ; page++) {
    const limit = limits[page % limits.length] ?? 20;
    const raw: [string, string][] =
      cursor === null
        ? [...parameters.map(({ name, text }): [string, string] => [name, text]), ['view', view]]
        : [['cursor', cursor]];
    const answer = await store.search(parseSearch([...raw, ['limit', String(limit)]], store.cursors));
    expect(answer.records.length).toBeLessThanOrEqual(limit);
    if (answer.cursor !== null) expect(answer.records.length).toBe(limit);
    found.push(...answer.records);
    if (answer.cursor === null) return found;
    cursor = answer.cursor;
  }
}

const satisfying = new Map<string, ReadonlySet<Message>>();

/** The messages that the reference finds for one parameter alone. All parameters must hold, so sets intersect. */
function foundBy({ name, plain }: Parameter): ReadonlySet<Message> {
  const key = `${name}=${plain}`;
  const known = satisfying.get(key);
  if (known) return known;
  const { filters } = parseSearch([[name, plain]]);
  const found = new Set(all.filter((message) => matches(filters, message)));
  satisfying.set(key, found);
  return found;
}

const expected = ({ parameters }: Walk): Message[] =>
  all.filter((message) => parameters.every((one) => foundBy(one).has(message)));

async function check(walk: Walk): Promise<number> {
  if (!isPossible(walk)) return 0;
  const shouldBe = expected(walk);
  // Four hundred pages of one row each prove no more than twenty.
  const shortest = Math.ceil(shouldBe.length / 20);
  const paced = { ...walk, limits: walk.limits.map((limit) => Math.max(limit, shortest)) };
  expectRecords(await records(paced), shouldBe, paced);
  return shouldBe.length;
}

function expectRecords(found: readonly string[], shouldBe: readonly Message[], walk: Walk): void {
  const wanted = shouldBe.map((message) => recordOf(message, walk.view));
  if (found.length === wanted.length && found.every((record, i) => record === wanted[i])) return;
  const query = `${walk.parameters.map(({ name, text }) => `${name}=${text}`).join('&')} ${walk.view} ${walk.limits}`;
  const shortIds = (texts: readonly string[]) => texts.map((text) => JSON.parse(text).messageId.slice(0, 10));
  expect(shortIds(found), query).toEqual(shortIds(wanted));
  expect(found, query).toEqual(wanted);
}

it('means by several parameters what each of them means alone, all together', () => {
  for (const walk of fc.sample(anyWalk, 100).filter(isPossible)) {
    const { filters } = parseSearch(walk.parameters.map(({ name, plain }) => [name, plain]));
    expect(all.filter((message) => matches(filters, message))).toEqual(expected(walk));
  }
});

describe('a walk through all pages is exactly the reference’s answer', () => {
  it('without filters, in either view, with pages of every size', { tags: 'slow' }, async () => {
    for (const limit of [1, 2, 3, 7, 20, 199, 200, 399, 400, 401, 1000]) {
      for (const view of ['full', 'summary'] as const) {
        const walk = { parameters: [], view, limits: [limit] };
        expectRecords(await records(walk), all, walk);
      }
    }
  });

  test.each(filterNames)('for %s alone', async (name) => {
    let found = 0;
    for (const walk of fc.sample(walksWith([name]), 30)) found += await check(walk);
    expect(found).toBeGreaterThan(0);
  });

  it('for all 64 combinations of the spec’s filters', { tags: 'slow' }, async () => {
    const counts = { walks: 0, rows: 0, combinationsThatFind: 0 };
    for (let mask = 0; mask < 64; mask++) {
      const names = specFilters.filter((_, bit) => mask & (1 << bit));
      const walks = fc.sample(walksWith(names), 24);
      const found = await Promise.all(walks.map(check));
      counts.walks += walks.length;
      counts.rows += found.reduce((sum, count) => sum + count, 0);
      if (found.some((count) => count > 0)) counts.combinationsThatFind++;
    }
    expect(counts).toMatchObject({ walks: 1536, combinationsThatFind: 64 });
    expect(counts.rows).toBeGreaterThan(5_000);
  });

  it('for random combinations of all fourteen filters', { tags: 'slow' }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyWalk, { minLength: 10, maxLength: 10 }), async (walks) => {
        await Promise.all(walks.map(check));
      }),
      { numRuns: 130 },
    );
  });

  it('for every pair of filters', async () => {
    for (const one of filterNames) {
      for (const other of filterNames.slice(filterNames.indexOf(one) + 1))
        await Promise.all(fc.sample(walksWith([one, other]), 5).map(check));
    }
  });
});

describe('a message with the same token twice', () => {
  it('is found once, and does not hide the next', async () => {
    const own = await openTestStore();
    try {
      const token = makeToken(sepolia, fuji, 'TWICE');
      const messages = Array.from({ length: 6 }, (_, number) =>
        makeMessage({ number, tokenAmounts: [token, token, token, token] }),
      );
      await own.apply(messages.map(makeSnapshot));
      for (const name of ['sourceTokenAddress', 'q']) {
        const ids: string[] = [];
        let query = parseSearch([
          [name, token.sourceTokenAddress],
          ['limit', '2'],
        ]);
        for (let pages = 1; ; pages++) {
          const page = await own.search(query);
          ids.push(...page.records.map((record) => JSON.parse(record).messageId));
          if (page.cursor === null) {
            expect(pages).toBe(3);
            break;
          }
          query = parseSearch(
            [
              ['cursor', page.cursor],
              ['limit', '2'],
            ],
            own.cursors,
          );
        }
        expect(ids).toEqual(messages.map(({ messageId }) => messageId).reverse());
      }
    } finally {
      await own.close();
    }
  });
});

describe('an address in the wrong letter case', () => {
  it('is another account, or none, where case matters', async () => {
    const sender = svmAddress('account', 1);
    const count = async (text: string) =>
      (
        await store.search(
          parseSearch([
            ['sender', text],
            ['limit', '1000'],
          ]),
        )
      ).records.length;
    expect(await count(sender)).toBeGreaterThan(0);
    for (let i = 0; i < sender.length; i++) {
      const letter = sender[i] ?? '';
      const flipped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
      if (flipped === letter || !/[1-9A-HJ-NP-Za-km-z]/.test(flipped)) continue;
      const text = sender.slice(0, i) + flipped + sender.slice(i + 1);
      expect(await count(text)).toBe(0);
    }
  });
});

describe('a page walk while facts arrive', () => {
  it('sees every message that was there at its start exactly once, in order', async () => {
    const own = await openTestStore();
    try {
      // Many at the same moment, so that pages end in the middle of one.
      const present = Array.from({ length: 300 }, (_, number) =>
        makeMessage({ number, sendTimestamp: timeOf(number % 6), sequenceNumber: String(number + 1) }),
      );
      await own.apply(present.map((message) => makeSent(message)));

      let walking = true;
      let written = 0;
      const writer = (async () => {
        for (let round = 0; walking; round++) {
          const fresh = Array.from({ length: 5 }, (_, i) =>
            makeMessage({
              number: 10_000 + round * 5 + i,
              sendTimestamp: timeOf((round + i) % 9),
              sequenceNumber: '100000',
            }),
          );
          const [one, other] = [present[(round * 7) % 300], present[(round * 11) % 300]];
          if (!one || !other) throw new Error('No such message');
          await own.apply(
            [
              ...fresh.map((message) => makeSent(message)),
              makeExecuted(one, round % 2 === 0, 5000 + round),
              makeRange('Committed', other, (round * 3) % 300, (round * 3 + 20) % 300 || 300, 4000 + round),
            ].filter(
              (fact) =>
                fact.kind !== 'Committed' || Number(fact.fromSequenceNumber) <= Number(fact.toSequenceNumber),
            ),
          );
          written++;
        }
      })();
      let writerFailed = false;
      writer.catch(() => {
        writerFailed = true;
      });

      const seen: Message[] = [];
      let query = parseSearch([['limit', '4']]);
      for (let pages = 1; ; pages++) {
        const page = await own.search(query);
        seen.push(...page.records.map((record) => JSON.parse(record) as Message));
        if (page.cursor === null) break;
        // On a busy machine the walk must not be over before the writer has begun.
        const before = written;
        while (pages % 10 === 0 && written === before && !writerFailed) await delay(1);
        query = parseSearch(
          [
            ['cursor', page.cursor],
            ['limit', '4'],
          ],
          own.cursors,
        );
      }
      walking = false;
      await writer;

      const ids = seen.map(({ messageId }) => messageId);
      expect(written).toBeGreaterThan(5);
      expect(new Set(ids).size).toBe(ids.length);
      expect([...seen].sort(compareNewestFirst).map(({ messageId }) => messageId)).toEqual(ids);
      const seenIds = new Set(ids);
      expect(present.filter(({ messageId }) => !seenIds.has(messageId))).toEqual([]);
      for (const message of seen) expect(canonical(message)).toEqual(message);
    } finally {
      await own.close();
    }
  });
});

describe('a message by its id', () => {
  it('is found whole, with a digest that changes exactly when the record does', async () => {
    const own = await openTestStore();
    try {
      const message = makeMessage();
      const id = message.messageId.slice(2);
      expect(await own.findMessage(id)).toBeUndefined();
      await own.apply([makeSent(message)]);
      const before = await own.findMessage(id);
      expect(before?.record).toBe(wireRecord(message).json);
      await own.apply([makeSent(message)]);
      expect(await own.findMessage(id)).toEqual(before);
      await own.apply([makeExecuted(message, true)]);
      expect((await own.findMessage(id))?.digest).not.toBe(before?.digest);
    } finally {
      await own.close();
    }
  });
});

describe('messages by the beginning of their ids', () => {
  it('are those that begin so, in the order of their ids, up to a limit', async () => {
    const ids = all.map(({ messageId }) => messageId.slice(2)).sort();
    for (const digits of ['', '0', 'f', '0a', 'abc', ids[7]?.slice(0, 9) ?? '', ids[8] ?? '']) {
      for (const limit of [1, 3, 1000]) {
        const found = await store.findMessagesByPrefix(digits, limit);
        const wanted = ids.filter((id) => id.startsWith(digits)).slice(0, limit);
        expect(found.map((record) => JSON.parse(record).messageId.slice(2))).toEqual(wanted);
      }
    }
  });

  it('are counted', async () => {
    expect(await store.countMessages()).toEqual({ count: all.length, isExact: true });
  });
});
