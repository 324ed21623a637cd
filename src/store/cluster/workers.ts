/** The workers of a cluster: their shards, their state for operators, and the settings that their databases need. */
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { distributedTables } from './layout.ts';

export interface Worker {
  /** `host:port`, for operators. */
  readonly address: string;
  /** Whether shards may be placed on it. */
  readonly hasShards: boolean;
}

/** The active nodes, the coordinator included where it holds shards. */
export async function readWorkers(client: ClientBase) {
  const { rows } = await client.query<Worker>(
    `select nodename || ':' || nodeport as address, shouldhaveshards as "hasShards" from pg_dist_node
     where noderole = 'primary' and isactive and (groupid <> 0 or shouldhaveshards) order by 1`,
  );
  return rows;
}

/** Which of these sessions of the coordinator some worker runs a statement for. None where there is no cluster. */
export async function readSessionsOnWorkers(client: ClientBase, sessions: readonly number[]) {
  const { rows: views } = await client.query(
    `select to_regclass('pg_catalog.citus_stat_activity') is not null as present`,
  );
  if (!views[0].present) return [];
  const { rows } = await client.query<{ pid: number }>(
    `select distinct s.pid from unnest($1::integer[]) as s (pid)
     join citus_stat_activity a on a.global_pid = citus_calculate_gpid(citus_coordinator_nodeid(), s.pid)
     where a.is_worker_query and a.state = 'active'`,
    [sessions],
  );
  return rows.map(({ pid }) => pid);
}

/**
 * Settings for the database on each worker. Those of a connection to the coordinator do not reach the workers. The planner must
 * walk an index in the order of the page there too, and days are days of UTC.
 */
export const workerSettings: Readonly<Record<string, string>> = {
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  // Otherwise a search for a frequent token joins all of its messages: the planner of a worker does not see the limit through
  // the removal of duplicates.
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  timezone: 'UTC',
};

/** Citus would propagate the statement to all nodes, and allows that on the coordinator only. */
function localOnWorker(statement: string): string {
  return `do $block$ begin
    perform set_config('citus.enable_ddl_propagation', 'off', true);
    ${statement};
  end $block$`;
}

/** Throws an OperatorError where this role may not change the database on a worker. */
export async function setWorkerSettings(client: ClientBase): Promise<void> {
  const { rows: names } = await client.query('select quote_ident(current_database()) as name');
  for (const [setting, value] of Object.entries(workerSettings)) {
    const statement = `alter database ${names[0].name} set ${setting} = '${value}'`;
    const { rows } = await client.query(
      `select n.nodename || ':' || n.nodeport as address, w.result
       from run_command_on_workers($1) w join pg_dist_node n on (n.nodename, n.nodeport) = (w.nodename, w.nodeport)
       where not w.success`,
      [localOnWorker(statement)],
    );
    if (rows[0]) {
      throw new OperatorError(
        `The settings of the worker ${rows[0].address} could not be changed: ${rows[0].result}`,
        `Run this there as the owner of the database, then start this again: ${statement}`,
      );
    }
  }
}

export interface WorkerStatus {
  /** `host:port`. */
  readonly address: string;
  readonly isAway: boolean;
  /** Shards of `message`; every other distributed table has as many. */
  readonly shards: number;
  /** Size of the database there; null while it is away. */
  readonly bytes: number | null;
  /** Transactions that are prepared and not committed; null while it is away. */
  readonly prepared: number | null;
  /** Settings of `workerSettings` that differ. */
  readonly wrongSettings: readonly string[];
  /** The language of the server's messages (`lc_messages`); null while it is away. */
  readonly messageLocale: string | null;
}

export interface ClusterStatus {
  readonly citusVersion: string;
  readonly workers: readonly WorkerStatus[];
  /** Whether the latest changes are published. */
  readonly isPublished: boolean;
  /** Of the coordinator. */
  readonly messageLocale: string;
}

export async function readClusterStatus(client: ClientBase): Promise<ClusterStatus> {
  const { rows: general } = await client.query(
    `select (select extversion from pg_extension where extname = 'citus') as "citusVersion",
            (select is_published from publication) as "isPublished",
            current_setting('lc_messages') as "messageLocale"`,
  );
  const { rows: nodes } = await client.query(
    `select n.nodename || ':' || n.nodeport as address, count(p.shardid)::int as shards
     from pg_dist_node n
     left join (pg_dist_placement p join pg_dist_shard s on s.shardid = p.shardid and s.logicalrelid = $1::regclass)
       on p.groupid = n.groupid
     where n.noderole = 'primary' and n.groupid <> 0 group by n.nodename, n.nodeport order by 1`,
    [distributedTables[0]],
  );
  const { rows: answers } = await client.query(
    `select nodename || ':' || nodeport as address, success, result from run_command_on_workers($1)`,
    [WORKER_STATE],
  );
  const workers = nodes.map(({ address, shards }): WorkerStatus => {
    const answer = answers.find((one) => one.address === address);
    if (!answer?.success) {
      const unknown = { bytes: null, prepared: null, wrongSettings: [], messageLocale: null };
      return { address, shards, isAway: true, ...unknown };
    }
    const { settings, ...state } = JSON.parse(answer.result);
    const wrongSettings = Object.keys(workerSettings).filter(
      (name) => settings[name] !== workerSettings[name],
    );
    return { address, shards, isAway: false, ...state, wrongSettings };
  });
  return { ...general[0], workers };
}

const settingMembers = Object.keys(workerSettings).map((name) => `'${name}', current_setting('${name}')`);

const WORKER_STATE = `select json_build_object(
  'bytes', pg_database_size(current_database()),
  'prepared', (select count(*) from pg_prepared_xacts where database = current_database()),
  'messageLocale', current_setting('lc_messages'),
  'settings', json_build_object(${settingMembers.join(', ')}))`;
