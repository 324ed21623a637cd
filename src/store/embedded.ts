/**
 * The embedded PostgreSQL: a private server inside the data folder, shared by every Lanescan process that
 * uses the folder, reachable through a Unix socket only, and gone when nobody needs it.
 *
 *     <data folder>/postgres       the database files, and the socket when its path is short enough
 *     <data folder>/postgres.log   what the server says
 *
 * How it is shared. A member is a process with a session that holds a shared advisory lock. Whoever finds
 * no server starts one, detached; PostgreSQL's own postmaster.pid lets only one win, and the others join
 * it. Who leaves gives up the shared lock and then tries the exclusive one: it is to be had only when no
 * member is left, and it keeps newcomers out while the server stops. A process that dies loses its session
 * and with it the membership, so that there is nothing to clean up; a server without members is joined by the
 * next process, or stops by itself (embedded-watchdog.ts). A server that dies is started again by the members
 * it had.
 */
import * as fs from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import type { Notice } from '../base/notice.ts';
import { OperatorError } from '../base/operator-error.ts';
import { WatchedClient } from './client.ts';
import { EMBEDDED_CONNECTIONS } from './connection-budget.ts';
import { port, preparePrograms, type StartedServer, superuser } from './embedded-binaries.ts';
import {
  createCluster,
  inOperatorWords,
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
import { membershipKey, startWatchdog, type Watchdog } from './embedded-watchdog.ts';
import type { Statement } from './read.ts';

/** The one database of an embedded server. */
export const database = 'lanescan';
/** What PostgreSQL says when its predecessor was killed and processes of that still work. */
const lingering = /pre-existing shared memory block/;
/** For how long a server may neither answer nor end. Recovery does not count: it answers. */
const patienceMilliseconds = 60_000;
const stopPatienceMilliseconds = 300_000;
/** The same where this process was told to stop: PostgreSQL then ends by itself, a little later. */
const hurriedStopMilliseconds = 5_000;
/** For one statement on the session of a member. */
const queryPatienceMilliseconds = 30_000;
const leavePatienceMilliseconds = 3_000;
const noticeEveryMilliseconds = 3_000;
/** Behind an attempt to start a killed server again that failed; each pause is twice the one before. */
const firstReturnMilliseconds = 250;

export interface EmbeddedDatabase {
  /** Options for `pg` clients: the host is the folder of the Unix socket. */
  readonly connection: { host: string; port: number; user: string; database: string };
  /** Absolute, without symbolic links. */
  readonly dataFolder: string;
  /** True when this process started the server, false when it joined one that was running. */
  readonly started: boolean;
  /** Leave. The last process to leave stops the server, and waits until it is stopped. Idempotent. */
  leave(): Promise<void>;
}

/** A place, and what a server that is started there is to hold. */
type StartablePlace = Place & { readonly maxConnections?: number };

export interface Membership {
  readonly session: WatchedClient;
  readonly server: ServerRecord & { socketFolder: string };
  readonly watchdog: Watchdog;
}

/** Why there is no membership: nobody listens, or somebody does who cannot admit us now. */
interface Refusal {
  readonly listening: boolean;
  readonly because: string;
  /** The server itself says that it is on its way up or down, so waiting is not in vain. */
  readonly onItsWay: boolean;
}

const nobodyListens: Refusal = { listening: false, because: 'it does not answer', onItsWay: false };

/**
 * Joins the PostgreSQL of a data folder, and before that creates and starts it as far as needed.
 *
 * @example
 * const embedded = await openEmbedded({ dataFolder: './data', notice: console.error });
 * const pool = new pg.Pool(embedded.connection);
 * // …
 * await pool.end();
 * await embedded.leave();
 */
export async function openEmbedded(options: {
  dataFolder: string;
  /** What a server that is started here is to hold; one that runs already keeps its own number. */
  maxConnections?: number;
  notice?: Notice;
  signal?: AbortSignal;
}): Promise<EmbeddedDatabase> {
  const { dataFolder, maxConnections = EMBEDDED_CONNECTIONS, notice = () => {}, signal } = options;
  const place = { ...(await openFolder(dataFolder)), maxConnections };
  await inspectCluster(place);
  const { membership: first, started } = await joinOrStart(place, notice, signal);
  let membership: Membership | undefined;
  let leaving: Promise<void> | undefined;
  let returning: Promise<void> | undefined;
  const departure = new AbortController();

  /** A server that was killed is started again, by whoever of its members is first; the others join it. */
  const returnTo = async () => {
    notice(`PostgreSQL in ${place.shown} is gone; starting it again`, { level: 'warn' });
    const stop = AbortSignal.any([departure.signal, ...(signal ? [signal] : [])]);
    for (let pause = firstReturnMilliseconds; !stop.aborted; pause = Math.min(2 * pause, 10_000)) {
      try {
        hold((await joinOrStart(place, () => {}, stop)).membership);
        notice(`PostgreSQL in ${place.shown} runs again`);
        return;
      } catch (error) {
        if (stop.aborted) return;
        notice((error as Error).message, { level: 'error' });
        await delay(pause, undefined, { signal: stop }).catch(() => {});
      }
    }
  };
  const hold = (held: Membership) => {
    membership = held;
    held.session.once('end', () => {
      held.watchdog.letGo();
      membership = undefined;
      if (leaving === undefined) returning = returnTo();
    });
  };
  hold(first);

  return {
    connection: { host: first.server.socketFolder, port, user: superuser, database },
    dataFolder: place.folder,
    started,
    leave() {
      leaving ??= (async () => {
        departure.abort();
        await returning;
        // A server that crashed and restarted by itself still wants to be stopped by the last to leave.
        const current = membership ?? (await tryToJoin(place).catch(() => undefined));
        if (current !== undefined && 'session' in current) await leaveServer(place, current, notice, signal);
      })();
      return leaving;
    },
  };
}

/** Joins the server of this place, and starts it before where there is none. */
export async function joinOrStart(
  place: StartablePlace,
  notice: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<{ membership: Membership; started: boolean }> {
  let announce = notice;
  let own: StartedServer | undefined;
  const begin = Date.now();
  let lastSign = begin;
  let nextNotice = begin + noticeEveryMilliseconds;
  let waitingFor = nobodyListens.because;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const attempt = await tryToJoin(place);
      if ('session' in attempt) return { membership: attempt, started: own?.pid === attempt.server.pid };
      if (attempt.onItsWay) lastSign = Date.now();
      if (attempt !== nobodyListens) waitingFor = attempt.because;
      const end = own?.end();
      if (own !== undefined && end !== undefined) {
        const lastWords = await own.lastWords();
        own = undefined;
        const anotherWasFaster = /lock file .* (already exists|is empty)/.test(lastWords);
        const killedOneLingers = lingering.test(lastWords);
        // Somebody joined it and was the last to leave before this process got in.
        const cameAndWent = end === 'code 0';
        if (!anotherWasFaster && !killedOneLingers && !cameAndWent) {
          throw startFailure(place, lastWords || `it ended with ${end}`);
        }
        if (!cameAndWent) waitingFor = lastWords;
        if (killedOneLingers) await delay(250, undefined, { signal });
      }
      if (!attempt.listening && own === undefined && !(await isServer(await readRecord(place), place))) {
        own = await startServer(place, announce, signal);
        // Creating the files of a new database takes its time, which the start must not lose.
        lastSign = Date.now();
        announce = () => {};
      }
      if (Date.now() - lastSign > patienceMilliseconds) throw startFailure(place, waitingFor);
      if (Date.now() > nextNotice) {
        const seconds = Math.round((Date.now() - begin) / 1000);
        notice(`Waiting for PostgreSQL in ${place.shown} (${seconds} s): ${waitingFor}`);
        nextNotice = Date.now() + noticeEveryMilliseconds;
      }
      await delay(25, undefined, { signal });
    }
  } catch (error) {
    // Others may have joined the server by now. If nobody can have, it goes as it came.
    const attempt = own === undefined ? undefined : await tryToJoin(place).catch(() => undefined);
    if (attempt !== undefined && 'session' in attempt) await leaveServer(place, attempt, notice, signal);
    else if (attempt?.onItsWay || attempt?.listening === false) await own?.stop();
    throw signal?.aborted ? signal.reason : error;
  }
}

