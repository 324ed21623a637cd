/**
 * The layout of a store: all tables on one node, or those that grow with the messages distributed over the workers of a Citus
 * cluster. It is read once, when the store is opened. This folder holds everything that depends on it.
 *
 * - `layout.ts`: which tables are distributed.
 * - `distribution.ts`: turns the schema of one node into a distributed one (`lanescan migrate --distribute`).
 * - `migration-statements.ts`: runs migrations on distributed tables.
 * - `write-coordinator.ts`: how writes become visible at once: two-phase commit and the published position.
 * - `statement-forms.ts`: statements that are written in two ways.
 * - `search-lookups.ts`: what a search reads first, because one statement cannot.
 * - `distributed-changes.ts`: the changes after a position.
 * - `workers.ts`: workers, their shards, health and settings, for `doctor`.
 */
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';

export type Layout = 'single' | 'distributed';

/** Distributed by `message_id`, all colocated with the first one. Every other table stays on the coordinator. */
export const distributedTables = [
  'message',
  'message_token',
  'fact',
  'earlier_attempt',
  'history',
  'removed_attempt',
  'execution_input',
  'webhook_delivery',
  'mirror_owed',
  'index_chore',
] as const;

/** The layout that the catalog shows. Throws an OperatorError where only some of the tables are distributed. */
export async function readLayout(client: ClientBase): Promise<Layout> {
  const distributed = await readDistributedTables(client);
  if (distributed.length === 0) return 'single';
  const local = distributedTables.filter((table) => !distributed.includes(table));
  if (local.length === 0) return 'distributed';
  throw new OperatorError(
    `The store is distributed over a cluster, except for ${local.join(', ')}.`,
    'Stop all Lanescan processes on this database and run `lanescan migrate --distribute`, which distributes the rest.',
  );
}

/** The tables of `distributedTables` that are distributed by message id. */
export async function readDistributedTables(client: ClientBase): Promise<readonly string[]> {
  const { rows: catalogs } = await client.query(
    `select to_regclass('pg_catalog.pg_dist_partition') is not null as present`,
  );
  if (!catalogs[0].present) return [];
  const { rows } = await client.query(
    `select name from unnest($1::text[]) as ours (name)
     join pg_dist_partition p on p.logicalrelid = to_regclass(name)
     where p.partmethod = 'h' and column_to_column_name(p.logicalrelid, p.partkey) = 'message_id'`,
    [distributedTables],
  );
  return rows.map(({ name }) => name);
}
