/** What is read from the database: a statement, and its rows. */
import type pg from 'pg';

export type Row = Record<string, unknown> | unknown[];

export interface Statement extends pg.QueryConfig {
  readonly rowMode?: 'array';
  /** Milliseconds after which its connection is given up, where others than those of its pool. */
  readonly query_timeout?: number;
  /** Known to take a moment only, whatever the data is: others may wait behind it. */
  readonly isShort?: boolean;
}

/** One statement on one server; throws where it cannot be asked. Labels are for the metrics. */
export type RunStatement = (label: string, statement: Statement) => Promise<Row[]>;

/** Runs one statement and returns its rows as objects. */
export type Read = (text: string, values: readonly unknown[]) => Promise<Record<string, unknown>[]>;
