/**
 * Raw rows: rows as the bytes that the database sent, in the memory of the connection.
 *
 * The driver makes a string of every value. A stored record goes out as it is, so that string would only be turned into
 * bytes again. Here rows are cut out of the incoming chunks before the driver's parser sees them, and stay bytes until
 * they are copied into a page. This file knows PostgreSQL's protocol only; `raw-query.ts` connects it to the driver.
 */
/** Bytes before the values of a row, and before each of them: the number of columns, and the length of the value. */
const ROW_HEADER_BYTES = 2;
const VALUE_HEADER_BYTES = 4;
/** Memory for the rows of one read that outlast a chunk; what a longer read took beyond it is freed. Chosen, not measured. */
const ROW_BUFFER_BYTES = 256 * 1024;
/** Header of a message: a code, and the length of what follows the code, including its own four bytes. */
const MESSAGE_HEADER_BYTES = 5;
const DATA_ROW = 'D'.charCodeAt(0);

/**
 * The rows of one result, only valid until the `collect` of the statement returns: what is needed afterwards has to be copied.
 * A connection has one instance, because the database answers one statement after the other.
 */
export class RawRows {
  /** Offset of each row: in `#kept` for the first `#keptRows`, in the latest chunk for the others. */
  #starts: number[] = [];
  #keptRows = 0;
  #kept: Buffer = Buffer.allocUnsafeSlow(0);
  #keptBytes = 0;
  #chunk = this.#kept;
  #chunkEnd = 0;
  #hiddenColumns = 0;
  #isCut = false;

  /** Whether there were more rows than the bound of the statement allows. */
  get isCut(): boolean {
    return this.#isCut;
  }

  get count(): number {
    return this.#starts.length;
  }