function startFailure(place: Place, detail: string): OperatorError {
  let remedy = `See the end of ${place.log}, or set DATABASE_URL to a PostgreSQL server of your own.`;
  if (lingering.test(detail))
    remedy = 'Wait for the postgres processes that a killed server left, or end them.';
  if (detail.includes('No space left')) remedy = 'Free some space, or choose another folder with --data.';
  return new OperatorError(`PostgreSQL in ${place.shown} does not start: ${detail}`, remedy);
}

async function tryToJoin(place: Place): Promise<Membership | Refusal> {
  const record = await readRecord(place);
  if (record?.socketFolder === undefined) return nobodyListens;
  const { socketFolder } = record;
  if (socketFolder !== place.cluster) {
    const { uid } = await fs.stat(place.cluster);
    if (!(await isPrivate(socketFolder, uid)))
      return { ...nobodyListens, because: `its socket folder ${socketFolder} is not private to user ${uid}` };
  }
  const session = new WatchedClient({
    host: socketFolder,
    port,
    user: superuser,
    database: 'postgres',
    ssl: false,
    query_timeout: queryPatienceMilliseconds,
    application_name: 'lanescan member',
  });
  // Without a listener the end of the server would end this process too.
  session.on('error', () => {});
  try {
    await session.connect();
    // A folder that was copied while its server ran has that server's record: it is not ours to join.
    const { rows } = await session.query(`select current_setting('data_directory') as cluster`);
    if (!(await isSameFolder(rows[0].cluster, place.cluster))) {
      await session.end();
      return nobodyListens;
    }
    const admission = await session.query('select pg_try_advisory_lock_shared($1) as admitted', [
      membershipKey,
    ]);
    // A stopping server says so in its record before it ends the session that kept newcomers out. So the
    // record, read after the lock was granted, tells whether the lock means anything; an incomplete one does not.
    const now = await readRecord(place);
    const isUp = now?.pid === record.pid && now.socketFolder === socketFolder && !now.stopping;
    if (admission.rows[0].admitted && isUp) {
      await createDatabaseIfMissing(session);
      return { session, server: { ...now, socketFolder }, watchdog: await startWatchdog(socketFolder) };
    }
    await session.end();
    return { listening: true, because: 'another process stops or upgrades it', onItsWay: false };
  } catch (error) {
    session.end().catch(() => {});
    const { code, message } = error as Error & { code?: string };
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return nobodyListens;
    const passes = ['57P03', '57P01', '57P02', '53300', 'ECONNRESET', 'EPIPE', 'EAGAIN', undefined];
    if (passes.includes(code)) return { listening: true, because: message, onItsWay: code === '57P03' };
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

async function createDatabaseIfMissing(session: ClientBase): Promise<void> {
  const { rowCount } = await session.query('select from pg_database where datname = $1', [database]);
  if (rowCount !== 0) return;
  await session.query(`create database ${database}`).catch((error: Error & { code?: string }) => {
    const madeByAnother = error.code === '42P04' || error.code === '23505';
    if (!madeByAnother) throw error;
  });
}

/**
 * Makes a member the only one: nobody else is one, or can become one, until it leaves. False where there are others; then
 * it is no member any more either, and has only to leave.
 */
export async function becomeOnlyMember({ session }: Pick<Membership, 'session'>): Promise<boolean> {
  const ask = (text: string) =>
    session.query({ text, values: [membershipKey], query_timeout: leavePatienceMilliseconds } as Statement);
  await ask('select pg_advisory_unlock_shared($1)');
  const { rows } = await ask('select pg_try_advisory_lock($1) as only');
  return rows[0].only;
}

/** Gives up a membership, and stops the server where it was the last. Never fails. */
export async function leaveServer(
  place: Place,
  { session, server, watchdog }: Membership,
  notice: Notice = () => undefined,
  signal?: AbortSignal,
): Promise<void> {
  watchdog.letGo();
  let deadline = Date.now() + stopPatienceMilliseconds;
  const hurry = () => {
    deadline = Math.min(deadline, Date.now() + hurriedStopMilliseconds);
  };
  if (signal?.aborted) hurry();
  signal?.addEventListener('abort', hurry);
  try {
    if (!(await becomeOnlyMember({ session })) || !(await isServer(server, place))) return;
    process.kill(server.pid, 'SIGINT');
    while (await isServer(server, place)) {
      if (Date.now() > deadline) {
        notice(`PostgreSQL in ${place.shown} is still stopping; it ends by itself`);
        return;
      }
      await delay(10);
    }
  } catch {
    // The session ended, and the membership with it.
  } finally {
    signal?.removeEventListener('abort', hurry);
    await session.end().catch(() => {});
  }
}

async function startServer(
  place: StartablePlace,
  notice: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<StartedServer> {
  const first = (await inspectCluster(place)) === undefined;
  notice(`Starting PostgreSQL ${place.major} in ${place.shown}${first ? ' (first start: creating it)' : ''}`);
  try {
    if (first) await createCluster(place, signal);
    await removeDrafts(place);
    const owner = await serverUser(place);
    const programs = await preparePrograms(owner, place.folder, place.binaries);
    const socketFolder = await socketFolderFor(place, owner);
    const crashed = await readRecord(place);
    const stranger =
      crashed === undefined || (await isServer(crashed, place)) ? {} : { stranger: crashed.pid };
    const { maxConnections = EMBEDDED_CONNECTIONS } = place;
    return await programs.startServer({ ...place, maxConnections, socketFolder, ...stranger });
  } catch (error) {
    throw inOperatorWords(error, place);
  }
}
