// @module-tag slow: starts the program for every verb that there is
/** A server can work with a database role that may only read, and `migrate` grants what it needs. */
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import { type SearchBody, serveStore } from '../api/running-server.ts';
import { configFile, lanescan, lanescanOn, sepoliaYaml } from '../cli/program.ts';
import { createTestDatabase, dataTables, type TestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { connectTo, queryOnce, urlOfDatabase } from '../postgres.ts';

/** A name that a database takes and careless quoting does not. */
const READER = `reader "of" ${process.pid}'; drop table message; --`;
const STRANGER = `stranger_${process.pid}`;
const quoted = pg.escapeIdentifier;

let database: TestDatabase;
let owner: pg.Client;
/** What a test has opened: closed before its database is dropped. */
let closers: (() => Promise<void>)[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  owner = await connectTo(database.url);
  for (const role of [READER, STRANGER]) await owner.query(`create role ${quoted(role)} login`);
});
afterEach(async () => {
  for (const close of closers) await close();
  closers = [];
  await owner.end();
  await database.drop();
  for (const role of [READER, STRANGER])
    await queryOnce(urlOfDatabase(database.url, 'postgres'), `drop role ${quoted(role)}`);
});

function urlAs(role: string, of = database): string {
  const url = new URL(of.url);
  url.searchParams.set('user', role);
  return url.href;
}

const migrateAs = (url: string, role: string) => lanescanOn({ url }, 'migrate', '--grant-read', role);
const mayRead = (role: string, table: string) =>
  queryOnce(database.url, `select has_table_privilege($1, $2, 'select') as may`, [role, table]);

async function openAs(role: string): Promise<Store & { readonly url: string }> {
  return { ...(await openStore({ place: { url: urlAs(role) } })), url: urlAs(role) };
}

const errorOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'It was accepted',
    (error: Error & { remedy?: string }) => `${error.message} ${error.remedy ?? ''}`,
  );

