// @module-tag slow: indexes a cluster several times
/** A store of an earlier schema: how its executions failed is read in as owed work, with progress, while it is served. */
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Attempts } from '../../src/api/routes/history-schema.ts';
import { openStore } from '../../src/store/store.ts';
import { serveStore } from '../api/running-server.ts';
import { honest, type NodeProxy, startNodeProxy } from '../chain/node-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { indexOnce, sourceOf, storeReceived } from '../ingest/svm/indexed-world.ts';
import { createSolanaWorld, type SolanaWorld } from '../solana/ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from '../solana/endpoint/provider.ts';
import { messageIdOf } from '../solana/received-messages.ts';
import { budgetExceeded } from '../solana/runtime/runtime.ts';
import { makeOlderSchema } from './older-schema.ts';

let world: SolanaWorld;
let provider: SolanaProvider;
let proxy: NodeProxy;
/** What this release has indexed. */
let indexed: TestDatabase;

beforeAll(async () => {
  world = createSolanaWorld();
  const message = world.receive();
  world.commit([message]);
  world.execute(message, { outcome: 'failure', failure: budgetExceeded });
  world.settle();
  provider = await startSolanaProvider(world.cluster);
  proxy = await startNodeProxy(provider.url.href);
  indexed = await createTestDatabase();
  const store = await openStore({ place: { url: indexed.url } });
  await storeReceived(store, world);
  await indexOnce(store, sourceOf(world, [provider]));
  await store.close();
});
afterAll(async () => {
  await proxy?.close();
  await provider?.close();
  await indexed?.drop();
});

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** The rows that an indexer of the earlier schema had written: it knew no details of executions. */
async function copyRows(from: pg.Client, to: pg.Client): Promise<void> {
  const { rows: tables } = await to.query<{ table: string; columns: string }>(
    `select table_name as table, string_agg(quote_ident(column_name), ', ') as columns
     from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'migration'
       and is_generated = 'NEVER'
     group by table_name`,
  );
  for (const { table, columns } of tables) {
    const filter = table === 'fact' ? `where kind <> 'ExecutionDetails'` : '';
    const { rows } = await from.query<{ rows: string }>(
      `select coalesce(json_agg(t), '[]')::text as rows from (select ${columns} from ${table} ${filter}) t`,
    );
    await to.query(`delete from ${table}`);
    await to.query(
      `insert into ${table} (${columns}) overriding system value
       select ${columns} from json_populate_recordset(null::${table}, $1)`,
      [rows[0]?.rows],
    );
  }
}

// 15 is the schema of the first release candidate, which has read the details of EVM chains alone.
test.each([14, 15])('a store of schema %i', async (schema) => {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const client = await connect(database.url);
  await makeOlderSchema(client, schema);
  await copyRows(await connect(indexed.url), client);

  const store = await openStore({ place: { url: database.url } });
  const server = await serveStore({ ...store, url: database.url });
  onTestFinished(() => server.close());
  const [message] = world.received;
  const reasons = async () => {
    const answer = await server.ask(`/v2/messages/${message ? messageIdOf(message) : ''}/attempts`);
    return answer.json<Attempts>().attempts.map(({ outcome, reason }) => [outcome, reason?.code]);
  };
  expect(await reasons()).toEqual([['FAILED', undefined]]);

  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  proxy.interfere = async ({ method }, truth) => {
    if (method === 'getTransaction') await held;
    return truth;
  };
  const source = { ...sourceOf(world, [provider]), rpc: [proxy.url] };
  await indexOnce(store, source, { until: (status) => (status?.worker?.owedBlocks ?? 0) > 0 });
  const [owing] = await store.networkProgress();
  expect(owing?.owedBlocks).toBeGreaterThan(0);
  expect(await reasons()).toEqual([['FAILED', undefined]]);

  proxy.interfere = honest;
  release();
  await indexOnce(store, source);
  const [done] = await store.networkProgress();
  expect(done).toMatchObject({ owedBlocks: 0, failedRanges: 0 });
  expect(await reasons()).toEqual([['FAILED', 'out-of-compute']]);
});
