/**
 * The conversion of a store of schema 21: it has the rows that this program would have written, whatever interrupts it, and
 * readers of the earlier release do not notice it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import type { Message } from '../../src/domain/message.ts';
import { createDerivation } from '../../src/ingest/demo/randomness.ts';
import { databaseSchema, knownSchema, type MigrateOptions, migrate } from '../../src/store/schema/migrate.ts';
import { openStore } from '../../src/store/store.ts';
import { createTestDatabase, dataTables, type TestDatabase } from '../database.ts';
import { operatorErrorOf } from '../operator-error.ts';
import { connectForTest, connectTo, queryOnce } from '../postgres.ts';
import { fillWithEveryKind } from './every-kind.ts';
import { contentsOf, makeOldStore, structureOf } from './old-store.ts';
import { BASELINE } from './other-schemas.ts';

const PAGES_PER_BATCH = 3;
const SEED = process.env.LANESCAN_TEST_SEED ?? '17';
const WAIT = { timeout: 60_000, interval: 5 };

/** A store that this program has written, and a template of the same store in schema 21. */
let original: TestDatabase;
let template: TestDatabase;
let contents: Awaited<ReturnType<typeof contentsOf>>;
let structure: readonly string[];

beforeAll(async () => {
  [original, template] = [await createTestDatabase(), await createTestDatabase({ empty: true })];
  const [client, old] = [await connectTo(original.url), await connectTo(template.url)];
  const store = await openStore({ place: { url: original.url } });
  await fillWithEveryKind(store, client);
  await store.close();
  await makeOldStore(client, old);
  [contents, structure] = [await contentsOf(client), await structureOf(client)];
  await Promise.all([client.end(), old.end()]);
});
afterAll(async () => {
  await Promise.all([original.drop(), template.drop()]);
});

async function openCopyOf(database: TestDatabase) {
  const copy = await createTestDatabase({ copyOf: database });
  onTestFinished(copy.drop);
  return { ...copy, client: await connectForTest(copy.url) };
}

const openOld = () => openCopyOf(template);

/** Calls `onBatch` before each batch is committed. */
function observeBatches(client: pg.Client, onBatch: () => unknown): pg.Client {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  client.query = ((...args: unknown[]) =>
    String(args[0]).startsWith('update conversion')
      ? Promise.resolve(onBatch()).then(() => query(...args))
      : query(...args)) as pg.Client['query'];
  return client;
}

async function expectConverted(client: pg.ClientBase): Promise<void> {
  expect(await contentsOf(client)).toEqual(contents);
  expect(await structureOf(client)).toEqual(structure);
}

/** The pages of searches, and history and attempts of every message. */
async function answersOf(url: string): Promise<unknown> {
  const store = await openStore({ place: { url }, schema: 'expect' });
  const search = async (...parameters: readonly (readonly [string, string])[]) => {
    const { json, cursor } = await store.search(parseSearch(parameters));
    return { parameters, json: json.toString(), cursor };
  };
  const parsed = (await search(['limit', '1000'])).json;
  const messages = JSON.parse(parsed) as Message[];
  const answers: unknown[] = [parsed, await search(['limit', '7']), await search(['status', 'FAILED'])];
  for (const { messageId, sender, receiver, sendTransactionHash, tokenAmounts } of messages) {
    const id = messageId.slice(2);
    const { entries, facts = [], ...history } = (await store.messageHistory(id)) ?? {};
    const [executions, token] = [await store.messageExecutions(id), tokenAmounts[0]?.sourceTokenAddress];
    answers.push(
      [entries, facts.map((fact) => JSON.stringify(fact)).sort(), history, executions],
      await search(['sender', sender], ['receiver', receiver]),
      await search(['q', sendTransactionHash]),
      ...(token ? [await search(['sourceTokenAddress', token])] : []),
    );
  }
  await store.close();
  return answers;
}

/** As a reader of the earlier release asks. */
async function answersBefore(client: pg.ClientBase): Promise<unknown> {
  const answers: unknown[] = [];
  for (const statement of [
    'select record from message order by sent_at desc, message_id desc limit 21',
    'select record from message where sender = (select max(sender) from message) order by sent_at desc, message_id desc',
    'select message_id, body from fact order by message_id, fact_id',
    'select f.body, b.body from lane_fact f left join root_blessing b using (network, merkle_root) order by 1, 2',
    `select h.*, a.fact_id from history h left join history_attempt a using (message_id, position) order by position`,
  ])
    answers.push((await client.query(statement)).rows);
  return answers;
}

/** What a writer of the earlier release is told by the database, by table. */
async function writesBefore(client: pg.ClientBase): Promise<readonly unknown[]> {
  await client.query(`set lanescan.schema = '${BASELINE}'`);
  const codes: unknown[] = [];
  for (const table of ['store', 'message', 'fact', 'history', 'index_network'])
    await client.query(`delete from ${table}`).catch((error) => codes.push(error.code));
  return codes;
}
const REJECTED = Array.from({ length: 5 }, () => '57L01');

test('a converted store has every row that this program would have written, and the same structure', async () => {
  const { client } = await openOld();
  expect((await migrate(client)).applied).toHaveLength((await knownSchema()) - BASELINE);
  await expectConverted(client);
});

