import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CopyColumns, type CopyValue, copyRows } from '../../../src/store/write/copy.ts';
import { createTestDatabase, type TestDatabase } from '../../database.ts';
import { connectTo } from '../../postgres.ts';

const columns: CopyColumns = {
  place: 'integer',
  flag: 'boolean',
  small: 'smallint',
  big: 'bigint',
  number: 'numeric',
  moment: 'timestamptz',
  words: 'text',
  bytes: 'bytea',
};

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  client = await connectTo(database.url, { options: '-c timezone=UTC' });
  const definitions = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
  await client.query(`create table copied (${definitions.join(', ')})`);
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

/** The rows as the server shows them, each as a list of texts. */
async function copied(rows: readonly (readonly CopyValue[])[]): Promise<unknown[][]> {
  await client.query('truncate copied');
  await copyRows(client, 'copied', columns, rows, (row) => row);
  const result = await client.query({
    text: `select place::text, flag::text, small::text, big::text, number::text,
                  to_char(moment, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), words, encode(bytes, 'hex')
           from copied order by copied.place`,
    rowMode: 'array',
  });
  return result.rows;
}

const shown = (row: readonly CopyValue[]) => row.map((value) => (value === null ? null : String(value)));

const int16 = fc.integer({ min: -32_768, max: 32_767 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const moment = fc
  .date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  .map((date) => date.toISOString());
const words = fc.string({ unit: 'grapheme', maxLength: 300 });
const hex = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes).toString('hex'));

describe('copied rows', () => {
  it('arrive as they were given, whatever their values', async () => {
    const row = fc.tuple(
      fc.boolean(),
      fc.option(int16),
      fc.option(fc.oneof(int64, int64.map(String), fc.maxSafeInteger())),
      fc.option(uint64.map(String)),
      fc.option(moment),
      fc.option(words),
      fc.option(hex),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 50 }), async (values) => {
        const rows = values.map((rest, place) => [place, ...rest]);
        expect(await copied(rows)).toEqual(rows.map(shown));
      }),
      { numRuns: 50 },
    );
  });

  it('arrive at the ends of their ranges', async () => {
    const first = [0, true, -32_768, String(-(2n ** 63n)), '0', '1970-01-01T00:00:00.000Z', '', ''];
    const last = [
      1,
      false,
      32_767,
      2n ** 63n - 1n,
      '18446744073709551615',
      '9999-12-31T23:59:59.999Z',
      '\\N\t\n',
      'ff',
    ];
    const round = [2, false, 0, 0, '100000000', '2000-01-01T00:00:00.000Z', '🚀 é', '00'];
    expect(await copied([first, last, round])).toEqual([first, last, round].map(shown));
  });

  it('may be longer than a chunk, and more than one chunk holds', async () => {
    const rows = [3_000_000, 1, 200_000, ...Array.from({ length: 2_000 }, () => 500)].map((length, place) => [
      place,
      true,
      null,
      null,
      null,
      null,
      'é'.repeat(length),
      'ab'.repeat(length % 1_000),
    ]);
    expect(await copied(rows)).toEqual(rows.map(shown));
  });

  it('are rejected as a whole where bytes are no hex, and the connection stays good', async () => {
    const good = [0, true, null, null, null, null, null, 'ab'];
    for (const bytes of ['xy', 'abc', 'ab0']) {
      const bad = [1, true, null, null, null, null, null, bytes];
      await expect(copied([good, bad])).rejects.toThrow(`Not bytes in hex: ${bytes}`);
    }
    expect((await client.query('select from copied')).rowCount).toBe(0);
    expect(await copied([good])).toEqual([shown(good)]);
  });
});
