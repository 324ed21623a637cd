/** Prepares a database for use: checks server, role and content, and applies pending migrations. */
import type pg from 'pg';
import type { WriteLog } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { readLayout } from '../cluster/layout.ts';
import { requireConnections } from '../server/connection-budget.ts';
import { isReadOnly, requireReadableTables } from '../server/roles.ts';
import { identitySql } from '../server/server-facts.ts';
import { migrate, NotInitialisedError, requireSchema } from './migrate.ts';

/** What the caller accepts: real data, simulated data, or either. A new store becomes what is asked for. */
export type StoreContent = 'real' | 'simulated' | 'any';

/** What happens to a database whose schema is missing or older: it is migrated, or rejected without a change. */
export type SchemaPolicy = 'migrate' | 'expect';

export interface PreparationOptions {
  readonly content: StoreContent;
  readonly access: 'read' | 'write';
  readonly schema: SchemaPolicy;
  /** How many processes of the server will open connections. */
  readonly startsProcesses: number;
  readonly isEmbedded: boolean;
  readonly hasReplicas: boolean;
  readonly writeLog: WriteLog;
  readonly signal: AbortSignal | undefined;
}

const OLDEST_POSTGRESQL = 15;

/** Throws an OperatorError where the database cannot be used as the options say. */
export async function prepareDatabase(
  client: pg.ClientBase,
  { content, access, schema, startsProcesses, isEmbedded, hasReplicas, writeLog, signal }: PreparationOptions,
) {
  const serverVersion = (await client.query('show server_version')).rows[0].server_version as string;
  requireServerVersion(serverVersion);
  if (startsProcesses > 1) await requireConnections(client, startsProcesses, isEmbedded);
  const migrations =
    schema === 'migrate' ? await migrate(client, { writeLog, signal }) : await requireSchema(client);
  await requireReadableTables(client);
  if (access === 'write' && (await isReadOnly(client))) {
    throw new OperatorError(
      'The database role may only read, which is enough for answering but not for indexing, importing, webhooks or the demo.',
      'Give this process the role that owns the tables, by DATABASE_URL. What shall only answer is `lanescan serve` without --index and without webhooks in its configuration.',
    );
  }
  const layout = await readLayout(client);
  if (layout === 'distributed' && hasReplicas) {
    throw new OperatorError(
      'The store is distributed over a cluster, and DATABASE_REPLICA_URL names replicas: a replica of the coordinator has no shards.',
      'Unset DATABASE_REPLICA_URL. To answer more, add workers to the cluster and rebalance its shards.',
    );
  }
  const { rows } = await client.query(`select ${hasReplicas ? identitySql : `''`} as identity`);
  return {
    migrations,
    simulated: await requireContent(client, content, schema),
    serverVersion,
    layout,
    /** The result of `identitySql`; empty without replicas, which alone are compared by it. */
    identity: rows[0].identity as string,
  };
}

function requireServerVersion(version: string): void {
  if (Number.parseInt(version, 10) >= OLDEST_POSTGRESQL) return;
  throw new OperatorError(
    `The database server is PostgreSQL ${version}; Lanescan needs ${OLDEST_POSTGRESQL} or later.`,
    'Upgrade the server, or leave DATABASE_URL unset to use the embedded one.',
  );
}

/** Whether the store holds simulated data. Throws where that is not what the caller accepts: the two are never mixed. */
async function requireContent(client: pg.ClientBase, content: StoreContent, schema: SchemaPolicy) {
  let { rows } = await client.query('select simulated from store');
  if (rows.length === 0) {
    if (schema === 'expect') throw new NotInitialisedError('The database has a schema, but no store in it.');
    await client.query('insert into store (simulated) values ($1) on conflict do nothing', [
      content === 'simulated',
    ]);
    ({ rows } = await client.query('select simulated from store'));
  }
  const simulated = rows[0].simulated as boolean;
  if (content === 'real' && simulated) {
    throw new OperatorError(
      'This store holds the demo’s simulated network; real records are never mixed into it.',
      'Choose another folder with --data, or another database with DATABASE_URL.',
    );
  }
  if (content === 'simulated' && !simulated) {
    throw new OperatorError(
      'This store holds real records; the demo’s simulated ones are never mixed into it.',
      'Give the demo a folder of its own with --data, or an empty database with DATABASE_URL.',
    );
  }
  return simulated;
}
