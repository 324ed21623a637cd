/** Turns errors into responses that a client may see. */
import { ApiError, type ErrorCode, errorCatalogue, type ParameterProblem } from '../../domain/errors.ts';
import { isWorkerFailure } from '../../store/cluster/worker-errors.ts';
import { DatabaseBusyError } from '../../store/reads/reads.ts';
import { SchemaMovedError } from '../../store/schema/writer-guard.ts';
import { isDatabaseUnavailable } from '../../store/store.ts';

export interface ErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What is logged beside the request: the whole error (a fault of ours), its reason (the database is away), nothing. */
  readonly logged: 'error' | 'reason' | 'nothing';
}

/** The database did not answer a trivial query; the cause says why. */
export class DatabaseUnresponsiveError extends Error {}

const RETRY_AFTER_SECONDS = '2';
/** PostgreSQL's code for a cancelled statement: ours are cancelled after their timeout. */
const STATEMENT_CANCELLED = '57014';

export function errorResponse(error: unknown, requestId: string): ErrorResponse {
  if (error instanceof ApiError) {
    const rejection = response(error.code, error.message, requestId, error.details);
    const isTemporary = error.status === 503 || error.code === 'TOO_MANY_CONNECTIONS';
    return isTemporary ? { ...rejection, headers: { 'Retry-After': RETRY_AFTER_SECONDS } } : rejection;
  }
  if ((error instanceof DatabaseUnresponsiveError ? error.cause : error) instanceof DatabaseBusyError) {
    // Load shedding rejects many at a time: the line of the request is enough.
    return response(
      'SERVICE_UNAVAILABLE',
      'The service is overloaded: too many requests wait for the database. Try again shortly.',
      requestId,
    );
  }
  if ((error instanceof DatabaseUnresponsiveError ? error.cause : error) instanceof SchemaMovedError) {
    // Logged once, in full, when it was noticed.
    return response(
      'SERVICE_UNAVAILABLE',
      'The database was upgraded to a newer release. This server has to be restarted with that release.',
      requestId,
    );
  }
  if ((error as { code?: unknown } | undefined)?.code === STATEMENT_CANCELLED) {
    return {
      ...response(
        'SERVICE_UNAVAILABLE',
        'The database took too long to answer. Narrow the search, or try again shortly.',
        requestId,
      ),
      logged: 'error',
    };
  }
  if (isWorkerFailure(error instanceof DatabaseUnresponsiveError ? error.cause : error)) {
    return {
      ...response(
        'SERVICE_UNAVAILABLE',
        'A worker of the database cluster does not answer at the moment. Try again shortly.',
        requestId,
      ),
      logged: 'reason',
    };
  }
  if (error instanceof DatabaseUnresponsiveError || isDatabaseUnavailable(error)) {
    return {
      ...response(
        'SERVICE_UNAVAILABLE',
        'The database does not answer at the moment. Try again shortly.',
        requestId,
      ),
      logged: 'reason',
    };
  }
  const { statusCode } = error as { statusCode?: number };
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return response('BAD_REQUEST', 'The request is malformed. Check its path and its headers.', requestId);
  }
  return {
    ...response(
      'INTERNAL_SERVER_ERROR',
      'The service failed to answer. Report the request id to its operator.',
      requestId,
    ),
    logged: 'error',
  };
}

function response(
  code: ErrorCode,
  message: string,
  requestId: string,
  details: readonly ParameterProblem[] = [],
): ErrorResponse {
  const { status } = errorCatalogue[code];
  return {
    status,
    // An error is valid for one request only, and caches would keep some statuses by default.
    headers: {
      'Cache-Control': 'no-store',
      ...(status === 503 && { 'Retry-After': RETRY_AFTER_SECONDS }),
    },
    body: JSON.stringify({ error: code, message, requestId, details }),
    logged: 'nothing',
  };
}
