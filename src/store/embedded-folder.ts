/**
 * The data folder of the embedded PostgreSQL: what is in it, whose it is, and whether a server works in it.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../base/operator-error.ts';
import {
  type Binaries,
  chooseServerUser,
  isRoot,
  majorVersion,
  port,
  preparePrograms,
  type ServerUser,
} from './embedded-binaries.ts';
import { NotInitialisedError } from './schema-errors.ts';

const run = promisify(execFile);

const draftPrefix = 'postgres.new-';
const draftLifetimeMilliseconds = 600_000;

export interface Place {
  /** The data folder in the words of the operator, for messages. */
  readonly shown: string;
  readonly folder: string;
  /** What PostgreSQL calls its data directory. */
  readonly cluster: string;
  readonly log: string;
  /** The major version of PostgreSQL that works here. */
  readonly major: string;
  /** The programs of that version; undefined for the bundled ones. */
  readonly binaries?: Binaries;
  /** Whom new database files shall belong to; undefined: chosen by who owns the folder. */
  readonly owner?: ServerUser;
}

/** What a running server, or one that crashed, says about itself in postmaster.pid. */
export interface ServerRecord {
  readonly pid: number;
  /** Undefined while the file is incomplete: the server has not opened its socket yet, or is writing right now. */
  readonly socketFolder: string | undefined;
  readonly stopping: boolean;
}

/** initdb works in a draft that is renamed into place when complete: there is no half made cluster. */
export async function createCluster(place: Place, signal: AbortSignal | undefined): Promise<void> {
  const draft = await fs.mkdtemp(path.join(place.folder, draftPrefix));
  try {
    const owner = await serverUser(place);
    const programs = await preparePrograms(owner, place.folder, place.binaries);
    if (isRoot()) await fs.chown(draft, owner.uid, owner.gid);
    await programs.createCluster(draft, signal);
    await renameDurably(draft, place.cluster);
  } catch (error) {
    await removeDraft(draft);
    const madeByAnother = (await inspectCluster(place)) !== undefined;
    if (!madeByAnother) throw error;
  }
}

/** When it returns, the new name survives a loss of power. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await fs.rename(from, to);
  const folder = await fs.open(path.dirname(to), 'r');
  await folder.sync().finally(() => folder.close());
}

/**
 * Once there is a cluster no draft can take its place, so all of them are rubbish. Those of a start that
 * still runs are left to it, because initdb does not end well when its files vanish.
 */
