/** COPY rows into a table: the quickest way in, for one row as for thousands. */
import { pipeline } from 'node:stream/promises';
import type { ClientBase } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';

/** Bytes, given in hex. */
export interface Bytes {
  readonly hex: string;
}

export type CopyValue = string | number | boolean | null | Bytes;

const ROWS_PER_CHUNK = 500;

export async function copyRows(
  client: ClientBase,
  table: string,
  columns: readonly string[],
  rows: readonly (readonly CopyValue[])[],
): Promise<void> {
  if (rows.length === 0) return;
  await pipeline(
    encodeRows(rows),
    client.query(copyFrom(`copy ${table} (${columns.join(', ')}) from stdin`)),
  );
}

function* encodeRows(rows: readonly (readonly CopyValue[])[]): Iterable<Buffer> {
  for (let start = 0; start < rows.length; start += ROWS_PER_CHUNK) {
    let text = '';
    for (const row of rows.slice(start, start + ROWS_PER_CHUNK)) {
      text += row.map(encodeValue).join('\t');
      text += '\n';
    }
    yield Buffer.from(text);
  }
}

const specialCharacters = /[\\\n\r\t]/;
const escapes: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function encodeValue(value: CopyValue): string {
  if (value === null) return '\\N';
  if (typeof value === 'object') return `\\\\x${value.hex}`;
  const text = String(value);
  return specialCharacters.test(text)
    ? text.replace(/[\\\n\r\t]/g, (character) => escapes[character] ?? '')
    : text;
}
