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
 * and with it the membership, so that there is nothing to clean up; a server without members is simply
 * joined by the next process.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { OperatorError } from '../domain/errors.ts';
import {
  chooseServerUser,
  isRoot,
  majorVersion,
  port,
  preparePrograms,
  type ServerUser,
  type StartedServer,
  superuser,
} from './embedded-binaries.ts';

const run = promisify(execFile);

const database = 'lanescan';
/** Must never change: processes of different releases share a server. */
const membershipKey = '5497853135693827';
const draftPrefix = 'postgres.new-';
const draftLifetimeMilliseconds = 600_000;
/** What PostgreSQL says when its predecessor was killed and processes of that still work. */
const lingering = /pre-existing shared memory block/;
/** For how long a server may neither answer nor end. Recovery does not count: it answers. */
const patienceMilliseconds = 60_000;
const stopPatienceMilliseconds = 300_000;
const noticeEveryMilliseconds = 3_000;

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

interface Place {
  /** The data folder in the words of the operator, for messages. */
  readonly shown: string;
  readonly folder: string;
  /** What PostgreSQL calls its data directory. */
  readonly cluster: string;
  readonly log: string;
}

/** What a running server, or one that crashed, says about itself in postmaster.pid. */
interface ServerRecord {
  readonly pid: number;
  /** Missing while the server has not opened its socket yet. */
  readonly socketFolder: string | undefined;
  readonly stopping: boolean;
}

interface Membership {
  readonly session: pg.Client;
  readonly server: ServerRecord & { socketFolder: string };
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
  notice?: (line: string) => void;
  signal?: AbortSignal;
}): Promise<EmbeddedDatabase> {
  const { dataFolder, notice = () => {}, signal } = options;
  const place = await openFolder(dataFolder);
  await inspectCluster(place);
  const { membership, started } = await joinOrStart(place, notice, signal);
  let lost = false;
  membership.session.once('end', () => {
    lost = true;
  });
  let leaving: Promise<void> | undefined;
  return {
    connection: { host: membership.server.socketFolder, port, user: superuser, database },
    dataFolder: place.folder,
    started,
    leave() {
      leaving ??= (async () => {
        // A server that crashed and restarted by itself still wants to be stopped by the last to leave.
        const current = lost ? await tryToJoin(place).catch(() => undefined) : membership;
        if (current !== undefined && 'session' in current) await leaveServer(place, current);
      })();
      return leaving;
    },
  };
}

