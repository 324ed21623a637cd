/** The tables of the schema, except `migration`. The database may hold other tables too, also of the same role. */
import type { ClientBase } from 'pg';

/**
 * In the order in which locks are taken: the store first, as writers do, then the tables that a transaction of the
 * mirror ledger writes in its order.
 */
export const tables = [
  'store',
  'store_revision',
  'publication',
  'message',
  'message_token',
  'fact',
  'earlier_attempt',
  'lane_fact',
  'root_blessing',
  'history',
  'removed_attempt',
  'execution_input',
  'lane_total',
  'day_total',
  'lane_delivery',
  'lane_onramp',
  'lane_run',
  'network_progress',
  'webhook_subscription',
  'webhook_delivery',
  'mirror',
  'mirror_owed',
  'index_network',
  'index_block',
  'index_contract',
  'index_anchor',
  'index_backlog',
  'index_failure',
  'index_unreadable',
  'index_chore',
  'index_registration',
  'index_counter',
  'index_finding',
  'token',
  'token_search',
  'cursor_key',
] as const;

/** The tables that the database has, in the same order; an older schema has fewer. */
export async function existingTables(client: ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query(
    `select name from unnest($1::text[]) with ordinality as known (name, place)
     where to_regclass(name) is not null order by place`,
    [tables],
  );
  return rows.map(({ name }) => name);
}