  /** How many bytes a value has; 0 for null. */
  byteLength(row: number, column: number): number {
    return lengthAt(this.#bytesOf(row), this.#find(row, column));
  }

  /** Copies a value to `target` at `offset`. Returns the offset of the end of the copy. */
  copy(row: number, column: number, target: Buffer, offset: number): number {
    const bytes = this.#bytesOf(row);
    const start = this.#find(row, column);
    const length = lengthAt(bytes, start);
    target.set(bytes.subarray(start, start + length), offset);
    return offset + length;
  }

  /** The value as a string; empty for null. */
  text(row: number, column: number): string {
    const bytes = this.#bytesOf(row);
    const start = this.#find(row, column);
    return bytes.toString('utf8', start, start + lengthAt(bytes, start));
  }

  /** The same rows without their first columns. */
  withoutColumns(count: number): RawRows {
    const rows = new RawRows();
    rows.#starts = this.#starts;
    rows.#keptRows = this.#keptRows;
    rows.#kept = this.#kept;
    rows.#chunk = this.#chunk;
    rows.#hiddenColumns = this.#hiddenColumns + count;
    rows.#isCut = this.#isCut;
    return rows;
  }

  /** Adds a row of the latest chunk. `keep` has to be called before the chunk is overwritten. */
  add({ bytes, start, end }: RowMessage): void {
    if (this.#chunk !== bytes) {
      this.keep();
      this.#chunk = bytes;
    }
    this.#starts.push(start);
    this.#chunkEnd = end;
  }

  /** Copies the rows that are only in the chunk. It copies one piece, because little else can be between rows. */
  keep(): void {
    const first = this.#starts[this.#keptRows];
    if (first === undefined) return;
    const moved = this.#keptBytes - first;
    const needed = this.#chunkEnd + moved;
    if (needed > this.#kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#kept.length * 2, ROW_BUFFER_BYTES));
      this.#kept.copy(larger, 0, 0, this.#keptBytes);
      this.#kept = larger;
    }
    this.#chunk.copy(this.#kept, this.#keptBytes, first, this.#chunkEnd);
    for (let row = this.#keptRows; row < this.#starts.length; row++)
      this.#starts[row] = (this.#starts[row] as number) + moved;
    this.#keptRows = this.#starts.length;
    this.#keptBytes = needed;
  }

  /** Records that the following rows were dropped. */
  cut(): void {
    this.#isCut = true;
  }

  clear(): void {
    this.#isCut = false;
    this.#starts.length = 0;
    this.#keptRows = 0;
    this.#keptBytes = 0;
    if (this.#kept.length > ROW_BUFFER_BYTES) this.#kept = Buffer.allocUnsafeSlow(0);
  }

  #bytesOf(row: number): Buffer {
    return row < this.#keptRows ? this.#kept : this.#chunk;
  }

  /** Offset of a value; its length stands before it. */
  #find(row: number, column: number): number {
    const bytes = this.#bytesOf(row);
    let at = (this.#starts[row] as number) + ROW_HEADER_BYTES + VALUE_HEADER_BYTES;
    for (let before = this.#hiddenColumns + column; before > 0; before--)
      at += lengthAt(bytes, at) + VALUE_HEADER_BYTES;
    return at;
  }
}

export const noRows = new RawRows();

function lengthAt(bytes: Buffer, start: number): number {
  return Math.max(0, bytes.readInt32BE(start - VALUE_HEADER_BYTES));
}

/** A row that is not decoded yet. To the driver it is a `DataRowMessage`, whose `fields` are decoded when they are read. */
export class RowMessage {
  readonly name = 'dataRow';
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }

  get fields(): (string | null)[] {
    const { bytes, start } = this;
    const fields: (string | null)[] = [];
    let at = start + ROW_HEADER_BYTES;
    for (let left = bytes.readUInt16BE(start); left > 0; left--) {
      const isNull = bytes.readInt32BE(at) < 0;
      at += VALUE_HEADER_BYTES;
      const end = at + lengthAt(bytes, at);
      fields.push(isNull ? null : bytes.toString('utf8', at, end));
      at = end;
    }
    return fields;
  }
}

/**
 * Splits incoming chunks, which may end anywhere, into rows and runs of other messages, in their order. Both are valid
 * until the next chunk, which may overwrite this one.
 */
export function createMessageSplitter(
  onRow: (row: RowMessage) => void,
  onOthers: (messages: Buffer) => void,
): (chunk: Buffer) => void {
  /** Parts of an incomplete message, their bytes, and the bytes that are needed to go on. */
  let parts: Buffer[] = [];
  let heldBytes = 0;
  let neededBytes = 0;

  const hold = (part: Buffer) => {
    parts = [part];
    heldBytes = part.length;
    neededBytes = heldBytes < MESSAGE_HEADER_BYTES ? MESSAGE_HEADER_BYTES : endOfMessage(part, 0);
  };

  /** Passes on all complete messages from `start`. Returns where the last of them ends. */
  const passOn = (bytes: Buffer, start: number): number => {
    let at = start;
    let passed = start;
    while (at + MESSAGE_HEADER_BYTES <= bytes.length) {
      const end = endOfMessage(bytes, at);
      if (end > bytes.length) break;
      if (bytes[at] === DATA_ROW) {
        if (passed < at) onOthers(bytes.subarray(passed, at));
        onRow(new RowMessage(bytes, at + MESSAGE_HEADER_BYTES, end));
        passed = end;
      }
      at = end;
    }
    if (passed < at) onOthers(bytes.subarray(passed, at));
    return at;
  };

  return (chunk) => {
    let at = 0;
    while (heldBytes > 0 && at < chunk.length) {
      const part = Buffer.from(chunk.subarray(at, at + neededBytes - heldBytes));
      parts.push(part);
      heldBytes += part.length;
      at += part.length;
      if (heldBytes < neededBytes) return;
      const bytes = Buffer.concat(parts, heldBytes);
      heldBytes = 0;
      // It may have been the header only.
      if (passOn(bytes, 0) === 0) hold(bytes);
    }
    const end = passOn(chunk, at);
    if (end < chunk.length) hold(Buffer.from(chunk.subarray(end)));
  };
}

function endOfMessage(bytes: Buffer, start: number): number {
  return start + 1 + bytes.readUInt32BE(start + 1);
}
