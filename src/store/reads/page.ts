/** A page of a search: stored records, joined into the JSON that is sent to the client. */
import { hash } from 'node:crypto';
import type { CursorCodec } from '../../domain/filters/cursor.ts';
import type { PageKey, SearchQuery } from '../../domain/filters/query.ts';
import { sentAtOf } from '../write/message-row.ts';
import type { RawRows } from './raw-rows.ts';

/** The text before and after the records, which are separated by commas. */
export interface PageFrame {
  readonly head: string;
  readonly tail: (cursor: string | null) => string;
}

/** The default: a JSON array. */
export const arrayFrame: PageFrame = { head: '[', tail: () => ']' };

export class Page {
  /** The records in their frame. */
  readonly json: Buffer;
  /** The cursor of the next page; null on the last one. */
  readonly cursor: string | null;
  /** A hash of the page: of the digests of its records, the view and the frame. Pages with different bytes differ in it. */
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

  /** The records one by one. */
  get records(): readonly string[] {
    let at = this.#start;
    return this.#lengths.map((length) => {
      const record = this.json.toString('utf8', at, at + length);
      at += length + 1;
      return record;
    });
  }
}

/** Columns of the rows of `searchSql`. */
const DIGEST = 0;
const RECORD = 1;
/** In hex. */
const MESSAGE_ID = 2;
const SORT_KEY = 3;
const COMMA = ','.charCodeAt(0);

/** Makes a page of the rows of `searchSql`, which reads one row more than the page shows. */
export function readPage(
  rows: RawRows,
  { filters, view, limit }: SearchQuery,
  frame: PageFrame,
  cursors: CursorCodec,
): Page {
  const shown = Math.min(rows.count, limit);
  const hasMore = rows.isCut || rows.count > limit;
  const cursor = hasMore ? cursors.encode({ filters, view, after: keyOf(rows, shown - 1) }) : null;
  const { head } = frame;
  const tail = frame.tail(cursor);
  // With the records, everything that the page depends on.
  const around = Buffer.from(view + head + tail);
  const start = Buffer.byteLength(head);
  const lengths: number[] = [];
  let length = start + Math.max(0, shown - 1) + Buffer.byteLength(tail);
  let digestsLength = around.length;
  for (let row = 0; row < shown; row++) {
    const recordLength = rows.byteLength(row, RECORD);
    lengths.push(recordLength);
    length += recordLength;
    digestsLength += rows.byteLength(row, DIGEST);
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

/** The sort key of a row. */
function keyOf(rows: RawRows, row: number): PageKey {
  return {
    sentAt: sentAtOf(rows.text(row, SORT_KEY)),
    messageId: rows.text(row, MESSAGE_ID),
  };
}
