/** Prepared statements are an LRU cache of bounded size, in this process and on each connection. */
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { filterNames, filterTable } from '../../../src/domain/filters/filter-table.ts';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { createReadQueue } from '../../../src/store/reads/read-queue.ts';
import { ReadingClient } from '../../../src/store/reads/reading-client.ts';
import { createStatementNames, MAX_PREPARED_STATEMENTS } from '../../../src/store/reads/statement-names.ts';
import { openStore } from '../../../src/store/store.ts';
import { startSystemServer, systemPostgres } from '../../chaos/system-postgres.ts';
import { createTestDatabase } from '../../database.ts';

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
  const queue = createReadQueue(pool, { maxWaitMs: 60_000, overloadWaitMs: 60_000 });
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
  test('a shape that comes late is prepared like the first ones, and the least recently used are evicted', {
    tags: 'slow',
  }, async () => {
    const { run, prepared } = openQueue();
    for (let number = 0; number < 3 * MAX_PREPARED_STATEMENTS; number++) {
      expect(await run(shape(number), [1])).toEqual([{ sum: number + 1 }]);
    }
    for (let i = 0; i < 5; i++) expect(await run(HOT, [i])).toEqual([{ hot: i }]);
    const kept = await prepared();
    expect(kept).toHaveLength(MAX_PREPARED_STATEMENTS);
    expect(kept.find(({ statement }) => statement === HOT)).toMatchObject({ calls: 5 });
    expect(kept.some(({ statement }) => statement === shape(0))).toBe(false);
  });

  test('a shape that is always in use stays prepared, and an evicted one is prepared again', {
    tags: 'slow',
  }, async () => {
    const { run, prepared } = openQueue();
    for (let number = 0; number < 2 * MAX_PREPARED_STATEMENTS; number++) {
      await run(HOT, [number]);
      await run(shape(number), [1]);
    }
    const hot = (await prepared()).filter(({ statement }) => statement === HOT);
    expect(hot).toMatchObject([{ calls: 2 * MAX_PREPARED_STATEMENTS }]);
    await run(shape(0), [1]);
    await run(shape(0), [2]);
    const again = (await prepared()).filter(({ statement }) => statement === shape(0));
    expect(again).toMatchObject([{ calls: 2 }]);
  });

  test('many at once, some of which fail, leave the connection usable and the number bounded', {
    tags: 'slow',
  }, async () => {
    const { run, prepared } = openQueue();
    const answers = await Promise.allSettled(
      Array.from({ length: 4 * MAX_PREPARED_STATEMENTS }, (_, number) =>
        number % 7 === 0 ? run(`${shape(number)} / 0`, [1]) : run(shape(number % 300), [number]),
      ),
    );
    answers.forEach((answer, number) => {
      if (number % 7 === 0) expect(answer.status).toBe('rejected');
      else expect(answer).toMatchObject({ value: [{ sum: (number % 300) + number }] });
    });
    expect((await prepared()).length).toBeLessThanOrEqual(MAX_PREPARED_STATEMENTS);
  });
});

test.skipIf(systemPostgres === undefined)(
  'a search whose filters come after hundreds of others is prepared (needs PostgreSQL of the operating system)',
  { tags: 'slow' },
  async () => {
    const server = await startSystemServer();
    onTestFinished(() => server.remove());
    const store = await openStore({ place: { url: server.url }, connections: 1 });
    onTestFinished(() => store.close());
    const search = (names: readonly (typeof filterNames)[number][]) =>
      store.search(parseSearch(names.map((name) => [name, filterTable[name].example])));
    const others = filterNames.filter((name) => name !== 'messageId').slice(0, 9);
    for (let bits = 0; bits < 2 * MAX_PREPARED_STATEMENTS; bits++) {
      await search(others.filter((_, index) => bits & (1 << index)));
    }
    for (let i = 0; i < 3; i++) await search(['messageId', 'sender', 'receiver']);
    const late = 'message_id = any';
    expect(server.statements(new RegExp(`execute <unnamed>: .*${late}`, 's'))).toBe(0);
    expect(server.statements(new RegExp(`execute lanescan_\\d+: .*${late}`, 's'))).toBe(3);
  },
);
