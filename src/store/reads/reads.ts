/**
 * Reads: how a statement that answers a client gets to PostgreSQL and its rows come back. This file is the only entrance
 * of the folder. The statements themselves are outside (`search.ts`, `lanes.ts`, …), and so are writes, exports and leases.
 *
 * What happens to a read, and what always holds:
 *
 * 1. Routing (`replicas.ts`): to a replica that has caught up, otherwise to the primary. No client sees an older state than
 *    this process has shown to any client before.
 * 2. Admission (`admission.ts`), for each server by itself. The number of waiting reads is bounded, and a read from a silent
 *    database costs 250 ms, not a time-out.
 * 3. Queue (`read-queue.ts`): every read ends within a bounded time, with rows or with an error. Reads that wait together are
 *    pipelined over one connection (`reading-client.ts`), each with its own Sync: a read that fails fails alone, and no short
 *    read waits behind a long one.
 * 4. Prepared statements (`statement-names.ts`): a name never stands for two texts, and the memory that clients can claim on
 *    the server is bounded.
 * 5. Rows. A statement with `collect` gets them as bytes (`raw-rows.ts`, over internals of the driver in `raw-query.ts`), which
 *    `page.ts` joins into a page. The bytes that a read holds in memory are bounded (`RowBound`).
 * 6. Time limits. PostgreSQL stops a read after 15 s. After 17 s without an answer the server counts as silent: the connection
 *    is destroyed and the circuit opens. So a connection is never used again while an answer to an older read may still come.
 *
 * Constants say which measurement set them; "chosen, not measured" means that no other value was compared.
 */
import type pg from 'pg';
import { withClient } from '../server/client.ts';
import { createAdmission, type ReadObserver } from './admission.ts';
import { createReadQueue } from './read-queue.ts';
import { ReadingClient } from './reading-client.ts';
import { createReplicaSet, type ReplicaSetOptions } from './replicas.ts';
import { createSingleFlight } from './single-flight.ts';
import type { Read, RunStatement, Statement } from './statement.ts';
import { createStatementNames } from './statement-names.ts';

export { DatabaseAwayError, DatabaseBusyError, type ReadObserver } from './admission.ts';
export { arrayFrame, type Page, type PageFrame, readPage } from './page.ts';
export type { ReplicaStatus } from './replicas.ts';
export { createSharedRun, createSingleFlight } from './single-flight.ts';
export { type Read, type RowBound, readUsing, readWith, type Statement } from './statement.ts';

/** The longest wait of a read for a connection, free or new. Chosen, not measured: clients retry after a second or two. */
const READ_WAIT_MS = 2_000;
/** `statement_timeout` of reads: one expensive search must not hold a connection for long. Chosen, not measured. */
const STATEMENT_TIMEOUT_MS = 15_000;
/**
 * `query_timeout` of reads, in this process. It is longer than the server's own limit, so it ends only reads whose server
 * is silent. Chosen, not measured.
 */
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
/** The same for the revision of the primary, which takes microseconds. Chosen, not measured. */
const POSITION_TIMEOUT_MS = 2_000;
/** Time limit of the circuit breaker's probe. Chosen, not measured. */
const PROBE_TIMEOUT_MS = 2_000;
/**
 * Reads that may wait for each connection before more are rejected. Chosen, not measured: at 0.2 ms of the database for a
 * short search (docs/performance.md) a full queue is served in 20 ms, and long reads end by READ_WAIT_MS.
 */
const WAITING_PER_CONNECTION = 100;
/**
 * A wait that means overload when the oldest read has had it for READ_WAIT_MS; in overload also the longest wait. Chosen,
 * not measured by itself: with 512 connections on two cores p50 is 196 ms and nothing is rejected
 * (bench/results/bench-searches-pages-connections-1m.json), so ordinary load stays below it.
 */
