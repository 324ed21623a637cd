// @module-tag slow: fills a store on a cluster and looks at query plans of all shards
/**
 * Searches on a cluster are pushed down: every shard walks an index in the order of the page and stops at its end, and the
 * coordinator gets at most a page from each shard. Needs CITUS_URL.
 */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import { distributedSearchSql, readLookups, searchSettings } from '../../src/store/query/search.ts';
import { beginningOf, renderSql } from '../../src/store/sql.ts';
import type { Store } from '../../src/store/store.ts';
import { sortKeySql, storedSelector } from '../../src/store/write/message-row.ts';
import { openTestStore } from '../database.ts';
import { evmAddress, fuji, hashOf, makeToken, sepolia } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';

const MESSAGES = 60_000;
const LIMIT = 5;
/** An incremental sort reads so many rows, and one more, before it sorts any. */
const SORT_GROUP = 32;

interface Plan {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Function Name'?: string;
  readonly 'Subplan Name'?: string;
  readonly Plans?: readonly Plan[];
  readonly 'Distributed Query'?: DistributedQuery;
}

interface DistributedQuery {
  readonly Job?: {
    readonly 'Task Count': number;
    readonly Tasks: readonly { readonly 'Remote Plan': readonly (readonly [{ readonly Plan: Plan }])[] }[];
  };
  readonly Subplans?: readonly { readonly PlannedStmt: readonly { readonly Plan: Plan }[] }[];
}

const account = evmAddress('account', 1);
const token = makeToken(sepolia, fuji, 'LINK');
const bytesOf = (address: string) => `'\\x${address.slice(2)}'::bytea`;
const [source, dest] = [sepolia, fuji].map(({ chainSelector }) => storedSelector(chainSelector));

/** Every value that is searched for has thousands of messages on each shard. */
const fill = [
  `insert into message (message_id, sort_key, sent_at, position, source_selector, dest_selector, sequence_number, finality,
     summary_length, status, ready, is_snapshot, sender, receiver, origin, onramp, send_transaction, receipt_transaction,
     digest, record)
   select id, ${sortKeySql('sent_at', 'id')}, sent_at, n, case when n % 2 = 0 then ${source} else n % 7 end, case when n % 2 = 0 then ${dest} else n % 5 end,
     n, 0, 20, status, status = 6 or n % 50 = 0, true, case when n % 3 = 0 then ${bytesOf(account)} else part end,
     case when n % 4 = 0 then ${bytesOf(account)} else part end, part, part, id, id, substring(id for 16),
     '{"messageId":"' || repeat('x', 400) || '"}'
   from (select n, sha256(n::text::bytea) as id, substring(sha256((n % 900)::text::bytea) for 20) as part,
           timestamptz '2026-01-01' + n * interval '1 second' as sent_at,
           (case when n % 100 < 80 then 7 when n % 100 < 90 then 6 else n % 6 end)::smallint as status
         from generate_series(1, ${MESSAGES}) n) rows`,
  `insert into message_token (message_id, token_index, sort_key, source_selector, dest_selector, source_token, dest_token,
     source_pool, sender_beginning, receiver_beginning)
   select message_id, 0, sort_key, source_selector, dest_selector,
     case when position % 4 < 2 then ${bytesOf(token.sourceTokenAddress)} else onramp end, onramp, onramp,
     ${beginningOf('sender')}, ${beginningOf('receiver')}
   from message`,
  `insert into lane_total (source_selector, dest_selector, status, ready, messages)
   select source_selector, dest_selector, status, ready, count(*) from message group by 1, 2, 3, 4`,
];

