/** PostgreSQL servers of the operating system, with streaming replication, for what the embedded one does not do. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect } from 'vitest';
import { chooseServerUser, isRoot } from '../../src/store/server/embedded-binaries.ts';
import { ANY_SCHEMA } from '../database.ts';

const run = promisify(execFile);
const DATABASE = 'lanescan';
const USER = 'lanescan';
const PORT = 5432;
const START_PATIENCE_MS = 60_000;

/** Where Debian and its kin keep the programs; undefined where there are none, or only old ones. */
export const systemPostgres: string | undefined = findPrograms();

function findPrograms(): string | undefined {
  const versions = '/usr/lib/postgresql';
  const numbers = existsSync(versions) ? readdirSync(versions).map(Number) : [];
  return numbers
    .filter((version) => version >= 15)
    .sort((a, b) => b - a)
    .map((version) => path.join(versions, String(version), 'bin'))
    .find((folder) => existsSync(path.join(folder, 'pg_basebackup')));
}

export interface SystemServer {
  readonly url: string;
  /** Of its Unix socket. */
  readonly socket: string;
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** How many statements it was sent that match. */
  statements(pattern: RegExp): number;
  /** A streaming replica of this one. */
  replicate(): Promise<SystemServer>;
  start(): Promise<void>;
  /** Ends it, at once with SIGKILL or SIGQUIT, in order with SIGINT. */
  end(signal: 'SIGKILL' | 'SIGQUIT' | 'SIGINT'): Promise<void>;
  remove(): Promise<void>;
}

/** A primary with an empty database. */
export async function startSystemServer(
  settings: Readonly<Record<string, string | number>> = {},
): Promise<SystemServer> {
  const place = await makeFolder();
  const how = ['-U', USER, '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await runAs(place, 'initdb', ['-D', place.cluster, ...how]);
  const server = await startIn(place, settings);
  const client = new pg.Client({ host: place.folder, port: PORT, user: USER, database: 'postgres' });
  await client.connect();
  await client.query(`create database ${DATABASE}`);
  // Tests write rows by hand.
  await client.query(`alter database ${DATABASE} set lanescan.schema = '${ANY_SCHEMA}'`);
  await client.end();
  return server;
}

interface Place {
  readonly folder: string;
  readonly cluster: string;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

async function makeFolder(): Promise<Place> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-pg-'));
  const owner = isRoot() ? await chooseServerUser(folder, 0, undefined) : undefined;
  if (owner) await chown(folder, owner.uid, owner.gid);
  return { folder, cluster: path.join(folder, 'cluster'), owner };
}

/** PostgreSQL refuses to run as root. */
function processOptions({ folder, owner }: Place) {
  return { cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C' }, ...owner };
}

async function runAs(place: Place, program: string, args: readonly string[]): Promise<void> {
  await run(path.join(systemPostgres ?? '', program), args, processOptions(place));
}

async function startIn(
  place: Place,
  settings: Readonly<Record<string, string | number>>,
): Promise<SystemServer> {
  const { folder, cluster } = place;
  const log = path.join(folder, 'log');
  let child: ChildProcess;

  const connection = { host: folder, port: PORT, user: USER, database: DATABASE };
  const query: SystemServer['query'] = async (text, values = []) => {
    const client = new pg.Client(connection);
    await client.connect();
    try {
      return (await client.query(text, [...values])).rows;
    } finally {
      await client.end();
    }
  };
  const isReady = async () => {
    const client = new pg.Client({ ...connection, database: 'postgres' });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => undefined);
    }
  };
  const start = async () => {
    const output = openSync(log, 'a');
    const given = {
      listen_addresses: '',
      port: PORT,
      unix_socket_directories: folder,
      // Nothing here outlives the test; the embedded server is the one that has to survive.
      fsync: 'off',
      shared_buffers: '16MB',
      wal_level: 'replica',
      hot_standby: 'on',
      log_statement: 'all',
      ...settings,
    };
    const args = Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    child = spawn(path.join(systemPostgres ?? '', 'postgres'), ['-D', cluster, ...args], {
      ...processOptions(place),
      stdio: ['ignore', output, output],
    });
    for (const until = Date.now() + START_PATIENCE_MS; !(await isReady()); await delay(20)) {
      if (child.exitCode !== null || Date.now() > until)
        throw new Error(readFileSync(log, 'utf8').slice(-2_000));
    }
  };
  const end: SystemServer['end'] = async (signal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  await start();
  return {
    url: `postgresql:///${DATABASE}?host=${encodeURIComponent(folder)}&user=${USER}`,
    socket: path.join(folder, `.s.PGSQL.${PORT}`),
    query,
    statements: (pattern) =>
      readFileSync(log, 'utf8')
        .split(/^(?=\d{4}-)/m)
        .filter((line) => /LOG: +(statement|execute)/.test(line) && pattern.test(line)).length,
    async replicate() {
      const other = await makeFolder();
      const how = ['-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
      await runAs(other, 'pg_basebackup', ['-h', folder, '-U', USER, '-D', other.cluster, ...how]);
      return startIn(other, settings);
    },
    start,
    end,
    async remove() {
      await end('SIGQUIT');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The replica gets what the primary has written until now, and shows nothing more until it is resumed. */
export async function pauseReplay(replica: SystemServer, primary: SystemServer): Promise<void> {
  // Not in the middle of emptying the tables, whose locks it would hold.
  const [written] = await primary.query('select pg_current_wal_lsn() as lsn');
  const hasReplayed = async () => {
    const [row] = await replica.query('select pg_last_wal_replay_lsn() >= $1::pg_lsn as done', [
      written?.lsn,
    ]);
    return row?.done;
  };
  await expect.poll(hasReplayed).toBe(true);
  await replica.query('select pg_wal_replay_pause()');
  const pauseState = async () =>
    (await replica.query('select pg_get_wal_replay_pause_state() as state'))[0]?.state;
  await expect.poll(pauseState).toBe('paused');
}

export async function resumeReplay(replica: SystemServer): Promise<void> {
  await replica.query('select pg_wal_replay_resume() where pg_is_in_recovery()');
}

export type Address = Awaited<ReturnType<typeof openAddress>>;

/** An address that stands for whichever server is the primary at the moment, as those who run a service give it one. */
export async function openAddress(server: SystemServer) {
  const sockets = new Set<Socket>();
  let target: SystemServer | undefined = server;
  const proxy = createServer((client) => {
    sockets.add(client.on('error', () => undefined).on('close', () => sockets.delete(client)));
    if (!target) return void client.destroy();
    const database = connect(target.socket);
    sockets.add(database.on('close', () => sockets.delete(database)));
    // Either end takes the other with it, as the end of a connection does.
    database.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('close', () => database.destroy());
    client.pipe(database).pipe(client);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    url: `postgresql://${USER}@127.0.0.1:${(proxy.address() as AddressInfo).port}/${DATABASE}`,
    pointAt(next: SystemServer | undefined) {
      target = next;
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      const closed = new Promise((resolve) => proxy.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
