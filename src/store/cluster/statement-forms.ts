/**
 * Statements with two forms. The form for one node is the one with the best plan there; Citus rejects it, or plans it badly. Both
 * take the same values and return the same rows.
 */
import { MAX_OVERDUE } from '../../domain/delivery-times.ts';
import { beginningOf } from '../sql.ts';
import type { Layout } from './layout.ts';

export type StatementForms = typeof single;

const single = {
  /** Fails while the database cannot answer searches. */
  ping: 'select 1',

  /** Messages in flight on lanes (`$1`, `$2`) that were sent before a time (`$3`), of lanes that have any. Stops at the limit. */
  overdue: `select lane.source as source_selector, lane.dest as dest_selector, late.overdue
     from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as lane (source, dest, due)
     cross join lateral (
       select count(*)::int as overdue from (
         select from message
         where source_selector = lane.source and dest_selector = lane.dest and status < 6 and sent_at < lane.due
         limit ${MAX_OVERDUE}) counted) late
     where lane.due is not null and late.overdue > 0`,

  /** See `readRecentDeliveries`. Looks for tokens of those messages only that satisfy the other conditions. */
  recentDeliveries: `select delivery_ms from (
       select message_id, sort_key, delivery_ms, finality, status from message
       where source_selector = $1 and dest_selector = $2
       order by sort_key desc, message_id desc limit $3) recent
     where status = $7 and delivery_ms is not null and finality = $4
       and ($5::bytea[] is null or exists (
         select from message_token t where t.message_id = recent.message_id and t.source_token = any($5)))
     order by sort_key desc, message_id desc limit $6`,

  /**
   * Distinct values of a column between `$1` and `$2` whose digits end with `$3`, at most `$5`. Goes from one beginning of a
   * value to the next (`$4` steps at most), whatever number of messages each has, and looks at a few of its rows: different
   * values with the same beginning are rare (addresses of many zeros).
   */
  distinctValues: (
    table: 'message' | 'message_token',
    column: string,
  ) => `with recursive found (beginning, step) as (
             (select ${beginningOf(column)}, 1 from ${table}
              where ${beginningOf(column)} between ${beginningOf('$1::bytea')} and ${beginningOf('$2::bytea')} order by 1 limit 1)
             union all
             select (select ${beginningOf(column)} from ${table}
                     where ${beginningOf(column)} > found.beginning and ${beginningOf(column)} <= ${beginningOf('$2::bytea')}
                     order by 1 limit 1), step + 1
             from found where found.beginning is not null and step < $4)
           select distinct encode(bytes, 'hex') as bytes from found cross join lateral (
             select ${column} as bytes from ${table} where ${beginningOf(column)} = found.beginning limit 100) each
           where bytes between $1 and $2 and encode(bytes, 'hex') like '%' || $3 limit $5`,
};

const distributed: StatementForms = {
  // Asks every worker.
  ping: 'select 1 from execution_input limit 1',

  // No lateral aggregate: every shard counts, and the coordinator adds up.
  overdue: `select lane.source as source_selector, lane.dest as dest_selector,
       least(count(*), ${MAX_OVERDUE})::int as overdue
     from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as lane (source, dest, due)
     join message m on m.source_selector = lane.source and m.dest_selector = lane.dest and m.status < 6
       and m.sent_at < lane.due
     group by lane.source, lane.dest`,

  // No correlation into a subquery with a limit: whether a message has a token is a column of it.
  recentDeliveries: `select delivery_ms from (
       select m.message_id, m.sort_key, m.delivery_ms, m.finality, m.status, exists (
           select 1 from message_token t where t.message_id = m.message_id and t.source_token = any($5::bytea[])) as has_token
       from message m where m.source_selector = $1 and m.dest_selector = $2
       order by m.sort_key desc, m.message_id desc limit $3) recent
     where status = $7 and delivery_ms is not null and finality = $4 and ($5::bytea[] is null or has_token)
     order by sort_key desc, message_id desc limit $6`,

  // No recursion over shards: reads every message with such a value.
  distinctValues: (table, column) => `select distinct encode(${column}, 'hex') as bytes from ${table}
     where ${column} between $1 and $2 and ${beginningOf(column)} between ${beginningOf('$1::bytea')} and ${beginningOf('$2::bytea')}
       and encode(${column}, 'hex') like '%' || $3 and $4::integer > 0
     order by 1 limit $5`,
};

export const statementForms: Readonly<Record<Layout, StatementForms>> = { single, distributed };
