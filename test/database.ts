/**
 * One embedded PostgreSQL for the whole test run, started when a test first asks for a database: a run of unit tests
 * starts none. It holds a migrated template, from which each test makes a database of its own in milliseconds.
 *
 * With CITUS_URL (`npm run test:cluster`), the URL of a database on the coordinator of a cluster, it is that cluster, and the
 * template is distributed.
 */
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, inject } from 'vitest';
import type { TestProject } from 'vitest/node';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { openStore, type Store, type StoreOptions } from '../src/store/store.ts';
import {
  administerCluster,
  copyClusterTemplate,
  createClusterDatabase,
  createClusterTemplate,
  dropClusterDatabases,
  TEST_DATABASES,
} from './cluster/databases.ts';
import { queryOnce, urlOfDatabase } from './postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Answers with the folder of PostgreSQL's socket, and starts PostgreSQL before that where it does not run yet. */
    databaseStarter: string;
  }
}

const TEMPLATE = `${TEST_DATABASES}template`;
/** Whether the databases of tests are distributed over a cluster. */
export const isOnCluster = process.env.CITUS_URL !== undefined;
/** Declared by sessions that may write whatever the schema is. */
export const ANY_SCHEMA = 1_000_000;

interface RunningDatabase {
  readonly host: string;
  stop(): Promise<void>;
}

