/** The state of a cluster for operators: its workers, their shards and their settings. */
import type { ClientBase } from 'pg';
import { distributedTables } from './layout.ts';
import { workerSettings } from './workers.ts';

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
    `select (select extversion from pg_extension where extname = 'citus') as version,
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
  return {
    citusVersion: general[0].version,
    isPublished: general[0].isPublished,
    messageLocale: general[0].messageLocale,
    workers: nodes.map(({ address, shards }): WorkerStatus => {
      const answer = answers.find((one) => one.address === address);
      if (!answer?.success) {
        return {
          address,
          shards,
          isAway: true,
          bytes: null,
          prepared: null,
          wrongSettings: [],
          messageLocale: null,
        };
      }
      const { bytes, prepared, settings, messageLocale } = JSON.parse(answer.result) as WorkerState;
      const wrongSettings = Object.entries(workerSettings).flatMap(([name, value]) =>
        settings[name] === value ? [] : [name],
      );
      return { address, shards, isAway: false, bytes, prepared, wrongSettings, messageLocale };
    }),
  };
}

interface WorkerState {
  readonly bytes: number;
  readonly prepared: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly messageLocale: string;
}

const settingMembers = Object.keys(workerSettings).map((name) => `'${name}', current_setting('${name}')`);

const WORKER_STATE = `select json_build_object(
  'bytes', pg_database_size(current_database()),
  'prepared', (select count(*) from pg_prepared_xacts where database = current_database()),
  'messageLocale', current_setting('lc_messages'),
  'settings', json_build_object(${settingMembers.join(', ')}))`;
