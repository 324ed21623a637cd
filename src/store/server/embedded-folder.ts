/** The data folder of the embedded PostgreSQL: its files, their owner, and whether a server runs on them. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../base/operator-error.ts';
import { NotInitialisedError } from '../schema/migrate.ts';
import {
  type Binaries,
  chooseServerUser,
  isRoot,
  MAJOR_VERSION,
  PORT,
  preparePrograms,
  type ServerUser,
} from './embedded-binaries.ts';

const run = promisify(execFile);

const DRAFT_PREFIX = 'postgres.new-';
const DRAFT_LIFETIME_MS = 600_000;

export interface Place {
  /** The data folder as the operator wrote it, for messages. */
  readonly shown: string;
  readonly folder: string;
  /** What PostgreSQL calls its data directory. */
  readonly cluster: string;
  readonly log: string;
  /** The major version of PostgreSQL for these files. */
  readonly major: string;
  /** The programs of that version; undefined for the bundled ones. */
  readonly binaries?: Binaries;
  /** The owner of new database files; undefined: chosen by the owner of the folder. */
  readonly owner?: ServerUser;
}

/** The postmaster.pid of a server that runs or crashed. */
export interface ServerRecord {
  readonly pid: number;
  /** Undefined while the file is incomplete: the server has not opened its socket yet, or is writing right now. */
  readonly socketFolder: string | undefined;
  readonly isStopping: boolean;
}

/** initdb works in a draft folder, which is renamed when it is complete: a cluster is never incomplete. */
export async function createCluster(place: Place, signal: AbortSignal | undefined): Promise<void> {
  const draft = await fs.mkdtemp(path.join(place.folder, DRAFT_PREFIX));
  try {
    const owner = await serverUser(place);
    const programs = await preparePrograms(owner, place.folder, place.binaries);
    if (isRoot()) await fs.chown(draft, owner.uid, owner.gid);
    await programs.createCluster(draft, signal);
    await renameDurably(draft, place.cluster);
  } catch (error) {
    await removeDraft(draft);
    const isMadeByAnother = (await inspectCluster(place)) !== undefined;
    if (!isMadeByAnother) throw error;
  }
}

/** When it returns, the new name survives a loss of power. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await fs.rename(from, to);
  const folder = await fs.open(path.dirname(to), 'r');
  await folder.sync().finally(() => folder.close());
}

/**
 * Once there is a cluster, all drafts are useless. A draft of an initdb that may still run is left to it, because initdb
 * fails badly when its files are removed.
 */
export async function removeDrafts(place: Place): Promise<void> {
  for (const name of await fs.readdir(place.folder)) {
    if (!name.startsWith(DRAFT_PREFIX)) continue;
    const draft = path.join(place.folder, name);
    const made = (await fs.stat(draft).catch(() => undefined))?.mtimeMs ?? Date.now();
    if (Date.now() - made > DRAFT_LIFETIME_MS) await removeDraft(draft);
  }
}

async function removeDraft(draft: string): Promise<void> {
  await fs.rm(draft, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}

export async function serverUser(place: Place): Promise<ServerUser> {
  const owner = (await inspectCluster(place)) ?? place.owner;
  return chooseServerUser(place.shown, (await fs.stat(place.folder)).uid, owner);
}

/** Where the socket is: in the cluster, or in a temporary folder where that path is too long for a socket address. */
export async function socketFolderFor(place: Place, owner: ServerUser): Promise<string> {
  const limit = process.platform === 'darwin' ? 103 : 107;
  const fits = (folder: string) => Buffer.byteLength(`${folder}/.s.PGSQL.${PORT}`) <= limit;
  if (fits(place.cluster)) return place.cluster;
  const name = `lanescan-${createHash('sha256').update(place.cluster).digest('hex').slice(0, 20)}`;
  // The user of the server may have no access to root's own temporary folder.
  const own = isRoot() ? '/tmp' : await fs.realpath(os.tmpdir()).catch(() => '/tmp');
  const folder = [own, '/tmp'].map((base) => path.join(base, name)).find(fits) ?? path.join('/tmp', name);
  await fs.mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const { uid } = await fs.lstat(folder);
  if (uid === 0 && isRoot()) await fs.lchown(folder, owner.uid, owner.gid);
  if (!(await isPrivate(folder, owner.uid))) {
    throw new OperatorError(
      `The folder ${folder} for the PostgreSQL socket is not private to user ${owner.uid}: another user may have made it.`,
      'Choose a shorter path with --data: the socket then fits into the data folder. Or find out who made that folder.',
    );
  }
  return folder;
}

/** False also when it is missing. In a folder that others can write to, another user could impersonate the server. */
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
    isStopping: status === 'stopping',
  };
}

/** Whether the server of this record runs. A process that got the same id later does not count, nor does a zombie. */
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
      major: MAJOR_VERSION,
    };
  } catch (error) {
    throw explainFolderError(error, { shown: dataFolder });
  }
}

/** Throws a NotInitialisedError where the folder has no database files. Creates nothing. */
export async function requireCluster(dataFolder: string): Promise<void> {
  const files = await fs
    .readdir(path.join(path.resolve(dataFolder), 'postgres'))
    .catch((error: NodeJS.ErrnoException) => {
      // Other problems with the folder are reported when it is opened.
      return error.code === 'ENOENT' ? [] : undefined;
    });
  if (files?.length === 0) throw new NotInitialisedError(`There is no database in ${dataFolder} yet.`);
}

/** The owner of the database files; undefined where there are none. Throws where they are of another major version. */
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
export async function describeCluster(place: Place) {
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
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw explainFolderError(error, place);
    throw new OperatorError(
      `${path.join(place.shown, 'postgres')} exists, but is not a PostgreSQL database.`,
      'Move it away, or choose another folder with --data.',
    );
  }
}

/** Where an upgrade keeps the complete new database files until the old ones are renamed. */
export function upgradedCluster({ cluster }: Pick<Place, 'cluster'>): string {
  return `${cluster}.upgraded`;
}

async function clusterStats(place: Place): Promise<Stats | undefined> {
  const stats = () =>
    fs.stat(place.cluster).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw explainFolderError(error, place);
      return undefined;
    });
  const found = await stats();
  if (found !== undefined) return found;
  // An upgrade was killed between its last two steps, or another process is at its last step now.
  await renameDurably(upgradedCluster(place), place.cluster).catch((error: NodeJS.ErrnoException) => {
    const isNothingToDo = ['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code ?? '');
    if (!isNothingToDo) throw explainFolderError(error, place);
  });
  return stats();
}

/** A failure of the file system or of initdb as an OperatorError with a remedy. */
export function explainFolderError(error: unknown, place: Pick<Place, 'shown'>): unknown {
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
    'Choose another folder with --data, fix this one, or set DATABASE_URL to a PostgreSQL server.',
    { cause: error },
  );
}
