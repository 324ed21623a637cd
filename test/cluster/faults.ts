/**
 * Faults of a Citus cluster whose nodes run on this machine: commits that are held at a known step, backends that stop, and
 * nodes that crash. The role of CITUS_URL is a superuser, and this process may signal the servers' processes.
 */
import { expect } from 'vitest';
import { connectTo, queryOnce } from '../postgres.ts';
import { ABSENT_STANDBY } from './databases.ts';

export interface ClusterNode {
  readonly host: string;
  readonly port: number;
}

export interface HeldCommit {
  /** Waits until a writer's commit is held. */
  reached(): Promise<void>;
  release(): Promise<void>;
}

/** Key of the advisory lock that holds a commit. */
const HOLD_KEY = 4_811_093;

/** The workers, by port. */
export function readWorkers(url: string): Promise<ClusterNode[]> {
  return queryOnce(
    url,
    'select nodename as host, nodeport as port from pg_dist_node where groupid <> 0 order by 2',
  );
}

/** How many shards of each table the workers have, by port. */
export async function readPlacements(url: string): Promise<Record<string, number>> {
  const rows = await queryOnce<{ port: number; shards: number }>(
    url,
    `select nodeport as port, count(*)::int as shards from citus_shards where table_name = 'message'::regclass group by 1`,
  );
  return Object.fromEntries(rows.map(({ port, shards }) => [port, shards]));
}

/** Moves shards to the workers that have fewer, while writers go on. */
export async function rebalance(url: string): Promise<void> {
  await queryOnce(url, `select citus_rebalance_start(shard_transfer_mode => 'force_logical')`);
  await queryOnce(url, 'select citus_rebalance_wait()');
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
  const client = await connectTo(url);
  client.on('error', () => undefined);
  const { rows } = await client.query('select pg_backend_pid() as pid');
  process.kill(rows[0].pid, 'SIGKILL');
  await client.end().catch(() => undefined);
  await untilAnswering(url);
}

export async function untilAnswering(url: string): Promise<void> {
  await expect.poll(() => queryOnce(url, 'select 1 as one').then(([row]) => row?.one, String)).toBe(1);
}

/** The tables on a worker that are the shards of a table. */
export async function readShards(
  url: string,
  table: string,
  { port }: ClusterNode,
): Promise<readonly string[]> {
  const shards =
    'select shard_name as name from citus_shards where table_name = $1::regclass and nodeport = $2';
  return (await queryOnce<{ name: string }>(url, shards, [table, port])).map(({ name }) => name);
}

/** Holds the next commit of a writer when everything is written and no worker has prepared it. */
export async function holdBeforePrepare(url: string): Promise<HeldCommit> {
  const { isReached, release } = await holdByTrigger(
    url,
    'not new.is_published',
    'create constraint trigger hold after update on publication deferrable initially deferred',
  );
  return { reached: () => untilSome(url, isReached), release };
}

export interface HeldCopy extends HeldCommit {
  /** Ends the session on the worker that waits for the release. */
  endSession(): Promise<void>;
}

/** Holds the next COPY of a writer to the history on a worker, which has got rows and has not answered. */
export async function holdCopy(url: string, worker: ClusterNode): Promise<HeldCopy> {
  const workerUrl = urlOnNode(url, worker);
  const shards = await readShards(url, 'history', worker);
  const { isReached, release } = await holdByTrigger(
    workerUrl,
    'true',
    ...shards.map((shard) => `create trigger hold before insert on ${shard}`),
  );
  return {
    reached: () => untilSome(workerUrl, isReached),
    release,
    async endSession() {
      await queryOnce(workerUrl, isReached.replace('select 1', 'select pg_terminate_backend(pid)'));
    },
  };
}

/** Makes what calls these triggers wait, for rows that satisfy the condition. */
async function holdByTrigger(url: string, condition: string, ...triggers: readonly string[]) {
  const local = 'set citus.enable_ddl_propagation = off; set citus.enable_manual_changes_to_shards = on;';
  await queryOnce(
    url,
    `${local}
     create function hold() returns trigger language plpgsql as $$ begin
       if ${condition} then perform pg_advisory_xact_lock_shared(${HOLD_KEY}); end if;
       return new;
     end $$;
     ${triggers.map((trigger) => `${trigger} for each row execute function hold();`).join('\n')}`,
  );
  const holder = await connectTo(url);
  await holder.query('select pg_advisory_lock($1)', [HOLD_KEY]);
  return {
    isReached: `select 1 from pg_locks where locktype = 'advisory' and objid = ${HOLD_KEY} and not granted`,
    async release() {
      await holder.end();
      // What goes on still holds locks on the table.
      await queryOnce(url, `${local} drop function hold() cascade`);
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
  await expect.poll(async () => (await queryOnce(url, text)).length).toBeGreaterThan(0);
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
