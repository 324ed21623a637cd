/** From whatever was thrown to the answer that a client may see. */
import { ApiError, type ErrorCode, errorCatalogue, type ParameterProblem } from '../domain/errors.ts';
import { DatabaseBusyError } from '../store/reads/reads.ts';
import { isDatabaseUnavailable } from '../store/store.ts';
import { SchemaMovedError } from '../store/writer-guard.ts';

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Worth a line in the log beyond the request's own: whole, where the fault is ours; why, where the database is away. */
  readonly logged: 'error' | 'reason' | 'nothing';
}

/** The database did not answer a question that any database answers, whatever its reason (the cause). */
export class DatabaseSilentError extends Error {}

const RETRY_AFTER_SECONDS = '2';
/** PostgreSQL's code for a statement that was stopped, at our bidding after the time-out. */
const STATEMENT_STOPPED = '57014';

export function errorAnswer(error: unknown, requestId: string): ErrorAnswer {
  if (error instanceof ApiError) {
    const refusal = answer(error.code, error.message, requestId, error.details);
    const mayComeBack = error.status === 503 || error.code === 'TOO_MANY_CONNECTIONS';
    return mayComeBack ? { ...refusal, headers: { 'Retry-After': RETRY_AFTER_SECONDS } } : refusal;
  }
  if ((error instanceof DatabaseSilentError ? error.cause : error) instanceof DatabaseBusyError) {
    // Many at a time: the request's own line in the log has to do.
    return answer(
      'SERVICE_UNAVAILABLE',
      'More requests are waiting than the database can answer in good time. Try again shortly.',
      requestId,
    );
  }
  if ((error instanceof DatabaseSilentError ? error.cause : error) instanceof SchemaMovedError) {
    // The log has said so once, in full.
    return answer(
      'SERVICE_UNAVAILABLE',
      'The database was upgraded to a newer release. This server has to be started again with that release.',
      requestId,
    );
  }
  if ((error as { code?: unknown } | undefined)?.code === STATEMENT_STOPPED) {
    return {
      ...answer(
        'SERVICE_UNAVAILABLE',
        'The database took too long to answer. Narrow the search, or try again shortly.',
        requestId,
      ),
      logged: 'error',
    };
  }
  if (error instanceof DatabaseSilentError || isDatabaseUnavailable(error)) {
    return {
      ...answer(
        'SERVICE_UNAVAILABLE',
        'The database does not answer at the moment. Try again shortly.',
        requestId,
      ),
      logged: 'reason',
    };
  }
  const { statusCode } = error as { statusCode?: number };
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return answer('BAD_REQUEST', 'The request is malformed. Check its path and its headers.', requestId);
  }
  return {
    ...answer(
      'INTERNAL_SERVER_ERROR',
      'The service failed to answer. Report the request id to whoever runs it.',
      requestId,
    ),
    logged: 'error',
  };
}

function answer(
  code: ErrorCode,
  message: string,
  requestId: string,
  details: readonly ParameterProblem[] = [],
): ErrorAnswer {
  const { status } = errorCatalogue[code];
  return {
    status,
    // An error is true for one request only, and a cache would keep some of them by default.
    headers: {
      'Cache-Control': 'no-store',
      ...(status === 503 && { 'Retry-After': RETRY_AFTER_SECONDS }),
    },
    body: JSON.stringify({ error: code, message, requestId, details }),
    logged: 'nothing',
  };
}
