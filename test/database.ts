/**
 * One embedded PostgreSQL for the whole test run, and in it a migrated template from which each test makes
 * a database of its own in milliseconds.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import type { TestProject } from 'vitest/node';
import { openEmbedded } from '../src/store/embedded.ts';
import { openStore, type Store, type StoreOptions } from '../src/store/store.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    databaseHost: string;
  }
}

const TEMPLATE = 'lanescan_template';
/** Declared by sessions that may write whatever the schema is. */
export const ANY_SCHEMA = 1_000_000;

export default async function startDatabase(project: TestProject): Promise<() => Promise<void>> {
  const dataFolder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-test-'));
  const embedded = await openEmbedded({ dataFolder });
  const stop = async () => {
    await embedded.leave();
    await rm(dataFolder, { recursive: true, force: true });
  };
  const { host } = embedded.connection;
  try {
    await administer(host, `create database ${TEMPLATE}`);
    const store = await openStore({ place: { url: databaseUrl(host, TEMPLATE) } });
    await store.close();
    await administer(host, `alter database ${TEMPLATE} is_template true`);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('databaseHost', host);
  return stop;
}

function databaseUrl(host: string, database: string): string {
  return `postgresql:///${database}?host=${encodeURIComponent(host)}&user=lanescan`;
}

async function administer(host: string, statement: string): Promise<void> {
  const client = new pg.Client({ host, user: 'lanescan', database: 'postgres' });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

let databases = 0;

/**
 * A database of its own, migrated (or, on request, empty). Its sessions may write whatever the schema is, unless only
 * those shall that declare it by themselves.
 */
export async function createTestDatabase({
  empty = false,
  declaresSchema = true,
} = {}): Promise<TestDatabase> {
  const host = inject('databaseHost');
  const name = `test_${process.pid}_${++databases}`;
  await administer(host, `create database ${name}${empty ? '' : ` template ${TEMPLATE}`}`);
  if (declaresSchema) await administer(host, `alter database ${name} set lanescan.schema = '${ANY_SCHEMA}'`);
  return {
    url: databaseUrl(host, name),
    drop: () => administer(host, `drop database if exists ${name} with (force)`),
  };
}

/** The tables that hold data, whatever the schema has by now. */
export async function dataTables(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query(
    `select tablename from pg_tables where schemaname = 'public' and tablename <> 'migration' order by 1`,
  );
  return rows.map(({ tablename }) => tablename);
}

/** Makes a store as good as new, in less time than another database takes. */
export async function emptyTables(client: pg.ClientBase): Promise<void> {
  const tables = (await dataTables(client)).filter((table) => table !== 'store');
  await client.query(`truncate ${tables.join(', ')}; update store set position = 0`);
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