test('a converted store answers as one that this program has written', { tags: 'slow' }, async () => {
  const { url, client } = await openOld();
  await migrate(client);
  expect(await answersOf(url)).toEqual(await answersOf(original.url));
});

test('an empty store is converted', { tags: 'slow' }, async () => {
  const empty = await createTestDatabase({ empty: true });
  onTestFinished(empty.drop);
  const client = await connectForTest(empty.url);
  await migrate(client, { upTo: BASELINE });
  await client.query('insert into store (simulated) values (false)');
  await migrate(client);
  expect(await structureOf(client)).toEqual(structure);
  const store = await openStore({ place: { url: empty.url } });
  expect((await store.search(parseSearch([]))).records).toEqual([]);
  await store.close();
});

/** Migrates until a batch for which `stopsAt` is true is committed; whether it was interrupted. */
async function migrateUntil(client: pg.Client, stopsAt: (batch: number) => boolean): Promise<boolean> {
  const controller = new AbortController();
  let batch = 0;
  observeBatches(client, () => {
    batch += 1;
    if (stopsAt(batch)) controller.abort(new Error('interrupted'));
  });
  const options: MigrateOptions = { pagesPerBatch: PAGES_PER_BATCH, signal: controller.signal };
  const outcome = await migrate(client, options).catch((error: Error) => error.message);
  if (outcome !== 'interrupted') expect(outcome).toHaveProperty('applied');
  return outcome === 'interrupted';
}

describe('a conversion that is interrupted', { tags: 'slow' }, () => {
  test('after each batch goes on there, while readers of the earlier release go on and its writers are rejected', async () => {
    const { url, client } = await openOld();
    const reader = await connectForTest(url);
    const before = await answersBefore(reader);
    let interruptions = 0;
    for (;;) {
      const migrator = await connectTo(url);
      const isInterrupted = await migrateUntil(migrator, () => true);
      await migrator.end();
      if (!isInterrupted) break;
      interruptions += 1;
      expect(await answersBefore(reader)).toEqual(before);
      expect(await writesBefore(reader)).toEqual(REJECTED);
    }
    expect(interruptions).toBeGreaterThan(30);
    await expectConverted(client);
  });

  test('by kill -9 at any moment loses nothing and has nothing twice', async () => {
    const randomness = createDerivation(SEED).randomness('kills');
    const { url, client } = await openOld();
    const progress = async () => {
      const { rows } = await client.query(`select to_regclass('conversion') is not null as has_begun`);
      if (!rows[0].has_begun)
        return (await databaseSchema(client)) > BASELINE ? Number.POSITIVE_INFINITY : -1;
      return Number(
        (await client.query(`select coalesce(sum(nullif(next, '')::int), 0) as pages from conversion`))
          .rows[0].pages,
      );
    };
    let kills = 0;
    for (let reached = -1; reached < Number.POSITIVE_INFINITY; reached = await progress()) {
      const child = startMigration(url, 1);
      const exited = once(child, 'exit');
      const until = reached + randomness.integer(1, 60);
      await expect.poll(progress, WAIT).toBeGreaterThanOrEqual(until);
      child.kill('SIGKILL');
      if ((await exited)[1] === 'SIGKILL') kills += 1;
    }
    expect(kills).toBeGreaterThan(2);
    await migrate(client);
    await expectConverted(client);
  });

  test('begins anew with a table whose files have changed', async () => {
    const { client } = await openOld();
    expect(await migrateUntil(client, (batch) => batch === 20)).toBe(true);
    await client.query('vacuum full fact');
    const logLines: string[] = [];
    await migrate(client, { writeLog: (line) => logLines.push(line) });
    expect(logLines).toContain('Converting fact');
    expect(logLines).not.toContain('Converting message');
    await expectConverted(client);
  });

  test('begins anew in a copy of the database', async () => {
    const interrupted = await createTestDatabase({ copyOf: template });
    onTestFinished(interrupted.drop);
    const migrator = await connectTo(interrupted.url);
    expect(await migrateUntil(migrator, (batch) => batch === 20)).toBe(true);
    await migrator.end();
    const { client } = await openCopyOf(interrupted);
    const logLines: string[] = [];
    await migrate(client, { writeLog: (line) => logLines.push(line) });
    expect(logLines).toEqual(expect.arrayContaining(['Converting message', 'Converting fact']));
    await expectConverted(client);
  });

  test('by a body that cannot be read leaves the old tables as they are, and goes on when it is repaired', async () => {
    const { client } = await openOld();
    const before = await answersBefore(client);
    const { rows } = await client.query(
      `select ctid, encode(message_id, 'hex') as id, body from fact order by ctid desc limit 1`,
    );
    const { ctid, id, body } = rows[0];
    const repair = (text: string) => client.query('update fact set body = $2 where ctid = $1', [ctid, text]);
    await client.query('begin');
    await repair('{"kind":"Sent","mess');
    await client.query('commit');
    const error = await operatorErrorOf(() => migrate(client, { pagesPerBatch: PAGES_PER_BATCH }));
    expect(error.message).toMatch(`A stored fact of message 0x${id} cannot be read: `);
    await client.query('update fact set body = $1 where body = $2', [body, '{"kind":"Sent","mess']);
    expect(await answersBefore(client)).toEqual(before);
    await migrate(client);
    await expectConverted(client);
  });
});

