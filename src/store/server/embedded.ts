/**
 * The embedded PostgreSQL: a server in the data folder, shared by all Lanescan processes on that folder. It listens on a
 * Unix socket only, and the last process to leave stops it.
 *
 *     <data folder>/postgres       the database files, and the socket when its path is short enough
 *     <data folder>/postgres.log   the log of the server
 *
 * How it is shared. A member is a process with a session that holds a shared advisory lock. A process that finds no server
 * starts one, detached. If several do so at once, PostgreSQL's postmaster.pid lets one win, and the others join it. A
 * member that leaves releases the shared lock and then tries the exclusive one. It gets that only when no member is left,
 * and it keeps new members out while the server stops. A process that dies loses its session and with it the membership,
 * so nothing has to be cleaned up. A server without members is joined by the next process or stopped by its watchdog. A
 * server that dies is started again by its members.
 */
import * as fs from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { WriteLog } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Statement } from '../reads/reads.ts';
import { WatchedClient } from './client.ts';
import { EMBEDDED_CONNECTIONS } from './connection-budget.ts';
import { preparePrograms, type StartedServer, socketConnection } from './embedded-binaries.ts';
import {
  createCluster,
  explainFolderError,
  inspectCluster,
  isPrivate,
  isServer,
  openFolder,
  type Place,
  readRecord,
  removeDrafts,
  type ServerRecord,
  serverUser,
  socketFolderFor,
} from './embedded-folder.ts';

/** The one database of an embedded server. */
export const DATABASE_NAME = 'lanescan';
/** PostgreSQL's error while processes of a killed predecessor still run. */
const LEFTOVER_PROCESSES = /pre-existing shared memory block/;
/** For how long a starting server may neither answer nor end. During recovery it answers. */
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 300_000;
/** The same after the abort signal. PostgreSQL then goes on stopping without this process. */
const ABORTED_STOP_TIMEOUT_MS = 5_000;
/** Of one statement on the session of a member. */
const QUERY_TIMEOUT_MS = 30_000;
const LEAVE_TIMEOUT_MS = 3_000;
const LOG_INTERVAL_MS = 3_000;
/** Exponential backoff between attempts to start a killed server again. */
const FIRST_RESTART_DELAY_MS = 250;
const MAX_RESTART_DELAY_MS = 10_000;

/** Members hold this advisory lock in shared mode. Must never change: processes of different releases share a server. */
const MEMBERSHIP_LOCK = '5497853135693827';
const WATCHDOG_LOCK = '5497853135693828';
const CHECK_INTERVAL_SECONDS = 5;
/** Checks in a row without a member. A supervisor that restarts a killed process finds the server still running. */
const MAX_EMPTY_CHECKS = 6;

export type EmbeddedDatabase = Awaited<ReturnType<typeof openEmbedded>>;

/** A place, and `max_connections` of a server that is started there. */
type StartablePlace = Place & { readonly maxConnections?: number };

export interface Membership {
  readonly session: WatchedClient;
  readonly server: ServerRecord & { socketFolder: string };
  /** Closes the connection of this process to the watchdog, which goes on without it. */
  readonly disconnectWatchdog: () => void;
}

/** Why joining failed: there is no server, or it does not admit a member now. */
interface Refusal {
  readonly isListening: boolean;
  readonly because: string;
  /** The server reports that it is starting or stopping: waiting helps. */
  readonly isTransient: boolean;
}

const notListening: Refusal = { isListening: false, because: 'it does not answer', isTransient: false };

/**
 * Joins the PostgreSQL of a data folder. Creates and starts it first where that is needed.
 *
 * @example
 * const embedded = await openEmbedded({ dataFolder: './data', writeLog: console.error });
 * const pool = new pg.Pool(embedded.connection);
 * // …
 * await pool.end();
 * await embedded.leave();
 */
