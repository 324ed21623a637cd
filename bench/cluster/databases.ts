/**
 * The two databases that are compared: the same messages on a plain PostgreSQL and on a Citus cluster. They are kept, and the next
 * run finds them.
 */
import { readFileSync } from 'node:fs';
import type pg from 'pg';
import { distributeDatabase } from '../../src/store/cluster/distribution.ts';
import { openStore } from '../../src/store/store.ts';
import { administerCluster, createClusterDatabase } from '../../test/cluster/databases.ts';
import { urlOfDatabase } from '../../test/postgres.ts';
import { type Cluster, openDatabase, readMark, withClient } from '../data/database.ts';
import { WORLD_VERSION } from '../data/world.ts';

/** A server by the URL of one of its databases. It runs on this machine. */
export async function serverAt(url: string): Promise<Cluster> {
  const dataFolder = await withClient(url, async (client) => {
    const { rows } = await client.query('show data_directory');
    return rows[0].data_directory as string;
  });
  const { hostname, port, username } = new URL(url);
  return {
    embedded: {
      connection: { host: hostname, port: Number(port), user: username, database: 'postgres', ssl: false },
      dataFolder,
      isStarter: false,
      async leave() {},
    },
    url: (database) => urlOfDatabase(url, database),
  };
}

/** The database with so many messages on the cluster, in so many shards; made from one on the coordinator alone. */
export async function openDistributed(
  coordinatorUrl: string,
  size: number,
  shards: number,
): Promise<{ readonly url: string; readonly distributionSeconds: number | null }> {
  const name = `bench_${size}_shards_${shards}`;
  const url = urlOfDatabase(coordinatorUrl, name);
  const mark = `world ${WORLD_VERSION}, distributed`;
  let distributionSeconds: number | null = null;
  if ((await readMark(urlOfDatabase(coordinatorUrl, 'postgres'), name)) !== mark) {
    const local = await openDatabase(await serverAt(coordinatorUrl), size);
    await dropDistributed(coordinatorUrl, name);
    await createFromTemplate(coordinatorUrl, name, local.name);
    console.error(`Distributing ${size.toLocaleString('en')} messages over ${shards} shards`);
    const began = performance.now();
    await distributeDatabase(url, { shards });
    distributionSeconds = Math.round((performance.now() - began) / 1_000);
    // As the single node's tables are: otherwise the first searches would set hint bits.
    await withClient(url, (client) => client.query('vacuum analyze'));
    await withClient(urlOfDatabase(coordinatorUrl, 'postgres'), (client) =>
      client.query(`comment on database ${name} is '${mark}'`),
    );
  }
  // Applies migrations of later releases.
  await (await openStore({ place: { url } })).close();
  return { url, distributionSeconds };
}

/** A cluster of its own over all nodes, whose coordinator has a copy of one of its databases. */
async function createFromTemplate(coordinatorUrl: string, name: string, template: string): Promise<void> {
  const nodes = await withClient(coordinatorUrl, readNodes);
  const url = urlOfDatabase(coordinatorUrl, name);
  for (const { host, port, isCoordinator } of nodes) {
    const node = urlOfNode(url, { host, port, isCoordinator });
    const from = isCoordinator ? ` template ${template}` : '';
    await withClient(urlOfDatabase(node, 'postgres'), (client) =>
      client.query(`create database ${name}${from}`),
    );
    await withClient(node, (client) => client.query('create extension citus'));
    const add = isCoordinator ? 'citus_set_coordinator_host' : 'citus_add_node';
    await withClient(url, (client) => client.query(`select ${add}($1, $2::int)`, [host, port]));
  }
}

/** The process that started all others of PostgreSQL, on every node of the cluster of a database, or on its only server. */
export async function readPostmasters(url: string): Promise<readonly number[]> {
  const nodes = await withClient(url, async (client) => {
    const { rows } = await client.query(`select to_regclass('pg_dist_node') is not null as is_cluster`);
    if (!rows[0].is_cluster) return [url];
    return (await readNodes(client)).map((node) => urlOfNode(url, node));
  });
  return Promise.all(
    nodes.map(async (node) => {
      const { embedded } = await serverAt(node);
      return Number.parseInt(readFileSync(`${embedded.dataFolder}/postmaster.pid`, 'utf8'), 10);
    }),
  );
}

interface Node {
  readonly host: string;
  readonly port: number;
  readonly isCoordinator: boolean;
}

async function readNodes(client: pg.ClientBase): Promise<readonly Node[]> {
  const { rows } = await client.query(
    `select nodename as host, nodeport as port, groupid = 0 as "isCoordinator" from pg_dist_node
     where noderole = 'primary' order by groupid`,
  );
  return rows;
}

function urlOfNode(url: string, { host, port }: Node): string {
  const node = new URL(url);
  [node.hostname, node.port] = [host, String(port)];
  return node.href;
}

/** Empty, with the schema, distributed. */
export async function createEmptyDistributed(
  coordinatorUrl: string,
  name: string,
  shards: number,
): Promise<string> {
  await dropDistributed(coordinatorUrl, name);
  await createClusterDatabase(coordinatorUrl, name);
  const url = urlOfDatabase(coordinatorUrl, name);
  await (await openStore({ place: { url } })).close();
  await distributeDatabase(url, { shards });
  return url;
}

export async function dropDistributed(coordinatorUrl: string, name: string): Promise<void> {
  await administerCluster(coordinatorUrl, `drop database if exists ${name} with (force)`);
}

/** Gives one database the key of the other, so that both sign the same cursors and pages can be compared byte by byte. */
export async function shareCursorKey(from: string, to: string): Promise<void> {
  const { rows } = await withClient(from, (client) => client.query('select key from cursor_key'));
  if (rows.length !== 1) throw new Error(`cursor_key has ${rows.length} rows instead of one`);
  await withClient(to, (client) => client.query('update cursor_key set key = $1', [rows[0].key]));
}
