/**
 * The statements that a cluster runs give the same answers as those of one node: without CITUS_URL both on one database, with it on
 * a database of the coordinator alone and on one that is distributed.
 */

import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Filters } from '../../src/domain/filters/query.ts';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import { statusRank } from '../../src/domain/lifecycle.ts';
import { statementForms } from '../../src/store/cluster/statement-forms.ts';
import { readChangesAfter } from '../../src/store/query/history.ts';
import { distributedSearchSql, readLookups, searchSql } from '../../src/store/query/search.ts';
import type { Read } from '../../src/store/reads/reads.ts';
import { renderSql, type Sql } from '../../src/store/sql.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createTestDatabase, openTestStore } from '../database.ts';
import {
  evmAddress,
  fuji,
  makeExecuted,
  makeExecutionDetails,
  makeMessage,
  makeRange,
  makeSent,
  makeSnapshot,
  makeToken,
  sepolia,
} from '../fixtures.ts';
import { connectTo } from '../postgres.ts';

type Side = Awaited<ReturnType<typeof openSide>>;
let single: Side;
let cluster: Side;
/** Look-ups run at the same time. */
const lookupsFor = (filters: Filters) =>
  readLookups(async (text, values) => (await cluster.pool.query(text, [...values])).rows, filters);

const account = evmAddress('account', 1);
const token = makeToken(sepolia, fuji, 'LINK');
const sent = makeMessage({ number: 500, sequenceNumber: '500', sender: account });
const messages = Array.from({ length: 60 }, (_, index) =>
  makeMessage({
    number: index,
    sender: evmAddress('account', index % 3),
    receiver: evmAddress('account', index % 4),
    ...(index % 2 === 0 && { sourceNetworkInfo: sepolia, destNetworkInfo: fuji }),
    tokenAmounts: index % 5 === 0 ? [token, token] : [],
    status: index % 3 === 0 ? 'SENT' : 'SUCCESS',
    sendTimestamp: new Date(Date.UTC(2026, 0, 1) + (index % 20) * 1_000).toISOString(),
  }),
);
const range = makeRange('Committed', sent, 499, 501);
const executed = makeExecuted(sent, false);

/** A store, and the ways to run statements on its database. */
async function openSide(store: Store, url: string) {
  const client = await connectTo(url, { options: '-c timezone=UTC' });
  const pool = new pg.Pool({ connectionString: url });
  // The database may be dropped before the server has read that its connections end.
  pool.on('error', () => undefined);
  await store.apply(messages.map(makeSnapshot));
  await store.apply([makeSent(sent), range, executed, makeExecutionDetails(sent, '0x')]);
  // Both sides are filled at different times.
  await client.query(`update history set recorded_at = '2026-01-02'`);
  return {
    client,
    pool,
    /** Over one connection. */
    read: (async (text, values) => (await client.query(text, [...values])).rows) satisfies Read,
    async close() {
      await client.end();
      await pool.end();
      await store.close();
    },
  };
}

beforeAll(async () => {
  const store = await openTestStore();
  cluster = await openSide(store, store.url);
  single = cluster;
  if (process.env.CITUS_URL === undefined) return;
  const { url, drop } = await createTestDatabase({ empty: true });
  const local = await openStore({ place: { url } });
  single = await openSide({ ...local, close: () => local.close().then(drop) }, url);
});
afterAll(async () => {
  await cluster.close();
  if (single !== cluster) await single.close();
});

async function rowsOf({ client }: Side, statement: Sql): Promise<unknown[][]> {
  const { text, values } = renderSql(statement);
  return (await client.query({ text, values, rowMode: 'array' })).rows;
}

const unknown = evmAddress('nobody', 1);

/** With the number of statements of their look-ups. */
const checkedSearches: readonly (readonly [parameters: Record<string, string>, statements: number])[] = [
  // A scan by the token itself ends where there is none.
  [{ q: account }, 0],
  [{ q: token.sourceTokenAddress }, 0],
  [{ q: executed.seen.transactionHash ?? '' }, 3],
  [{ address: account, limit: '3' }, 0],
  [{ q: token.sourceTokenAddress, sourceChainSelector: sepolia.chainSelector }, 1],
  // No token has the address of the account.
  [{ q: account, receiver: account }, 1],
  [{ q: account, status: 'SENT' }, 1],
  [{ q: unknown, receiver: account }, 1],
  // A source token and an actor are found together.
  [{ sourceTokenAddress: unknown, sender: account }, 0],
  [{ q: token.sourceTokenAddress, receiver: account }, 1],
  // One statement finds a token, and the next one that it is the only one.
  [{ q: token.destTokenAddress, readyForManualExecOnly: 'true' }, 2],
  [{ sourceTokenAddress: token.sourceTokenAddress, sender: account }, 0],
  // A filter that no message satisfies.
  [{ q: account, sourceTokenAddress: unknown }, 1],
  [{ q: `${account},${unknown}` }, 1],
  [{ q: account, chainSelector: '1' }, 1],
  [{ destTransactionHash: executed.seen.transactionHash ?? '', q: unknown }, 4],
];