export async function openEmbedded(options: {
  dataFolder: string;
  /** Only for a server that is started here; one that runs already keeps its own. */
  maxConnections?: number;
  writeLog?: WriteLog;
  signal?: AbortSignal;
}) {
  const { dataFolder, maxConnections = EMBEDDED_CONNECTIONS, writeLog = () => {}, signal } = options;
  const place = { ...(await openFolder(dataFolder)), maxConnections };
  await inspectCluster(place);
  const { membership: first, isStarter } = await joinOrStart(place, writeLog, signal);
  let membership: Membership | undefined;
  let leaving: Promise<void> | undefined;
  let restarting: Promise<void> | undefined;
  const leaveController = new AbortController();

  /** The first member to notice that the server was killed starts it again; the others join it. */
  const restart = async () => {
    writeLog(`PostgreSQL in ${place.shown} is gone; starting it again`, { level: 'warn' });
    const stop = AbortSignal.any([leaveController.signal, ...(signal ? [signal] : [])]);
    for (
      let pause = FIRST_RESTART_DELAY_MS;
      !stop.aborted;
      pause = Math.min(2 * pause, MAX_RESTART_DELAY_MS)
    ) {
      try {
        hold((await joinOrStart(place, () => {}, stop)).membership);
        writeLog(`PostgreSQL in ${place.shown} runs again`);
        return;
      } catch (error) {
        if (stop.aborted) return;
        writeLog((error as Error).message, { level: 'error' });
        await delay(pause, undefined, { signal: stop }).catch(() => {});
      }
    }
  };
  const hold = (held: Membership) => {
    membership = held;
    held.session.once('end', () => {
      held.disconnectWatchdog();
      membership = undefined;
      if (leaving === undefined) restarting = restart();
    });
  };
  hold(first);

  return {
    connection: socketConnection(first.server.socketFolder, DATABASE_NAME),
    /** Absolute, without symbolic links. */
    dataFolder: place.folder,
    /** Whether this process started the server; otherwise it joined one that was running. */
    isStarter,
    /** Ends the membership. The last member stops the server, and waits until it is stopped. Idempotent. */
    leave() {
      leaving ??= (async () => {
        leaveController.abort();
        await restarting;
        // A server that crashed and restarted by itself still has to be stopped by the last member.
        const current = membership ?? (await tryToJoin(place).catch(() => undefined));
        if (current !== undefined && 'session' in current)
          await leaveServer(place, current, writeLog, signal);
      })();
      return leaving;
    },
  };
}

/** Joins the server of this place. Starts it first if it does not run. */
export async function joinOrStart(
  place: StartablePlace,
  writeLog: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<{ membership: Membership; isStarter: boolean }> {
  let announce = writeLog;
  let own: StartedServer | undefined;
  const begin = Date.now();
  let lastSign = begin;
  let nextLogAt = begin + LOG_INTERVAL_MS;
  let waitingFor = notListening.because;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const attempt = await tryToJoin(place);
      if ('session' in attempt) return { membership: attempt, isStarter: own?.pid === attempt.server.pid };
      if (attempt.isTransient) lastSign = Date.now();
      if (attempt !== notListening) waitingFor = attempt.because;
      const end = own?.end();
      if (own !== undefined && end !== undefined) {
        const failureReason = await own.failureReason();
        own = undefined;
        const isRaceLost = /lock file .* (already exists|is empty)/.test(failureReason);
        const hasLeftovers = LEFTOVER_PROCESSES.test(failureReason);
        // Another process joined it and, as the last member, stopped it before this process joined.
        const hasCleanExit = end === 'code 0';
        if (!isRaceLost && !hasLeftovers && !hasCleanExit) {
          throw startFailure(place, failureReason || `it ended with ${end}`);
        }
        if (!hasCleanExit) waitingFor = failureReason;
        if (hasLeftovers) await delay(250, undefined, { signal });
      }
      if (!attempt.isListening && own === undefined && !(await isServer(await readRecord(place), place))) {
        own = await startServer(place, announce, signal);
        // The time that creating the files takes does not count.
        lastSign = Date.now();
        announce = () => {};
      }
      if (Date.now() - lastSign > START_TIMEOUT_MS) throw startFailure(place, waitingFor);
      if (Date.now() > nextLogAt) {
        const seconds = Math.round((Date.now() - begin) / 1000);
        writeLog(`Waiting for PostgreSQL in ${place.shown} (${seconds} s): ${waitingFor}`);
        nextLogAt = Date.now() + LOG_INTERVAL_MS;
      }
      await delay(25, undefined, { signal });
    }
  } catch (error) {
    // Other processes may have joined the server by now. It is stopped only if none can have.
    const attempt = own === undefined ? undefined : await tryToJoin(place).catch(() => undefined);
    if (attempt !== undefined && 'session' in attempt) await leaveServer(place, attempt, writeLog, signal);
    else if (attempt?.isTransient || attempt?.isListening === false) await own?.stop();
    throw signal?.aborted ? signal.reason : error;
  }
}