/** Runs in Vitest's main process; the tests run in others, and reach it over HTTP. */
export default async function offerDatabase(project: TestProject): Promise<() => Promise<void>> {
  let database: Promise<RunningDatabase> | undefined;
  const starter = createServer((_request, response) => {
    database ??= startDatabase();
    database.then(
      ({ host }) => response.end(host),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  await new Promise<void>((resolve) => starter.listen(0, '127.0.0.1', resolve));
  project.provide('databaseStarter', `http://127.0.0.1:${(starter.address() as AddressInfo).port}`);
  return async () => {
    starter.closeAllConnections();
    starter.close();
    // A start that failed has been reported to the tests that asked for it.
    const running = await database?.catch(() => undefined);
    await running?.stop();
  };
}

/** The `host` of a cluster is the URL of its coordinator. */
const isCluster = (host: string) => host.startsWith('postgres');

async function startDatabase(): Promise<RunningDatabase> {
  const { CITUS_URL } = process.env;
  if (CITUS_URL !== undefined) {
    await createClusterTemplate(CITUS_URL, TEMPLATE);
    return { host: CITUS_URL, stop: () => dropClusterDatabases(CITUS_URL) };
  }
  const dataFolder = await mkdtemp(path.join(await quickFolder(), 'lanescan-test-'));
  // On a very busy machine the creation of the cluster can use up the time that a start has; the second start has it.
  const embedded = await openEmbedded({ dataFolder }).catch(() => openEmbedded({ dataFolder }));
  const stop = async () => {
    await embedded.leave();
    await rm(dataFolder, { recursive: true, force: true });
  };
  const { host } = embedded.connection;
  try {
    // Nothing of it has to survive a crash of the machine.
    await administer(host, 'alter system set fsync = off');
    await administer(host, 'select pg_reload_conf()');
    await administer(host, `create database ${TEMPLATE}`);
    const store = await openStore({ place: { url: databaseUrl(host, TEMPLATE) } });
    await store.close();
    await administer(host, `alter database ${TEMPLATE} is_template true`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { host, stop };
}

/**
 * In memory where there is plenty, for nobody needs these databases after a crash: each one that is dropped makes
 * PostgreSQL write and sync all of its files. Where TMPDIR is set, there.
 */
async function quickFolder(): Promise<string> {
  const memory = '/dev/shm';
  const room = await statfs(memory).catch(() => undefined);
  const hasRoom = room !== undefined && room.bavail * room.bsize >= 4 * 1024 ** 3;
  return process.env.TMPDIR === undefined && hasRoom ? memory : os.tmpdir();
}

let foundHost: Promise<string> | undefined;

/** The folder of PostgreSQL's socket. */
export function databaseHost(): Promise<string> {
  foundHost ??= (async () => {
    const answer = await fetch(inject('databaseStarter'));
    const text = await answer.text();
    if (!answer.ok) throw new Error(`The PostgreSQL of the tests does not start: ${text}`);
    return text;
  })();
  return foundHost;
}

function databaseUrl(host: string, database: string): string {
  if (isCluster(host)) return urlOfDatabase(host, database);
  return `postgresql:///${database}?host=${encodeURIComponent(host)}&user=lanescan`;
}

async function administer(host: string, statement: string): Promise<void> {
  if (isCluster(host)) return administerCluster(host, statement);
  await queryOnce(databaseUrl(host, 'postgres'), statement);
}

export interface TestDatabase {
  readonly url: string;
  /** The Unix socket on which PostgreSQL listens. */
  readonly socket: string;
  drop(): Promise<void>;
}

let databases = 0;

/**
 * A database of its own, migrated (or, on request, empty, or with the same files as another one, which nobody may be using).
 * Its sessions may write whatever the schema is, unless only those shall that declare it by themselves.
 */
export async function createTestDatabase({
  empty = false,
  copyOf,
  declaresSchema = true,
}: {
  empty?: boolean;
  copyOf?: TestDatabase;
  declaresSchema?: boolean;
} = {}): Promise<TestDatabase> {
  const host = await databaseHost();
  const name = `${TEST_DATABASES}${process.pid}_${++databases}`;
  if (!isCluster(host)) {
    const original = copyOf && new URL(copyOf.url).pathname.slice(1);
    const template = original ?? (empty ? 'template1' : TEMPLATE);
    // The default strategy writes all pages to the write-ahead log, which takes seven times as long.
    await administer(host, `create database ${name} template ${template} strategy file_copy`);
  } else if (empty) await createClusterDatabase(host, name);
  else await copyClusterTemplate(host, TEMPLATE, name);
  if (declaresSchema) await administer(host, `alter database ${name} set lanescan.schema = '${ANY_SCHEMA}'`);
  return {
    url: databaseUrl(host, name),
    socket: path.join(host, '.s.PGSQL.5432'),
    drop: () => administer(host, `drop database if exists ${name} with (force)`),
  };
}

/** A migrated database for all tests of a file, or of a `describe`. */
export function provideTestDatabase(): Pick<TestDatabase, 'url'> {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  return {
    get url() {
      return database.url;
    },
  };
}

/** The tables that hold data, whatever the schema has by now. */
export async function dataTables(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query(
    `select tablename from pg_tables where schemaname = 'public' and tablename <> 'migration' order by 1`,
  );
  return rows.map(({ tablename }) => tablename);
}

/** The contents of these tables, to see that nothing has changed them. */
export async function digestOfTables(client: pg.ClientBase): Promise<readonly unknown[]> {
  const digests: unknown[] = [];
  for (const table of await dataTables(client)) {
    const { rows } = await client.query(
      `select count(*)::int, md5(string_agg(t::text, '|' order by t::text)) from ${table} t`,
    );
    digests.push([table, ...rows]);
  }
  return digests;
}

/** Makes a store as good as new, in less time than another database takes. */
export async function emptyTables(client: pg.ClientBase): Promise<void> {
  const kept = ['store', 'store_revision', 'publication', 'cursor_key'];
  const tables = (await dataTables(client)).filter((table) => !kept.includes(table));
  // As createTestDatabase does for its own: the database may be one that a store has made.
  await client.query(`set lanescan.schema = '${ANY_SCHEMA}'`);
  await client.query(
    `truncate ${tables.join(', ')}; update store set position = 0;
     update store_revision set revision = revision + 1; update publication set assigned_position = 0`,
  );
}

/** A store on a database of its own; `close` drops the database too. */
export async function openTestStore(
  options: Partial<StoreOptions> = {},
): Promise<Store & { readonly url: string }> {
  const database = await createTestDatabase();
  const store = await openStore({ place: { url: database.url }, ...options });
  return {
    ...store,
    url: database.url,
    close: async () => {
      await store.close();
      await database.drop();
    },
  };
}
