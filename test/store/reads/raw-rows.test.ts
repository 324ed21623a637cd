/** Rows as bytes: chunks that end anywhere and are overwritten, bounds, failures, time limits. */
import { Buffer } from 'node:buffer';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createMessageSplitter, type RawRows } from '../../../src/store/reads/raw-rows.ts';
import { ReadingClient } from '../../../src/store/reads/reading-client.ts';
import type { RowBound } from '../../../src/store/reads/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../database.ts';
import { connectTo } from '../../postgres.ts';

function message(code: string, content: Buffer): Buffer {
  const header = Buffer.alloc(5);
  header.write(code);
  header.writeUInt32BE(content.length + 4, 1);
  return Buffer.concat([header, content]);
}

function row(...values: readonly (string | null)[]): Buffer {
  const parts = values.map((value) => {
    const bytes = Buffer.from(value ?? '');
    const length = Buffer.alloc(4);
    length.writeInt32BE(value === null ? -1 : bytes.length);
    return Buffer.concat([length, bytes]);
  });
  const count = Buffer.alloc(2);
  count.writeInt16BE(values.length);
  return message('D', Buffer.concat([count, ...parts]));
}

describe('the splitter of messages', () => {
  const values = [
    ['one', null, ''],
    ['zwölf', '2', 'x'.repeat(300)],
    ['', '', ''],
  ];
  const sent = [
    message('2', Buffer.alloc(0)),
    ...values.map((list) => row(...list)),
    message('N', Buffer.from('a notice between rows')),
    row('after it'),
    message('C', Buffer.from('SELECT 4\0')),
    message('Z', Buffer.from('I')),
    row('of the next answer'),
  ];
  const whole = Buffer.concat(sent);
  const expected = [
    '2',
    ...values.map((list) => JSON.stringify(list)),
    'N',
    '["after it"]',
    'CZ',
    '["of the next answer"]',
  ];

  /** What the splitter passes on for chunks that end at these places and are overwritten by the next chunk. */
  function split(places: readonly number[]): string[] {
    const passedOn: string[] = [];
    const take = createMessageSplitter(
      ({ fields }) => passedOn.push(JSON.stringify(fields)),
      (messages) => {
        let codes = '';
        for (let at = 0; at < messages.length; at += 1 + messages.readUInt32BE(at + 1)) {
          codes += String.fromCharCode(messages[at] ?? 0);
        }
        passedOn.push(codes);
      },
    );
    const memory = Buffer.alloc(whole.length);
    let start = 0;
    for (const end of [...places, whole.length]) {
      memory.fill('D');
      whole.copy(memory, 0, start, end);
      take(memory.subarray(0, end - start));
      start = end;
    }
    // Where runs of other messages are cut does not matter.
    return passedOn
      .join('\n')
      .replaceAll(/(?<=^[A-Z2])\n(?=[A-Z]$)/gm, '')
      .split('\n');
  }

  test('keeps the order, wherever a chunk ends', () => {
    for (let place = 0; place <= whole.length; place++) expect(split([place])).toEqual(expected);
  });

  test('keeps the order in chunks of any length', () => {
    for (let length = 1; length <= 400; length++) {
      const places = Array.from({ length: Math.floor(whole.length / length) }, (_, n) => n * length);
      expect(split(places)).toEqual(expected);
    }
  });
});