function startFailure(place: Place, detail: string): OperatorError {
  let remedy = `See the end of ${place.log}, or set DATABASE_URL to a PostgreSQL server of your own.`;
  if (LEFTOVER_PROCESSES.test(detail))
    remedy = 'Wait for the postgres processes that a killed server left, or end them.';
  if (detail.includes('No space left')) remedy = 'Free some space, or choose another folder with --data.';
  return new OperatorError(`PostgreSQL in ${place.shown} does not start: ${detail}`, remedy);
}

async function tryToJoin(place: Place): Promise<Membership | Refusal> {
  const record = await readRecord(place);
  if (record?.socketFolder === undefined) return notListening;
  const { socketFolder } = record;
  if (socketFolder !== place.cluster) {
    const { uid } = await fs.stat(place.cluster);
    if (!(await isPrivate(socketFolder, uid)))
      return { ...notListening, because: `its socket folder ${socketFolder} is not private to user ${uid}` };
  }
  const session = new WatchedClient({
    ...socketConnection(socketFolder),
    query_timeout: QUERY_TIMEOUT_MS,
    application_name: 'lanescan member',
  });
  // Without a listener, the error would end this process when the server ends.
  session.on('error', () => {});
  try {
    await session.connect();
    // A folder that was copied while its server ran has the postmaster.pid of that other server.
    const { rows } = await session.query(`select current_setting('data_directory') as cluster`);
    if (!(await isSameFolder(rows[0].cluster, place.cluster))) {
      await session.end();
      return notListening;
    }
    const admission = await session.query('select pg_try_advisory_lock_shared($1) as admitted', [
      MEMBERSHIP_LOCK,
    ]);
    // A stopping server writes its status to postmaster.pid before it ends the session with the exclusive lock. So the
    // shared lock counts only if the file, read after the lock was granted, is complete and not of a stopping server.
    const now = await readRecord(place);
    const isUp = now?.pid === record.pid && now.socketFolder === socketFolder && !now.isStopping;
    if (admission.rows[0].admitted && isUp) {
      await createDatabaseIfMissing(session);
      const disconnectWatchdog = await startWatchdog(socketFolder);
      return { session, server: { ...now, socketFolder }, disconnectWatchdog };
    }
    await session.end();
    return { isListening: true, because: 'another process stops or upgrades it', isTransient: false };
  } catch (error) {
    session.end().catch(() => {});
    const { code, message } = error as Error & { code?: string };
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return notListening;
    const passes = ['57P03', '57P01', '57P02', '53300', 'ECONNRESET', 'EPIPE', 'EAGAIN', undefined];
    if (passes.includes(code)) return { isListening: true, because: message, isTransient: code === '57P03' };
    throw new OperatorError(
      `The PostgreSQL in ${place.shown} does not let Lanescan in: ${message}`,
      `See the end of ${place.log}, or choose another folder with --data.`,
      { cause: error },
    );
  }
}

