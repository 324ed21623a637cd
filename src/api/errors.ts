/** From whatever was thrown to the answer that a client may see. */
import { ApiError, type ErrorCode, errorCatalogue, type ParameterProblem } from '../domain/errors.ts';
import { isDatabaseUnavailable } from '../store/store.ts';

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Worth a line in the log beyond the request's own: the fault is ours. */
  readonly isFault: boolean;
}

/** The database did not answer a question that any database answers, whatever its reason (the cause). */
export class DatabaseSilentError extends Error {}

const RETRY_AFTER_SECONDS = '2';

export function errorAnswer(error: unknown, requestId: string): ErrorAnswer {
  if (error instanceof ApiError) return answer(error.code, error.message, requestId, error.details);
  if (error instanceof DatabaseSilentError || isDatabaseUnavailable(error)) {
    return {
      ...answer(
        'SERVICE_UNAVAILABLE',
        'The database does not answer at the moment. Try again shortly.',
        requestId,
      ),
      headers: { 'Retry-After': RETRY_AFTER_SECONDS },
      isFault: true,
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
    isFault: true,
  };
}

function answer(
  code: ErrorCode,
  message: string,
  requestId: string,
  details: readonly ParameterProblem[] = [],
): ErrorAnswer {
  return {
    status: errorCatalogue[code].status,
    headers: {},
    body: JSON.stringify({ error: code, message, requestId, details }),
    isFault: false,
  };
}
