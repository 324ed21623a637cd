/**
 * Admission control in front of a read queue: a bound on the queue (load shedding), and a circuit breaker that refuses
 * reads quickly while the database is silent. Both recover without help.
 */
import { isDoneWithin } from '../server/time-limit.ts';
import { DatabaseAwayError, DatabaseBusyError } from './errors.ts';
import { OPEN_CIRCUIT_WAIT_MS } from './tuning.ts';

/** Called after every read, with its label, its duration including the wait for a connection, and its outcome. */
export type ReadObserver = (label: string, seconds: number, outcome: 'ok' | 'failed' | 'refused') => void;

export interface Admission {
  /** Runs the read, or refuses it at once. */
  run<T>(label: string, read: () => Promise<T>): Promise<T>;
  /** Returns the function that removes the observer. */
  observe(observer: ReadObserver): () => void;
}

export interface AdmissionOptions {
  /** A statement that every database answers at once. */
  readonly probe: () => Promise<unknown>;
  /** How many reads wait now, and how many may. */
  readonly waiting: () => number;
  readonly maxWaiting: number;
}

export function createAdmission({ probe: sendProbe, waiting, maxWaiting }: AdmissionOptions): Admission {
  const observers = new Set<ReadObserver>();
  let isCircuitOpen = false;
  let probing: Promise<void> | undefined;

  /** One probe for all reads that come meanwhile. */
  const probe = (): Promise<void> => {
    probing ??= sendProbe()
      .then(() => {
        isCircuitOpen = false;
      })
      .finally(() => {
        probing = undefined;
      });
    return probing;
  };

  const admit = async (): Promise<void> => {
    if (waiting() >= maxWaiting) throw new DatabaseBusyError('Too many reads wait for the database');
    if (!isCircuitOpen) return;
    await isDoneWithin(OPEN_CIRCUIT_WAIT_MS, probe());
    if (isCircuitOpen) throw new DatabaseAwayError('The database does not answer');
  };

  return {
    async run(label, read) {
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
    observe(observer) {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
}

/**
 * Whether the server sent nothing at all until the time limit. A server that refuses does not open the circuit: its answer
 * is quick, and so is the next one. Neither does a long queue, which has its own bound.
 */
function isSilence(error: unknown): boolean {
  return /due to connection timeout|Query read timeout/.test((error as Error | undefined)?.message ?? '');
}

/** Whether the pool gave up waiting for one of its own connections. */
function isPoolTimeout(error: unknown): boolean {
  return /timeout exceeded when trying to connect/.test((error as Error | undefined)?.message ?? '');
}
