/** The queue of reads: pipelined batches, LIFO and load shedding in overload, and connections that break. */
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DatabaseBusyError } from '../../../src/store/reads/admission.ts';
import { createReadQueue, type ReadQueue } from '../../../src/store/reads/read-queue.ts';
import { ReadingClient } from '../../../src/store/reads/reading-client.ts';
import type { Statement } from '../../../src/store/reads/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../database.ts';

let database: TestDatabase;
let pool: pg.Pool;

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
});
afterEach(async () => {
  await pool.end();
  await database.drop();
});

const patient = { maxWaitMs: 60_000, overloadWaitMs: 60_000 };

function openQueue(max: number, options = patient): ReadQueue {
  pool = new pg.Pool({
    connectionString: database.url,
    Client: ReadingClient as unknown as new () => pg.ClientBase,
    max,
  });
  // The database is dropped while connections close; the store's own pools listen for that too.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return createReadQueue(pool, options);
}

const statement = (text: string, values: unknown[] = [], more: Partial<Statement> = {}): Statement => ({
  text,
  values,
  isShort: true,
  ...more,
});
const number = (n: number) =>
  statement('select $1::int as n, pg_backend_pid() as pid', [n], { name: 'number' }) as Statement;
const sleep = (seconds: number, isShort: boolean) =>
  statement('select 1 from pg_sleep($1)', [seconds], { isShort });

test('every read gets its own rows, and many are pipelined', async () => {
  const queue = openQueue(10);
  const numbers = Array.from({ length: 300 }, (_, n) => n);
  let lent = 0;
  for (let round = 0; round < 5; round++) {
    // In the first round no connection has prepared the statement, and each read goes alone.
    if (round === 1) pool.on('acquire', () => lent++);
    const rows = await Promise.all(numbers.map((n) => queue.run(number(n))));
    expect(rows.map(([row]) => row?.n)).toEqual(numbers);
  }
  expect(lent).toBeLessThan(4 * numbers.length);
  expect(queue.waiting).toBe(0);
});

test('a read that fails fails alone', async () => {
  const queue = openQueue(1);
  const asked = Array.from({ length: 40 }, (_, n) =>
    queue.run(statement('select 100 / $1::int as quotient', [n % 10], { name: 'share' })),
  );
  const outcomes = await Promise.allSettled(asked);
  for (const [n, outcome] of outcomes.entries()) {
    if (n % 10 === 0) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'division by zero' } });
    } else {
      expect(outcome).toEqual({ status: 'fulfilled', value: [{ quotient: Math.floor(100 / (n % 10)) }] });
    }
  }
});

test('a statement that cannot be prepared does not make other reads fail', async () => {
  const queue = openQueue(1);
  const wrong = () => queue.run(statement('select nothing from nowhere', [], { name: 'wrong' }));
  const outcomes = await Promise.allSettled([wrong(), wrong(), queue.run(number(1)), wrong(), wrong()]);
  const reasons = outcomes.map((outcome) =>
    outcome.status === 'rejected' ? outcome.reason.message : outcome.value[0],
  );
  const missing = 'relation "nowhere" does not exist';
  expect(reasons).toEqual([missing, missing, { n: 1, pid: expect.any(Number) }, missing, missing]);
});

test('no read waits behind a long one', { tags: 'slow' }, async () => {
  const queue = openQueue(2);
  await Promise.all([queue.run(number(0)), queue.run(number(0))]);
  const ended: string[] = [];
  const long = queue.run(sleep(2, false)).then(() => ended.push('long'));
  await Promise.all(
    Array.from({ length: 50 }, (_, n) => queue.run(number(n)).then(() => ended.push('short'))),
  );
  await long;
  expect(ended.at(-1)).toBe('long');
  expect(ended).toHaveLength(51);
});

test('a read that waits too long is rejected, also behind others in a batch', { tags: 'slow' }, async () => {
  const queue = openQueue(1, { maxWaitMs: 300, overloadWaitMs: 60_000 });
  await queue.run(sleep(0, true));
  // What has been short so far goes together, though this is not.
  const asked = await Promise.allSettled(Array.from({ length: 12 }, () => queue.run(sleep(1.5, true))));
  const [first, ...others] = asked;
  expect(first?.status).toBe('fulfilled');
  for (const other of others) {
    expect(other.status).toBe('rejected');
    expect((other as PromiseRejectedResult).reason).toBeInstanceOf(DatabaseBusyError);
  }
});

test('in overload the queue is LIFO and sheds old reads, and afterwards it is FIFO again', {
  tags: 'slow',
}, async () => {
  const queue = openQueue(1, { maxWaitMs: 400, overloadWaitMs: 100 });
  const ended: { readonly asked: number; readonly isServed: boolean }[] = [];
  const all: Promise<unknown>[] = [];
  // Four times as many as one connection can serve.
  for (let asked = 0; asked < 300; asked++) {
    const read = queue.run(sleep(0.04, false));
    all.push(
      read.then(
        () => ended.push({ asked, isServed: true }),
        (error) => {
          expect(error).toBeInstanceOf(DatabaseBusyError);
          ended.push({ asked, isServed: false });
        },
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await Promise.all(all);
  const served = ended.filter(({ isServed }) => isServed).map(({ asked }) => asked);
  const refused = ended.filter(({ isServed }) => !isServed).map(({ asked }) => asked);
  expect(refused.length).toBeGreaterThan(0);
  // In a FIFO queue no read is served before an older one.
  const overtakers = ended.filter(({ asked, isServed }, index) =>
    isServed ? ended.slice(index + 1).some((later) => later.asked < asked) : false,
  );
  expect(overtakers.length).toBeGreaterThan(0);
  expect(served[0]).toBe(0);
  expect(queue.waiting).toBe(0);

  const order: number[] = [];
  await Promise.all(Array.from({ length: 5 }, (_, n) => queue.run(number(n)).then(() => order.push(n))));
  expect(order).toEqual([0, 1, 2, 3, 4]);
});
