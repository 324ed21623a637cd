/** Turns errors into responses that a client may see. */
import { ApiError, type ErrorCode, errorCatalogue, type ParameterProblem } from '../../domain/errors.ts';
import { DatabaseBusyError } from '../../store/reads/reads.ts';
import { SchemaMovedError } from '../../store/schema/writer-guard.ts';
import { isWorkerFailure } from '../../store/server/database-errors.ts';
import { isDatabaseUnavailable } from '../../store/store.ts';

/** What is logged beside the request: the whole error (a fault of ours), its reason (the database is away), nothing. */
type Logged = 'error' | 'reason' | 'nothing';

/** The database did not answer a trivial query; the cause says why. */
export class DatabaseUnresponsiveError extends Error {}

const RETRY_AFTER_SECONDS = '2';
/** PostgreSQL's code for a cancelled statement: ours are cancelled after their timeout. */
const STATEMENT_CANCELLED = '57014';

export function errorResponse(error: unknown, requestId: string) {
  const response = (
    code: ErrorCode,
    message: string,
    logged: Logged = 'nothing',
    details: readonly ParameterProblem[] = [],
  ) => {
    const { status } = errorCatalogue[code];
    const isTemporary = status === 503 || code === 'TOO_MANY_CONNECTIONS';
    return {
      status,
      // An error is valid for one request only, and caches would keep some statuses by default.
      headers: { 'Cache-Control': 'no-store', ...(isTemporary && { 'Retry-After': RETRY_AFTER_SECONDS }) },
      body: JSON.stringify({ error: code, message, requestId, details }),
      logged,
    };
  };
  const unavailable = (message: string, logged?: Logged) => response('SERVICE_UNAVAILABLE', message, logged);

  if (error instanceof ApiError) return response(error.code, error.message, 'nothing', error.details);
  const isUnresponsive = error instanceof DatabaseUnresponsiveError;
  const cause = isUnresponsive ? error.cause : error;
  // Load shedding rejects many at a time: the line of the request is enough.
  if (cause instanceof DatabaseBusyError)
    return unavailable(
      'The service is overloaded: too many requests wait for the database. Try again shortly.',
    );
  // Logged once, in full, when it was detected.
  if (cause instanceof SchemaMovedError)
    return unavailable(
      'The database was upgraded to a newer release. This server has to be restarted with that release.',
    );
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: number };
  if (code === STATEMENT_CANCELLED)
    return unavailable(
      'The database took too long to answer. Narrow the search, or try again shortly.',
      'error',
    );
  if (isWorkerFailure(cause))
    return unavailable(
      'A worker of the database cluster does not answer at the moment. Try again shortly.',
      'reason',
    );
  if (isUnresponsive || isDatabaseUnavailable(error))
    return unavailable('The database does not answer at the moment. Try again shortly.', 'reason');
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return response('BAD_REQUEST', 'The request is malformed. Check its path and its headers.');
  return response(
    'INTERNAL_SERVER_ERROR',
    'The service failed to answer. Report the request id to its operator.',
    'error',
  );
}
