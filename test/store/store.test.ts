import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import { isDatabaseUnavailable, openStore, type Store, type StoreOptions } from '../../src/store/store.ts';
import { createTestDatabase, isOnCluster } from '../database.ts';
import { makeExecuted, makeMessage, makeRange, makeSent, makeSnapshot } from '../fixtures.ts';
import { operatorErrorOf } from '../operator-error.ts';
import { connectForTest, urlOfDatabase } from '../postgres.ts';

async function emptyDatabase(): Promise<string> {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  return database.url;
}

async function open(url: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openStore({ place: { url }, ...options });
  onTestFinished(() => store.close());
  return store;
}

const everything = parseSearch([]);

describe('real and simulated records', () => {
  it('are opened as they are where any content is accepted, and a new store is then a real one', {
    tags: 'slow',
  }, async () => {
    const demo = await emptyDatabase();
    await open(demo, { content: 'simulated' });
    expect((await open(demo)).simulated).toBe(true);
    const fresh = await emptyDatabase();
    expect((await open(fresh)).simulated).toBe(false);
    await operatorErrorOf(() => openStore({ place: { url: fresh }, content: 'simulated' }));
  });

  it('are one or the other also when both are asked for at once', async () => {
    const url = await emptyDatabase();
    const attempts = await Promise.allSettled(
      (['real', 'simulated', 'real', 'simulated'] as const).map((content) => open(url, { content })),
    );
    const kinds = attempts.flatMap((attempt) =>
      attempt.status === 'fulfilled' ? [attempt.value.simulated] : [],
    );
    expect(kinds.length).toBe(2);
    expect(new Set(kinds).size).toBe(1);
  });

  it('can be emptied where simulated only', { tags: 'slow' }, async () => {
    const demo = await open(await emptyDatabase(), { content: 'simulated' });
    const message = makeMessage();
    await demo.apply([makeSent(message), makeRange('Committed', message, 1, 1)]);
    await demo.reset();
    expect((await demo.search(everything)).records).toEqual([]);
    await demo.apply([makeSent(message)]);
    expect((await demo.search(everything)).records.length).toBe(1);

    const real = await open(await emptyDatabase(), { content: 'real' });
    await real.apply([makeSent(message)]);
    await expect(real.reset()).rejects.toThrow(/simulated/);
    expect((await real.search(everything)).records.length).toBe(1);
  });

  it('of a demo may be emptied while others write', { tags: 'slow' }, async () => {
    const url = await emptyDatabase();
    const [one, other] = [await open(url, { content: 'simulated' }), await open(url)];
    // Each one after the other: a queue of all of them would wait for a connection longer than the pool allows, where the
    // machine is busy enough.
    const repeatedly = async (times: number, write: (number: number) => Promise<unknown>) => {
      for (let number = 0; number < times; number++) await write(number);
    };
    await Promise.all([
      repeatedly(10, (number) => one.apply([makeSent(makeMessage({ number }))])),
      repeatedly(5, () => other.reset()),
      repeatedly(10, (number) => other.apply([makeExecuted(makeMessage({ number }), true)])),
    ]);
    await one.reset();
    expect((await one.search(everything)).records).toEqual([]);
  });
});

describe('a DATABASE_URL', () => {
  const secret = 'hunter2';
  const errorOf = async (url: string) => {
    const error = await operatorErrorOf(() => openStore({ place: { url } }));
    expect(`${error.message} ${error.remedy} ${String(error.cause)}`).not.toMatch(/hunter2|12345/);
    return error;
  };

  test.each([
    '',
    'localhost',
    'localhost:5432/db',
    `mysql://me:${secret}@localhost/db`,
    `https://me:${secret}@localhost/db`,
    `//me:${secret}@localhost/db`,
    `postgresql://me:${secret}@local host/db`,
    `postgres://me:${secret}@127.0.0.1:99999/db`,
    `postgres://me:${secret}#x@127.0.0.1/db`,
    `postgres://me:${secret}/x@127.0.0.1/db`,
    `postgres://me:${secret}?x@127.0.0.1/db`,
    `postgres://me:12345/${secret}@127.0.0.1/db`,
    `postgres://me:12345#${secret}@127.0.0.1/db`,
    `postgres://me:12345?${secret}@127.0.0.1/db`,
  ])('that is none (%j) is rejected in words that show no password', async (url) => {
    const { message, remedy } = await errorOf(url);
    expect(message).toContain('DATABASE_URL');
    expect(remedy).toContain('postgresql://');
  });

  it('with nobody listening, or a password that is no percent-encoding, is rejected without the password', async () => {
    const { message } = await errorOf(`postgres://me:${secret}@127.0.0.1:1/lanescan`);
    expect(message).toMatch(/lanescan at 127\.0\.0\.1:1.*ECONNREFUSED/);
    await errorOf(`postgres://me:${secret}%zz@127.0.0.1:1/lanescan`);
  });

  it('of a database or role that does not exist is rejected with its name', async () => {
    const existing = await emptyDatabase();
    const { message, remedy } = await errorOf(urlOfDatabase(existing, 'no_such_database'));
    expect(message).toMatch(/no_such_database.*does not exist/);
    expect(remedy).toMatch(/exists/);
    const url = new URL(existing);
    url.searchParams.set('user', 'no_such_role');
    expect((await errorOf(url.href)).message).toMatch(/no_such_role/);
  });

  it('that is rejected leaves no connection open', async () => {
    const url = await emptyDatabase();
    const client = await connectForTest(url);
    await (await openStore({ place: { url }, content: 'real' })).close();
    await operatorErrorOf(() => openStore({ place: { url }, content: 'simulated' }));
    const connections = async () => {
      const { rows } = await client.query(
        `select count(*)::int as count from pg_stat_activity
         where datname = current_database() and application_name = 'lanescan'`,
      );
      return rows[0].count;
    };
    for (let tries = 0; tries < 50 && (await connections()) > 0; tries++) await delay(20);
    expect(await connections()).toBe(0);
  });
});