it.each(checkedSearches)(
  'a search for %j finds the same after %d look-ups',
  async (parameters, statements) => {
    const query = parseSearch(Object.entries(parameters));
    let count = 0;
    const lookups = await readLookups(async (text, values) => {
      count++;
      return (await cluster.pool.query(text, [...values])).rows;
    }, query.filters);
    expect(count).toBe(statements);
    const statement = distributedSearchSql(query, lookups);
    expect(renderSql(statement).text).not.toContain('limit 1');
    expect(await rowsOf(cluster, statement)).toEqual(await rowsOf(single, searchSql(query)));
  },
);

it('reads nothing where a look-up has found that no message satisfies a filter', async () => {
  const query = parseSearch(Object.entries({ address: account, sourceTokenAddress: unknown }));
  const lookups = await lookupsFor(query.filters);
  expect(lookups.isEmpty).toBe(true);
  expect(renderSql(distributedSearchSql(query, lookups)).text).toContain('where false');
});

/** A value for each filter, most of which some of the messages have. */
const values: Readonly<Record<string, string>> = {
  sender: account,
  receiver: evmAddress('account', 0),
  sourceChainSelector: sepolia.chainSelector,
  destChainSelector: fuji.chainSelector,
  chainSelector: fuji.chainSelector,
  readyForManualExecOnly: 'true',
  sourceTransactionHash: sent.sendTransactionHash,
  destTransactionHash: executed.seen.transactionHash ?? '',
  messageId: sent.messageId,
  sentAfter: '2026-01-01T00:00:05Z',
  sentBefore: '2026-01-01T00:00:15Z',
  status: 'FAILED,SUCCESS',
  address: account,
  sourceTokenAddress: token.sourceTokenAddress,
  q: `${account},${token.destTokenAddress}`,
};
const names = Object.keys(values);

it('every filter and every pair of filters finds the same', async () => {
  let found = 0;
  for (const [index, one] of names.entries()) {
    for (const other of names.slice(index)) {
      const pair = { [one]: values[one] ?? '', [other]: values[other] ?? '', limit: '4' };
      const query = parseSearch(Object.entries(pair));
      const onOneNode = await rowsOf(single, searchSql(query));
      const lookups = await lookupsFor(query.filters);
      const onCluster = await rowsOf(cluster, distributedSearchSql(query, lookups));
      expect(onCluster, `${one} and ${other}`).toEqual(onOneNode);
      if (onOneNode.length > 0) found++;
    }
  }
  expect(found).toBeGreaterThan(60);
});

it('changes after a position are the same, also where bytes end a read', async () => {
  const bounds = {
    all: [1_000, 1_000_000],
    few: [7, 1_000_000],
    short: [1_000, 5_000],
    least: [1_000, 1],
  } as const;
  for (const [limit, maxBytes] of Object.values(bounds)) {
    const onOneNode = await readChangesAfter(single.read, '50', limit, maxBytes, 'single');
    expect(await readChangesAfter(cluster.read, '50', limit, maxBytes, 'distributed')).toEqual(onOneNode);
    expect(onOneNode.changes.length).toBeGreaterThan(0);
  }
});

it('a change behind the published position is not read', async () => {
  await cluster.client.query(
    `begin; set local lanescan.schema = '1000000'; update store set position = position - 2`,
  );
  const { changes } = await readChangesAfter(cluster.read, '0', 1_000, 1_000_000, 'distributed');
  await cluster.client.query('rollback');
  const all = await readChangesAfter(cluster.read, '0', 1_000, 1_000_000, 'distributed');
  expect(changes.length).toBe(all.changes.length - 2);
});

it('statements with two forms return the same rows', async () => {
  const { single: onOneNode, distributed } = statementForms;
  const { rows: lanes } = await single.client.query(
    'select distinct source_selector as source, dest_selector as dest from lane_total',
  );
  const ends = [lanes.map(({ source }) => source), lanes.map(({ dest }) => dest)];
  const ofLanes = [...ends, lanes.map(() => new Date(Date.UTC(2027, 0, 1)))];
  const sorted = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).sort();
  const overdue = await single.read(onOneNode.overdue, ofLanes);
  expect(overdue.length).toBeGreaterThan(0);
  expect(sorted(await cluster.read(distributed.overdue, ofLanes))).toEqual(sorted(overdue));
  for (const tokens of [null, [Buffer.from(token.sourceTokenAddress.slice(2), 'hex')]]) {
    for (const lane of lanes) {
      for (const finality of [0, 1]) {
        const given = [lane.source, lane.dest, 1_000, finality, tokens, 50, statusRank('SUCCESS')];
        expect(await cluster.read(distributed.recentDeliveries, given)).toEqual(
          await single.read(onOneNode.recentDeliveries, given),
        );
      }
    }
  }
  const prefix = [Buffer.alloc(1), Buffer.alloc(64, 255), '', 500, 10];
  const text = (forms: typeof distributed) => forms.distinctValues('message', 'sender');
  const values = await single.read(text(onOneNode), prefix);
  expect(sorted(await cluster.read(text(distributed), prefix))).toEqual(sorted(values));
});