const OVERLOAD_WAIT_MS = 250;
/**
 * The shortest time between two reads of the store's version. More callers share one read the longer it is, and a cached
 * answer waits up to as long. Chosen, not measured alone: with it a cached page takes 0.2 ms, most of it HTTP
 * (docs/performance.md).
 */
const VERSION_INTERVAL_MS = 2;

export type Reads = ReturnType<typeof createReads>;

/** Made with `configureReadPool` and `configureRevisionPool`. */
export interface ReadPools {
  readonly readers: pg.Pool;
  readonly replicas: readonly pg.Pool[];
  /** One connection for the revision of the primary, used only where there are replicas. */
  readonly revision: pg.Pool;
}

/** Throws what a failed read is reported as. */
type Explain = (error: unknown) => Promise<never>;

export function createReads(
  { readers, replicas, revision }: ReadPools,
  {
    explain,
    ...options
  }: Pick<ReplicaSetOptions, 'identity' | 'migrations' | 'writeLog'> & { readonly explain: Explain },
) {
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
          ...options,
        });
  const { run, runOnPrimary } = replicaSet ?? { run: primary.run, runOnPrimary: primary.run };
  const nameOf = createStatementNames();

  const readBy =
    (label: string, runStatement: RunStatement): Read =>
    <R>(text: string, values: readonly unknown[]) =>
      runStatement<R[]>(label, { text, values: [...values] });

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
    /** Runs a statement on a replica that has caught up, otherwise on the primary. */
    run,
    /** The name under which a statement is prepared. */
    nameOf,
    /**
     * Changes with everything that a search can find, as soon as it is committed. Single-flight. Undefined while the
     * primary is away and only replicas answer.
     */
    version: createSingleFlight(readVersion, VERSION_INTERVAL_MS),
    /** Reads anywhere, with rows as objects; the metrics show them under this label. */
    readAs: (label: string) => readBy(label, run),
    /** The same with statements that are prepared; `isShort` as in `Statement`. */
    readPreparedAs:
      (label: string, isShort = true): Read =>
      <R>(text: string, values: readonly unknown[]) =>
        run<R[]>(label, { name: nameOf(text), text, values: [...values], isShort }),
    /** The same on the primary. */
    readOnPrimaryAs: (label: string) => readBy(label, runOnPrimary),
    /** How many reads wait for this pool, in the queue or in a batch; 0 for a pool that is not for reads. */
    waitingFor: (pool: pg.Pool) => all.find((server) => server.pool === pool)?.waiting() ?? 0,
    /** How the replicas do, in the order in which they were given. */
    replicas: async () => (await replicaSet?.status()) ?? [],
    /** Calls the observer after every read. Returns the function that removes it. */
    observe(observer: ReadObserver): () => void {
      const removals = all.map((server) => server.observe(observer));
      return () => {
        for (const remove of removals) remove();
      };
    },
  };
}

/** Reads from one server: admission, then the queue. */
function createServerReads(pool: pg.Pool, explain: Explain) {
  const probe: Statement = { text: 'select 1', query_timeout: PROBE_TIMEOUT_MS };
  const queue = createReadQueue(pool, { maxWaitMs: READ_WAIT_MS, overloadWaitMs: OVERLOAD_WAIT_MS });
  const waiting = () => queue.waiting;
  const admission = createAdmission(
    () => withClient(pool, (client) => client.query(probe)),
    waiting,
    pool.options.max * WAITING_PER_CONNECTION,
  );
  const run: RunStatement = (label, statement) =>
    admission.run(label, () => queue.run(statement)).catch(explain);
  return {
    pool,
    run,
    waiting,
    observe: admission.observe,
  };
}

/** Configuration of a pool of connections for reads. */
export function configureReadPool(server: pg.ClientConfig): pg.PoolConfig {
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
export function configureRevisionPool(server: pg.ClientConfig): pg.PoolConfig {
  return { ...configureReadPool(server), query_timeout: POSITION_TIMEOUT_MS };
}
