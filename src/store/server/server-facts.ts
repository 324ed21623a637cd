/**
 * What one PostgreSQL server says of itself: its identity and state (is it a replica, and of what?), read over a separate
 * connection; and settings that decide durability and speed, as a session of a writer sees them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { connectionOf, explainConnectionFailure, WatchedClient } from './client.ts';

/** SQL of what is the same for a database and its physical replicas, and for nothing else. */
export const identitySql = `(select s.system_identifier || '/' || d.oid
  from pg_control_system() s, pg_database d where d.datname = current_database())`;

export interface ServerFacts {
  /** The result of `identitySql`. */
  readonly identity: string;
  readonly isReplica: boolean;
  /** Replay is paused (`pg_wal_replay_pause`). */
  readonly isPaused: boolean;
  /** It streams from a server; a replica that reads a WAL archive does not. */
  readonly isReceiving: boolean;
  /** How many migrations its schema has; 0 where it has nothing of ours. */
  readonly migrations: number;
  /** Of the latest change that it has. */
  readonly position: number;
}

const TIMEOUT_MS = 5_000;
/** Replication takes milliseconds where all is well. */
const CATCH_UP_TIMEOUT_MS = 2_000;
const POLL_INTERVAL_MS = 100;
const NOT_GRANTED = '42501';

/**
 * Throws an OperatorError where the server cannot be queried; it names the variable that holds the URL. A replica that has not
 * reached the expected position gets `CATCH_UP_TIMEOUT_MS` for it.
 */
export async function readServerFacts(
  url: string,
  options: { readonly variable: string; readonly expectedPosition?: number; readonly signal: AbortSignal },
): Promise<ServerFacts> {
  const { variable, expectedPosition = 0, signal } = options;
  const client = new WatchedClient({
    ...connectionOf(url, variable),
    application_name: 'lanescan',
    query_timeout: TIMEOUT_MS,
  });
  // The next query reports a broken connection. Without a listener, the error would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const until = performance.now() + CATCH_UP_TIMEOUT_MS;
    for (;;) {
      const facts = await queryFacts(client);
      const isLate = facts.isReplica && facts.position < expectedPosition;
      if (!isLate || performance.now() >= until) return facts;
      await delay(POLL_INTERVAL_MS, undefined, { signal });
    }
  } catch (error) {
    signal.throwIfAborted();
    throw explainError(error, url, variable);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function queryFacts(client: pg.ClientBase): Promise<ServerFacts> {
  const { rows: servers } = await client.query(
    `select ${identitySql} as identity,
            pg_is_in_recovery() as "isReplica",
            case when pg_is_in_recovery() then pg_is_wal_replay_paused() else false end as "isPaused",
            exists (select from pg_stat_wal_receiver) as "isReceiving",
            to_regclass('migration') is not null and to_regclass('store') is not null as has_schema`,
  );
  const [{ has_schema: hasSchema, ...server }] = servers;
  const { rows: content } = hasSchema
    ? await client.query('select position, (select max(number) from migration) as migrations from store')
    : { rows: [] };
  const { migrations = 0, position = 0 } = content[0] ?? {};
  return { ...server, migrations: Number(migrations), position: Number(position) };
}

function explainError(error: unknown, url: string, variable: string): unknown {
  const { code, message } = error as { code?: unknown; message: string };
  if (code !== NOT_GRANTED) return explainConnectionFailure(error, url, variable);
  return new OperatorError(
    `The role of ${variable} may not read here: ${message}.`,
    'Grant it on the primary, with `lanescan migrate --grant-read` and the role that owns the tables.',
    { cause: error },
  );
}

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

export async function readServerSettings(client: pg.ClientBase): Promise<ServerSettings> {
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