async function joinOrStart(
  place: Place,
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
      if (attempt.listening) waitingFor = attempt.because;
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
    if (attempt !== undefined && 'session' in attempt) await leaveServer(place, attempt);
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
  if (
    socketFolder !== place.cluster &&
    !(await isPrivate(socketFolder, (await fs.stat(place.cluster)).uid))
  ) {
    return nobodyListens;
  }
  const session = new pg.Client({
    host: socketFolder,
    port,
    user: superuser,
    database: 'postgres',
    ssl: false,
    connectionTimeoutMillis: 5_000,
    application_name: 'lanescan member',
  });
  // Without a listener the end of the server would end this process too.
  session.on('error', () => {});
  try {
    await session.connect();
    const admission = await session.query('select pg_try_advisory_lock_shared($1) as admitted', [
      membershipKey,
    ]);
    // A stopping server says so in its record before it ends the session that kept newcomers out. So the
    // record, read after the lock was granted, tells whether the lock means anything.
    const now = await readRecord(place);
    if (admission.rows[0].admitted && now?.pid === record.pid && !now.stopping) {
      await createDatabaseIfMissing(session);
      return { session, server: { ...now, socketFolder } };
    }
    await session.end();
    return { listening: true, because: 'another process stops it', onItsWay: false };
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

async function createDatabaseIfMissing(session: pg.Client): Promise<void> {
  const { rowCount } = await session.query('select from pg_database where datname = $1', [database]);
  if (rowCount !== 0) return;
  await session.query(`create database ${database}`).catch((error: Error & { code?: string }) => {
    const madeByAnother = error.code === '42P04' || error.code === '23505';
    if (!madeByAnother) throw error;
  });
}

async function leaveServer(place: Place, { session, server }: Membership): Promise<void> {
  try {
    await session.query('select pg_advisory_unlock_shared($1)', [membershipKey]);
    const { rows } = await session.query('select pg_try_advisory_lock($1) as last', [membershipKey]);
    if (!rows[0].last || !(await isServer(server, place))) return;
    process.kill(server.pid, 'SIGINT');
    const deadline = Date.now() + stopPatienceMilliseconds;
    while ((await isServer(server, place)) && Date.now() < deadline) await delay(10);
  } catch {
    // The session ended, and the membership with it.
  } finally {
    await session.end().catch(() => {});
  }
}

async function startServer(
  place: Place,
  notice: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<StartedServer> {
  const first = (await inspectCluster(place)) === undefined;
  notice(
    `Starting PostgreSQL ${majorVersion} in ${place.shown}${first ? ' (first start: creating it)' : ''}`,
  );
  try {
    if (first) await createCluster(place, signal);
    await removeDrafts(place);
    const owner = await serverUser(place);
    const programs = await preparePrograms(owner, place.folder);
    const socketFolder = await socketFolderFor(place, owner);
    const crashed = await readRecord(place);
    const stranger =
      crashed === undefined || (await isServer(crashed, place)) ? {} : { stranger: crashed.pid };
    return await programs.startServer({ ...place, socketFolder, ...stranger });
  } catch (error) {
    throw inOperatorWords(error, place);
  }
}

/** initdb works in a draft that is renamed into place when complete: there is no half made cluster. */
async function createCluster(place: Place, signal: AbortSignal | undefined): Promise<void> {
  const draft = await fs.mkdtemp(path.join(place.folder, draftPrefix));
  try {
    const owner = await serverUser(place);
    const programs = await preparePrograms(owner, place.folder);
    if (isRoot()) await fs.chown(draft, owner.uid, owner.gid);
    await programs.createCluster(draft, signal);
    await fs.rename(draft, place.cluster);
    const folder = await fs.open(place.folder, 'r');
    await folder.sync().finally(() => folder.close());
  } catch (error) {
    await removeDraft(draft);
    const madeByAnother = (await inspectCluster(place)) !== undefined;
    if (!madeByAnother) throw error;
  }
}

/**
 * Once there is a cluster no draft can take its place, so all of them are rubbish. Those of a start that
 * still runs are left to it, because initdb does not end well when its files vanish.
 */
async function removeDrafts(place: Place): Promise<void> {
  for (const name of await fs.readdir(place.folder)) {
    if (!name.startsWith(draftPrefix)) continue;
    const draft = path.join(place.folder, name);
    const made = (await fs.stat(draft).catch(() => undefined))?.mtimeMs ?? Date.now();
    if (Date.now() - made > draftLifetimeMilliseconds) await removeDraft(draft);
  }
}

async function removeDraft(draft: string): Promise<void> {
  await fs.rm(draft, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}

async function serverUser(place: Place): Promise<ServerUser> {
  return chooseServerUser(place.shown, (await fs.stat(place.folder)).uid, await inspectCluster(place));
}

/** Socket addresses are short, file paths are not. */
async function socketFolderFor(place: Place, owner: ServerUser): Promise<string> {
  const limit = process.platform === 'darwin' ? 103 : 107;
  const fits = (folder: string) => Buffer.byteLength(`${folder}/.s.PGSQL.${port}`) <= limit;
  if (fits(place.cluster)) return place.cluster;
  const name = `lanescan-${createHash('sha256').update(place.cluster).digest('hex').slice(0, 20)}`;
  // Root's own temporary folder may be closed to the user of the server.
  const own = isRoot() ? '/tmp' : await fs.realpath(os.tmpdir()).catch(() => '/tmp');
  const folder = [own, '/tmp'].map((base) => path.join(base, name)).find(fits) ?? path.join('/tmp', name);
  await fs.mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const { uid } = await fs.lstat(folder);
  if (uid === 0 && isRoot()) await fs.lchown(folder, owner.uid, owner.gid);
  await isPrivate(folder, owner.uid);
  return folder;
}

/** False when missing. In a folder that others can write to, anybody could pose as the server. */
async function isPrivate(folder: string, owner: number): Promise<boolean> {
  const found = await fs.lstat(folder).catch(() => undefined);
  if (found === undefined) return false;
  if (found.isDirectory() && found.uid === owner && (found.mode & 0o077) === 0) return true;
  throw new OperatorError(
    `The folder ${folder} for the PostgreSQL socket is not private to user ${owner}: somebody else may have made it.`,
    'Remove it, or choose a shorter path with --data, below which the socket fits.',
  );
}

async function readRecord(place: Place): Promise<ServerRecord | undefined> {
  const text = await fs.readFile(path.join(place.cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const [pid, , , , socketFolder, , , status] = text.split('\n');
  if (!Number(pid)) return undefined;
  return {
    pid: Number(pid),
    socketFolder: socketFolder || undefined,
    stopping: status?.trim() === 'stopping',
  };
}

/** Whether the server of this record runs. A process that merely got its number later is not it, nor a zombie. */
async function isServer(record: ServerRecord | undefined, place: Place): Promise<boolean> {
  if (record === undefined) return false;
  let commandLine: string;
  if (process.platform === 'linux') {
    const proc = `/proc/${record.pid}`;
    try {
      const [workingFolder, cluster] = await Promise.all([fs.stat(`${proc}/cwd`), fs.stat(place.cluster)]);
      return workingFolder.dev === cluster.dev && workingFolder.ino === cluster.ino;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') return false;
    }
    commandLine = (await fs.readFile(`${proc}/cmdline`, 'utf8').catch(() => '')).split('\0')[0] ?? '';
  } else {
    const ps = await run('ps', ['-p', String(record.pid), '-o', 'comm=']).catch(() => ({ stdout: '' }));
    commandLine = ps.stdout.trim();
  }
  return path.basename(commandLine).startsWith('postgres');
}

async function openFolder(dataFolder: string): Promise<Place> {
  const absolute = path.resolve(dataFolder);
  try {
    if (absolute.includes('\n')) throw new Error('its name contains a line break');
    await fs.mkdir(absolute, { recursive: true });
    const folder = await fs.realpath(absolute);
    const cluster = path.join(folder, 'postgres');
    return { shown: dataFolder, folder, cluster, log: path.join(folder, 'postgres.log') };
  } catch (error) {
    throw inOperatorWords(error, { shown: dataFolder });
  }
}

/** The owner of the database files, undefined when there are none. Throws when they are not for us. */
async function inspectCluster(place: Place): Promise<ServerUser | undefined> {
  const found = await fs.stat(place.cluster).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw inOperatorWords(error, place);
  });
  if (found === undefined) return undefined;
  try {
    if ((await fs.readdir(place.cluster)).length === 0) return undefined;
    const version = (await fs.readFile(path.join(place.cluster, 'PG_VERSION'), 'utf8')).trim();
    if (version === majorVersion) return { uid: found.uid, gid: found.gid };
    throw new OperatorError(
      `The database files in ${place.shown} are of PostgreSQL ${version}; this Lanescan brings ${majorVersion}.`,
      `Choose another folder with --data, or move the database with the pg_dump of PostgreSQL ${version}.`,
    );
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES') await chooseServerUser(place.shown, found.uid, found);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw inOperatorWords(error, place);
    throw new OperatorError(
      `${path.join(place.shown, 'postgres')} exists, but is no PostgreSQL database.`,
      'Move it away, or choose another folder with --data.',
    );
  }
}

function inOperatorWords(error: unknown, place: Pick<Place, 'shown'>): unknown {
  if (error instanceof OperatorError || (error as Error).name === 'AbortError') return error;
  const { code = '', message, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string };
  const reasons: Record<string, string> = {
    EACCES: 'no permission to write there',
    EPERM: 'no permission to write there',
    EROFS: 'it is on a read-only file system',
    ENOSPC: 'no space is left on its disk',
    EDQUOT: 'the disk quota is used up',
    EEXIST: 'it is a file, not a folder',
    ENOENT: 'it cannot be created there',
    ENOTDIR: 'part of its path is a file, not a folder',
    ENAMETOOLONG: 'its path is too long',
    ELOOP: 'its path is a loop of symbolic links',
  };
  const output = stderr.split('\n').findLast((line) => /FATAL|error:|could not/.test(line));
  const reason = stderr.includes('No space left') ? reasons.ENOSPC : (reasons[code] ?? output ?? message);
  return new OperatorError(
    `The data folder ${place.shown} cannot be used: ${reason}.`,
    'Choose another folder with --data, mend this one, or set DATABASE_URL to a PostgreSQL server.',
    { cause: error },
  );
}
