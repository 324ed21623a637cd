/** The rig that measurements share: the cluster, the load generator, the references, and the settings of the run. */
import pg from 'pg';
import { SEARCH_SETTINGS } from '../src/store/query/search.ts';
import { startWorker, type Worker } from './child.ts';
import { type BenchDatabase, type Cluster, openDatabase, postmasterOf } from './data/database.ts';
import type { LoadOrder, LoadReport } from './load/client.ts';
import type { DatabaseOrder, DatabaseReport } from './references/database-limit.ts';
import type { HttpLimitOrder } from './references/http-limit.ts';
import { nodeArgsOfProgram } from './server.ts';

export interface RunSettings {
  readonly sizes: readonly number[];
  readonly dataFolder: string;
  /** Of one turn. */
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  /** Number of worker processes, of Lanescan and of the HTTP limit. */
  readonly processes: number;
  /**
   * Warm-up requests to a new process, until the JIT compiler has optimised the hot code. A number, because a time would
   * mean little on a busy machine.
   */
  readonly warmUp: number;
}

export interface Listening {
  readonly port: number;
  readonly pid: number;
}

export interface Rig {
  readonly settings: RunSettings;
  readonly cluster: Cluster;
  readonly load: Worker<LoadOrder, LoadReport>;
  readonly driver: Worker<DatabaseOrder, DatabaseReport>;
  /** The framework alone. */
  httpLimit(): Promise<Listening>;
  /** The real server with a fixed answer. */
  serverLimit(databaseUrl: string): Promise<Listening>;
  /** The process that started all others of PostgreSQL. */
  readonly postmaster: number;
  /** A log file of this name. */
  logFile(name: string): string;
  database(size: number): Promise<BenchDatabase>;
  client(url: string): Promise<pg.Client>;
  close(): Promise<void>;
}

export async function openRig(settings: RunSettings, cluster: Cluster): Promise<Rig> {
  const load = startWorker<LoadOrder, LoadReport>('./load/worker.ts');
  const driver = startWorker<DatabaseOrder, DatabaseReport>('./references/database-limit.ts');
  const limits: Worker<HttpLimitOrder, number>[] = [];
  /** As warm as the server that is held against it. */
  const startLimit = async (databaseUrl?: string): Promise<Listening> => {
    const worker = startWorker<HttpLimitOrder, number>('./references/http-limit.ts', {
      nodeArgs: nodeArgsOfProgram,
      log: `${settings.dataFolder}/${databaseUrl === undefined ? 'framework' : 'http-limit'}.log`,
    });
    limits.push(worker);
    const { processes, connections, warmUp } = settings;
    const port = await worker.run({ processes, ...(databaseUrl !== undefined && { databaseUrl }) });
    await load.run({
      port,
      requests: [{ path: '/fixed?bytes=30000' }],
      from: 0,
      connections,
      count: warmUp * processes,
      check: 'status',
    });
    return { port, pid: worker.pid };
  };
  let framework: Promise<Listening> | undefined;
  const serverLimits = new Map<string, Promise<Listening>>();
  const databases = new Map<number, Promise<BenchDatabase>>();
  const clients = new Map<string, pg.Client>();
  return {
    settings,
    cluster,
    load,
    driver,
    httpLimit() {
      framework ??= startLimit();
      return framework;
    },
    serverLimit(databaseUrl) {
      const started = serverLimits.get(databaseUrl) ?? startLimit(databaseUrl);
      serverLimits.set(databaseUrl, started);
      return started;
    },
    postmaster: postmasterOf(cluster.embedded),
    logFile: (name) => `${settings.dataFolder}/${name}.log`,
    database(size) {
      const opened = databases.get(size) ?? openDatabase(cluster, size);
      databases.set(size, opened);
      return opened;
    },
    async client(url) {
      const known = clients.get(url);
      if (known) return known;
      const client = new pg.Client({ connectionString: url, options: `-c timezone=UTC ${SEARCH_SETTINGS}` });
      clients.set(url, client);
      await client.connect();
      return client;
    },
    async close() {
      await Promise.all([load, driver, ...limits].map((worker) => worker.stop()));
      await Promise.all([...clients.values()].map((client) => client.end()));
    },
  };
}
