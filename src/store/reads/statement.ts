/** A read: a statement, what it is answered with, and what the queue has to know of it. */
import type pg from 'pg';
import type { RowBound, Rows } from './rows.ts';

export type Row = Record<string, unknown> | unknown[];

/** `T` is the type of the result: rows, or what `collect` makes of them. */
export interface Statement<T = Row[]> extends pg.QueryConfig {
  readonly rowMode?: 'array';
  /** Makes the result from the rows, which are only valid until it returns. */
  readonly collect?: (rows: Rows) => T;
  /** With `collect`: how many bytes of rows are taken; all of them by default. */
  readonly bound?: RowBound;
  /** Milliseconds after which the connection is given up, where not those of its pool. The name is the driver's. */
  readonly query_timeout?: number;
  /** Whether it takes about a millisecond whatever the data is like, so that other reads may wait behind it. */
  readonly isShort?: boolean;
}

/** Runs one statement. Labels are for the metrics; they come from our code, never from a client. */
export type RunStatement = <T = Row[]>(label: string, statement: Statement<T>) => Promise<T>;

/** Runs one statement and returns its rows as objects. */
export type Read = (text: string, values: readonly unknown[]) => Promise<Record<string, unknown>[]>;