export async function removeDrafts(place: Place): Promise<void> {
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

export async function serverUser(place: Place): Promise<ServerUser> {
  const owner = (await inspectCluster(place)) ?? place.owner;
  return chooseServerUser(place.shown, (await fs.stat(place.folder)).uid, owner);
}

/** Socket addresses are short, file paths are not. */
export async function socketFolderFor(place: Place, owner: ServerUser): Promise<string> {
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
  if (!(await isPrivate(folder, owner.uid))) {
    throw new OperatorError(
      `The folder ${folder} for the PostgreSQL socket is not private to user ${owner.uid}: somebody else may have made it.`,
      'Choose a shorter path with --data: the socket then fits into the data folder. Or find out who made that folder, and why.',
    );
  }
  return folder;
}

/** False also when it is missing. In a folder that others can write to, anybody could pose as the server. */
export async function isPrivate(folder: string, owner: number): Promise<boolean> {
  const found = await fs.lstat(folder).catch(() => undefined);
  return found?.isDirectory() === true && found.uid === owner && (found.mode & 0o077) === 0;
}

/** The last line of postmaster.pid, as PostgreSQL writes it; padded to eight characters. */
const serverStatuses = ['starting', 'ready', 'standby', 'stopping'];

/**
 * Reads postmaster.pid: process id, data directory, start time, port, socket folder, listen address, shared memory key and
 * status, a line each. A starting server extends the file in place, step by step, so that a reader may get any prefix of
 * it. Only lines that end with a newline count, and the socket folder counts only once the status line is there too.
 */
export async function readRecord(place: Pick<Place, 'cluster'>): Promise<ServerRecord | undefined> {
  const text = await fs.readFile(path.join(place.cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const [pid, , , , socketFolder, , , lastLine] = text.split('\n').slice(0, -1);
  if (!Number(pid)) return undefined;
  const status = serverStatuses.find((known) => known === lastLine?.trim());
  return {
    pid: Number(pid),
    socketFolder: status === undefined ? undefined : socketFolder || undefined,
    stopping: status === 'stopping',
  };
}

/** Whether the server of this record runs. A process that merely got its number later is not it, nor a zombie. */
export async function isServer(record: ServerRecord | undefined, place: Place): Promise<boolean> {
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

export async function openFolder(dataFolder: string): Promise<Place> {
  const absolute = path.resolve(dataFolder);
  try {
    if (absolute.includes('\n')) throw new Error('its name contains a line break');
    await fs.mkdir(absolute, { recursive: true });
    const folder = await fs.realpath(absolute);
    const cluster = path.join(folder, 'postgres');
    return {
      shown: dataFolder,
      folder,
      cluster,
      log: path.join(folder, 'postgres.log'),
      major: majorVersion,
    };
  } catch (error) {
    throw inOperatorWords(error, { shown: dataFolder });
  }
}

/** Throws a NotInitialisedError where the folder has no database files. Creates nothing. */
export async function requireCluster(dataFolder: string): Promise<void> {
  const files = await fs
    .readdir(path.join(path.resolve(dataFolder), 'postgres'))
    .catch((error: NodeJS.ErrnoException) => {
      // Whatever else is wrong with the folder is said by those who open it.
      return error.code === 'ENOENT' ? [] : undefined;
    });
  if (files?.length === 0) throw new NotInitialisedError(`There is no database in ${dataFolder} yet.`);
}

/** The owner of the database files, undefined when there are none. Throws when they are not for us. */
export async function inspectCluster(place: Place): Promise<ServerUser | undefined> {
  const found = await describeCluster(place);
  if (found === undefined || found.version === place.major) return found;
  const isOlder = Number(found.version) < Number(place.major);
  throw new OperatorError(
    `The database files in ${place.shown} are of PostgreSQL ${found.version}; this Lanescan brings ${place.major}.`,
    isOlder
      ? `Run \`lanescan migrate\` on this folder: it copies everything into files of PostgreSQL ${place.major} and keeps the old ones.`
      : 'Use the release of Lanescan that made them, or a later one. Nothing was changed.',
  );
}

/** Owner and major version of the database files; undefined when there are none. */
export async function describeCluster(
  place: Place,
): Promise<(ServerUser & { readonly version: string }) | undefined> {
  const found = await clusterStats(place);
  if (found === undefined) return undefined;
  const { uid, gid } = found;
  try {
    if ((await fs.readdir(place.cluster)).length === 0) return undefined;
    const version = (await fs.readFile(path.join(place.cluster, 'PG_VERSION'), 'utf8')).trim();
    return { uid, gid, version };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES') await chooseServerUser(place.shown, uid, { uid, gid });
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw inOperatorWords(error, place);
    throw new OperatorError(
      `${path.join(place.shown, 'postgres')} exists, but is no PostgreSQL database.`,
      'Move it away, or choose another folder with --data.',
    );
  }
}

/** Where an upgrade has the complete new database files until the old ones have made room for them. */
export function upgradedCluster({ cluster }: Pick<Place, 'cluster'>): string {
  return `${cluster}.upgraded`;
}

async function clusterStats(place: Place): Promise<Stats | undefined> {
  const stats = () =>
    fs.stat(place.cluster).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw inOperatorWords(error, place);
      return undefined;
    });
  const found = await stats();
  if (found !== undefined) return found;
  // An upgrade was killed between its last two steps, or another process is at the last one right now.
  await renameDurably(upgradedCluster(place), place.cluster).catch((error: NodeJS.ErrnoException) => {
    const nothingToDo = ['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code ?? '');
    if (!nothingToDo) throw inOperatorWords(error, place);
  });
  return stats();
}

/** A failure of the file system or of initdb as somebody can act on it. */
export function inOperatorWords(error: unknown, place: Pick<Place, 'shown'>): unknown {
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
