/** A cursor is something that only a server on the same database can have made, and it can ask for no more than a request. */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { QTerm } from '../../src/domain/filters/parameter-values.ts';
import type { Filters } from '../../src/domain/filters/query.ts';
import { openStore } from '../../src/store/store.ts';
import {
  type Answer,
  expectError,
  type RunningServer,
  type SearchBody,
  serverForAll,
  serveStore,
} from '../api/running-server.ts';
import { createTestDatabase } from '../database.ts';
import { digits, evmAddress, hashOf, makeMessage, makeSnapshot } from '../fixtures.ts';
import { queryOnce } from '../postgres.ts';
import { heavyTerms, withMac, withPublicChecksum } from './forged-cursor.ts';

const messages = Array.from({ length: 9 }, (_, index) => makeMessage({ number: index + 1 }));
const newestFirst = messages.map(({ messageId }) => messageId).reverse();
const after = { sentAt: Date.UTC(2027, 0, 1), messageId: digits('last') };
const payloadOf = (filters: unknown) =>
  JSON.stringify({ f: filters, v: 'full', k: [after.sentAt, after.messageId] });
const empty: QTerm = { addresses: [], hashes: [], messageId: null };

const server = serverForAll(messages);

type Asked = Pick<RunningServer, 'ask'>;
const pageOf = async (from: Asked, limit: number) =>
  (await from.ask(`/v2/messages?limit=${limit}`)).json<SearchBody>();
const askBehind = (from: Asked, cursor: string | null): Promise<Answer> =>
  from.ask(`/v2/messages?limit=1000&cursor=${cursor}`);
const idsBehind = async (from: Asked, cursor: string | null) =>
  (await askBehind(from, cursor)).json<SearchBody>().data.map(({ messageId }) => messageId);

describe('a forged cursor is rejected before the database is searched', () => {
  const filters: readonly (readonly [what: string, filters: unknown])[] = [
    ['nothing unusual', {}],
    ['ten terms with six meanings each', { q: heavyTerms(10, 6) }],
    ['an empty term in the second place', { q: [...heavyTerms(1, 1), empty] }],
  ];
  const forgers: readonly (readonly [how: string, forge: (payload: string) => string])[] = [
    ['with the public checksum of the version before', withPublicChecksum],
    ['with a guessed MAC', (payload) => withMac(randomBytes(16), payload)],
    ['with a MAC of zeros', (payload) => withMac(Buffer.alloc(16), payload)],
    ['with the MAC of another cursor', (payload) => withMac(macOf(honest), payload)],
  ];
  let honest: string;
  const macOf = (cursor: string) => Buffer.from(cursor, 'base64url').subarray(1, 17);
  beforeAll(async () => {
    honest = (await pageOf(server, 3)).pagination.cursor ?? '';
    expect(await idsBehind(server, honest)).toEqual(newestFirst.slice(3));
  });

  test.each(
    filters.flatMap(([what, held]) => forgers.map(([how, forge]) => [how, what, held, forge] as const)),
  )('%s, holding %s', async (_how, _what, held, forge) => {
    const reads: string[] = [];
    onTestFinished(server.store.observeReads((label) => reads.push(label)));
    const answer = await askBehind(server, forge(payloadOf(held)));
    const body = expectError(answer, 400, 'INVALID_CURSOR');
    expect(body.details[0]?.problem).toMatch(/another version|another database/);
    expect(reads.filter((label) => label === 'search')).toEqual([]);
  });
});

describe('a cursor with a right MAC is held to the bounds of a request', () => {
  const beyond: readonly (readonly [what: string, filters: Filters])[] = [
    ['ten terms with six meanings each', { q: heavyTerms(10, 6) }],
    ['eleven terms', { q: heavyTerms(11, 1) }],
    ['an empty term in the first place', { q: [empty] }],
    ['an empty term in the second place', { q: [...heavyTerms(1, 1), empty] }],
    ['six senders', { sender: heavyTerms(1, 6)[0]?.addresses ?? [] }],
    ['101 message ids', { messageId: Array.from({ length: 101 }, (_, n) => digits(n)) }],
    ['a range that is empty', { sentAfter: 2, sentBefore: 1 }],
    ['a selector above 64 bits', { sourceChainSelector: '99999999999999999999' }],
  ];
  test.each(beyond)('%s: 400', async (_what, filters) => {
    const cursor = server.store.cursors.encode({ filters, view: 'full', after });
    expectError(await askBehind(server, cursor), 400, 'INVALID_CURSOR');
  });

  test('what a request may ask for at most is taken, by a request and by a cursor', async () => {
    const q = Array.from({ length: 10 }, (_, n) => hashOf('term', n)).join(',');
    expect((await server.ask(`/v2/messages?q=${q}&sender=${evmAddress('a')}`)).status).toBe(200);
    const filters = { q: heavyTerms(10, 1), sender: [digits('a').slice(0, 40)] };
    const cursor = server.store.cursors.encode({ filters, view: 'full', after });
    expect((await askBehind(server, cursor)).status).toBe(200);
  });
});

describe('the key of cursors is the database’s', () => {
  /** Another server with a store of its own. */
  async function serve(url: string): Promise<RunningServer> {
    const another = await serveStore({ ...(await openStore({ place: { url } })), url });
    onTestFinished(() => another.close());
    return another;
  }

  test('a cursor is taken by another server on the database, and by one that starts later', async () => {
    const page = await pageOf(server, 4);
    const another = await serve(server.store.url);
    expect(await idsBehind(another, page.pagination.cursor)).toEqual(newestFirst.slice(4));
    const back = await pageOf(another, 5);
    expect(await idsBehind(server, back.pagination.cursor)).toEqual(newestFirst.slice(5));
    // The same search has the same cursor everywhere: answers and their entity tags do not depend on the server.
    expect(await pageOf(another, 4)).toEqual(page);
  });

  test('a server on another database rejects it, and says so', async () => {
    // From the template of the tests it would have the same key, as a restored backup has.
    const database = await createTestDatabase({ empty: true });
    onTestFinished(() => database.drop());
    const elsewhere = await serve(database.url);
    await elsewhere.store.apply(messages.map(makeSnapshot));
    const page = await pageOf(server, 4);
    const body = expectError(await askBehind(elsewhere, page.pagination.cursor), 400, 'INVALID_CURSOR');
    expect(body.message).toContain('issued by a server with another database');
    const own = await pageOf(elsewhere, 4);
    expect(await idsBehind(elsewhere, own.pagination.cursor)).toEqual(newestFirst.slice(4));
  });

  test('without its row no store opens, and the words say what to do', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const { url } = database;
    await queryOnce(url, 'delete from cursor_key');
    await expect(openStore({ place: { url } })).rejects.toThrow('The table cursor_key is empty');
    await queryOnce(url, 'insert into cursor_key default values');
    expect(await queryOnce(url, 'select octet_length(key) as bytes from cursor_key')).toEqual([
      { bytes: 32 },
    ]);
    await (await openStore({ place: { url } })).close();
  });
});