describe('a role that was granted reading', () => {
  beforeEach(async () => {
    const { code, stdout, stderr } = await migrateAs(database.url, READER);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`The role ${READER} may read all tables.`);
  });

  test('serves every path, live changes included', async () => {
    const writer = await openStore({ place: { url: database.url } });
    closers.push(() => writer.close());
    const first = makeMessage({ number: 1, status: 'SENT' });
    await writer.apply([makeSnapshot(first)]);
    const server = await serveStore(await openAs(READER));
    closers.push(() => server.close());

    const { messageId } = first;
    const one = `/v2/messages/${messageId}`;
    for (const path of [
      ...[
        '/v2/messages',
        one,
        `${one}/history`,
        `${one}/execution-inputs`,
        '/v2/messages/export?format=ndjson',
      ],
      ...['/v2/lanes', '/v2/networks', '/v2/stats', '/healthz', '/readyz', '/metrics', '/openapi.json'],
    ]) {
      const { status, text } = await server.ask(path);
      expect({ path, status, text }).toMatchObject({ status: path.endsWith('inputs') ? 404 : 200 });
    }
    expect((await server.ask('/metrics')).text).toContain('lanescan_messages{');

    const waiting = server.ask(`/v2/messages/${messageId}?waitFor=SUCCESS&timeoutMs=60000`);
    await writer.apply([makeSnapshot(makeMessage({ number: 1, status: 'SUCCESS' }))]);
    const { headers } = await waiting;
    expect(headers['x-lanescan-wait']).toBe('reached');
    expect((await server.ask('/v2/messages')).json<SearchBody>().data[0]?.status).toBe('SUCCESS');
  });

  test('can change nothing, whatever a statement tries', async () => {
    const reader = await connectTo(urlAs(READER));
    closers.push(() => reader.end());
    const tables = await dataTables(owner);
    expect(tables.length).toBeGreaterThan(10);
    const attempts = [...tables, 'migration'].flatMap((table) => [
      `delete from ${table}`,
      `truncate ${table}`,
      `drop table ${table}`,
      `insert into ${table} default values`,
    ]);
    for (const attempt of [...attempts, 'create table own (x int)', `update store set simulated = true`]) {
      expect({ attempt, error: await errorOf(reader.query(attempt)) }).toMatchObject({
        error: expect.stringMatching(/^(permission denied|must be owner)/),
      });
    }
  });

  test('reads what later migrations make', async () => {
    await owner.query('create table of_tomorrow as select 1 as x');
    const reader = await connectTo(urlAs(READER));
    closers.push(() => reader.end());
    expect((await reader.query('select x from of_tomorrow')).rows).toEqual([{ x: 1 }]);
  });

  test('is rejected before anything is done, by every verb that writes', async () => {
    const hook = `{ name: ops, url: "https://receiver.example/hook", secret: "\${OPS}" }`;
    const config = configFile(`webhooks: [${hook}]\n${sepoliaYaml('http://127.0.0.1:9')}`);
    const env = { DATABASE_URL: urlAs(READER), OPS: `whsec_${Buffer.alloc(32, 1).toString('base64')}` };
    for (const verb of [
      'serve --port 0 --log-level silent',
      'serve --port 0 --log-level silent --index',
      'index',
      'import -',
      'mirror http://127.0.0.1:9 --once',
      'demo --port 0 --log-level silent',
      'webhooks replay ops --parked',
    ]) {
      const { code, stderr } = await lanescan([...verb.split(' '), '--config', config], { env });
      expect({ verb, code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/The database role may only read.*DATABASE_URL/),
      });
    }
    expect((await owner.query('select from message')).rowCount).toBe(0);
  });

  test('cannot run the demo, not even on its own store, which then stays as it was; but it can serve it', async () => {
    const simulated = await createTestDatabase({ empty: true });
    closers.push(() => simulated.drop());
    const store = await openStore({ place: { url: simulated.url }, content: 'simulated' });
    await store.apply([makeSnapshot(makeMessage())]);
    await store.grantRead(READER);
    await store.close();

    const url = urlAs(READER, simulated);
    const { code, stderr } = await lanescanOn({ url }, 'demo', '--port', '0');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^lanescan: The database role may only read, .*or the demo\. Give this process the role that owns the tables, by DATABASE_URL\. .*\n$/,
      ),
    });
    const server = await serveStore({ ...(await openStore({ place: { url } })), url });
    closers.unshift(() => server.close());
    const { headers, json } = await server.ask('/v2/messages');
    expect(headers['x-lanescan-simulated']).toBe('true');
    expect(json<SearchBody>().data).toHaveLength(1);
  });

  test('cannot pass the right on, and says so', async () => {
    const { code, stderr } = await migrateAs(urlAs(READER), STRANGER);
    expect(stderr).toMatch(/may not let .* read: permission denied for table .*Nothing was granted/);
    expect(code).toBe(1);
    expect(await mayRead(STRANGER, 'message')).toEqual([{ may: false }]);
  });

  test('is told who must migrate when the schema is older than the program', async () => {
    await owner.query('delete from migration where number = (select max(number) from migration)');
    const said = await errorOf(openAs(READER));
    expect(said).toMatch(/^The schema lacks migration \d{4}-[\w-]+, and the role .* may not apply it/);
    expect(said).toContain('Run `lanescan migrate` with the role that owns the tables');
  });

  test('is told what was granted too little', async () => {
    await owner.query(`revoke select on history, day_total from ${quoted(READER)}`);
    const said = await errorOf(openAs(READER));
    expect(said).toContain('may not read day_total, history.');
    expect(said).toContain(`lanescan migrate --grant-read ${READER}`);
  });
});

describe('granting', () => {
  test('is possible again, and where nobody else may use the schema', async () => {
    await owner.query('revoke all on schema public from public');
    for (let round = 0; round < 2; round++) {
      expect((await migrateAs(database.url, READER)).code).toBe(0);
    }
    const store = await openAs(READER);
    await store.close();
  });

  test('leaves alone what others keep in the same schema', async () => {
    await owner.query(`create table payroll (x int); alter table payroll owner to ${quoted(STRANGER)}`);
    expect((await migrateAs(database.url, READER)).code).toBe(0);
    expect(await mayRead(READER, 'payroll')).toEqual([{ may: false }]);
    await owner.query('drop table payroll');
  });

  test('to a role that is not there fails with what to do', async () => {
    const { code, stderr } = await migrateAs(database.url, 'nobody "here"');
    expect(stderr).toMatch(/There is no database role "nobody ""here""".*create role "nobody ""here"""/);
    expect(code).toBe(1);
  });

  test('is what a role without any right is told about', async () => {
    expect(await errorOf(openAs(STRANGER))).toMatch(
      /The role stranger_\d+ may not read migration\. Run `lanescan migrate --grant-read stranger_\d+`/,
    );
  });
});
