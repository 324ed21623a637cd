/** Errors of a statement on the coordinator that mean: a worker is away, or went away during the statement. */

/** A worker does not answer, or has not committed yet. The write can be retried. */
export class ClusterAwayError extends Error {}

/**
 * How Citus and libpq word it. A connection that could not be opened has an SQLSTATE of class 08; one that broke during a
 * statement is reported as an internal error, with libpq's text.
 */
const WORKER_FAILURES =
  /connection to the remote node|failed to (COPY to shard|complete COPY on|send \d+ bytes|read result .* from node)|could not (start copy|establish any connections to the node|connect to any active placements|find an available connection|commit transaction for shard)|connection establishment for node|cannot connect to .* to fetch|SSL SYSCALL error|server closed the connection unexpectedly|failure on connection marked as essential|connection not open|the database system is (starting up|in recovery|shutting down|not yet accepting)|could not (receive data from|send data to) server|all placements .* failed|invalid socket/i;

/** Only for errors of a store on a cluster: on one node the same words are about the server itself. */
export function isWorkerFailure(error: unknown): boolean {
  if (error instanceof ClusterAwayError) return true;
  const { severity, message } = (error ?? {}) as { severity?: unknown; message?: unknown };
  return severity !== undefined && WORKER_FAILURES.test(String(message));
}
