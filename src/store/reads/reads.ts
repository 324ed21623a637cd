/**
 * Reads: how a statement that answers a client gets to PostgreSQL and its rows come back. This file is the only entrance
 * of the folder. The statements themselves are outside (`search.ts`, `lanes.ts`, …), and so are writes, exports and leases.
 *
 * What happens to a read, from the call to the rows:
 *
 * 1. Routing (`replicas.ts`). Without replicas every read goes to the primary. With replicas, the primary is first asked for
 *    its revision; concurrent reads share one such query (`single-flight.ts`). Then a replica that has caught up is chosen,
 *    round-robin. If it fails, or its result turns out to be too old, the next one is asked, and the primary last.
 *    Invariant: no client sees an older state than this process has shown to any client before.
 *
 * 2. Admission (`admission.ts`), for each server by itself. If too many reads wait already, the read is refused at once
 *    (load shedding, `DatabaseBusyError`). If the server was silent when it was last asked, the circuit is open: the read
 *    waits a moment for a probe and is refused if that does not answer (`DatabaseAwayError`).
 *    Invariant: the number of waiting reads is bounded, and a read from a silent database costs 250 ms, not a time-out.
 *
 * 3. Queue (`read-queue.ts`). Admitted reads wait for a connection, first in, first out, for at most 2 s. In overload, that is
 *    when the oldest read has been 250 ms old for 2 s, the queue turns LIFO until it is empty, and reads older than 250 ms are
 *    refused. FIFO would make every answer late; LIFO answers as many, most of them quickly.
 *    Invariant: every read ends within a bounded time, with rows or with an error.
 *
 * 4. Pipelining (`read-queue.ts`, `reading-client.ts`). Reads that wait together are sent together, up to eight over one
 *    connection, each with its own Sync. Only short reads share a batch, and few connections are used while reads are short.
 *    Invariants: a read that fails fails alone, and no short read waits behind a long one.
 *
 * 5. Prepared statements (`statement-names.ts`). A statement with a name is parsed and planned once on each connection. Names
 *    and prepared statements are LRU caches of 200.
 *    Invariants: a name never stands for two texts, and the memory that clients can claim on the server is bounded.
 *
 * 6. Rows (`rows.ts`). A statement with `collect` gets its rows as bytes. By default these are raw rows: cut out of the
 *    socket's memory before the driver parses them (`raw-rows.ts`), which needs internals of the driver (`raw-query.ts`).
 *    For comparison, tests and benchmarks make them from the driver's own result (`driver-rows.ts`). `page.ts` joins the records
 *    of a search into a page. A page ends at a number of bytes (`RowBound`).
 *    Invariants: both ways give the same bytes, and with raw rows the bytes that a read holds in memory are bounded.
 *
 * 7. Time limits. PostgreSQL stops a read after 15 s (`statement_timeout`). After 17 s without an answer the server counts as
 *    silent: the connection is destroyed and the circuit opens.
 *    Invariant: a connection is never used again while an answer to an older read may still come.
 *
 * All constants are in `tuning.ts`, each with the measurement that set it.
 */
import type pg from 'pg';
import type { WriteLog } from '../../base/log.ts';
import { withClient } from '../server/client.ts';
import { createAdmission, type ReadObserver } from './admission.ts';
import { createReadQueue } from './read-queue.ts';
import { ReadingClient, type ReadingClientConfig } from './reading-client.ts';
import { createReplicaSet, type ReplicaStatus } from './replicas.ts';
import { createSingleFlight } from './single-flight.ts';
import type { Read, RunStatement, Statement } from './statement.ts';
import { createStatementNames } from './statement-names.ts';
import {
  OVERLOAD_WAIT_MS,
  POSITION_TIMEOUT_MS,
  PROBE_TIMEOUT_MS,
  READ_WAIT_MS,
  SILENCE_TIMEOUT_MS,
  STATEMENT_TIMEOUT_MS,
  VERSION_INTERVAL_MS,
  WAITING_PER_CONNECTION,
} from './tuning.ts';

export type { ReadObserver } from './admission.ts';
export { DatabaseAwayError, DatabaseBusyError } from './errors.ts';
export { arrayFrame, type Page, type PageFrame, readPage } from './page.ts';
export type { ReplicaStatus } from './replicas.ts';
export type { RowBound } from './rows.ts';
export { createSingleFlight } from './single-flight.ts';
export type { Read, RunStatement, Statement } from './statement.ts';

export interface Reads {
  /** Runs a statement on a replica that has caught up, otherwise on the primary. */
  readonly run: RunStatement;
  readonly runOnPrimary: RunStatement;
  /** The name under which a statement is prepared. */
  readonly nameOf: (text: string) => string;
  /**
   * Changes with everything that a search can find, as soon as it is committed. Single-flight. Undefined while the
   * primary is away and only replicas answer.
   */
  readonly version: () => Promise<string | undefined>;
  /** Runs a prepared statement anywhere and returns its rows as arrays. */
  readRows(label: string, text: string, values: unknown[], options?: ReadRowsOptions): Promise<string[][]>;
  /** Reads anywhere, with rows as objects; the metrics show them under this label. */
  readAs(label: string): Read;
  /** The same on the primary. */
  readOnPrimaryAs(label: string): Read;
  /** How many reads wait for this pool, in the queue or in a batch; 0 for a pool that is not for reads. */
  waitingFor(pool: pg.Pool): number;
  /** How the replicas do, in the order in which they were given. */
  replicas(): Promise<readonly ReplicaStatus[]>;
  /** Calls the observer after every read. Returns the function that removes it. */
  observe(observer: ReadObserver): () => void;
}

