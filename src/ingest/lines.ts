/**
 * Lines out of a byte stream that may be gzip, in constant memory whatever the stream holds.
 *
 * Lines are bytes, not text: whether they are valid UTF-8 is for the reader of a line to judge, one line at a
 * time. A line longer than the limit is reported by its length and never held.
 */
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

export type Line =
  | { readonly number: number; readonly bytes: Buffer }
  | { readonly number: number; readonly tooLong: number };

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Every line with its number, counted from 1, in lists of those that end in one chunk of the stream. Lines of nothing
 * but white space are left out; a byte order mark and carriage returns before the newline do not count.
 */
export async function* readLines(
  stream: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<readonly Line[]> {
  const pending = new PendingLine(maxLineBytes);
  let number = 0;
  for await (const chunk of stream) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      pending.add(chunk.subarray(start, end));
      const line = pending.take(++number);
      if (line) lines.push(line);
      start = end + 1;
    }
    pending.add(chunk.subarray(start));
    yield lines;
  }
  const last = pending.take(++number);
  if (last) yield [last];
}

/** The line that is being put together from chunks. Past the limit only its length is kept. */
class PendingLine {
  private readonly maxBytes: number;
  private parts: Buffer[] = [];
  private length = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  add(part: Buffer): void {
    this.length += part.length;
    if (this.length > this.maxBytes) this.parts = [];
    else if (part.length > 0) this.parts.push(part);
  }

  take(number: number): Line | undefined {
    const { parts, length } = this;
    this.parts = [];
    this.length = 0;
    if (length > this.maxBytes) return { number, tooLong: length };
    let bytes = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    if (bytes.at(-1) === CARRIAGE_RETURN) bytes = bytes.subarray(0, -1);
    if (number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) bytes = bytes.subarray(3);
    return bytes.every((byte) => byte === 0x20 || byte === 0x09) ? undefined : { number, bytes };
  }
}

/** The stream's bytes, unpacked when it begins like gzip (several members in a row included). */
export async function* decompressed(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = stream[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < 2) {
    const { value, done } = await chunks.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  const whole = async function* () {
    if (head.length > 0) yield head;
    yield* { [Symbol.asyncIterator]: () => chunks };
  };
  if (head[0] !== 0x1f || head[1] !== 0x8b) {
    yield* whole();
    return;
  }
  const gunzip = createGunzip();
  // A failure on either side destroys `gunzip` with the error, which the loop below then throws.
  pipeline(whole(), gunzip).catch(() => undefined);
  yield* gunzip;
}
