/** Which errors mean that the database is unavailable. */
import { isCoordinatorFailure, isWorkerFailure } from '../cluster/worker-errors.ts';
import { DatabaseAwayError, DatabaseBusyError } from '../reads/reads.ts';

/** Whether an error means that the database is unavailable or overloaded, rather than that a statement was wrong. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseBusyError || error instanceof DatabaseAwayError) return true;
  if (isWorkerFailure(error) || isCoordinatorFailure(error)) return true;
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  // 08: connection exceptions, 53: insufficient resources, 57: operator intervention (shutdown, time-out);
  // 3D000 and 55000: the database does not exist, or accepts no connections.
  if (code !== undefined && /^((08|53|57)...|3D000|55000)$/.test(code)) return true;
  if (code !== undefined && /^E(CONN|PIPE|NOENT|NOTFOUND|HOST|NET|TIMEDOUT|AI_)/.test(code)) return true;
  return /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Cannot use a pool after|Query read timeout/i.test(
    message ?? '',
  );
}
