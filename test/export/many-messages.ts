/** Very many messages, made by the database itself: writing them through the store would take an hour. */
import pg from 'pg';
import type { Store } from '../../src/store/store.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';

/** One second apart, newest last; each record has about 2 kB. */
export async function makeManyMessages(
  store: Store & { readonly url: string },
  count: number,
): Promise<void> {
  const pattern = makeMessage({ number: 1, data: `0x${'5a'.repeat(400)}`, status: 'SENT' });
  await store.apply([makeSnapshot(pattern)]);
  const client = new pg.Client({ connectionString: store.url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select column_name as name from information_schema.columns
       where table_name = 'message' and table_schema = 'public' order by ordinal_position`,
    );
    const columns: string[] = rows.map(({ name }) => name);
    const made: Record<string, string> = {
      message_id: 'made.id',
      sent_at: 'made.sent_at',
      digest: 'made.id',
      record: `replace(replace(m.record, '${pattern.messageId}', '0x' || encode(made.id, 'hex')),
        '${pattern.sendTimestamp}', to_char(made.sent_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`,
    };
    await client.query(
      `insert into message (${columns.join(', ')})
       select ${columns.map((column) => made[column] ?? `m.${column}`).join(', ')}
       from message m, lateral (
         select sha256(number::text::bytea) as id,
                timestamptz '2025-01-01T00:00:00Z' + number * interval '1 second' as sent_at
         from generate_series(1, $1::integer) number) made`,
      [count - 1],
    );
    await client.query('vacuum analyze message');
  } finally {
    await client.end();
  }
}
