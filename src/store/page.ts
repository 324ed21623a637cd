/** Pages: stored records as they are, in JSON that is ready to go out. */
import { hash } from 'node:crypto';
import type { CursorCodec } from '../domain/cursor.ts';
import type { PageKey, SearchQuery } from '../domain/query.ts';
import type { RawRows } from './raw-rows.ts';

/** What stands around the records, which are separated by commas. */
export interface PageFrame {
  readonly head: string;
  readonly tail: (cursor: string | null) => string;
}

/** Where nothing else is wanted: a JSON array. */
export const arrayFrame: PageFrame = { head: '[', tail: () => ']' };

export class Page {
  /** The records in their frame. */
  readonly json: Buffer;
  /** The cursor of the next page; null on the last one. */
  readonly cursor: string | null;
  /** Changes with the page. */
  readonly digest: string;
  readonly #start: number;
  readonly #lengths: readonly number[];

  constructor(
    json: Buffer,
    cursor: string | null,
    digest: string,
    start: number,
    lengths: readonly number[],
  ) {
    this.json = json;
    this.cursor = cursor;
    this.digest = digest;
    this.#start = start;
    this.#lengths = lengths;
  }

  /** Each of them, as it is stored. */
  get records(): readonly string[] {
    let at = this.#start;
    return this.#lengths.map((length) => {
      const record = this.json.toString('utf8', at, at + length);
      at += length + 1;
      return record;
    });
  }
}

/** Columns of `searchSql`. */
const DIGEST = 0;
const RECORD = 1;
const COMMA = ','.charCodeAt(0);

/** The page that the rows of `searchSql` make. */
export function readPage(
  rows: RawRows,
  { filters, view, limit }: SearchQuery,
  frame: PageFrame,
  cursors: CursorCodec,
): Page {
  const shown = Math.min(rows.count, limit);
  const cursor =
    rows.count > limit ? cursors.encode({ filters, view, after: keyOf(rows.text(shown - 1, RECORD)) }) : null;
  const { head } = frame;
  const tail = frame.tail(cursor);
  // The records apart, this is what the page is made of.
  const around = Buffer.from(view + head + tail);
  const start = Buffer.byteLength(head);
  const lengths: number[] = [];
  let length = start + Math.max(0, shown - 1) + Buffer.byteLength(tail);
  let digestsLength = around.length;
  for (let row = 0; row < shown; row++) {
    const recordLength = rows.lengthOf(row, RECORD);
    lengths.push(recordLength);
    length += recordLength;
    digestsLength += rows.lengthOf(row, DIGEST);
  }

  const json = Buffer.allocUnsafeSlow(length);
  const digests = Buffer.allocUnsafe(digestsLength);
  json.write(head);
  let at = start;
  let digestsAt = 0;
  for (let row = 0; row < shown; row++) {
    if (row > 0) json[at++] = COMMA;
    at = rows.copy(row, RECORD, json, at);
    digestsAt = rows.copy(row, DIGEST, digests, digestsAt);
  }
  json.write(tail, at);
  digests.set(around, digestsAt);
  return new Page(json, cursor, hash('sha1', digests, 'base64url'), start, lengths);
}

/** In JSON these characters cannot be part of a text: a quote inside one has a backslash before it. */
const MESSAGE_ID = '"messageId":"0x';
const SEND_TIMESTAMP = '"sendTimestamp":"';

/** The order's key of a stored record; both of its fields stand in either view, and there is no need to parse the rest. */
function keyOf(record: string): PageKey {
  const messageId = textBehind(record, MESSAGE_ID);
  const sentAt = Date.parse(textBehind(record, SEND_TIMESTAMP));
  if (!/^[0-9a-f]{64}$/.test(messageId) || Number.isNaN(sentAt))
    throw new Error('A stored record has no key');
  return { sentAt, messageId };
}

function textBehind(record: string, name: string): string {
  const start = record.indexOf(name);
  return start === -1 ? '' : record.slice(start + name.length, record.indexOf('"', start + name.length));
}