const searches: readonly Record<string, string>[] = [
  {},
  { sender: account },
  { receiver: account },
  { sourceChainSelector: sepolia.chainSelector },
  { sourceChainSelector: sepolia.chainSelector, destChainSelector: fuji.chainSelector },
  { sender: account, sourceChainSelector: sepolia.chainSelector },
  { sender: account, receiver: account },
  { chainSelector: sepolia.chainSelector },
  { address: account },
  { q: account },
  { q: token.sourceTokenAddress },
  { q: account, receiver: account },
  { q: token.sourceTokenAddress, receiver: account },
  { q: token.sourceTokenAddress, readyForManualExecOnly: 'true' },
  { q: `${account},${token.sourceTokenAddress}` },
  { q: account, address: account, chainSelector: sepolia.chainSelector },
  { q: account, sourceTokenAddress: evmAddress('token', 1) },
  { sourceTokenAddress: token.sourceTokenAddress, sender: account },
  { sourceTokenAddress: token.sourceTokenAddress },
  { sourceTokenAddress: token.sourceTokenAddress, sourceChainSelector: sepolia.chainSelector },
  { status: 'FAILED' },
  { status: 'SENT,SUCCESS' },
  { readyForManualExecOnly: 'true' },
  { sentBefore: '2026-01-01T00:30:00Z' },
  { sourceTransactionHash: hashOf('unknown transaction') },
  { destTransactionHash: hashOf('unknown transaction') },
];

describe.skipIf(process.env.CITUS_URL === undefined)('a search on a cluster', () => {
  let store: Store & { readonly url: string };
  let client: pg.Client;

  beforeAll(async () => {
    store = await openTestStore();
    const settings = '-c timezone=UTC -c lanescan.schema=1000000 -c citus.explain_all_tasks=on';
    client = await connectTo(store.url, { options: `${settings} ${searchSettings.distributed}` });
    for (const statement of fill) await client.query(statement);
    await client.query('analyze message, message_token');
  });
  afterAll(async () => {
    await client.end();
    await store.close();
  });

  it.each(searches)('for %j reads about a page on each shard, by an index', async (parameters) => {
    const query = parseSearch([...Object.entries(parameters), ['limit', String(LIMIT)]]);
    const plansOfLookups: (readonly DistributedQuery[])[] = [];
    const lookups = await readLookups(async (text, values) => {
      plansOfLookups.push(await explain(text, values));
      return (await client.query(text, [...values])).rows;
    }, query.filters);
    const { text, values } = renderSql(distributedSearchSql(query, lookups));
    const ofSearch = await explain(text, values);
    expect(ofSearch.length).toBeGreaterThan(0);
    for (const { Job: job, Subplans: subplans } of [...plansOfLookups.flat(), ...ofSearch]) {
      expect(subplans, 'Each part of it would be a distributed statement of its own').toBeUndefined();
      const remotes = (job?.Tasks ?? []).flatMap((task) => task['Remote Plan'].map(([{ Plan }]) => Plan));
      expect(remotes).toHaveLength(job?.['Task Count'] ?? -1);
      for (const remote of remotes) {
        expect(remote['Actual Rows']).toBeLessThanOrEqual(LIMIT + 1);
        const leaves = nodesOf(remote).filter((node) => !node.Plans && node['Relation Name'] !== undefined);
        for (const leaf of leaves) {
          expect(leaf['Node Type'], JSON.stringify(leaf)).toMatch(/^Index (Only )?Scan$/);
          // PostgreSQL may hash all messages of a token instead of looking at those of the page, on one node too.
          if (leaf['Subplan Name'] !== undefined) continue;
          const read = leaf['Actual Rows'] * leaf['Actual Loops'];
          expect(read, JSON.stringify(leaf)).toBeLessThanOrEqual(SORT_GROUP + 4 * (LIMIT + 1));
        }
      }
    }
  });

  async function explain(text: string, values: readonly unknown[]): Promise<readonly DistributedQuery[]> {
    const explained = `explain (analyze, verbose, timing off, format json) ${text}`;
    const { rows } = await client.query(explained, [...values]);
    return nodesOf(rows[0]['QUERY PLAN'][0].Plan).flatMap((node) => node['Distributed Query'] ?? []);
  }

  function nodesOf(plan: Plan): readonly Plan[] {
    const subplans = (plan['Distributed Query']?.Subplans ?? []).flatMap(({ PlannedStmt }) =>
      PlannedStmt.flatMap(({ Plan }) => nodesOf(Plan)),
    );
    return [plan, ...(plan.Plans ?? []).flatMap(nodesOf), ...subplans];
  }
});
