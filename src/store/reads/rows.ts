/** Rows of a result as bytes, from the connection's own memory (`raw-rows.ts`) or from the driver (`driver-rows.ts`). */

/** Only valid until the `collect` of the statement returns: what is needed afterwards has to be copied. */
export interface Rows {
  readonly count: number;
  /** Whether there were more rows than the bound of the statement allows. */
  readonly isCut: boolean;
  /** How many bytes a value has; 0 for null. */
  byteLength(row: number, column: number): number;
  /** Copies a value to `target` at `offset`. Returns the offset of the end of the copy. */
  copy(row: number, column: number, target: Buffer, offset: number): number;
  /** The value as a string; empty for null. */
  text(row: number, column: number): string;
  /** The same rows without their first columns. */
  withoutColumns(count: number): Rows;
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

/** Bytes before the values of a row, and before each of them: the number of columns, and the length of the value. */
export const ROW_HEADER_BYTES = 2;
export const VALUE_HEADER_BYTES = 4;

export const noRows: Rows = {
  count: 0,
  isCut: false,
  byteLength: () => 0,
  copy: (_row, _column, _target, offset) => offset,
  text: () => '',
  withoutColumns: () => noRows,
};
