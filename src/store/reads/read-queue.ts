/**
 * The queue of reads in front of one connection pool: batches that are pipelined, and LIFO with load shedding in overload.
 *
 * Pipelining: reads that arrive in one turn of the event loop, or while all connections are in use, go to the database in
 * batches, one batch a connection. That saves both sides a wake-up for every read. A read waits for those before it in its
 * batch, so only short reads share one.
 *
 * Overload: when the oldest read has been waiting too long for a while, more is asked than can be answered, and first in,
 * first out would make every answer late. Until the queue is empty, the newest read is served first, and reads that have
 * waited too long are rejected.
 */
import type pg from 'pg';
import { endsConnection, withClient } from '../server/client.ts';
import { DatabaseBusyError } from './admission.ts';
import type { ReadingClient } from './reading-client.ts';
import type { Row, Statement } from './statement.ts';
import { PreparedStatements } from './statement-names.ts';

// Decision 0019: pipelined on few connections, a page took 195 instead of 237 µs of the client and 235 instead of 340 µs of
// the database.

/** The most reads of one batch. Chosen, not measured. */
const MAX_BATCH_READS = 8;
/** The most time that a batch should take, by the recent average. A read that takes as long goes alone. Chosen. */
const MAX_BATCH_MS = 10;
/**
 * Share of the connections that is used while reads take about a millisecond. Measured (decision 0019): a fifth answers
 * 5 to 12 % more short pages than two fifths, with one process and with two, because fewer sessions share two cores.
 */
const STEADY_SHARE = 0.2;
/** A batch that takes longer does not count against that share. Chosen, not measured. */
const SLOW_BATCH_MS = 25;
/** How often the queue is examined while batches run. Chosen, not measured. */
const DISPATCH_INTERVAL_MS = 25;
/** Weight of the latest batch in the moving average of how long a read takes (EWMA). Chosen, not measured. */
const LATEST_WEIGHT = 0.2;

export type ReadQueue = ReturnType<typeof createReadQueue>;

interface QueuedRead {
  readonly statement: Statement<unknown>;
  readonly queuedAt: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Batch {
  readonly reads: readonly QueuedRead[];
  readonly startedAt: number;
  /** How many of its reads the database has answered. */
  answered: number;
}

/**
 * The clients of the pool are of the class `ReadingClient`. `maxWaitMs` is the longest wait for a connection. Overload begins
 * when the oldest read has waited `overloadWaitMs` for `maxWaitMs`; then that is the longest wait.
 */
export function createReadQueue(
  pool: pg.Pool,
  { maxWaitMs, overloadWaitMs }: { readonly maxWaitMs: number; readonly overloadWaitMs: number },
) {
  /** The oldest first. */
  const queue: QueuedRead[] = [];
  const batches = new Set<Batch>();
  const prepared = new WeakMap<ReadingClient, PreparedStatements>();
  let lateSince: number | undefined;
  let isOverloaded = false;
  /** Moving average of the time that a read takes. */
  let averageMs = 1;
  let isScheduled = false;
  let nextCheck: NodeJS.Timeout | undefined;

  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    // After everything that has arrived by now.
    setImmediate(dispatch);
  };

  const dispatch = () => {
    isScheduled = false;
    clearTimeout(nextCheck);
    const now = performance.now();
    shed(now);
    const slow = [...batches].filter(({ startedAt }) => now - startedAt > SLOW_BATCH_MS).length;
    const steady = pool.options.max * Math.max(STEADY_SHARE, averageMs / MAX_BATCH_MS);
    const allowed = Math.min(pool.options.max, Math.ceil(steady) + slow);
    while (queue.length > 0 && batches.size < allowed) {
      void send({ reads: takeBatch(allowed - batches.size), startedAt: now, answered: 0 });
    }
    if (queue.length === 0) isOverloaded = false;
    if (batches.size > 0) nextCheck = setTimeout(dispatch, DISPATCH_INTERVAL_MS);
  };

  /** Detects overload, and rejects reads that have waited too long. */
  const shed = (now: number) => {
    if (queue[0] && now - queue[0].queuedAt > overloadWaitMs) lateSince ??= now;
    else lateSince = undefined;
    if (lateSince !== undefined && now - lateSince > maxWaitMs) isOverloaded = true;
    const limitMs = isOverloaded ? overloadWaitMs : maxWaitMs;
    const rejectLate = ({ reject }: QueuedRead) =>
      reject(new DatabaseBusyError('No connection became free in time'));
    while (queue[0] && now - queue[0].queuedAt > limitMs) rejectLate(queue.shift() as QueuedRead);
    for (const { reads, answered } of batches) {
      for (const read of reads.slice(answered + 1)) if (now - read.queuedAt > maxWaitMs) rejectLate(read);
    }
  };

  const peek = () => (isOverloaded ? queue.at(-1) : queue[0]);
  const pull = () => (isOverloaded ? queue.pop() : queue.shift()) as QueuedRead;

  const takeBatch = (freeConnections: number): QueuedRead[] => {
    const share = Math.ceil(queue.length / freeConnections);
    const most = Math.floor(Math.min(MAX_BATCH_READS, MAX_BATCH_MS / averageMs, share));
    const first = pull();
    const reads = [first];
    while (reads.length < most && first.statement.isShort && peek()?.statement.isShort) reads.push(pull());
    return reads;
  };

  const send = async (batch: Batch): Promise<void> => {
    batches.add(batch);
    try {
      await withClient(pool, (client) => runBatch(client as unknown as ReadingClient, batch));
    } catch (error) {
      // Reads that were sent have their outcome already; rejecting them again has no effect.
      for (const { reject } of batch.reads) reject(error);
    } finally {
      batches.delete(batch);
      const ms = (performance.now() - batch.startedAt) / batch.reads.length;
      averageMs += LATEST_WEIGHT * (ms - averageMs);
      schedule();
    }
  };

  const runBatch = async (client: ReadingClient, batch: Batch): Promise<void> => {
    const statements = prepared.get(client) ?? new PreparedStatements();
    prepared.set(client, statements);
    let fatal: unknown;
    const runOne = async ({ statement, resolve, reject }: QueuedRead) => {
      const { name } = statement;
      try {
        const evicted = name === undefined ? undefined : statements.use(name);
        if (evicted !== undefined) client.closeStatement(evicted);
        const result = await client.run(statement);
        if (name !== undefined) statements.confirm(name);
        resolve(result);
      } catch (error) {
        if (endsConnection(error)) fatal = error;
        reject(error);
      } finally {
        batch.answered++;
      }
    };
    const { reads } = batch;
    if (reads.every(({ statement: { name } }) => name === undefined || statements.has(name))) {
      await client.pipelineTogether(() => Promise.all(reads.map(runOne)));
    } else {
      // Pipelined, a statement that cannot be prepared would make later reads of the same name fail too.
      for (const read of reads) await runOne(read);
    }
    if (fatal !== undefined) throw fatal;
  };

  return {
    run: <T = Row[]>(statement: Statement<T>) =>
      new Promise<T>((resolve, reject) => {
        const read = { statement, queuedAt: performance.now(), reject };
        queue.push({ ...read, resolve: resolve as (result: unknown) => void });
        schedule();
      }),
    /** How many reads wait, for a connection or behind others in a batch. */
    get waiting() {
      let waiting = queue.length;
      for (const { reads, answered } of batches) waiting += Math.max(0, reads.length - answered - 1);
      return waiting;
    },
  };
}
