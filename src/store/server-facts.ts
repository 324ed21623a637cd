/** What one PostgreSQL server says of itself, over a connection of its own: how replicas are told from others. */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { OperatorError } from '../base/operator-error.ts';
import { WatchedClient } from './client.ts';
import { connectionOf, explainConnectionFailure } from './connection.ts';

/** SQL of what is the same for a database and its physical replicas, and for nothing else. */
export const identitySql = `(select s.system_identifier || '/' || d.oid
  from pg_control_system() s, pg_database d where d.datname = current_database())`;

export interface ServerFacts {
  /** What `identitySql` says. */
  readonly identity: string;
  readonly isReplica: boolean;
  /** Somebody has told it to hold back what it gets. */
  readonly isPaused: boolean;
  /** It is connected to a server that sends it changes; one that is fed from an archive is not. */
  readonly isReceiving: boolean;
  /** How many migrations its schema has; 0 where it has nothing of ours. */
  readonly migrations: number;
  /** Of the latest change that it knows. */
  readonly position: number;
}

export interface ServerFactsOptions {
  /** Where the URL comes from, for the words of an error. */
  readonly variable: string;
  /** A replica that has not reached this position is given a moment for it. */
  readonly expectedPosition?: number;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 5_000;
/** Replication takes milliseconds where all is well. */
const MOMENT_MS = 2_000;
const LOOK_EVERY_MS = 100;
const NOT_GRANTED = '42501';

/** Throws an OperatorError where the server cannot be asked. */
export async function readServerFacts(url: string, options: ServerFactsOptions): Promise<ServerFacts> {
  const { variable, expectedPosition = 0, signal } = options;
  const client = new WatchedClient({
    ...connectionOf(url, variable),
    application_name: 'lanescan',
    query_timeout: TIMEOUT_MS,
  });
  // A connection that breaks tells whoever asks next; unheard it would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const until = performance.now() + MOMENT_MS;
    for (;;) {
      const facts = await askFacts(client);
      const isLate = facts.isReplica && facts.position < expectedPosition;
      if (!isLate || performance.now() >= until) return facts;
      await delay(LOOK_EVERY_MS, undefined, { signal });
    }
  } catch (error) {
    signal.throwIfAborted();
    throw explained(error, url, variable);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function askFacts(client: pg.ClientBase): Promise<ServerFacts> {
  const { rows: told } = await client.query(
    `select ${identitySql} as identity,
            pg_is_in_recovery() as is_replica,
            case when pg_is_in_recovery() then pg_is_wal_replay_paused() else false end as is_paused,
            exists (select from pg_stat_wal_receiver) as is_receiving,
            to_regclass('migration') is not null and to_regclass('store') is not null as has_schema`,
  );
  const [server] = told;
  const { rows: content } = server.has_schema
    ? await client.query('select position, (select count(*) from migration) as migrations from store')
    : { rows: [] };
  return {
    identity: server.identity,
    isReplica: server.is_replica,
    isPaused: server.is_paused,
    isReceiving: server.is_receiving,
    migrations: Number(content[0]?.migrations ?? 0),
    position: Number(content[0]?.position ?? 0),
  };
}

function explained(error: unknown, url: string, variable: string): unknown {
  const { code, message } = error as { code?: unknown; message: string };
  if (code !== NOT_GRANTED) return explainConnectionFailure(error, url, variable);
  return new OperatorError(
    `The role of ${variable} may not read here: ${message}.`,
    'Grant it on the primary, with `lanescan migrate --grant-read` and the role that owns the tables.',
    { cause: error },
  );
}
