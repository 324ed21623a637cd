/**
 * Faults of a Citus cluster whose nodes run on this machine: commits that are held at a known step, backends that stop, and
 * nodes that crash. The role of CITUS_URL is a superuser, and this process may signal the servers' processes.
 */
import pg from 'pg';
import { expect } from 'vitest';
import { ABSENT_STANDBY } from '../cluster.ts';

export interface ClusterNode {
  readonly host: string;
  readonly port: number;
}

export interface HeldCommit {
  /** Waits until a writer's commit is held. */
  reached(): Promise<void>;
  release(): Promise<void>;
}

const PATIENCE = { timeout: 120_000, interval: 50 };
/** Key of the advisory lock that holds a commit. */
const HOLD_KEY = 4_811_093;

export async function queryOnce<Row extends pg.QueryResultRow>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The workers, by port. */
export function readWorkers(url: string): Promise<ClusterNode[]> {
  return queryOnce(
    url,
    'select nodename as host, nodeport as port from pg_dist_node where groupid <> 0 order by 2',
  );
}

/** The URL of the same database on another node. */
export function urlOnNode(url: string, { host, port }: ClusterNode): string {
  const other = new URL(url);
  other.hostname = host;
  other.port = String(port);
  return other.href;
}

/** Kills a backend, after which PostgreSQL ends all others of the node and recovers from its log. */
export async function crashNode(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query('select pg_backend_pid() as pid');
  process.kill(rows[0].pid, 'SIGKILL');
  await client.end().catch(() => undefined);
  await untilAnswering(url);
}

export async function untilAnswering(url: string): Promise<void> {
  await expect
    .poll(() => queryOnce(url, 'select 1 as one').then(([row]) => row?.one, String), PATIENCE)
    .toBe(1);
}

/** Holds the next commit of a writer when everything is written and no worker has prepared it. */
export async function holdBeforePrepare(url: string): Promise<HeldCommit> {
  await queryOnce(
    url,
    `set citus.enable_ddl_propagation = off;
     create function hold_commit() returns trigger language plpgsql as $$ begin
       if not new.is_published then perform pg_advisory_xact_lock_shared(${HOLD_KEY}); end if;
       return null;
     end $$;
     create constraint trigger hold_commit after update on publication deferrable initially deferred
     for each row execute function hold_commit()`,
  );
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  await holder.query('select pg_advisory_lock($1)', [HOLD_KEY]);
  return {
    reached: () =>
      untilSome(
        url,
        `select 1 from pg_locks where locktype = 'advisory' and objid = ${HOLD_KEY} and not granted`,
      ),
    async release() {
      await holder.end();
      // The commit that goes on still holds locks on the table.
      await queryOnce(url, 'set citus.enable_ddl_propagation = off; drop function hold_commit() cascade');
    },
  };
}

/**
 * Holds the next commit of a writer when every worker has prepared it and the coordinator has written it: the coordinator
 * waits for a standby that does not exist.
 */
export async function holdAfterPrepare(url: string): Promise<HeldCommit> {
  const [before] = await queryOnce(url, 'show synchronous_standby_names');
  expect(before?.synchronous_standby_names, 'the coordinator has standbys of its own').toBe('');
  await configure(url, `set synchronous_standby_names = '${ABSENT_STANDBY}'`);
  return {
    reached: () =>
      untilSome(
        url,
        `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'SyncRep'
           and backend_type = 'client backend'
           and (select bool_and(success and result::int > 0) from run_command_on_workers(
             'select count(*) from pg_prepared_xacts where database = current_database()'))`,
      ),
    release: () => configure(url, 'reset synchronous_standby_names'),
  };
}

async function configure(url: string, change: string): Promise<void> {
  await queryOnce(url, `alter system ${change}`);
  await queryOnce(url, 'select pg_reload_conf()');
}

async function untilSome(url: string, text: string): Promise<void> {
  await expect.poll(async () => (await queryOnce(url, text)).length, PATIENCE).toBeGreaterThan(0);
}

/** Stops the backends of a worker that have prepared a transaction; returns what lets them go on. */
export async function stopPreparedBackends(url: string): Promise<() => void> {
  const rows = await queryOnce<{ pid: number }>(
    url,
    `select pid from pg_stat_activity where datname = current_database() and query like 'PREPARE TRANSACTION%'`,
  );
  for (const { pid } of rows) process.kill(pid, 'SIGSTOP');
  expect(rows.length).toBeGreaterThan(0);
  return () => {
    for (const { pid } of rows.splice(0)) process.kill(pid, 'SIGCONT');
  };
}
