/**
 * The watchdog of an embedded PostgreSQL: a database session that stops the server after half a minute without a member,
 * that is when all processes that used it were killed.
 *
 * It is a loop inside the server, so it needs no process of its own and survives the process that started it: a session
 * that executes a statement does not notice that its client is gone. Every member starts one when it joins; an advisory
 * lock lets only the first stay. It stops the server under the same exclusive lock as a member that leaves last.
 */
import pg from 'pg';
import { PORT, SUPERUSER } from './embedded-binaries.ts';

/** Members hold this advisory lock in shared mode. Must never change: processes of different releases share a server. */
export const MEMBERSHIP_LOCK = '5497853135693827';
const WATCHDOG_LOCK = '5497853135693828';
const CHECK_INTERVAL_SECONDS = 5;
/** Checks in a row without a member. A supervisor that restarts a killed process finds the server still running. */
const MAX_EMPTY_CHECKS = 6;

export type Watchdog = Awaited<ReturnType<typeof startWatchdog>>;

const loop = `do $$
declare
  empty_checks integer := 0;
begin
  if not pg_try_advisory_lock(${WATCHDOG_LOCK}) then
    return;
  end if;
  loop
    commit; -- no snapshot is held from one check to the next
    perform pg_sleep(${CHECK_INTERVAL_SECONDS});
    if exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
                 and classid::bigint << 32 | objid::bigint = ${MEMBERSHIP_LOCK}) then
      empty_checks := 0;
    else
      empty_checks := empty_checks + 1;
    end if;
    if empty_checks >= ${MAX_EMPTY_CHECKS} and pg_try_advisory_lock(${MEMBERSHIP_LOCK}) then
      execute format('copy (select 1 where false) to program %L',
        'kill -INT ' || split_part(pg_read_file('postmaster.pid'), e'\\n', 1));
      perform pg_sleep(3600); -- the lock keeps new members out until the server ends this session
    end if;
  end loop;
end $$`;

/** Starts the watchdog of the server with this socket, unless it has one. Never fails: a server runs without one too. */
export async function startWatchdog(socketFolder: string) {
  const client = new pg.Client({
    host: socketFolder,
    port: PORT,
    user: SUPERUSER,
    database: 'postgres',
    ssl: false,
    connectionTimeoutMillis: 5_000,
    application_name: 'lanescan watchdog',
    options: '-c client_connection_check_interval=0 -c statement_timeout=0',
  });
  client.on('error', () => {});
  /** Closes the connection of this process. The session goes on without it. */
  const disconnect = () => void client.end().catch(() => {});
  try {
    await client.connect();
    client
      .query(loop)
      .catch(() => {})
      .finally(disconnect);
  } catch {
    disconnect();
  }
  return { disconnect };
}
