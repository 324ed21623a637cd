/**
 * SQL as SQL: a template whose values become parameters, and which nests.
 *
 * @example const mine = sql`sender = ${bytes}`; sql`select 1 from message where ${mine} limit ${20}`
 */
export interface Sql {
  readonly strings: readonly string[];
  readonly values: readonly unknown[];
}

export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  return { strings, values };
}

/** Text of our own making, for what cannot be a parameter. Never anything that came from outside. */
export function fixedSql(text: string): Sql {
  return { strings: [text], values: [] };
}

export function joinSql(parts: readonly Sql[], separator: string): Sql {
  if (parts.length === 0) return sql``;
  return { strings: ['', ...parts.slice(1).map(() => separator), ''], values: parts };
}

/** Members of rows, each as the array that `unnest` takes. */
export function columnsOf<T, K extends keyof T>(rows: readonly T[], ...keys: readonly K[]): T[K][][] {
  return keys.map((key) => rows.map((row) => row[key]));
}

/** The text with numbered parameters and their values, as the driver takes them. */
export function renderSql(query: Sql): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const render = (part: Sql): string => {
    let text = part.strings[0] ?? '';
    part.values.forEach((value, index) => {
      text += (isSql(value) ? render(value) : `$${values.push(value)}`) + (part.strings[index + 1] ?? '');
    });
    return text;
  };
  return { text: render(query), values };
}

function isSql(value: unknown): value is Sql {
  return typeof value === 'object' && value !== null && 'strings' in value && 'values' in value;
}

/** Indexes have the beginning of addresses and hashes instead of all of their bytes: with its length, it takes eight. */
export const BEGINNING_BYTES = 7;

/** The expression of those indexes. A condition on it finds rows; the whole value is to be compared as well. */
export function beginningOf(column: string): string {
  return `substr(${column}, 1, ${BEGINNING_BYTES})`;
}

/** SQL condition that a column has a value, also in SQL, for which an index of the column's beginning serves. */
export function isFound(column: string, value: string): string {
  return `${beginningOf(column)} = ${beginningOf(value)} and ${column} = ${value}`;
}
