/**
 * Leases on rows: one process at a time holds a row, until a time by the database's clock.
 *
 * A holder renews its lease before it expires. After that, the next process that asks gets it. Writes that need the lease
 * check it in their own statement (`isHeldBySql`), so a holder that lost it, for example while suspended, writes nothing.
 */
import type { ClientBase } from 'pg';

/** Names and SQL expressions of the program itself; nothing here comes from a request. */
export interface LeasedTable {
  readonly table: string;
  readonly keyColumn: string;
  /** When the lease expires. The holder is always in the column `holder`. */
  readonly untilColumn: string;
  /** SQL of other columns of a new row. */
  readonly initialValues?: Readonly<Record<string, string>>;
  /** SQL of other columns that each renewal sets. */
  readonly renewedValues?: Readonly<Record<string, string>>;
}

/** Another process has the lease now, or it expired. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

export function createLeases(leased: LeasedTable) {
  const { table, keyColumn, untilColumn, initialValues = {}, renewedValues = {} } = leased;
  const columns = {
    [keyColumn]: '$1',
    holder: '$2',
    [untilColumn]: `clock_timestamp() + $3::float8 * interval '1 millisecond'`,
    ...initialValues,
    ...renewedValues,
  };
  const renewed = ['holder', untilColumn, ...Object.keys(renewedValues)];
  const acquireSql = `insert into ${table} as known (${Object.keys(columns).join(', ')})
    values (${Object.values(columns).join(', ')})
    on conflict (${keyColumn}) do update set ${renewed.map((column) => `${column} = excluded.${column}`).join(', ')}
    where known.holder is null or known.holder = excluded.holder or known.${untilColumn} < clock_timestamp()
    returning *`;
  const releaseSql = `update ${table} set holder = null, ${untilColumn} = null where ${keyColumn} = $1 and holder = $2`;
  return {
    /** Takes or renews the lease, and returns the row; undefined while another holder has it. Creates a missing row. */
    async acquire(client: ClientBase, key: string, holder: string, durationMs: number) {
      const { rows } = await client.query(acquireSql, [key, holder, durationMs]);
      return rows[0] as Readonly<Record<string, unknown>> | undefined;
    },
    /** Does nothing unless `holder` has the lease. */
    async release(client: ClientBase, key: string, holder: string) {
      await client.query(releaseSql, [key, holder]);
    },
    /** SQL: whether the holder in this parameter (`$2`) has the lease of a row. */
    isHeldBySql: (parameter: string) => `holder = ${parameter} and ${untilColumn} > clock_timestamp()`,
    /** SQL: whether anybody has the lease of the row `alias`. Never null. */
    isHeldSql: (alias: string) =>
      `coalesce(${alias}.holder is not null and ${alias}.${untilColumn} > clock_timestamp(), false)`,
  };
}
