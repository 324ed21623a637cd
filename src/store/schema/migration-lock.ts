/**
 * Locks of a migration: one migration at a time, and no writer of any release while it runs.
 *
 * Writers of messages lock the row of `store` first and hold the table's lock until they commit, so a lock on that
 * table waits for the writer at work and keeps the next ones from starting. The other tables follow, because leases,
 * webhooks and the mirror ledger write without the store's lock. EXCLUSIVE mode lets readers go on; a migration takes
 * more where its statements need it.
 *
 * No wait is silent or endless: a lock that is not granted in time ends the attempt, a log line names its holder, and the
 * whole transaction is retried.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { existingTables } from './tables.ts';

/** Key of the advisory lock. It must never change: processes of different releases share a database. */
const MIGRATION_LOCK = 7_264_910_331;

export interface LockOptions {
  readonly writeLog?: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** How long a migration waits for others before it gives up. */
  readonly timeoutMs?: number;
}

const MIGRATION_TIMEOUT_MS = 10 * 60_000;
const POLL_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 5_000;
/** The longest wait for one table lock in one attempt. */
const LOCK_TIMEOUT_MS = 5_000;
/**
 * The first attempts wait for less than PostgreSQL's deadlock_timeout (1 s): if an older program holds one of our tables and
 * waits for another, we release ours before PostgreSQL aborts its transaction. Later attempts wait for longer, because
 * autovacuum yields only to a lock request that has waited for deadlock_timeout.
 */
const FIRST_LOCK_TIMEOUT_MS = 500;
const RETRY_DELAY_MS = 200;

/** Runs `work` while no other process migrates. The lock belongs to the session of `client`. */
export async function withMigrationLock<T>(
  client: ClientBase,
  { writeLog, signal, timeoutMs = MIGRATION_TIMEOUT_MS }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const begin = performance.now();
  let nextLogAt = begin + LOG_INTERVAL_MS;
  for (;;) {
    signal?.throwIfAborted();
    const { rows } = await client.query('select pg_try_advisory_lock($1) as granted', [MIGRATION_LOCK]);
    if (rows[0].granted) break;
    const waited = performance.now() - begin;
    if (waited > timeoutMs) {
      throw new OperatorError(
        `Another process has been migrating this database for ${seconds(waited)}.`,
        'Wait until it is done, or end it; then start this again.',
      );
    }
    if (performance.now() > nextLogAt) {
      writeLog?.(`Waiting for another process that migrates this database (${seconds(waited)})`);
      nextLogAt += LOG_INTERVAL_MS;
    }
    await delay(POLL_INTERVAL_MS, undefined, signal && { signal });
  }
  try {
    return await work();
  } finally {
    await client.query('select pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => undefined);
  }
}

/** Runs `work` in a transaction during which no other session writes to our tables. It may run several times. */
export async function withoutWriters(
  client: ClientBase,
  { writeLog, signal, timeoutMs = MIGRATION_TIMEOUT_MS }: LockOptions,
  work: () => Promise<void>,
): Promise<void> {
  const begin = performance.now();
  for (let lockTimeoutMs = FIRST_LOCK_TIMEOUT_MS; ; lockTimeoutMs *= 2) {
    signal?.throwIfAborted();
    try {
      // For Citus, and without effect elsewhere: statements on several distributed tables need one connection for each worker.
      await client.query(`begin; set local citus.multi_shard_modify_mode = 'sequential'`);
      await lockTables(client, Math.min(lockTimeoutMs, LOCK_TIMEOUT_MS));
      await work();
      await client.query('commit');
      return;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      if (!isLockFailure(error)) throw error;
      const waited = performance.now() - begin;
      const holders = await lockHolders(client);
      if (waited > timeoutMs) {
        throw new OperatorError(
          `The schema could not be changed for ${seconds(waited)}, because others use the tables: ${holders}.`,
          'Stop the older programs and long exports, then start this again. Nothing was changed.',
          { cause: error },
        );
      }
      writeLog?.(`Waiting to change the schema (${seconds(waited)}): ${holders}`);
      await delay(RETRY_DELAY_MS, undefined, signal && { signal });
    }
  }
}

/** 55P03: lock not granted in time; 40P01: aborted to resolve a deadlock. */
export function isLockFailure(error: unknown): boolean {
  return ['55P03', '40P01'].includes(String((error as { code?: unknown } | undefined)?.code));
}

async function lockTables(client: ClientBase, lockTimeoutMs: number): Promise<void> {
  // Time limits of the role are meant for queries; a migration may take longer.
  await client.query(
    `select set_config(name, '0', true) from pg_settings
     where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
  );
  const wait = (ms: number) => client.query(`set local lock_timeout = ${ms}`);
  const [first, ...others] = await existingTables(client);
  // The first lock is waited for while none is held, so a long wait cannot cause a deadlock.
  await wait(LOCK_TIMEOUT_MS);
  if (first) await client.query(`lock table ${first} in exclusive mode`);
  await wait(lockTimeoutMs);
  if (others.length > 0) await client.query(`lock table ${others.join(', ')} in exclusive mode`);
  await wait(LOCK_TIMEOUT_MS);
}

/** The sessions that hold locks on our tables, for messages. A role sees those of others without their names. */
async function lockHolders(client: ClientBase): Promise<string> {
  const { rows } = await client.query(
    `select a.pid, coalesce(nullif(a.application_name, ''), a.backend_type, 'unknown program') as program,
            extract(epoch from clock_timestamp() - a.xact_start)::integer as seconds
     from pg_stat_activity a
     where a.pid <> pg_backend_pid() and exists (
       select from pg_locks l where l.pid = a.pid and l.granted and l.locktype = 'relation'
         and l.database = (select oid from pg_database where datname = current_database())
         and l.relation in (select to_regclass(name) from unnest($1::text[]) as ours (name)))
     order by a.xact_start nulls last limit 3`,
    [await existingTables(client)],
  );
  if (rows.length === 0) return 'other transactions come and go';
  return rows
    .map(
      ({ pid, program, seconds: age }) =>
        `${program} (process ${pid}${age === null ? '' : `, since ${age} s`})`,
    )
    .join(', ');
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
