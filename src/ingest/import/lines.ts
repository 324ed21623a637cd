/**
 * Reads lines from a byte stream that may be gzip, in constant memory.
 *
 * Lines are bytes, not text, because UTF-8 is validated line by line. Of a line longer than the limit only the length is
 * kept.
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
 * Every line with its number, counted from 1, in lists of those that end in one chunk of the stream. Blank lines are left
 * out; a byte order mark and carriage returns before the newline are removed.
 */
export async function* readLines(
  stream: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<readonly Line[]> {
  const pending = createPendingLine(maxLineBytes);
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

/** The line that is being assembled from chunks. Past the limit only its length is kept. */
function createPendingLine(maxBytes: number) {
  let parts: Buffer[] = [];
  let length = 0;
  return {
    add(part: Buffer): void {
      length += part.length;
      if (length > maxBytes) parts = [];
      else if (part.length > 0) parts.push(part);
    },
    take(number: number): Line | undefined {
      const taken = parts;
      const takenLength = length;
      parts = [];
      length = 0;
      if (takenLength > maxBytes) return { number, tooLong: takenLength };
      let bytes = taken.length === 1 && taken[0] ? taken[0] : Buffer.concat(taken);
      if (bytes.at(-1) === CARRIAGE_RETURN) bytes = bytes.subarray(0, -1);
      if (number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) bytes = bytes.subarray(3);
      return bytes.every((byte) => byte === 0x20 || byte === 0x09) ? undefined : { number, bytes };
    },
  };
}

/** The bytes of the stream, decompressed if it is gzip (also with several members). */
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
