/** Settings of the PostgreSQL server that decide durability and speed, as a session of a writer sees them. */
import type { ClientBase } from 'pg';

export interface ServerSettings {
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  readonly synchronousCommit: string;
  readonly jit: boolean;
  readonly isReadOnlyByDefault: boolean;
  readonly sharedBuffersBytes: number;
  readonly workMemBytes: number;
  readonly randomPageCost: number;
  /** 0: no limit. */
  readonly statementTimeoutMs: number;
  readonly idleInTransactionTimeoutMs: number;
  /** The lowest limit on our role's connections: of the server, the database or the role. */
  readonly maxConnections: number;
  readonly databaseBytes: number;
}

export async function readServerSettings(client: ClientBase): Promise<ServerSettings> {
  const { rows } = await client.query(
    `select current_setting('fsync')::boolean as "fsync",
            current_setting('full_page_writes')::boolean as "fullPageWrites",
            current_setting('synchronous_commit') as "synchronousCommit",
            current_setting('jit')::boolean as "jit",
            current_setting('default_transaction_read_only')::boolean as "isReadOnlyByDefault",
            pg_size_bytes(current_setting('shared_buffers'))::float8 as "sharedBuffersBytes",
            pg_size_bytes(current_setting('work_mem'))::float8 as "workMemBytes",
            current_setting('random_page_cost')::float8 as "randomPageCost",
            (select setting::integer from pg_settings where name = 'statement_timeout') as "statementTimeoutMs",
            (select setting::integer from pg_settings where name = 'idle_in_transaction_session_timeout')
              as "idleInTransactionTimeoutMs",
            least(
              (select sum(case name when 'max_connections' then 1 else -1 end * setting::integer) from pg_settings
               where name in ('max_connections', 'superuser_reserved_connections', 'reserved_connections')),
              (select nullif(datconnlimit, -1) from pg_database where datname = current_database()),
              (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user))::integer as "maxConnections",
            pg_database_size(current_database())::float8 as "databaseBytes"`,
  );
  return rows[0];
}
