/**
 * Rows as the bytes that the database sent.
 *
 * The driver makes a string of every value, which for records that go out as they are stored is work in vain, there and
 * back. Here a connection leaves its rows alone until somebody looks at them: the driver, who then gets the strings that
 * it expects, or a `RawQuery`, which gathers the rows and hands them over as they came. All else that the database says
 * goes to the driver's parser.
 *
 * The driver's types leave out what is used of it here; its `Query` and `Connection` are classes to build on, though.
 */
import { EventEmitter } from 'node:events';
import pg from 'pg';

/** A code, and the length of what follows it, its own four bytes included. */
const HEADER_BYTES = 5;
const DATA_ROW = 'D'.charCodeAt(0);
/** Of a row: how many columns, and how many bytes each of them has (-1 is null). */
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;
/** Gathered rows find room in this; what an unusually long answer has taken beyond it is given back. */
const USUAL_BYTES = 256 * 1024;

interface DriverConnection extends EventEmitter {
  attachListeners(stream: EventEmitter): void;
  execute(portal: { readonly portal: string; readonly rows: number }): void;
  flush(): void;
  sync(): void;
}

interface DriverQuery {
  prepare(connection: DriverConnection): void;
  handleError(error: unknown, connection: DriverConnection): void;
}

const driverQuery = pg.Query.prototype as unknown as DriverQuery;

/** How many bytes of rows a query takes. */
export interface RowBound {
  /** A row that would exceed this, and all rows after it, are dropped (`isCut`). The first row never is. */
  readonly maxBytes: number;
  /**
   * Rows to fetch first. The next fetch asks for as many rows of the same average size as still fit, so that the
   * database does not send much that is dropped. Nothing else may be sent over the connection meanwhile. Without it,
   * all rows are fetched at once: one round trip.
   */
  readonly firstRows?: number;
}

/** Rows in the memory of a connection: what shall outlast the moment has to be copied. */
export class RawRows {
  /** Where each row begins: the first ones in what was kept, those behind them in the chunk that came last. */
  #starts: number[] = [];
  #keptRows = 0;
  #kept: Buffer = Buffer.allocUnsafeSlow(0);
  #keptBytes = 0;
  #chunk = this.#kept;
  #chunkEnd = 0;
  #hiddenColumns = 0;
  #isCut = false;

  /** Whether there were more rows than the bound of the query allows. */
  get isCut(): boolean {
    return this.#isCut;
  }

  get count(): number {
    return this.#starts.length;
  }

