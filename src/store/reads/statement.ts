/** A read: a statement, the rows it is answered with, and what the queue has to know of it. */
import type pg from 'pg';
import type { UseClient } from '../server/client.ts';
import type { RawRows } from './raw-rows.ts';

export type Row = Record<string, unknown>;

/** `T` is the type of the result: rows, or what `collect` makes of them. */
export interface Statement<T = Row[]> extends pg.QueryConfig {
  /** Makes the result from the rows, which are only valid until it returns. */
  readonly collect?: (rows: RawRows) => T;
  /** With `collect`: how many bytes of rows are taken; all of them by default. */
  readonly bound?: RowBound;
  /** Milliseconds after which the connection is given up, where not those of its pool. The name is the driver's. */
  readonly query_timeout?: number;
  /** Whether it takes about a millisecond whatever the data is like, so that other reads may wait behind it. */
  readonly isShort?: boolean;
}

/** Runs one statement. Labels are for the metrics; they come from our code, never from a client. */
export type RunStatement = <T = Row[]>(label: string, statement: Statement<T>) => Promise<T>;

/** Runs one statement and returns its rows as objects. `R` is what the statement says of them; nothing checks it. */
export type Read = <R = Record<string, unknown>>(text: string, values: readonly unknown[]) => Promise<R[]>;

/** The same on a connection that the caller has. */
export function readWith(client: pg.ClientBase): Read {
  return async (text, values) => (await client.query(text, [...values])).rows;
}

/** The same on connections that `use` lends. */
export function readUsing(use: UseClient): Read {
  return (text, values) => use((client) => readWith(client)(text, values));
}

/** How many bytes of rows a statement takes, counted as PostgreSQL's protocol sends them. */
export interface RowBound {
  /** A row that would exceed this, and all rows after it, are dropped (`isCut`). The first row never is. */
  readonly maxBytes: number;
  /**
   * Rows to fetch first. The next fetch asks for as many rows of the same average size as still fit, so that the
   * database does not send much that is dropped. Nothing else may be sent over the connection meanwhile. Without it,
   * all rows are fetched at once, in one round trip.
   */
  readonly firstRows?: number;
}
