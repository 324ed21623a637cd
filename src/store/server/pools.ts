/**
 * The connection pools of a store: one for each kind of work, so that no kind makes another wait.
 *
 * Every connection is watched for silence (`connection-watch.ts`), and closing the pools takes a bounded time.
 */
import pg from 'pg';
import type { WriteLog } from '../../base/log.ts';
import type { Layout } from '../cluster/layout.ts';
import { searchSettings } from '../query/search.ts';
import { configureReadPool, configureRevisionPool, type ReadPools } from '../reads/reads.ts';
import { declaredSchema } from '../schema/writer-guard.ts';
import { WatchedClient } from './client.ts';
import type { PoolSizes } from './connection-budget.ts';
import { type ConnectionWatch, createConnectionWatch } from './connection-watch.ts';
import { isDoneWithin } from './time-limit.ts';

export type OpenPools = ReturnType<typeof openPools>;

const CONNECT_TIMEOUT_MS = 5_000;
/** How long statements may go on when the pools are closed. */
const CLOSE_TIMEOUT_MS = 3_000;
/** The server ends a session whose client has vanished, and with it the locks, after 25 s without traffic. */
const SERVER_KEEPALIVE = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3';
/** And a transaction whose client sends nothing for so long, whatever the network reports. */
const IDLE_TRANSACTION = '-c idle_in_transaction_session_timeout=60000';
/** Leases and deliveries take milliseconds; one that waits this long is retried. */
const LEASE_STATEMENT_TIMEOUT = '-c statement_timeout=15000';

/** Opens no connection yet: pools do so on demand. `schema` is the number that this program knows; writers declare it. */
export function openPools({
  primary,
  replicas,
  sizes,
  schema,
  writeLog,
}: {
  readonly primary: pg.ClientConfig;
  readonly replicas: readonly pg.ClientConfig[];
  readonly sizes: PoolSizes;
  readonly schema: number;
  readonly writeLog: WriteLog;
}) {
  const primaryWatch = createConnectionWatch(primary, writeLog);
  const replicaWatches = replicas.map((replica) => createConnectionWatch(replica, writeLog));
  const watches = [primaryWatch, ...replicaWatches];
  const forWrites = `${IDLE_TRANSACTION} ${declaredSchema(schema)}`;
  const opened: pg.Pool[] = [];
  const open = (connection: pg.PoolConfig, max: number, options: string, watch = primaryWatch) => {
    const pool = createPool(connection, watch, max, options);
    opened.push(pool);
    return pool;
  };
  const writePools = {
    writers: open(primary, sizes.writers, forWrites),
    /** An export lasts as long as its reader takes, and must not make searches wait. */
    exporters: open(primary, sizes.exporters, ''),
    /** For deliveries and leases, which go on while searches or imports use all of their connections. */
    leases: open(primary, sizes.leases, `${LEASE_STATEMENT_TIMEOUT} ${forWrites}`),
  };
  /** To be called once. The layout of the store decides how its searches are planned. */
  const openReadPools = (layout: Layout): ReadPools => {
    const settings = searchSettings[layout];
    const openReaders = (server: pg.ClientConfig, watch?: ConnectionWatch) =>
      open(configureReadPool(server), sizes.readers, settings, watch);
    return {
      readers: openReaders(primary),
      replicas: replicas.map((replica, index) => openReaders(replica, replicaWatches[index])),
      revision: open(configureRevisionPool(primary), 1, settings),
    };
  };
  /** Destroys the sockets of all connections. Statements on them fail. */
  const destroyConnections = () => watches.reduce((count, watch) => count + watch.destroyAll(), 0);
  return {
    writePools,
    openReadPools,
    destroyConnections,
    /** Ends all pools. Statements have a few seconds to finish. */
    async close() {
      const ends = opened.map((pool) => pool.end());
      // A statement that waits for a silent server would keep its pool open for ever.
      if (!(await isDoneWithin(CLOSE_TIMEOUT_MS, Promise.all(ends)))) {
        const count = destroyConnections();
        writeLog(
          `Gave up ${count} database connection(s) that were busy ${CLOSE_TIMEOUT_MS / 1_000} s after the stop`,
        );
      }
      for (const watch of watches) watch.close();
    },
  };
}

function createPool(connection: pg.PoolConfig, watch: ConnectionWatch, max: number, options: string) {
  const pool = new pg.Pool({
    Client: WatchedClient as unknown as new () => pg.ClientBase,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    ...connection,
    max,
    // Just-in-time compilation costs more than any statement of ours: ten times a write of one message.
    options: `${connection.options ?? ''} -c timezone=UTC -c jit=off ${SERVER_KEEPALIVE} ${options}`.trim(),
    application_name: 'lanescan',
  });
  watch.addPool(pool);
  // The pool replaces a connection that breaks while idle.
  pool.on('error', () => undefined);
  // A connection that breaks while the pool hands it over has no other listener, and would end the process.
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pool;
}
