/**
 * The watchdog of an embedded PostgreSQL: a database session that stops the server once it has had no member for half a
 * minute, because all of its processes were killed.
 *
 * It is a loop inside the server, so it needs no process of its own and survives the process that started it: a session
 * that executes a statement does not notice that its client is gone. Every member starts one when it joins; an advisory
 * lock lets only the first stay. It stops the server under the same exclusive lock as a member that leaves last.
 */
import pg from 'pg';
import { port, superuser } from './embedded-binaries.ts';

/** Members hold this advisory lock in shared mode. Must never change: processes of different releases share a server. */
export const membershipKey = '5497853135693827';
const watchdogKey = '5497853135693828';
const lookEverySeconds = 5;
/** Looks in a row without a member. A supervisor that restarts a killed process finds the server still running. */
const looks = 6;

export interface Watchdog {
  /** Closes the connection of this process. The session goes on by itself. */
  letGo(): void;
}

const loop = `do $$
declare
  empty_looks integer := 0;
begin
  if not pg_try_advisory_lock(${watchdogKey}) then
    return;
  end if;
  loop
    commit; -- no snapshot is held from one look to the next
    perform pg_sleep(${lookEverySeconds});
    if exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
                 and classid::bigint << 32 | objid::bigint = ${membershipKey}) then
      empty_looks := 0;
    else
      empty_looks := empty_looks + 1;
    end if;
    if empty_looks >= ${looks} and pg_try_advisory_lock(${membershipKey}) then
      execute format('copy (select 1 where false) to program %L',
        'kill -INT ' || split_part(pg_read_file('postmaster.pid'), e'\\n', 1));
      perform pg_sleep(3600); -- keeps newcomers out until the server ends this session
    end if;
  end loop;
end $$`;

/** Starts the watchdog of the server with this socket, unless it has one. Never fails: a server can do without. */
export async function startWatchdog(socketFolder: string): Promise<Watchdog> {
  const client = new pg.Client({
    host: socketFolder,
    port,
    user: superuser,
    database: 'postgres',
    ssl: false,
    connectionTimeoutMillis: 5_000,
    application_name: 'lanescan watchdog',
    options: '-c client_connection_check_interval=0 -c statement_timeout=0',
  });
  client.on('error', () => {});
  const letGo = () => void client.end().catch(() => {});
  try {
    await client.connect();
    client
      .query(loop)
      .catch(() => {})
      .finally(letGo);
  } catch {
    letGo();
  }
  return { letGo };
}
