/** The statements that a cluster runs give the same answers as those of one node. Shown on plain PostgreSQL, which runs both. */

import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { statusRank } from '../../src/domain/lifecycle.ts';
import { parseSearch } from '../../src/domain/search-parameters.ts';
import { readSearchLookups } from '../../src/store/cluster/search-lookups.ts';
import { statementForms } from '../../src/store/cluster/statement-forms.ts';
import { readChangesAfter } from '../../src/store/history.ts';
import type { Read } from '../../src/store/reads/reads.ts';
import { distributedSearchSql, searchSql } from '../../src/store/search.ts';
import { renderSql, type Sql } from '../../src/store/sql.ts';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
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

let store: Store & { readonly url: string };
let client: pg.Client;
const read: Read = async (text, values) => (await client.query(text, [...values])).rows;

const account = evmAddress('account', 1);
const token = makeToken(sepolia, fuji, 'LINK');
const sent = makeMessage({ number: 500, sequenceNumber: '500', sender: account });
const range = makeRange('Committed', sent, 499, 501);
const executed = makeExecuted(sent, false);

beforeAll(async () => {
  store = await openTestStore();
  client = new pg.Client({ connectionString: store.url, options: '-c timezone=UTC' });
  await client.connect();
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
  await store.apply(messages.map(makeSnapshot));
  await store.apply([makeSent(sent), range, executed, makeExecutionDetails(sent, '0x')]);
});
afterAll(async () => {
  await client.end();
  await store.close();
});

const searches: readonly Record<string, string>[] = [
  {},
  { sender: account },
  { sender: account, sourceChainSelector: sepolia.chainSelector },
  { receiver: account, destChainSelector: fuji.chainSelector },
  { sender: account, chainSelector: sepolia.chainSelector },
  { address: account },
  { q: account },
  { q: token.sourceTokenAddress },
  { q: token.sourceTokenAddress, sender: account },
  { sourceTokenAddress: token.sourceTokenAddress, sourceChainSelector: sepolia.chainSelector },
  { sourceTokenAddress: token.sourceTokenAddress, status: 'SENT' },
  { status: 'SENT,SUCCESS' },
  { destTransactionHash: range.seen.transactionHash ?? '' },
  { q: executed.seen.transactionHash ?? '' },
  { destTransactionHash: range.seen.transactionHash ?? '', sender: account },
  { sourceChainSelector: sepolia.chainSelector, destChainSelector: fuji.chainSelector },
];

async function rowsOf(statement: Sql): Promise<unknown[][]> {
  const { text, values } = renderSql(statement);
  return (await client.query({ text, values, rowMode: 'array' })).rows;
}

it.each(searches)('a search for %j finds the same, page by page', async (parameters) => {
  for (const limit of ['3', '100']) {
    const query = parseSearch([...Object.entries(parameters), ['limit', limit]]);
    const onOneNode = await rowsOf(searchSql(query));
    const onCluster = await rowsOf(distributedSearchSql(query, await readSearchLookups(read, query.filters)));
    expect(onCluster).toEqual(onOneNode);
    expect(onOneNode.length).toBeGreaterThan(0);
  }
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

it('every filter and every pair of filters finds the same', { timeout: 120_000 }, async () => {
  let found = 0;
  for (const [index, one] of names.entries()) {
    for (const other of names.slice(index)) {
      const parameters = [...new Set([one, other])].map((name): [string, string] => [
        name,
        values[name] ?? '',
      ]);
      const query = parseSearch([...parameters, ['limit', '4']]);
      const onOneNode = await rowsOf(searchSql(query));
      const lookups = await readSearchLookups(read, query.filters);
      expect(await rowsOf(distributedSearchSql(query, lookups)), `${one} and ${other}`).toEqual(onOneNode);
      if (onOneNode.length > 0) found++;
    }
  }
  expect(found).toBeGreaterThan(60);
});

it('changes after a position are the same, also where bytes end a read', async () => {
  for (const [limit, maxBytes] of [
    [1_000, 1_000_000],
    [7, 1_000_000],
    [1_000, 5_000],
    [1_000, 1],
  ] as const) {
    const onOneNode = await readChangesAfter(read, '50', limit, maxBytes, 'single');
    expect(await readChangesAfter(read, '50', limit, maxBytes, 'distributed')).toEqual(onOneNode);
    expect(onOneNode.changes.length).toBeGreaterThan(0);
  }
});

it('a change behind the published position is not read', async () => {
  await client.query(
    `begin; set local lanescan.schema = '1000000'; update store set position = position - 2`,
  );
  const { changes } = await readChangesAfter(read, '0', 1_000, 1_000_000, 'distributed');
  await client.query('rollback');
  const all = await readChangesAfter(read, '0', 1_000, 1_000_000, 'distributed');
  expect(changes.length).toBe(all.changes.length - 2);
});

it('statements with two forms return the same rows', async () => {
  const { single, distributed } = statementForms;
  const { rows: lanes } = await client.query(
    'select distinct source_selector as source, dest_selector as dest from lane_total',
  );
  const ofLanes = [
    lanes.map(({ source }) => source),
    lanes.map(({ dest }) => dest),
    lanes.map(() => new Date(Date.UTC(2027, 0, 1))),
  ];
  const sorted = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).sort();
  const overdue = await read(single.overdue, ofLanes);
  expect(overdue.length).toBeGreaterThan(0);
  expect(sorted(await read(distributed.overdue, ofLanes))).toEqual(sorted(overdue));
  for (const tokens of [null, [Buffer.from(token.sourceTokenAddress.slice(2), 'hex')]]) {
    for (const lane of lanes) {
      for (const finality of [0, 1]) {
        const given = [lane.source, lane.dest, 1_000, finality, tokens, 50, statusRank('SUCCESS')];
        expect(await read(distributed.recentDeliveries, given)).toEqual(
          await read(single.recentDeliveries, given),
        );
      }
    }
  }
  const prefix = [Buffer.alloc(1), Buffer.alloc(64, 255), '', 500, 10];
  const text = (forms: typeof single) => forms.distinctValues('message', 'sender');
  expect(await read(text(distributed), prefix)).toEqual(await read(text(single), prefix));
});
