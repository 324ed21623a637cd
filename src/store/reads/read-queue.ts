/**
 * The queue of reads in front of one connection pool: batches that are pipelined, and LIFO with load shedding in overload.
 *
 * Pipelining: reads that arrive in one turn of the event loop, or while all connections are in use, go to the database in
 * batches, one batch a connection. That saves both sides a wake-up for every read. A read waits for those before it in its
 * batch, so only short reads share one.
 *
 * Overload: when the oldest read has been waiting too long for a while, more is asked than can be answered, and first in,
 * first out would make every answer late. Until the queue is empty, the newest read is served first, and reads that have
 * waited too long are refused.
 */
import type pg from 'pg';
import { endsConnection, withClient } from '../server/client.ts';
import { DatabaseBusyError } from './errors.ts';
import type { ReadingClient } from './reading-client.ts';
import type { Row, Statement } from './statement.ts';
import { PreparedStatements } from './statement-names.ts';
import {
  EXAMINE_INTERVAL_MS,
  LATEST_WEIGHT,
  MAX_BATCH_MS,
  MAX_BATCH_READS,
  SLOW_BATCH_MS,
  STEADY_SHARE,
} from './tuning.ts';

export interface ReadQueue {
  run<T = Row[]>(statement: Statement<T>): Promise<T>;
  /** How many reads wait, for a connection or behind others in a batch. */
  readonly waiting: number;
}

export interface ReadQueueOptions {
  /** The longest wait for a connection. */
  readonly maxWaitMs: number;
  /** Overload begins when the oldest read has waited this long for `maxWaitMs`; then it is the longest wait. */
  readonly overloadWaitMs: number;
}

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

/** The clients of the pool are of the class `ReadingClient`. */
export function createReadQueue(pool: pg.Pool, options: ReadQueueOptions): ReadQueue {
  /** The oldest first. */
  const queue: QueuedRead[] = [];
  const batches = new Set<Batch>();
  const prepared = new WeakMap<ReadingClient, PreparedStatements>();
  let lateSince: number | undefined;
  let isOverloaded = false;
  /** Moving average of the time that a read takes. */
  let averageMs = 1;
  let isScheduled = false;
  let examination: NodeJS.Timeout | undefined;

  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    // After everything that has arrived by now.
    setImmediate(examine);
  };

  const examine = () => {
    isScheduled = false;
    clearTimeout(examination);
    const now = performance.now();
    shed(now);
    const slow = [...batches].filter(({ startedAt }) => now - startedAt > SLOW_BATCH_MS).length;
    const steady = pool.options.max * Math.max(STEADY_SHARE, averageMs / MAX_BATCH_MS);
    const allowed = Math.min(pool.options.max, Math.ceil(steady) + slow);
    while (queue.length > 0 && batches.size < allowed) {
      void send({ reads: takeBatch(allowed - batches.size), startedAt: now, answered: 0 });
    }
    if (queue.length === 0) isOverloaded = false;
    if (batches.size > 0) examination = setTimeout(examine, EXAMINE_INTERVAL_MS);
  };

  /** Detects overload, and refuses reads that have waited too long. */
  const shed = (now: number) => {
    const { maxWaitMs, overloadWaitMs } = options;
    if (queue[0] && now - queue[0].queuedAt > overloadWaitMs) lateSince ??= now;
    else lateSince = undefined;
    if (lateSince !== undefined && now - lateSince > maxWaitMs) isOverloaded = true;
    const limitMs = isOverloaded ? overloadWaitMs : maxWaitMs;
    const refuse = ({ reject }: QueuedRead) =>
      reject(new DatabaseBusyError('No connection became free in time'));
    while (queue[0] && now - queue[0].queuedAt > limitMs) refuse(queue.shift() as QueuedRead);
    for (const { reads, answered } of batches) {
      for (const read of reads.slice(answered + 1)) if (now - read.queuedAt > maxWaitMs) refuse(read);
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
    run: <T>(statement: Statement<T>) =>
      new Promise<T>((resolve, reject) => {
        queue.push({
          statement,
          queuedAt: performance.now(),
          resolve: resolve as (result: unknown) => void,
          reject,
        });
        schedule();
      }),
    get waiting() {
      let waiting = queue.length;
      for (const { reads, answered } of batches) waiting += Math.max(0, reads.length - answered - 1);
      return waiting;
    },
  };
}
