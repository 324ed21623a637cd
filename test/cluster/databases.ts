/**
 * Databases of tests on a Citus cluster (`CITUS_URL`): one of the same name on the coordinator and on each worker, copied from a
 * template that is migrated and distributed.
 */
import { distributeDatabase } from '../../src/store/cluster/distribution.ts';
import { setWorkerSettings } from '../../src/store/cluster/workers.ts';
import { openStore } from '../../src/store/store.ts';
import { connectTo, queryOnce, urlOfDatabase } from '../postgres.ts';

/** Several for each worker, so that both pages and batches cross shards and nodes. */
const SHARDS = 4;

/** Named as a synchronous standby, it holds commits on the coordinator. */
export const ABSENT_STANDBY = 'lanescan_test_holds_commits';

/** A run that was killed may have left the setting behind, and nothing would ever be committed. */
async function releaseHeldCommits(coordinatorUrl: string): Promise<void> {
  const [setting] = await queryOnce(coordinatorUrl, 'show synchronous_standby_names');
  if (setting?.synchronous_standby_names !== ABSENT_STANDBY) return;
  await queryOnce(coordinatorUrl, 'alter system reset synchronous_standby_names');
  await queryOnce(coordinatorUrl, 'select pg_reload_conf()');
}

interface Node {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly isCoordinator: boolean;
}

async function readNodes(coordinatorUrl: string): Promise<readonly Node[]> {
  const rows = await queryOnce(
    coordinatorUrl,
    `select nodename, nodeport, groupid from pg_dist_node where noderole = 'primary' order by groupid`,
  );
  return rows.map(({ nodename, nodeport, groupid }) => {
    const url = new URL(coordinatorUrl);
    url.hostname = String(nodename);
    url.port = String(nodeport);
    url.pathname = '/postgres';
    return { url: url.href, host: String(nodename), port: Number(nodeport), isCoordinator: groupid === 0 };
  });
}

/**
 * Runs a statement in the database `postgres` of every node. The coordinator comes first: its maintenance daemon ends when the
 * database is dropped there, unless it waits for a worker that drops the database too.
 */
export async function administerCluster(coordinatorUrl: string, statement: string): Promise<void> {
  const [coordinator, ...workers] = await readNodes(coordinatorUrl);
  if (coordinator) await queryOnce(coordinator.url, statement);
  await Promise.all(workers.map(({ url }) => queryOnce(url, statement)));
}

/** Creates an empty database that is a cluster of its own over all nodes. */
export async function createClusterDatabase(coordinatorUrl: string, name: string): Promise<void> {
  const nodes = await readNodes(coordinatorUrl);
  for (const { url } of nodes) {
    await queryOnce(url, `create database ${name}`);
    await queryOnce(urlOfDatabase(url, name), 'create extension citus');
  }
  const database = urlOfDatabase(coordinatorUrl, name);
  for (const { host, port, isCoordinator } of nodes) {
    const add = isCoordinator ? 'citus_set_coordinator_host' : 'citus_add_node';
    await queryOnce(database, `select ${add}('${host}', ${port})`);
  }
}

/** What all databases of tests begin with. */
export const TEST_DATABASES = 'lanescan_test_';

/** Drops the databases of this run, and of runs that were killed: a cluster has one run at a time. */
export async function dropClusterDatabases(coordinatorUrl: string): Promise<void> {
  const rows = await queryOnce(
    coordinatorUrl,
    `select datname from pg_database where starts_with(datname, '${TEST_DATABASES}')`,
  );
  for (const { datname } of rows) {
    await administerCluster(coordinatorUrl, `drop database if exists ${datname} with (force)`);
  }
}

/** Creates the template that `copyClusterTemplate` copies. */
export async function createClusterTemplate(coordinatorUrl: string, template: string): Promise<void> {
  await releaseHeldCommits(coordinatorUrl);
  await dropClusterDatabases(coordinatorUrl);
  await createClusterDatabase(coordinatorUrl, template);
  const url = urlOfDatabase(coordinatorUrl, template);
  await (await openStore({ place: { url } })).close();
  await distributeDatabase(url, { shards: SHARDS });
}

/** PostgreSQL copies no database that is in use. The maintenance daemon of Citus may have begun to use it again. */
export async function copyClusterTemplate(
  coordinatorUrl: string,
  template: string,
  name: string,
): Promise<void> {
  const nodes = await readNodes(coordinatorUrl);
  await Promise.all(
    nodes.map(async ({ url }) => {
      for (;;) {
        await queryOnce(
          url,
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${template}'`,
        );
        try {
          await queryOnce(url, `create database ${name} template ${template} strategy file_copy`);
          return;
        } catch (error) {
          if ((error as { code?: unknown }).code !== OBJECT_IN_USE) throw error;
        }
      }
    }),
  );
  // PostgreSQL does not copy the settings of a database.
  const client = await connectTo(urlOfDatabase(coordinatorUrl, name));
  await setWorkerSettings(client).finally(() => client.end());
}

const OBJECT_IN_USE = '55006';