  /** How many bytes a value has; none where it is null. */
  lengthOf(row: number, column: number): number {
    return lengthAt(this.#bytesOf(row), this.#find(row, column));
  }

  /** Returns where the copy ends. */
  copy(row: number, column: number, target: Buffer, at: number): number {
    const bytes = this.#bytesOf(row);
    const start = this.#find(row, column);
    const length = lengthAt(bytes, start);
    target.set(bytes.subarray(start, start + length), at);
    return at + length;
  }

  text(row: number, column: number): string {
    const bytes = this.#bytesOf(row);
    const start = this.#find(row, column);
    return bytes.toString('utf8', start, start + lengthAt(bytes, start));
  }

  /** The same rows without their first columns. */
  behind(columns: number): RawRows {
    const rows = new RawRows();
    rows.#starts = this.#starts;
    rows.#keptRows = this.#keptRows;
    rows.#kept = this.#kept;
    rows.#chunk = this.#chunk;
    rows.#hiddenColumns = this.#hiddenColumns + columns;
    rows.#isCut = this.#isCut;
    return rows;
  }

  /** A row of the chunk that came last: it has to be kept, or it is gone with the chunk. */
  add({ bytes, start, end }: RowMessage): void {
    if (this.#chunk !== bytes) {
      this.keep();
      this.#chunk = bytes;
    }
    this.#starts.push(start);
    this.#chunkEnd = end;
  }

  /** Whatever is only in the chunk so far, in one piece: little else can be between rows. */
  keep(): void {
    const first = this.#starts[this.#keptRows];
    if (first === undefined) return;
    const moved = this.#keptBytes - first;
    const needed = this.#chunkEnd + moved;
    if (needed > this.#kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#kept.length * 2, USUAL_BYTES));
      this.#kept.copy(larger, 0, 0, this.#keptBytes);
      this.#kept = larger;
    }
    this.#chunk.copy(this.#kept, this.#keptBytes, first, this.#chunkEnd);
    for (let row = this.#keptRows; row < this.#starts.length; row++)
      this.#starts[row] = (this.#starts[row] as number) + moved;
    this.#keptRows = this.#starts.length;
    this.#keptBytes = needed;
  }

  /** Notes that rows were dropped from here on. */
  cut(): void {
    this.#isCut = true;
  }

  clear(): void {
    this.#isCut = false;
    this.#starts.length = 0;
    this.#keptRows = 0;
    this.#keptBytes = 0;
    if (this.#kept.length > USUAL_BYTES) this.#kept = Buffer.allocUnsafeSlow(0);
  }

  #bytesOf(row: number): Buffer {
    return row < this.#keptRows ? this.#kept : this.#chunk;
  }

  /** Where a value begins; its length stands before it. */
  #find(row: number, column: number): number {
    const bytes = this.#bytesOf(row);
    let at = (this.#starts[row] as number) + COUNT_BYTES + LENGTH_BYTES;
    for (let before = this.#hiddenColumns + column; before > 0; before--)
      at += lengthAt(bytes, at) + LENGTH_BYTES;
    return at;
  }
}

function lengthAt(bytes: Buffer, start: number): number {
  return Math.max(0, bytes.readInt32BE(start - LENGTH_BYTES));
}

/** A row that nobody has looked at; for the driver it is one of its own messages. */
class RowMessage {
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
    let at = start + COUNT_BYTES;
    for (let left = bytes.readUInt16BE(start); left > 0; left--) {
      const isNull = bytes.readInt32BE(at) < 0;
      at += LENGTH_BYTES;
      const end = at + lengthAt(bytes, at);
      fields.push(isNull ? null : bytes.toString('utf8', at, end));
      at = end;
    }
    return fields;
  }
}

interface Gathering {
  readonly rows: RawRows;
  /** The same connection, for a query whose columns need no description. */
  readonly undescribed: DriverConnection;
}

/** Of each connection. The database answers one query after the other: one place for rows is enough. */
const gathering = new WeakMap<DriverConnection, Gathering>();

/** From now on rows that come over the connection of this client stay as they are until somebody looks at them. */
export function leaveRowsRaw(client: pg.Client): void {
  const { connection } = client as unknown as { readonly connection: DriverConnection };
  const undescribed = Object.create(connection, { describe: { value: () => undefined } });
  const rows = new RawRows();
  gathering.set(connection, { rows, undescribed });
  const attachDriver = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    const others = new EventEmitter();
    attachDriver(others);
    const take = splitMessages(
      (row) => connection.emit('dataRow', row),
      (messages) => others.emit('data', messages),
    );
    stream.on('data', (chunk: Buffer) => {
      take(chunk);
      rows.keep();
    });
  };
}

/**
 * Takes chunks of what a database says, wherever they were cut, and tells of rows and of runs of other messages in their
 * order. Both are good until the next chunk comes, which may overwrite this one.
 */
export function splitMessages(
  onRow: (row: RowMessage) => void,
  onOthers: (messages: Buffer) => void,
): (chunk: Buffer) => void {
  /** Parts of a message that is not whole yet, how many bytes they have, and how many are needed to go on. */
  let parts: Buffer[] = [];
  let had = 0;
  let needed = 0;

  const keep = (part: Buffer) => {
    parts = [part];
    had = part.length;
    needed = had < HEADER_BYTES ? HEADER_BYTES : endOfMessage(part, 0);
  };

  /** Returns where the last whole message ends. */
  const tell = (bytes: Buffer, start: number): number => {
    let at = start;
    let told = start;
    while (at + HEADER_BYTES <= bytes.length) {
      const end = endOfMessage(bytes, at);
      if (end > bytes.length) break;
      if (bytes[at] === DATA_ROW) {
        if (told < at) onOthers(bytes.subarray(told, at));
        onRow(new RowMessage(bytes, at + HEADER_BYTES, end));
        told = end;
      }
      at = end;
    }
    if (told < at) onOthers(bytes.subarray(told, at));
    return at;
  };

  return (chunk) => {
    let at = 0;
    while (had > 0 && at < chunk.length) {
      const part = Buffer.from(chunk.subarray(at, at + needed - had));
      parts.push(part);
      had += part.length;
      at += part.length;
      if (had < needed) return;
      const bytes = Buffer.concat(parts, had);
      had = 0;
      // It may have been a header only.
      if (tell(bytes, 0) === 0) keep(bytes);
    }
    const end = tell(chunk, at);
    if (end < chunk.length) keep(Buffer.from(chunk.subarray(end)));
  };
}

function endOfMessage(bytes: Buffer, start: number): number {
  return start + 1 + bytes.readUInt32BE(start + 1);
}

export const noRows = new RawRows();

/** A statement whose rows are handed to `collect` as they came, all at once. */
export class RawQuery<T> extends pg.Query {
  readonly #collect: (rows: RawRows) => T;
  readonly #maxBytes: number;
  /** Rows of the first fetch; 0 where all rows are fetched at once. */
  readonly #firstRows: number;
  /** Those of the connection, from the first row on. */
  #rows = noRows;
  #gathered = noRows;
  #bytes = 0;
  callback: (error: unknown, result?: T) => void;
  /** The driver looks for these here. */
  readonly name: string | undefined;
  readonly query_timeout: number | undefined;
  /** The simple protocol would describe the columns. */
  readonly queryMode = 'extended';

