/**
 * The connection pools of a store: one for each kind of work, so that no kind keeps another waiting.
 *
 * Every connection is watched for silence (`connection-watch.ts`), and closing the pools takes a bounded time.
 */
import pg from 'pg';
import type { Notice } from '../base/notice.ts';
import { ReadingClient, WatchedClient } from './client.ts';
import type { PoolSizes } from './connection-budget.ts';
import { type ConnectionWatch, createConnectionWatch } from './connection-watch.ts';
import { searchSettings } from './search.ts';
import { isDoneWithin } from './time-limit.ts';
import { declaredSchema } from './writer-guard.ts';

export interface Pools {
  readonly readers: pg.Pool;
  readonly writers: pg.Pool;
  /** An export lasts as long as its reader takes; it must not keep searches waiting. */
  readonly exporters: pg.Pool;
  /** Deliveries and leases go on while searches or imports have all of their connections. */
  readonly keepers: pg.Pool;
  readonly replicas: readonly pg.Pool[];
  /** For the position of the primary. Used only where there are replicas; until then it has no connection. */
  readonly watch: pg.Pool;
}

export interface PoolsOptions {
  readonly primary: pg.ClientConfig;
  readonly replicas: readonly pg.ClientConfig[];
  readonly sizes: PoolSizes;
  /** The number of the schema that this program knows; writers declare it. */
  readonly schema: number;
  readonly notice: Notice;
}

export interface OpenPools {
  readonly pools: Pools;
  /** Destroys the sockets of all connections. Statements on them fail. */
  destroyConnections(): void;
  /** Ends all pools. Statements have a few seconds to finish. */
  close(): Promise<void>;
}

/** The longest wait of a read for a connection, free or new. */
export const READ_WAIT_MS = 2_000;
/** One expensive search must not hold a connection for long. */
const READ_TIMEOUT_MS = 15_000;
/** Beyond the server's own limit: the server is silent, and the connection is lost. */
const SILENCE_TIMEOUT_MS = READ_TIMEOUT_MS + 2_000;
const WATCH_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How long statements may go on when the pools are closed. */
const CLOSE_TIMEOUT_MS = 3_000;
/** The server ends a session whose client has vanished, and with it the locks, after 25 s without traffic. */
const SERVER_KEEPALIVE = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3';
/** And a transaction whose client sends nothing for so long, whatever the network reports. */
const IDLE_TRANSACTION = '-c idle_in_transaction_session_timeout=60000';
const STATEMENT_TIMEOUT = `-c statement_timeout=${READ_TIMEOUT_MS}`;

/** Opens no connection yet: pools do so on demand. */
export function openPools({ primary, replicas, sizes, schema, notice }: PoolsOptions): OpenPools {
  const watches: ConnectionWatch[] = [];
  const watchOf = (server: pg.ClientConfig): ConnectionWatch => {
    const watch = createConnectionWatch(server, notice);
    watches.push(watch);
    return watch;
  };
  const primaryWatch = watchOf(primary);
  const forWrites = `${IDLE_TRANSACTION} ${declaredSchema(schema)}`;
  const pools: Pools = {
    readers: createReaders(primary, primaryWatch, sizes.readers),
    writers: createPool(primary, primaryWatch, sizes.writers, forWrites),
    exporters: createPool(primary, primaryWatch, sizes.exporters, ''),
    keepers: createPool(primary, primaryWatch, sizes.keepers, `${STATEMENT_TIMEOUT} ${forWrites}`),
    replicas: replicas.map((replica) => createReaders(replica, watchOf(replica), sizes.readers)),
    watch: createReaders(primary, primaryWatch, 1, WATCH_TIMEOUT_MS),
  };
  const destroyConnections = () => watches.reduce((count, watch) => count + watch.destroyAll(), 0);
  return {
    pools,
    destroyConnections,
    async close() {
      const ends = Object.values(pools)
        .flat()
        .map((pool) => pool.end());
      // A statement that waits for a silent server would keep its pool open for ever.
      if (!(await isDoneWithin(CLOSE_TIMEOUT_MS, Promise.all(ends)))) {
        const count = destroyConnections();
        notice(
          `Gave up ${count} database connection(s) that were busy ${CLOSE_TIMEOUT_MS / 1_000} s after the stop`,
        );
      }
      for (const watch of watches) watch.close();
    },
  };
}

function createReaders(
  server: pg.ClientConfig,
  watch: ConnectionWatch,
  max: number,
  silenceMs = SILENCE_TIMEOUT_MS,
): pg.Pool {
  return createPool(
    {
      ...server,
      // The pool's type knows no client that takes a configuration, though the pool gives it one.
      Client: ReadingClient as unknown as new () => pg.ClientBase,
      connectionTimeoutMillis: READ_WAIT_MS,
      query_timeout: silenceMs,
    },
    watch,
    max,
    `${STATEMENT_TIMEOUT} ${searchSettings}`,
  );
}

function createPool(
  connection: pg.PoolConfig,
  watch: ConnectionWatch,
  max: number,
  options: string,
): pg.Pool {
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
  // A connection that breaks while idle is replaced by the pool; the next query reports it.
  pool.on('error', () => undefined);
  // One that breaks while the pool hands it over has no other listener, and would end the process.
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pool;
}
