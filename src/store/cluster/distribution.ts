/**
 * Distribution: turns the schema of a Citus coordinator into a distributed one, with the data that it has. One transaction
 * distributes all tables; what follows (freeing the space of the coordinator's rows, settings of the workers) can be repeated.
 */
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { knownSchema, requireSchema } from '../schema/migrate.ts';
import { type LockOptions, withMigrationLock, withoutWriters } from '../schema/migration-lock.ts';
import { declaredSchema } from '../schema/writer-guard.ts';
import { connectionOf, explainConnectionFailure, WatchedClient } from '../server/client.ts';
import { isReadOnly } from '../server/roles.ts';
import { distributedTables, readDistributedTables } from './layout.ts';
import { readWorkers, setWorkerSettings } from './workers.ts';

export interface DistributionOptions extends LockOptions {
  /** How many shards each table has; by default one for each worker. */
  readonly shards?: number | undefined;
}

/** Every search asks every shard, and each one plans its part: more shards on a worker make searches slower. */
const SHARDS_PER_WORKER = 1;

/** Throws an OperatorError where the database cannot be distributed; then nothing was changed. */
export async function distributeDatabase(url: string, options: DistributionOptions = {}) {
  const { options: given = '', ...connection } = connectionOf(url, 'DATABASE_URL');
  const client = new WatchedClient({
    ...connection,
    options: `${given} -c jit=off -c timezone=UTC ${declaredSchema(await knownSchema())}`.trim(),
    application_name: 'lanescan',
  });
  // The next query reports a broken connection. Without a listener, the error would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await distribute(client, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw explainConnectionFailure(error, url, 'DATABASE_URL');
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function distribute(client: ClientBase, { shards, ...lockOptions }: DistributionOptions) {
  await requireCoordinator(client);
  await requireSchema(client);
  const workers = (await readWorkers(client)).filter(({ hasShards }) => hasShards);
  if (workers.length === 0) {
    throw new OperatorError(
      'The cluster has no worker that could hold shards.',
      `Add workers first: select citus_add_node('host', 5432)`,
    );
  }
  return withMigrationLock(client, lockOptions, async () => {
    const present = await readDistributedTables(client);
    const missing = distributedTables.filter((table) => !present.includes(table));
    if (present.includes(distributedTables[0])) await requireSameShards(client, shards);
    const shardCount = shards ?? SHARDS_PER_WORKER * workers.length;
    if (missing.length > 0) {
      await requireNoOtherPrograms(client);
      await withoutWriters(client, lockOptions, async () => {
        await distributeTables(client, missing, shardCount);
        // A process may have started while the rows were moved.
        await requireNoOtherPrograms(client);
      });
    }
    await freeLocalRows(client);
    await setWorkerSettings(client);
    await client.query(`analyze ${distributedTables.join(', ')}`);
    /** `distributed` are the tables that were distributed now. */
    return { distributed: missing, shards: await readShardCount(client), workers: workers.length };
  });
}

async function requireCoordinator(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    `select pg_is_in_recovery() as is_replica, to_regclass('pg_catalog.pg_dist_node') is not null as has_citus`,
  );
  if (rows[0].is_replica) {
    throw new OperatorError(
      'The database is a replica, which cannot be changed.',
      'Run this with the URL of the primary as DATABASE_URL.',
    );
  }
  if (!rows[0].has_citus) {
    throw new OperatorError(
      'The database has no Citus extension, so it cannot be distributed.',
      'Install Citus on the coordinator and the workers, then `create extension citus` in this database on each of them.',
    );
  }
  const { rows: groups } = await client.query('select groupid from pg_dist_local_group');
  if (groups[0]?.groupid !== 0) {
    throw new OperatorError(
      'The database is on a worker of a Citus cluster.',
      'Run this with the URL of the coordinator as DATABASE_URL.',
    );
  }
  if (await isReadOnly(client)) {
    throw new OperatorError(
      'The database role may only read, and cannot distribute tables.',
      'Run this with the role that owns the tables.',
    );
  }
}

async function requireSameShards(client: ClientBase, shards: number | undefined): Promise<void> {
  const present = await readShardCount(client);
  if (shards === undefined || shards === present) return;
  throw new OperatorError(
    `The tables are distributed already, with ${present} shards each; --shards ${shards} does not change that.`,
    `Leave out --shards. To change their number, stop Lanescan and run on the coordinator: select alter_distributed_table('message', shard_count := ${shards}, cascade_to_colocated := true)`,
  );
}

/** Running programs have decided that the store is on one node, and would go on with statements for one node. */
async function requireNoOtherPrograms(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    `select count(distinct coalesce(host(client_addr), 'local'))::int as hosts, count(*)::int as sessions
     from pg_stat_activity
     where datname = current_database() and application_name = 'lanescan' and pid <> pg_backend_pid()`,
  );
  const { hosts, sessions } = rows[0];
  if (sessions === 0) return;
  throw new OperatorError(
    `Other Lanescan processes use this database: ${sessions} connections from ${hosts} ${hosts === 1 ? 'host' : 'hosts'}.`,
    'Stop all servers, indexers and imports, run this again, then start them: they choose their statements when they start.',
  );
}

/** Runs inside the transaction that keeps writers out. */
async function distributeTables(client: ClientBase, missing: readonly string[], shards: number) {
  await client.query('set local citus.shard_replication_factor = 1');
  const [first] = distributedTables;
  for (const table of missing) {
    // A distributed table has no triggers. Programs of an older schema are kept out by those of the other tables.
    await client.query(`drop trigger if exists refuse_older_writer on ${table}`);
    const [how, value] =
      table === first
        ? [`colocate_with => 'none', shard_count => $2`, shards]
        : ['colocate_with => $2', first];
    await client.query(`select create_distributed_table($1, 'message_id', ${how})`, [table, value]);
  }
  // A row may be there from a cluster whose dump was restored here.
  if (missing.length === distributedTables.length) await client.query('delete from publication');
  await client.query(
    'insert into publication (assigned_position) select position from store on conflict do nothing',
  );
}

/** Distribution leaves the coordinator's own rows behind, which nothing reads any more. */
async function freeLocalRows(client: ClientBase): Promise<void> {
  for (const table of distributedTables) {
    const { rows } = await client.query('select pg_relation_size($1::regclass)::float8 as bytes', [table]);
    if (rows[0].bytes === 0) continue;
    await client.query('select truncate_local_data_after_distributing_table($1)', [table]);
  }
}

async function readShardCount(client: ClientBase): Promise<number> {
  const { rows } = await client.query(
    'select count(*)::int as shards from pg_dist_shard where logicalrelid = $1::regclass',
    [distributedTables[0]],
  );
  return rows[0].shards;
}