function startMigration(url: string, pagesPerBatch: number): ChildProcess {
  const script = fileURLToPath(new URL('migration-process.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, url, String(pagesPerBatch)], {
    stdio: 'ignore',
    env: { PATH: process.env.PATH },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

describe('beside a conversion', { tags: 'slow' }, () => {
  test('a second process waits, and then finds nothing to do', async () => {
    const { url, client } = await openOld();
    const [second, observer] = [await connectForTest(url), await connectForTest(url)];
    let goOn = () => {};
    let isHeld = false;
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const first = migrate(
      observeBatches(client, () => {
        isHeld = true;
        return gate;
      }),
    );
    await expect.poll(() => isHeld, WAIT).toBe(true);
    const pid = (await second.query('select pg_backend_pid() as pid')).rows[0].pid;
    const waiting = migrate(second);
    const attempts = new Set<string>();
    await expect
      .poll(async () => {
        const { rows } = await observer.query(
          'select query, query_start::text as at from pg_stat_activity where pid = $1',
          [pid],
        );
        if (String(rows[0].query).includes('pg_try_advisory_lock')) attempts.add(rows[0].at);
        return attempts.size;
      }, WAIT)
      .toBeGreaterThan(2);
    goOn();
    expect((await first).applied).toHaveLength((await knownSchema()) - BASELINE);
    expect((await waiting).applied).toEqual([]);
    await expectConverted(client);
  });

  test('a long read delays the change of the tables, and no index is made twice', async () => {
    const { url, client } = await openOld();
    const reader = await connectForTest(url);
    await reader.query('begin; select from message limit 1');
    const logLines: string[] = [];
    const migrating = migrate(client, { writeLog: (line) => logLines.push(line) });
    const waits = () => logLines.filter((line) => line.startsWith('Waiting to change the schema')).length;
    await expect.poll(waits, WAIT).toBeGreaterThan(0);
    const index = async () =>
      (await reader.query(`select to_regclass('message_by_time')::oid as oid`)).rows[0].oid;
    const made = await index();
    expect(made).not.toBeNull();
    const waited = waits();
    await expect.poll(waits, WAIT).toBeGreaterThan(waited);
    expect(await index()).toBe(made);
    await reader.query('select record from message limit 1; commit');
    await migrating;
    await expectConverted(client);
  });
});

describe('roles', { tags: 'slow' }, () => {
  const [owner, reader] = ['owner', 'reader'].map((name) => `conversion_${name}_${process.pid}`) as [
    string,
    string,
  ];
  const asRole = (url: string, role: string) => {
    const other = new URL(url);
    other.searchParams.set('user', role);
    return other.href;
  };
  async function openWithRoles() {
    const opened = await openOld();
    const { client } = opened;
    await client.query(`create role ${owner} login; create role ${reader} login`);
    onTestFinished(async () => {
      await queryOnce(opened.url, `drop owned by ${owner}, ${reader}; drop role ${owner}, ${reader}`);
    });
    await client.query(`grant create, usage on schema public to ${owner}`);
    for (const table of [...(await dataTables(client)), 'migration'])
      await client.query(`alter table ${table} owner to ${owner}`);
    await client.query(`grant select on all tables in schema public to ${reader};
      grant select on message, fact to public; grant update on history to ${reader} with grant option`);
    return opened;
  }

  test('the new tables have the owner and the privileges of the old ones', async () => {
    const { client } = await openWithRoles();
    const rights = async () => {
      const { rows } = await client.query(
        `select relname, relowner::regrole, array(select acl::text from unnest(relacl) acl order by 1) as privileges
         from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
           and relname not in ('history_attempt', 'migration') order by 1`,
      );
      return rows;
    };
    const before = await rights();
    await migrate(client);
    expect(await rights()).toEqual(before);
  });

  test('one that may not migrate is told which one may, before the conversion and in its middle', async () => {
    const { url, client } = await openWithRoles();
    const limited = await connectForTest(asRole(url, reader));
    const atFirst = await operatorErrorOf(() => migrate(limited));
    expect(atFirst.message).toMatch(
      /lacks migration 0022-\S+, and the role conversion_reader_\d+ may not apply it/,
    );
    expect(atFirst.remedy).toMatch(/the role that owns the tables/);
    expect(await databaseSchema(client)).toBe(BASELINE);

    const migrator = await connectTo(asRole(url, owner));
    expect(await migrateUntil(migrator, (batch) => batch === 20)).toBe(true);
    await migrator.end();
    const later = await operatorErrorOf(() => migrate(limited));
    expect(later.message).toMatch(
      /lacks migration 0023-\S+, and the role conversion_reader_\d+ may not apply it/,
    );
    const again = await connectForTest(asRole(url, owner));
    await migrate(again);
    expect(await contentsOf(client)).toEqual(contents);
  });
});
