/** What is read from the database: a statement, and its rows. */
import type pg from 'pg';
import type { RawRows, RowBound } from './raw-rows.ts';

export type Row = Record<string, unknown> | unknown[];

/** `T` is what it is answered with. */
export interface Statement<T = Row[]> extends pg.QueryConfig {
  readonly rowMode?: 'array';
  /** Makes the answer from rows as they came; they are gone when it returns. */
  readonly collect?: (rows: RawRows) => T;
  /** With `collect`: how many bytes of rows are taken; all of them where nothing is said. */
  readonly bound?: RowBound;
  /** Milliseconds after which its connection is given up, where others than those of its pool. */
  readonly query_timeout?: number;
  /** Known to take a moment only, whatever the data is: others may wait behind it. */
  readonly isShort?: boolean;
}

/** One statement on one server; throws where it cannot be asked. Labels are for the metrics. */
export type RunStatement = <T = Row[]>(label: string, statement: Statement<T>) => Promise<T>;

/** Runs one statement and returns its rows as objects. */
export type Read = (text: string, values: readonly unknown[]) => Promise<Record<string, unknown>[]>;