describe('raw rows', () => {
  let database: TestDatabase;
  let client: ReadingClient;

  beforeEach(async () => {
    database = await createTestDatabase({ empty: true });
    client = new ReadingClient({ connectionString: database.url });
    await client.connect();
  });
  afterEach(async () => {
    await client.end();
    await database.drop();
  });

  const run = <T>(
    statement: pg.QueryConfig & { bound?: RowBound },
    collect: (rows: RawRows) => T,
  ): Promise<T> => client.run({ ...statement, collect });
  const texts = (rows: RawRows) => Array.from({ length: rows.count }, (_, n) => rows.text(n, 0));
  const lines = (count: number, length: number) => ({
    text: `select n || repeat('é', $2::int) from generate_series(1, $1::int) n`,
    values: [count, length],
  });
  const linesMade = (count: number, length: number) =>
    Array.from({ length: count }, (_, n) => `${n + 1}${'é'.repeat(length)}`);

  test('come complete: few and many, short and long, prepared and not', { tags: 'slow' }, async () => {
    for (const name of [undefined, 'lines']) {
      for (const [count, length] of [
        [0, 0],
        [1, 0],
        [21, 800],
        [3, 400_000],
        [5_000, 60],
        [2, 10],
      ] as const) {
        const rows = await run({ ...(name && { name }), ...lines(count, length) }, texts);
        expect(rows).toEqual(linesMade(count, length));
      }
    }
  });

  test('are cut at their bound, in one fetch or in several, and the next statement gets its own', async () => {
    for (const firstRows of [undefined, 1, 7, 1_000]) {
      for (const [count, maxBytes, taken] of [
        [500, 10_000, 48],
        [500, 1, 1],
        [48, 10_000, 48],
        [500, 1_000_000, 500],
      ] as const) {
        const bound = { maxBytes, ...(firstRows && { firstRows }) };
        // 208 bytes a row, at most: the value, its length, and the number of columns.
        const text = `select lpad(n::text, 202, '.') from generate_series(1, ${count}) n`;
        const seen = await run({ text, bound }, (rows) => ({ count: rows.count, isCut: rows.isCut }));
        expect(seen).toEqual({ count: taken, isCut: taken < count });
        expect(await run(lines(2, 10), texts)).toEqual(linesMade(2, 10));
      }
    }
  });

  test('a statement that fails in a later fetch reports it, and the connection stays usable', async () => {
    const text = 'select 1 / (n - 50) from generate_series(1, 100) n';
    await expect(run({ text, bound: { maxBytes: 10_000, firstRows: 10 } }, texts)).rejects.toThrow(
      'division',
    );
    expect(await run(lines(3, 1), texts)).toEqual(linesMade(3, 1));
  });

  test('have values, lengths, nulls and copies, also without their first columns', async () => {
    const statement = { text: 'select 7, null::text, $1::text, $2::text', values: ['', 'ü'] };
    const seen = await run(statement, (rows) => {
      const copy = Buffer.alloc(6, '.');
      const end = rows.copy(0, 3, copy, 2);
      return {
        count: rows.count,
        lengths: [0, 1, 2, 3].map((column) => rows.byteLength(0, column)),
        texts: [0, 1, 2, 3].map((column) => rows.text(0, column)),
        copy: copy.toString(),
        end,
        without: [
          rows.withoutColumns(2).text(0, 1),
          rows.withoutColumns(1).withoutColumns(2).text(0, 0),
          rows.withoutColumns(3).count,
        ],
      };
    });
    expect(seen).toEqual({
      count: 1,
      lengths: [1, 0, 0, 2],
      texts: ['7', '', '', 'ü'],
      copy: '..ü..',
      end: 4,
      without: ['ü', 'ü', 1],
    });
  });

  test('go to their own statement when several are pipelined, with and without collect', async () => {
    const asked = Array.from({ length: 60 }, (_, n) => {
      const statement = { name: 'both', ...lines(n % 25, 900) };
      return n % 3 === 0
        ? client.query({ ...statement, rowMode: 'array' }).then(({ rows }) => rows.flat())
        : run(statement, texts);
    });
    await client.pipelineTogether(() => Promise.all(asked));
    for (const [n, rows] of (await Promise.all(asked)).entries())
      expect(rows).toEqual(linesMade(n % 25, 900));
  });

  test('a statement that fails halfway, or whose collect throws, leaves nothing to the next', async () => {
    const failing = { text: 'select 100 / (5 - n) from generate_series(1, $1::int) n', values: [9] };
    const outcomes = await Promise.allSettled([
      run(failing, texts),
      run(lines(2, 3), texts),
      run(lines(4, 3), () => {
        throw new Error('not collected');
      }),
      run(lines(1, 3), texts),
      run({ text: 'select 1 where $1', values: [false] }, texts),
    ]);
    expect(outcomes).toEqual([
      { status: 'rejected', reason: expect.objectContaining({ message: 'division by zero' }) },
      { status: 'fulfilled', value: linesMade(2, 3) },
      { status: 'rejected', reason: new Error('not collected') },
      { status: 'fulfilled', value: linesMade(1, 3) },
      { status: 'fulfilled', value: [] },
    ]);
  });

  test('a statement with a time limit is given up after it', async () => {
    const statement = { text: 'select pg_sleep($1)', values: [3], query_timeout: 50 };
    await expect(run(statement, texts)).rejects.toThrow('Query read timeout');
  });

  test('a connection that breaks fails all of its statements', async () => {
    client.on('error', () => undefined);
    const asked = Promise.allSettled([
      run({ text: 'select pg_sleep($1)', values: [30] }, texts),
      run(lines(1, 1), texts),
    ]);
    const administrator = await connectTo(database.url);
    const { processID } = client as unknown as { processID: number };
    await administrator.query('select pg_terminate_backend($1::int)', [processID]);
    await administrator.end();
    for (const outcome of await asked) expect(outcome.status).toBe('rejected');
  });
});
