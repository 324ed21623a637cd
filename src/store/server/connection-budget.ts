/** Connection budget: how many database connections a process may open, and whether the server has room for all of them. */
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';

/** The most connections that each pool of a process opens, here of one that does everything. */
export const wholeProcess = {
  readers: 10,
  // Writers wait for the store's row anyway: one works, one is ready to follow.
  writers: 2,
  exporters: 4,
  leases: 4,
};

export type PoolSizes = Readonly<typeof wholeProcess>;

/** Pool sizes of one of several worker processes of a server, which share the readers of one process. */
export function answeringProcess(processes: number): PoolSizes {
  const share = (whole: number, atLeast: number) => Math.max(atLeast, Math.ceil(whole / processes));
  return {
    readers: share(wholeProcess.readers, 3),
    writers: 1,
    exporters: share(wholeProcess.exporters, 2),
    leases: 1,
  };
}

/** What PostgreSQL of the data folder is started with, unless more are needed. */
export const EMBEDDED_CONNECTIONS = 200;
/** Kept free on an embedded server for other commands on the same folder. */
const EMBEDDED_SPARE = 100;

/** The listener for changes, the watchdog, the poll of the position beside replicas, the membership of an embedded server. */
const SINGLE_CONNECTIONS = 4;

/** The most connections that `lanescan serve` opens on the primary with so many processes. */
export function connectionsNeeded(processes: number): number {
  const sum = ({ readers, writers, exporters, leases }: PoolSizes) =>
    readers + writers + exporters + leases + SINGLE_CONNECTIONS;
  return sum(wholeProcess) + (processes > 1 ? processes * sum(answeringProcess(processes)) : 0);
}

export function embeddedConnections(processes: number): number {
  return processes > 1
    ? Math.max(EMBEDDED_CONNECTIONS, connectionsNeeded(processes) + EMBEDDED_SPARE)
    : EMBEDDED_CONNECTIONS;
}

/** Throws an OperatorError where the server cannot hold the connections of so many processes. */
export async function requireConnections(client: ClientBase, processes: number, isEmbedded: boolean) {
  const { rows } = await client.query(
    `select current_setting('max_connections')::int as max,
            current_setting('superuser_reserved_connections')::int
              + coalesce(current_setting('reserved_connections', true)::int, 0) as reserved,
            (select rolconnlimit from pg_roles where rolname = current_user) as role_limit,
            (select datconnlimit from pg_database where datname = current_database()) as database_limit,
            (select count(*)::int from pg_stat_activity
             where backend_type = 'client backend' and pid <> pg_backend_pid()) as used`,
  );
  const { max, reserved, role_limit: roleLimit, database_limit: databaseLimit, used } = rows[0];
  const limits = [roleLimit, databaseLimit].filter((limit) => limit >= 0);
  const room = Math.min(max - reserved - used, ...limits);
  const needed = connectionsNeeded(processes);
  if (needed <= room) return;
  let most = processes;
  while (most > 1 && connectionsNeeded(most) > room) most--;
  const limited = limits.length > 0 ? `, and at most ${Math.min(...limits)} for this role and database` : '';
  throw new OperatorError(
    `${processes} processes may open ${needed} database connections, but the server has room for ${room}: ` +
      `max_connections is ${max}, ${reserved} are reserved, ${used} are in use${limited}.`,
    isEmbedded
      ? 'Another process has started this database with fewer connections. Stop that one and start this one first, or ask for fewer processes.'
      : `Use --processes ${most}, or raise max_connections to ${needed + reserved + used} or more.`,
  );
}