describe('a database that goes away', () => {
  /** Waits until the attempt waits for a lock, and tells its backend to stop. */
  async function interrupt(attempt: Promise<unknown>, url: string): Promise<void> {
    let isOver = false;
    void attempt.finally(() => {
      isOver = true;
    });
    const client = await connectForTest(url);
    const waiting = `select pg_terminate_backend(pid) from pg_stat_activity
                     where datname = current_database() and wait_event_type = 'Lock'`;
    while (!isOver && (await client.query(waiting)).rowCount === 0) await delay(10);
  }

  const failureOf = (attempt: Promise<unknown>): Promise<unknown> =>
    attempt.then(
      () => new Error('It succeeded'),
      (error: unknown) => error,
    );

  it('in the middle of a batch has taken nothing of it', { tags: 'slow' }, async () => {
    const url = await emptyDatabase();
    const store = await open(url);
    const client = await connectForTest(url);
    await client.query('begin; lock table history in access exclusive mode');
    const failed = failureOf(store.apply([makeSnapshot(makeMessage())]));
    await interrupt(failed, url);
    expect(isDatabaseUnavailable(await failed)).toBe(true);
    await client.query('rollback');
    expect((await store.search(everything)).records).toEqual([]);
    expect(await store.apply([makeSnapshot(makeMessage())])).toMatchObject({ created: 1 });
  });

  it('is told by what the driver and the system say', async () => {
    const refused = await operatorErrorOf(() => openStore({ place: { url: 'postgres://127.0.0.1:1/x' } }));
    expect(isDatabaseUnavailable(refused.cause)).toBe(true);
    const ofSystem = ['ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'ENOENT', 'EPIPE', 'EHOSTUNREACH'];
    const ofPostgres = ['57P01', '57P03', '53300', '08006', '57014'];
    for (const code of [...ofSystem, ...ofPostgres])
      expect(isDatabaseUnavailable(Object.assign(new Error('x'), { code })), code).toBe(true);
    const closed = await openStore({ place: { url: await emptyDatabase() } });
    await closed.close();
    expect(isDatabaseUnavailable(await closed.ping().catch((error: unknown) => error))).toBe(true);
  });

  it('is not the same as a mistake of ours', async () => {
    const client = await connectForTest(await emptyDatabase());
    const mistake = await client.query('select nonsense').catch((error: unknown) => error);
    const others = [new Error('boom'), new TypeError('x'), undefined, null, 'text', { code: 42 }];
    for (const error of [mistake, ...others]) expect(isDatabaseUnavailable(error)).toBe(false);
  });
});

// Citus has no triggers on distributed tables.
test.skipIf(isOnCluster)(
  'sessions of leases and of writes have their time limits, and the server probes for clients that are gone',
  async () => {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    const store = await open(url);
    const client = await connectForTest(url);
    // Each statement leaves a trace of the session that it ran in. The reset value of a setting is what the session began
    // with; the present one of a keepalive setting is 0 on a Unix socket.
    await client.query(`
    create table session_setting (source text, name text, value text);
    create function record_session() returns trigger language plpgsql as $$ begin
      insert into session_setting select tg_table_name, name, reset_val from pg_settings
        where name in ('statement_timeout', 'idle_in_transaction_session_timeout')
          or name in ('tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count');
      return null;
    end $$;
    create trigger record_session after insert on webhook_subscription execute function record_session();
    create trigger record_session after insert on message execute function record_session()`);
    await store.webhooks.lease({ subscription: 'ops', holder: randomUUID() }, 1_000);
    await store.apply([makeSnapshot(makeMessage())]);
    const settingsOf = async (source: string) => {
      const { rows } = await client.query(
        'select distinct name, value from session_setting where source = $1',
        [source],
      );
      return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    };
    const common = {
      idle_in_transaction_session_timeout: '60000',
      tcp_keepalives_idle: '10',
      tcp_keepalives_interval: '5',
      tcp_keepalives_count: '3',
    };
    expect(await settingsOf('webhook_subscription')).toEqual({ ...common, statement_timeout: '15000' });
    // A write may take as long as the server works on it.
    expect(await settingsOf('message')).toEqual({ ...common, statement_timeout: '0' });
  },
);