export interface ReadRowsOptions {
  /** See `Statement`. */
  readonly isShort: boolean;
}

/** Made with `configureReadPool` and `configureRevisionPool`. */
export interface ReadPools {
  readonly readers: pg.Pool;
  readonly replicas: readonly pg.Pool[];
  /** One connection for the revision of the primary, used only where there are replicas. */
  readonly revision: pg.Pool;
}

export interface ReadsOptions {
  /** The result of `identitySql` on the primary, to distinguish its replicas from other databases. */
  readonly identity: string;
  /** How many migrations the schema has. */
  readonly migrations: number;
  /** Throws what a failed read is reported as. */
  readonly explain: (error: unknown) => Promise<never>;
  readonly writeLog: WriteLog;
}

export function createReads(
  { readers, replicas, revision }: ReadPools,
  { identity, migrations, explain, writeLog }: ReadsOptions,
): Reads {
  const primary = createServerReads(readers, explain);
  const copies = replicas.map((pool) => createServerReads(pool, explain));
  const all = [primary, ...copies];
  const replicaSet =
    copies.length === 0
      ? undefined
      : createReplicaSet({
          primary: primary.run,
          revisionSource: createServerReads(revision, explain).run,
          replicas: copies.map(({ run }) => run),
          identity,
          migrations,
          writeLog,
        });
  const { run, runOnPrimary } = replicaSet ?? { run: primary.run, runOnPrimary: primary.run };
  const nameOf = createStatementNames();

  const readWith =
    (label: string, runStatement: RunStatement): Read =>
    async (text, values) =>
      (await runStatement(label, { text, values: [...values] })) as Record<string, unknown>[];

  const readVersion = async (): Promise<string | undefined> => {
    try {
      return await runOnPrimary('version', {
        name: 'lanescan_version',
        text: 'select revision from store_revision',
        // Many requests wait for it, and it takes microseconds.
        query_timeout: READ_WAIT_MS,
        collect: (rows) => rows.text(0, 0),
      });
    } catch (error) {
      if (replicaSet) return undefined;
      throw error;
    }
  };

  return {
    run,
    runOnPrimary,
    nameOf,
    version: createSingleFlight(readVersion, VERSION_INTERVAL_MS),
    async readRows(label, text, values, { isShort } = { isShort: true }) {
      const statement: Statement = { name: nameOf(text), text, values, rowMode: 'array', isShort };
      return (await run(label, statement)) as string[][];
    },
    readAs: (label) => readWith(label, run),
    readOnPrimaryAs: (label) => readWith(label, runOnPrimary),
    waitingFor: (pool) => all.find((server) => server.pool === pool)?.waiting() ?? 0,
    replicas: async () => (await replicaSet?.status()) ?? [],
    observe(observer) {
      const removals = all.map((server) => server.observe(observer));
      return () => {
        for (const remove of removals) remove();
      };
    },
  };
}

interface ServerReads {
  readonly pool: pg.Pool;
  readonly run: RunStatement;
  waiting(): number;
  observe(observer: ReadObserver): () => void;
}

/** Reads from one server: admission, then the queue. */
function createServerReads(pool: pg.Pool, explain: ReadsOptions['explain']): ServerReads {
  const probe: Statement = { text: 'select 1', query_timeout: PROBE_TIMEOUT_MS };
  const queue = createReadQueue(pool, { maxWaitMs: READ_WAIT_MS, overloadWaitMs: OVERLOAD_WAIT_MS });
  const admission = createAdmission({
    probe: () => withClient(pool, (client) => client.query(probe)),
    waiting: () => queue.waiting,
    maxWaiting: pool.options.max * WAITING_PER_CONNECTION,
  });
  return {
    pool,
    run: (label, statement) => admission.run(label, () => queue.run(statement)).catch(explain),
    waiting: () => queue.waiting,
    observe: admission.observe,
  };
}

/** Configuration of a pool of connections for reads. */
export function configureReadPool(server: ReadingClientConfig): pg.PoolConfig {
  return {
    ...server,
    // The pool's type knows no client that takes a configuration, though the pool gives it one.
    Client: ReadingClient as unknown as new () => pg.ClientBase,
    connectionTimeoutMillis: READ_WAIT_MS,
    query_timeout: SILENCE_TIMEOUT_MS,
    options: `${server.options ?? ''} -c statement_timeout=${STATEMENT_TIMEOUT_MS}`,
  };
}

/** The same for the connection that reads the revision of the primary. */
export function configureRevisionPool(server: ReadingClientConfig): pg.PoolConfig {
  return { ...configureReadPool(server), query_timeout: POSITION_TIMEOUT_MS };
}
