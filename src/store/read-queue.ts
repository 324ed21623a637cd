/**
 * Reads for answers, on the connections of a pool.
 *
 * Those that come at the same moment, or while all connections are at work, go to the database several at a time, which
 * answers them one after the other: waking each other up for every single one would cost both sides more than most
 * answers do. Whoever is behind others waits for them; so only what is known to be short goes together.
 *
 * Nobody waits for long. Where everybody has waited too long for a while already, more is asked than can be answered, and
 * waiting in line would only make all of them late: from then on until the queue is empty those who came last are served,
 * as if there were no crowd, and whoever is not served soon is turned away.
 */
import type pg from 'pg';
import { endsConnection, type ReadingClient, withClient } from './client.ts';
import { RawQuery } from './raw-rows.ts';
import type { Row, Statement } from './read.ts';
import { DatabaseBusyError } from './read-guard.ts';
import { PreparedStatements } from './statement-names.ts';

export interface ReadQueue {
  run<T = Row[]>(statement: Statement<T>): Promise<T>;
  /** How many wait for a connection, or behind others on one. */
  readonly waiting: number;
}

export interface ReadQueueOptions {
  /** The longest wait for a connection. */
  readonly longestWaitMs: number;
  /** A wait that is too long if everybody has it, for as long as that; and the longest one from then on. */
  readonly lateMs: number;
}

const MOST_TOGETHER = 8;
/** What goes together should take no longer than this. What takes as long alone goes alone, on all connections. */
const LONGEST_TOGETHER_MS = 10;
/** Of all connections, those that are enough for short statements; more would only take turns on the processor. */
const STEADY_SHARE = 0.2;
/** Work that takes longer than this does not count against them. */
const SLOW_MS = 25;
const LOOK_EVERY_MS = 25;
/** How much the latest work says about how long a statement usually takes. */
const WEIGHT_OF_LATEST = 0.2;

interface Read {
  readonly statement: Statement<unknown>;
  readonly askedAt: number;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Batch {
  readonly reads: readonly Read[];
  readonly startedAt: number;
  /** How many of them the database has answered. */
  answered: number;
}

export function createReadQueue(pool: pg.Pool, options: ReadQueueOptions): ReadQueue {
  const queue: Read[] = [];
  const batches = new Set<Batch>();
  const prepared = new WeakMap<pg.PoolClient, PreparedStatements>();
  /** Since when everybody has been late. */
  let lateSince: number | undefined;
  let isCrowded = false;
  let usualMs = 1;
  let isScheduled = false;
  let looking: NodeJS.Timeout | undefined;

  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    // Behind all that has arrived by now.
    setImmediate(work);
  };

  const work = () => {
    isScheduled = false;
    clearTimeout(looking);
    const now = performance.now();
    turnAway(now);
    const slow = [...batches].filter(({ startedAt }) => now - startedAt > SLOW_MS).length;
    const steady = pool.options.max * Math.max(STEADY_SHARE, usualMs / LONGEST_TOGETHER_MS);
    const allowed = Math.min(pool.options.max, Math.ceil(steady) + slow);
    while (queue.length > 0 && batches.size < allowed) {
      void send({ reads: take(allowed - batches.size), startedAt: now, answered: 0 });
    }
    if (queue.length === 0) isCrowded = false;
    if (batches.size > 0) looking = setTimeout(work, LOOK_EVERY_MS);
  };

  /** Whoever has waited in vain. */
  const turnAway = (now: number) => {
    const { longestWaitMs, lateMs } = options;
    if (queue[0] && now - queue[0].askedAt > lateMs) lateSince ??= now;
    else lateSince = undefined;
    if (lateSince !== undefined && now - lateSince > longestWaitMs) isCrowded = true;
    const longest = isCrowded ? lateMs : longestWaitMs;
    const refuse = ({ reject }: Read) => reject(new DatabaseBusyError('No connection became free in time'));
    while (queue[0] && now - queue[0].askedAt > longest) refuse(queue.shift() as Read);
    for (const { reads, answered } of batches) {
      for (const read of reads.slice(answered + 1)) if (now - read.askedAt > longestWaitMs) refuse(read);
    }
  };

  const peek = () => (isCrowded ? queue.at(-1) : queue[0]);
  const pull = () => (isCrowded ? queue.pop() : queue.shift()) as Read;

  /** What goes next on one of so many connections that are free. */
  const take = (free: number): Read[] => {
    const most = Math.min(MOST_TOGETHER, LONGEST_TOGETHER_MS / usualMs, Math.ceil(queue.length / free));
    const first = pull();
    const reads = [first];
    while (reads.length < Math.floor(most) && first.statement.isShort && peek()?.statement.isShort) {
      reads.push(pull());
    }
    return reads;
  };

  const send = async (batch: Batch): Promise<void> => {
    batches.add(batch);
    try {
      await withClient(pool, (client) => ask(client, batch));
    } catch (error) {
      // Most have been told by now; those that were not sent have not.
      for (const { reject } of batch.reads) reject(error);
    } finally {
      batches.delete(batch);
      const ms = (performance.now() - batch.startedAt) / batch.reads.length;
      usualMs += WEIGHT_OF_LATEST * (ms - usualMs);
      schedule();
    }
  };

  const ask = async (client: pg.PoolClient, batch: Batch): Promise<void> => {
    const statements = prepared.get(client) ?? new PreparedStatements();
    prepared.set(client, statements);
    const reading = client as unknown as ReadingClient;
    let fatal: unknown;
    const one = async ({ statement, resolve, reject }: Read) => {
      const { name } = statement;
      try {
        const forgotten = name === undefined ? undefined : statements.use(name);
        if (forgotten !== undefined) reading.closeStatement(forgotten);
        const answer = await answerOf(client, statement);
        if (name !== undefined) statements.confirm(name);
        resolve(answer);
      } catch (error) {
        if (endsConnection(error)) fatal = error;
        reject(error);
      } finally {
        batch.answered++;
      }
    };
    const { reads } = batch;
    if (reads.every(({ statement: { name } }) => name === undefined || statements.has(name))) {
      await reading.together(() => Promise.all(reads.map(one)));
    } else {
      // A statement that fails to be prepared would take those behind it along that rely on it.
      for (const read of reads) await one(read);
    }
    if (fatal !== undefined) throw fatal;
  };

  return {
    run: <T>(statement: Statement<T>) =>
      new Promise<T>((resolve, reject) => {
        queue.push({
          statement,
          askedAt: performance.now(),
          resolve: resolve as (answer: unknown) => void,
          reject,
        });
        schedule();
      }),
    get waiting() {
      let behind = queue.length;
      for (const { reads, answered } of batches) behind += Math.max(0, reads.length - answered - 1);
      return behind;
    },
  };
}

function answerOf(client: pg.PoolClient, statement: Statement<unknown>): Promise<unknown> {
  const { collect } = statement;
  if (!collect) return client.query(statement).then(({ rows }) => rows);
  return new Promise((resolve, reject) => {
    client.query(
      new RawQuery(statement, collect, (error, answer) => (error ? reject(error) : resolve(answer))),
    );
  });
}