async function isSameFolder(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([one, other].map((folder) => fs.stat(folder).catch(() => undefined)));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

async function createDatabaseIfMissing(session: pg.ClientBase): Promise<void> {
  const { rowCount } = await session.query('select from pg_database where datname = $1', [DATABASE_NAME]);
  if (rowCount !== 0) return;
  await session.query(`create database ${DATABASE_NAME}`).catch((error: Error & { code?: string }) => {
    const isMadeByAnother = error.code === '42P04' || error.code === '23505';
    if (!isMadeByAnother) throw error;
  });
}

/**
 * Makes a member the only one: no other process can join until it leaves. False where there are others; the caller has then
 * lost its membership too, and has only to leave.
 */
export async function becomeOnlyMember({ session }: Pick<Membership, 'session'>): Promise<boolean> {
  const query = (text: string) =>
    session.query({ text, values: [MEMBERSHIP_LOCK], query_timeout: LEAVE_TIMEOUT_MS } as Statement);
  await query('select pg_advisory_unlock_shared($1)');
  const { rows } = await query('select pg_try_advisory_lock($1) as only');
  return rows[0].only;
}

/** Ends a membership, and stops the server if it was the last one. Never fails. */
export async function leaveServer(
  place: Place,
  { session, server, disconnectWatchdog }: Membership,
  writeLog: WriteLog = () => undefined,
  signal?: AbortSignal,
): Promise<void> {
  disconnectWatchdog();
  let deadline = Date.now() + STOP_TIMEOUT_MS;
  const shortenDeadline = () => {
    deadline = Math.min(deadline, Date.now() + ABORTED_STOP_TIMEOUT_MS);
  };
  if (signal?.aborted) shortenDeadline();
  signal?.addEventListener('abort', shortenDeadline);
  try {
    if (!(await becomeOnlyMember({ session })) || !(await isServer(server, place))) return;
    process.kill(server.pid, 'SIGINT');
    while (await isServer(server, place)) {
      if (Date.now() > deadline) {
        writeLog(`PostgreSQL in ${place.shown} is still stopping; it ends by itself`);
        return;
      }
      await delay(10);
    }
  } catch {
    // The session ended, and the membership with it.
  } finally {
    signal?.removeEventListener('abort', shortenDeadline);
    await session.end().catch(() => {});
  }
}

async function startServer(
  place: StartablePlace,
  writeLog: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<StartedServer> {
  const first = (await inspectCluster(place)) === undefined;
  writeLog(
    `Starting PostgreSQL ${place.major} in ${place.shown}${first ? ' (first start: creating it)' : ''}`,
  );
  try {
    if (first) await createCluster(place, signal);
    await removeDrafts(place);
    const owner = await serverUser(place);
    const programs = await preparePrograms(owner, place.folder, place.binaries);
    const socketFolder = await socketFolderFor(place, owner);
    const crashed = await readRecord(place);
    const stalePid =
      crashed === undefined || (await isServer(crashed, place)) ? {} : { stalePid: crashed.pid };
    const { maxConnections = EMBEDDED_CONNECTIONS } = place;
    return await programs.startServer({ ...place, maxConnections, socketFolder, ...stalePid });
  } catch (error) {
    throw explainFolderError(error, place);
  }
}

/**
 * The watchdog: a database session that stops the server after half a minute without a member, that is when all processes
 * that used it were killed. It is a loop inside the server, so it needs no process and survives the one that started it: a
 * session that executes a statement does not notice that its client is gone. Every member starts one when it joins; an
 * advisory lock lets only the first stay. It stops the server under the same exclusive lock as a member that leaves last.
 */
const WATCHDOG = `do $$
declare
  empty_checks integer := 0;
begin
  if not pg_try_advisory_lock(${WATCHDOG_LOCK}) then
    return;
  end if;
  loop
    commit; -- no snapshot is held from one check to the next
    perform pg_sleep(${CHECK_INTERVAL_SECONDS});
    if exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
                 and classid::bigint << 32 | objid::bigint = ${MEMBERSHIP_LOCK}) then
      empty_checks := 0;
    else
      empty_checks := empty_checks + 1;
    end if;
    if empty_checks >= ${MAX_EMPTY_CHECKS} and pg_try_advisory_lock(${MEMBERSHIP_LOCK}) then
      execute format('copy (select 1 where false) to program %L',
        'kill -INT ' || split_part(pg_read_file('postmaster.pid'), e'\\n', 1));
      perform pg_sleep(3600); -- the lock keeps new members out until the server ends this session
    end if;
  end loop;
end $$`;

/** Starts the watchdog of the server with this socket, unless it has one. Never fails: a server runs without one too. */
async function startWatchdog(socketFolder: string): Promise<() => void> {
  const client = new pg.Client({
    ...socketConnection(socketFolder),
    connectionTimeoutMillis: 5_000,
    application_name: 'lanescan watchdog',
    options: '-c client_connection_check_interval=0 -c statement_timeout=0',
  });
  client.on('error', () => {});
  const disconnect = () => void client.end().catch(() => {});
  const watch = () => void client.query(WATCHDOG).then(disconnect, disconnect);
  await client.connect().then(watch, disconnect);
  return disconnect;
}
