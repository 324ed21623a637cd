/** A cursor is something that only a server on the same database can have made, and it can ask for no more than a request. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { QTerm } from '../../src/domain/filters/parameter-values.ts';
import type { Filters } from '../../src/domain/filters/query.ts';
import { openStore } from '../../src/store/store.ts';
import {
  expectError,
  type RunningServer,
  type SearchBody,
  serveStore,
  startServer,
} from '../api/running-server.ts';
import { createTestDatabase } from '../database.ts';
import { digits, evmAddress, hashOf, makeMessage, makeSnapshot } from '../fixtures.ts';
import { heavyTerms, withMac, withPublicChecksum } from './forged-cursor.ts';

const messages = Array.from({ length: 9 }, (_, index) => makeMessage({ number: index + 1 }));
const newestFirst = messages.map(({ messageId }) => messageId).reverse();
const after = { sentAt: Date.UTC(2027, 0, 1), messageId: digits('last') };
const payloadOf = (filters: unknown) =>
  JSON.stringify({ f: filters, v: 'full', k: [after.sentAt, after.messageId] });
const empty: QTerm = { addresses: [], hashes: [], messageId: null };

let server: RunningServer;
beforeAll(async () => {
  server = await startServer(messages);
});
afterAll(() => server.close());

const idsBehind = async (from: Pick<RunningServer, 'ask'>, cursor: string | null) =>
  (await from.ask(`/v2/messages?limit=1000&cursor=${cursor}`))
    .json<SearchBody>()
    .data.map(({ messageId }) => messageId);

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
    const page = (await server.ask('/v2/messages?limit=3')).json<SearchBody>();
    honest = page.pagination.cursor ?? '';
    expect(await idsBehind(server, honest)).toEqual(newestFirst.slice(3));
  });

  test.each(
    filters.flatMap(([what, held]) => forgers.map(([how, forge]) => [how, what, held, forge] as const)),
  )('%s, holding %s', async (_how, _what, held, forge) => {
    const reads: string[] = [];
    const stop = server.store.observeReads((label) => reads.push(label));
    try {
      const answer = await server.ask(`/v2/messages?cursor=${forge(payloadOf(held))}`);
      const body = expectError(answer, 400, 'INVALID_CURSOR');
      expect(body.details[0]?.problem).toMatch(/another version|another database/);
      expect(reads.filter((label) => label === 'search')).toEqual([]);
    } finally {
      stop();
    }
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
    expectError(await server.ask(`/v2/messages?cursor=${cursor}`), 400, 'INVALID_CURSOR');
  });

  test('what a request may ask for at most is taken, by a request and by a cursor', async () => {
    const text = {
      q: Array.from({ length: 10 }, (_, n) => hashOf('term', n)).join(','),
      sender: evmAddress('a'),
    };
    expect((await server.ask(`/v2/messages?${new URLSearchParams(text)}`)).status).toBe(200);
    const filters = { q: heavyTerms(10, 1), sender: [digits('a').slice(0, 40)] };
    const cursor = server.store.cursors.encode({ filters, view: 'full', after });
    expect((await server.ask(`/v2/messages?cursor=${cursor}`)).status).toBe(200);
  });
});

describe('the key of cursors is the database’s', () => {
  /** Another server with a store of its own on the same database. */
  async function serveAgain(): Promise<RunningServer> {
    const store = await openStore({ place: { url: server.store.url } });
    const another = await serveStore({ ...store, url: server.store.url });
    onTestFinished(() => another.close());
    return another;
  }

  test('a cursor is taken by another server on the database, and by one that starts later', async () => {
    const page = (await server.ask('/v2/messages?limit=4')).json<SearchBody>();
    const another = await serveAgain();
    expect(await idsBehind(another, page.pagination.cursor)).toEqual(newestFirst.slice(4));
    const back = (await another.ask('/v2/messages?limit=5')).json<SearchBody>();
    expect(await idsBehind(server, back.pagination.cursor)).toEqual(newestFirst.slice(5));
    // The same search has the same cursor everywhere: answers and their entity tags do not depend on the server.
    expect((await another.ask('/v2/messages?limit=4')).json<SearchBody>()).toEqual(page);
  });

  test('a server on another database rejects it, and says so', async () => {
    // From the template of the tests it would have the same key, as a restored backup has.
    const database = await createTestDatabase({ empty: true });
    const store = await openStore({ place: { url: database.url } });
    await store.apply(messages.map(makeSnapshot));
    const elsewhere = await serveStore({ ...store, url: database.url });
    onTestFinished(async () => {
      await elsewhere.close();
      await database.drop();
    });
    const page = (await server.ask('/v2/messages?limit=4')).json<SearchBody>();
    const answer = await elsewhere.ask(`/v2/messages?cursor=${page.pagination.cursor}`);
    const body = expectError(answer, 400, 'INVALID_CURSOR');
    expect(body.message).toContain('issued by a server with another database');
    const own = (await elsewhere.ask('/v2/messages?limit=4')).json<SearchBody>();
    expect(await idsBehind(elsewhere, own.pagination.cursor)).toEqual(newestFirst.slice(4));
  });

  test('without its row no store opens, and the words say what to do', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query('delete from cursor_key');
    await expect(openStore({ place: { url: database.url } })).rejects.toThrow(
      'The table cursor_key is empty',
    );
    await client.query('insert into cursor_key default values');
    const { rows } = await client.query('select octet_length(key) as bytes from cursor_key');
    expect(rows).toEqual([{ bytes: 32 }]);
    await client.end();
    await (await openStore({ place: { url: database.url } })).close();
  });
});
