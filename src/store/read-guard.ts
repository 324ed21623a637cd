/**
 * What stands between those who ask and the connections for reads: a bound on how many may wait, and a short answer
 * while the database is known to be silent. Both end by themselves.
 */
import { isDoneWithin } from './time-limit.ts';

/** More wait for the database than it can answer in good time. */
export class DatabaseBusyError extends Error {}

/** The database was silent when last asked, and still is. */
export class DatabaseAwayError extends Error {}

/** Told of every read: what was asked for, how long it took with its wait for a connection, and how it ended. */
export type ReadObserver = (label: string, seconds: number, outcome: 'ok' | 'failed' | 'refused') => void;

export interface ReadGuard {
  /** Does the work, or refuses at once. Labels come from our code, never from a client. */
  run<T>(label: string, work: () => Promise<T>): Promise<T>;
  observe(observer: ReadObserver): () => void;
}

/** While the database is silent nobody waits longer than this for it. */
const PATIENCE_MS = 250;

export interface ReadGuardOptions {
  /** A question that any database answers at once. */
  readonly probe: () => Promise<unknown>;
  /** How many wait now, and how many may. */
  readonly waiting: () => number;
  readonly maxWaiting: number;
}

export function createReadGuard({ probe: ask, waiting, maxWaiting }: ReadGuardOptions): ReadGuard {
  const observers = new Set<ReadObserver>();
  let isSilent = false;
  let probing: Promise<void> | undefined;

  /** One for all who ask meanwhile. */
  const probe = (): Promise<void> => {
    probing ??= ask()
      .then(() => {
        isSilent = false;
      })
      .finally(() => {
        probing = undefined;
      });
    return probing;
  };

  const admit = async (): Promise<void> => {
    if (waiting() >= maxWaiting) throw new DatabaseBusyError('Too many wait for the database');
    if (!isSilent) return;
    await isDoneWithin(PATIENCE_MS, probe());
    if (isSilent) throw new DatabaseAwayError('The database is silent');
  };

  return {
    async run(label, work) {
      const startedAt = performance.now();
      let outcome: Parameters<ReadObserver>[2] = 'refused';
      try {
        await admit();
        outcome = 'failed';
        const result = await work();
        outcome = 'ok';
        isSilent = false;
        return result;
      } catch (error) {
        if (isSilence(error)) isSilent = true;
        if (!isVainWait(error)) throw error;
        outcome = 'refused';
        throw new DatabaseBusyError('No connection became free in time', { cause: error });
      } finally {
        const seconds = (performance.now() - startedAt) / 1000;
        for (const observer of observers) observer(label, seconds, outcome);
      }
    },
    observe(observer) {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
}

/**
 * Whether the server said nothing at all, for as long as anybody should wait. A refusal is an answer: it comes
 * quickly, and so does the next one. A queue that does not move is the bound's business.
 */
function isSilence(error: unknown): boolean {
  return /due to connection timeout|Query read timeout/.test((error as Error | undefined)?.message ?? '');
}

/** Whether the pool gave up waiting for one of its own connections. */
function isVainWait(error: unknown): boolean {
  return /timeout exceeded when trying to connect/.test((error as Error | undefined)?.message ?? '');
}
