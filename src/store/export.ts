/** All records that match, from one snapshot of the database, in constant memory. */
import type pg from 'pg';
import type { Filters } from '../domain/query.ts';
import { exportSql } from './search.ts';
import { renderSql } from './sql.ts';

const ROWS_PER_FETCH = 500;

/**
 * Batches of records, newest first. The server-side cursor reads what the transaction saw when it began,
 * whatever is written meanwhile.
 */
export async function* exportRecords(
  client: pg.ClientBase,
  filters: Filters,
): AsyncGenerator<readonly string[]> {
  const { text, values } = renderSql(exportSql(filters));
  await client.query('begin read only isolation level repeatable read');
  try {
    await client.query(`declare matching no scroll cursor for ${text}`, values);
    for (;;) {
      const { rows } = await client.query({
        text: `fetch ${ROWS_PER_FETCH} from matching`,
        rowMode: 'array',
      });
      if (rows.length === 0) return;
      yield rows.map(([record]) => record as string);
    }
  } finally {
    await client.query('rollback').catch(() => undefined);
  }
}
