/**
 * Raw rows over the driver: the only place that patches `pg`.
 *
 * A connection is patched in one place: `attachListeners` gets a splitter between the socket and the driver's parser. The
 * splitter takes out rows and passes everything else on. A row goes to the current query as the driver's `dataRow` event;
 * the driver's own queries decode its fields, a `RawQuery` gathers it undecoded.
 *
 * The driver's types do not declare what is used here. So package.json pins `pg` and `pg-protocol` to exact versions, and
 * test/store/reads/driver-internals.test.ts fails when a used member changes. What it saves is in
 * docs/decisions/0024-raw-rows-measured.md.
 */
import { EventEmitter } from 'node:events';
import pg from 'pg';
import { createMessageSplitter, noRows, RawRows, type RowMessage } from './raw-rows.ts';
import type { Statement } from './statement.ts';

/** Members of the driver's `Connection` that are used. */
interface DriverConnection extends EventEmitter {
  attachListeners(stream: EventEmitter): void;
  execute(portal: { readonly portal: string; readonly rows: number }): void;
  flush(): void;
  sync(): void;
}

/** Members of the driver's `Query` that are used. `RawQuery` overrides these and the other `handle…` methods. */
interface DriverQuery {
  prepare(connection: DriverConnection): void;
  handleError(error: unknown, connection: DriverConnection): void;
}

const driverQuery = pg.Query.prototype as unknown as DriverQuery;

interface PatchedConnection {
  readonly rows: RawRows;
  /** The same connection without Describe: a `RawQuery` needs no description of its columns. */
  readonly undescribed: DriverConnection;
}

const patchedConnections = new WeakMap<DriverConnection, PatchedConnection>();

/** Makes the connection of a client deliver raw rows. Call it before the client connects. */
export function patchConnection(client: pg.Client): void {
  const { connection } = client as unknown as { readonly connection: DriverConnection };
  const undescribed = Object.create(connection, { describe: { value: () => undefined } });
  const rows = new RawRows();
  patchedConnections.set(connection, { rows, undescribed });
  const attachParser = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    const otherMessages = new EventEmitter();
    attachParser(otherMessages);
    const split = createMessageSplitter(
      (row) => connection.emit('dataRow', row),
      (messages) => otherMessages.emit('data', messages),
    );
    stream.on('data', (chunk: Buffer) => {
      split(chunk);
      rows.keep();
    });
  };
}

/** Runs a statement on a patched client. `collect` gets all of its rows at once. */
export function collectRawRows<T>(
  client: pg.ClientBase,
  statement: Statement<T>,
  collect: (rows: RawRows) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    client.query(
      new RawQuery(statement, collect, (error, result) => (error ? reject(error) : resolve(result as T))),
    );
  });
}

class RawQuery<T> extends pg.Query {
  readonly #collect: (rows: RawRows) => T;
  readonly #maxBytes: number;
  /** Rows of the first fetch; 0 where all rows are fetched at once. */
  readonly #firstRows: number;
  /** Those of the connection, from the first row on. */
  #rows: RawRows | undefined;
  #connectionRows: RawRows | undefined;
  #bytes = 0;
  // The driver reads and replaces the following members.
  callback: (error: unknown, result?: T) => void;
  readonly name: string | undefined;
  readonly query_timeout: number | undefined;
  /** The simple protocol would describe the columns. */
  readonly queryMode = 'extended';

  constructor(
    { text, values, name, bound, query_timeout }: Statement<T>,
    collect: (rows: RawRows) => T,
    callback: (error: unknown, result?: T) => void,
  ) {
    // Not the statement itself: the driver would copy it, which costs more than all the rest here.
    super(text, values);
    this.name = name;
    this.#collect = collect;
    this.#maxBytes = bound?.maxBytes ?? Number.POSITIVE_INFINITY;
    this.#firstRows = bound?.firstRows ?? 0;
    this.query_timeout = query_timeout;
    this.callback = callback;
  }

  protected prepare(connection: DriverConnection): void {
    const { rows, undescribed } = patchedConnections.get(connection) as PatchedConnection;
    this.#connectionRows = rows;
    driverQuery.prepare.call(this, undescribed);
  }

  protected handleDataRow(row: RowMessage): void {
    if (!this.#rows) {
      this.#rows = this.#connectionRows as RawRows;
      // Rows of a query that failed halfway may still be there.
      this.#rows.clear();
    }
    const bytes = row.end - row.start;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#maxBytes) this.#rows.cut();
    if (this.#rows.isCut) return;
    this.#bytes += bytes;
    this.#rows.add(row);
  }

  /** The driver's last step of `prepare`. It rejects its own `rows` option on a connection that pipelines. */
  protected _getRows(connection: DriverConnection): void {
    this.#fetch(connection, this.#firstRows);
    if (this.#firstRows === 0) connection.sync();
  }

  #fetch(connection: DriverConnection, rows: number): void {
    connection.execute({ portal: '', rows });
    if (rows > 0) connection.flush();
  }

  /** All rows of a fetch have come, and there may be more. */
  protected handlePortalSuspended(connection: DriverConnection): void {
    const rows = this.#rows as RawRows;
    if (rows.isCut) {
      connection.sync();
      return;
    }
    const fitting = Math.ceil(((this.#maxBytes - this.#bytes) * rows.count) / this.#bytes);
    // At least one row, which shows whether there is more than fits.
    this.#fetch(connection, Math.max(1, fitting));
  }

  protected handleCommandComplete(_message: unknown, connection: DriverConnection): void {
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
      result = this.#collect(this.#rows ?? noRows);
    } catch (error) {
      this.callback(error);
      return;
    } finally {
      this.#rows?.clear();
    }
    this.callback(null, result);
  }
}
