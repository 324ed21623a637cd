/**
 * Rows as the driver returns them, without any of its internals: the reference for tests and benchmarks (`rawRows: false`).
 *
 * It gives the same results as `raw-rows.ts`. It costs more, because each value becomes a string and then bytes again, and
 * because the database sends all rows of a long page before those beyond the bound are dropped.
 */
import type pg from 'pg';
import { ROW_HEADER_BYTES, type RowBound, type Rows, VALUE_HEADER_BYTES } from './rows.ts';
import type { Statement } from './statement.ts';

type DriverRow = readonly (string | null)[];

/** Values as the text that the database sent: no Date, no Buffer, no number. */
const asText = { getTypeParser: () => (value: string) => value };

export async function collectDriverRows<T>(
  client: pg.ClientBase,
  { text, values, name, query_timeout, bound }: Statement<T>,
  collect: (rows: Rows) => T,
): Promise<T> {
  const { rows } = await client.query<(string | null)[]>({
    text,
    ...(values && { values }),
    ...(name !== undefined && { name }),
    ...(query_timeout !== undefined && { query_timeout }),
    rowMode: 'array',
    types: asText as unknown as pg.CustomTypesConfig,
  });
  const kept = bound ? rows.slice(0, fittingRows(rows, bound)) : rows;
  return collect(createDriverRows(kept, kept.length < rows.length));
}

/** How many of the rows fit the bound; the first one always does. */
function fittingRows(rows: readonly DriverRow[], { maxBytes }: RowBound): number {
  let bytes = 0;
  const firstDropped = rows.findIndex((row, index) => {
    bytes += row.reduce(
      (sum, value) => sum + VALUE_HEADER_BYTES + Buffer.byteLength(value ?? ''),
      ROW_HEADER_BYTES,
    );
    return index > 0 && bytes > maxBytes;
  });
  return firstDropped === -1 ? rows.length : firstDropped;
}

function createDriverRows(rows: readonly DriverRow[], isCut: boolean, hiddenColumns = 0): Rows {
  const text = (row: number, column: number) => rows[row]?.[hiddenColumns + column] ?? '';
  return {
    count: rows.length,
    isCut,
    text,
    byteLength: (row, column) => Buffer.byteLength(text(row, column)),
    copy: (row, column, target, offset) => offset + target.write(text(row, column), offset),
    withoutColumns: (count) => createDriverRows(rows, isCut, hiddenColumns + count),
  };
}