  constructor(
    statement: pg.QueryConfig & {
      readonly query_timeout?: number | undefined;
      readonly bound?: RowBound | undefined;
    },
    collect: (rows: RawRows) => T,
    callback: (error: unknown, result?: T) => void,
  ) {
    // Not the statement itself: the driver would make a careful copy of it, which costs more than all the rest here.
    super(statement.text, statement.values);
    this.name = statement.name;
    this.#collect = collect;
    this.#maxBytes = statement.bound?.maxBytes ?? Number.POSITIVE_INFINITY;
    this.#firstRows = statement.bound?.firstRows ?? 0;
    this.query_timeout = statement.query_timeout;
    this.callback = callback;
  }

  protected prepare(connection: DriverConnection): void {
    const { rows, undescribed } = gathering.get(connection) as Gathering;
    this.#gathered = rows;
    driverQuery.prepare.call(this, undescribed);
  }

  protected handleDataRow(row: RowMessage): void {
    if (this.#rows === noRows) {
      // Those of a query that failed halfway may still be there.
      this.#gathered.clear();
      this.#rows = this.#gathered;
    }
    const bytes = row.end - row.start;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) this.#rows.cut();
    if (this.#rows.isCut) return;
    this.#bytes += bytes;
    this.#rows.add(row);
  }

  /** The driver's last step of `prepare`. It refuses its own `rows` option on a connection that pipelines. */
  protected _getRows(connection: DriverConnection): void {
    this.#fetch(connection, this.#firstRows);
    if (this.#firstRows === 0) connection.sync();
  }

  #fetch(connection: DriverConnection, rows: number): void {
    connection.execute({ portal: '', rows });
    if (rows > 0) connection.flush();
  }

  /** The rows of a fetch have come, and there may be more. */
  protected handlePortalSuspended(connection: DriverConnection): void {
    if (this.#rows.isCut) {
      connection.sync();
      return;
    }
    const fitting = Math.ceil(((this.#maxBytes - this.#bytes) * this.#rows.count) / this.#bytes);
    // One at least: it tells whether there is more than fits.
    this.#fetch(connection, Math.max(1, fitting));
  }

  protected handleCommandComplete(_message: unknown, connection: DriverConnection): void {
    // How many rows there were is known.
    if (this.#firstRows > 0) connection.sync();
  }

  protected handleError(error: unknown, connection: DriverConnection): void {
    // Until Sync the database ignores everything that follows an error.
    if (this.#firstRows > 0) connection.sync();
    driverQuery.handleError.call(this, error, connection);
  }

  protected handleReadyForQuery(): void {
    let result: T;
    try {
      result = this.#collect(this.#rows);
    } catch (error) {
      this.callback(error);
      return;
    } finally {
      this.#rows.clear();
    }
    this.callback(null, result);
  }
}
