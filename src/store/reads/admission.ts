/**
 * Admission control in front of a read queue: a bound on the queue (load shedding), and a circuit breaker that rejects
 * reads quickly while the database is silent. Both recover without help.
 */
import { isDoneWithin } from '../server/time-limit.ts';
import { createSharedRun } from './single-flight.ts';

/** How long a read waits for the probe while the circuit is open. Chosen, not measured. */
const OPEN_CIRCUIT_WAIT_MS = 250;

/** Load shedding: more reads wait for the database than it can answer in time. The API answers both errors with 503. */
export class DatabaseBusyError extends Error {}

/** The circuit is open: the database did not answer the last read or the last probe. */
export class DatabaseAwayError extends Error {}

/** Called after every read, with its label, its duration including the wait for a connection, and its outcome. */
export type ReadObserver = (label: string, seconds: number, outcome: 'ok' | 'failed' | 'refused') => void;

/** `ping` sends a statement that every database answers at once; `waiting` counts the reads that wait now. */
export function createAdmission(ping: () => Promise<unknown>, waiting: () => number, maxWaiting: number) {
  const observers = new Set<ReadObserver>();
  let isCircuitOpen = false;

  /** One probe for all reads that come meanwhile. */
  const probe = createSharedRun(async () => {
    await ping();
    isCircuitOpen = false;
  });

  const admit = async (): Promise<void> => {
    if (waiting() >= maxWaiting) throw new DatabaseBusyError('Too many reads wait for the database');
    if (!isCircuitOpen) return;
    await isDoneWithin(OPEN_CIRCUIT_WAIT_MS, probe());
    if (isCircuitOpen) throw new DatabaseAwayError('The database does not answer');
  };

  return {
    /** Runs the read, or rejects it at once. */
    async run<T>(label: string, read: () => Promise<T>): Promise<T> {
      const startedAt = performance.now();
      let outcome: Parameters<ReadObserver>[2] = 'refused';
      try {
        await admit();
        outcome = 'failed';
        const result = await read();
        outcome = 'ok';
        isCircuitOpen = false;
        return result;
      } catch (error) {
        if (isSilence(error)) isCircuitOpen = true;
        if (!isPoolTimeout(error)) throw error;
        outcome = 'refused';
        throw new DatabaseBusyError('No connection became free in time', { cause: error });
      } finally {
        const seconds = (performance.now() - startedAt) / 1000;
        for (const observer of observers) observer(label, seconds, outcome);
      }
    },
    /** Returns the function that removes the observer. */
    observe(observer: ReadObserver): () => void {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
}

/**
 * Whether the server sent nothing at all until the time limit. A server that rejects does not open the circuit: its answer
 * is quick, and so is the next one. Neither does a long queue, which has its own bound.
 */
function isSilence(error: unknown): boolean {
  return /due to connection timeout|Query read timeout/.test((error as Error | undefined)?.message ?? '');
}

/** Whether the pool gave up waiting for one of its own connections. */
function isPoolTimeout(error: unknown): boolean {
  return /timeout exceeded when trying to connect/.test((error as Error | undefined)?.message ?? '');
}
