/** Prepared statements are kept for those filters that were used last, and never more of them than a server should hold. */
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { filterNames, filterParameters, parseSearch } from '../../src/domain/search-parameters.ts';
import { ReadingClient } from '../../src/store/client.ts';
import { createReadQueue } from '../../src/store/read-queue.ts';
import { createStatementNames, NAMED_STATEMENTS } from '../../src/store/statement-names.ts';
import { openStore } from '../../src/store/store.ts';
import { startSystemServer, systemPostgres } from '../chaos/system-postgres.ts';
import { createTestDatabase } from '../database.ts';

let url: string;
beforeAll(async () => {
  const database = await createTestDatabase();
  url = database.url;
  return () => database.drop();
});

interface Prepared {
  readonly name: string;
  readonly statement: string;
  readonly calls: number;
}

/** Reads over one connection, as the store does them. */
function openQueue() {
  const pool = new pg.Pool({
    connectionString: url,
    Client: ReadingClient as unknown as new () => pg.ClientBase,
    max: 1,
    idleTimeoutMillis: 0,
  });
  // The database is dropped while connections close; the store's own pools listen for that too.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  onTestFinished(() => pool.end());
  const queue = createReadQueue(pool, { longestWaitMs: 60_000, lateMs: 60_000 });
  const nameOf = createStatementNames();
  return {
    run: (text: string, values: unknown[] = []) =>
      queue.run({ name: nameOf(text), text, values, isShort: true }),
    async prepared(): Promise<Prepared[]> {
      const rows = await queue.run({
        text: `select name, statement, (generic_plans + custom_plans)::int as calls from pg_prepared_statements
               where name like 'lanescan%'`,
      });
      return rows as unknown as Prepared[];
    },
  };
}

const shape = (number: number) => `select ${number} + $1::int as sum`;
const HOT = 'select $1::int as hot';

describe('with more shapes than there are names', () => {
  test('a shape that comes late is prepared like the first ones, and those used longest ago are given up', async () => {
    const { run, prepared } = openQueue();
    for (let number = 0; number < 3 * NAMED_STATEMENTS; number++) {
      expect(await run(shape(number), [1])).toEqual([{ sum: number + 1 }]);
    }
    for (let i = 0; i < 5; i++) expect(await run(HOT, [i])).toEqual([{ hot: i }]);
    const kept = await prepared();
    expect(kept).toHaveLength(NAMED_STATEMENTS);
    expect(kept.find(({ statement }) => statement === HOT)).toMatchObject({ calls: 5 });
    expect(kept.some(({ statement }) => statement === shape(0))).toBe(false);
  });

  test('one that is used all the time stays prepared; one that was given up is prepared again', async () => {
    const { run, prepared } = openQueue();
    for (let number = 0; number < 2 * NAMED_STATEMENTS; number++) {
      await run(HOT, [number]);
      await run(shape(number), [1]);
    }
    const hot = (await prepared()).filter(({ statement }) => statement === HOT);
    expect(hot).toMatchObject([{ calls: 2 * NAMED_STATEMENTS }]);
    await run(shape(0), [1]);
    await run(shape(0), [2]);
    const again = (await prepared()).filter(({ statement }) => statement === shape(0));
    expect(again).toMatchObject([{ calls: 2 }]);
  });

  test('many at once, among them some that fail, leave the connection whole and the number bounded', async () => {
    const { run, prepared } = openQueue();
    const answers = await Promise.allSettled(
      Array.from({ length: 4 * NAMED_STATEMENTS }, (_, number) =>
        number % 7 === 0 ? run(`${shape(number)} / 0`, [1]) : run(shape(number % 300), [number]),
      ),
    );
    answers.forEach((answer, number) => {
      if (number % 7 === 0) expect(answer.status).toBe('rejected');
      else expect(answer).toMatchObject({ value: [{ sum: (number % 300) + number }] });
    });
    expect((await prepared()).length).toBeLessThanOrEqual(NAMED_STATEMENTS);
  });
});

test.skipIf(systemPostgres === undefined)(
  'a search whose filters come after hundreds of others is prepared (needs PostgreSQL of the operating system)',
  async () => {
    const server = await startSystemServer();
    onTestFinished(() => server.remove());
    const store = await openStore({ place: { url: server.url }, connections: 1 });
    onTestFinished(() => store.close());
    const search = (names: readonly (typeof filterNames)[number][]) =>
      store.search(parseSearch(names.map((name) => [name, filterParameters[name].example])));
    const others = filterNames.filter((name) => name !== 'messageId').slice(0, 9);
    for (let bits = 0; bits < 2 * NAMED_STATEMENTS; bits++) {
      await search(others.filter((_, index) => bits & (1 << index)));
    }
    for (let i = 0; i < 3; i++) await search(['messageId', 'sender', 'receiver']);
    const late = 'message_id = any';
    expect(server.statements(new RegExp(`execute <unnamed>: .*${late}`, 's'))).toBe(0);
    expect(server.statements(new RegExp(`execute lanescan_\\d+: .*${late}`, 's'))).toBe(3);
  },
);
