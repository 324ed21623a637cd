/** Which errors mean that the database is unavailable; among them those that a worker of a cluster is away. */
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

/** A worker does not answer, or has not committed yet. The write can be retried. */
export class ClusterAwayError extends Error {}

/** What Citus says of a connection to a worker that failed, or broke while rows were copied or results read. */
const CONNECTION_FAILURE =
  /connection to the remote node|connection establishment for node|failed to (COPY to shard|complete COPY on|send \d+ bytes|read result .* from node)|could not (start copy|establish any connections to the node|connect to any active placements|find an available connection|commit transaction for shard)|cannot connect to .* to fetch/;
/** Citus adds this context to an error that a worker answered with, or that libpq reported about it. */
const WORKER_CONTEXT = /while executing command on \S+:\d+/;
/** A connection that broke during a statement is an internal error with libpq's text. */
const BROKEN_CONNECTION =
  /SSL SYSCALL error|server closed the connection unexpectedly|failure on connection marked as essential|connection not open|could not (receive data from|send data to) server|all placements .* failed|invalid socket/i;
/**
 * COPY repeats the words of a worker's error without its code, as an internal error. These are the words of PostgreSQL when it
 * shuts down, crashes or starts (57P), or when somebody or a time limit ends a statement (57014).
 */
const ENDED_COPY =
  /^(terminating connection (due to|because of)|canceling statement due to (statement timeout|user request)$|the database system is )/;
const INTERNAL_ERROR = 'XX000';

/** Whether an error of the coordinator means that a worker is away. Errors about the coordinator itself have other words. */
export function isWorkerFailure(error: unknown): boolean {
  if (error instanceof ClusterAwayError) return true;
  const { severity, message, code, where } = (error ?? {}) as Readonly<Record<string, unknown>>;
  if (severity === undefined) return false;
  if (CONNECTION_FAILURE.test(String(message)) || BROKEN_CONNECTION.test(String(message))) return true;
  if (code === INTERNAL_ERROR && ENDED_COPY.test(String(message))) return true;
  // 08: connection exceptions, 57P: the worker shuts down, crashed or starts.
  return WORKER_CONTEXT.test(String(where)) && /^(08...|57P0[1-5])$/.test(String(code));
}

/**
 * Whether a session reports that the coordinator was killed under it. Citus calls that an internal error, where PostgreSQL has the code
 * of a shutdown.
 */
function isCoordinatorFailure(error: unknown): boolean {
  const { severity, message } = (error ?? {}) as Readonly<Record<string, unknown>>;
  return severity !== undefined && /^postmaster was shut down/.test(String(message));
}
