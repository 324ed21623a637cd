/**
 * The catalogue of errors that HTTP clients get. The list is closed, and a published code keeps its meaning for ever.
 * Errors for the person who runs the program are `OperatorError` in base/operator-error.ts.
 */

interface CatalogueEntry {
  readonly status: 400 | 404 | 405 | 406 | 409 | 414 | 429 | 500 | 503;
  readonly meaning: string;
}

export const errorCatalogue = {
  INVALID_PARAMETERS: {
    status: 400,
    meaning: 'A query parameter is unknown, repeated, empty or malformed. `details` names each one.',
  },
  INVALID_PARAMETER_COMBINATION: {
    status: 400,
    meaning: 'Parameters that exclude each other, such as a cursor and a filter, were sent together.',
  },
  INVALID_CURSOR: {
    status: 400,
    meaning:
      'The cursor was changed or damaged, or was issued by another version of the service or with another database.',
  },
  INVALID_MESSAGE_ID: {
    status: 400,
    meaning: 'The message id in the path is not 0x followed by 64 hexadecimal digits.',
  },
  INSUFFICIENT_DATA: {
    status: 400,
    meaning: 'The lane is known, but too few of its deliveries match for an estimate.',
  },
  BAD_REQUEST: {
    status: 400,
    meaning: 'The request is not well-formed HTTP, or its path has broken percent-encoding.',
  },
  MESSAGE_NOT_FOUND: { status: 404, meaning: 'No message with this id is known here.' },
  EXECUTION_INPUTS_NOT_FOUND: {
    status: 404,
    meaning:
      'The message is known, but not all inputs of a manual execution: `message` says what is missing, and ' +
      'whether it may still arrive.',
  },
  EXECUTION_INPUTS_NOT_READY: {
    status: 409,
    meaning:
      'The message is known, but cannot be executed yet: it is not committed on its destination, as far as that is ' +
      'indexed here.',
  },
  MESSAGE_ALREADY_EXECUTED: {
    status: 409,
    meaning: 'The message has been executed successfully: there is nothing left to execute.',
  },
  MANUAL_EXECUTION_NOT_OPEN: {
    status: 409,
    meaning:
      'The message is committed, but nobody else may execute it yet: it has not failed, and the delay that its off-ramp ' +
      'keeps for the regular execution is not over, as far as is known here.',
  },
  MANUAL_EXECUTION_UNSUPPORTED: {
    status: 404,
    meaning:
      'No transaction can be built here for this message: its destination is not an EVM chain, its version is not known, ' +
      'a token of it needs an attestation that is on no chain, or the message is simulated. `message` says which.',
  },
  DIAGNOSIS_FAILED: {
    status: 503,
    meaning:
      'The execution could not be tried now: the endpoints of the destination did not answer in time, or too many ' +
      'executions are tried for what this server may ask of them. `message` says which.',
  },
  VERIFIER_RESULTS_NOT_FOUND: {
    status: 404,
    meaning: 'The message is known, but is not verified yet, or has no verifiers.',
  },
  LANE_NOT_FOUND: { status: 404, meaning: 'No message between these two networks is known here.' },
  NOT_FOUND: { status: 404, meaning: 'This service has no such path.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    meaning: 'The HTTP surface only reads. `Allow` lists the methods of this path.',
  },
  NOT_ACCEPTABLE: {
    status: 406,
    meaning: 'The Accept header excludes the media type in which this path answers.',
  },
  URI_TOO_LONG: {
    status: 414,
    meaning: 'The request line or the headers are too long.',
  },
  RATE_LIMITED: {
    status: 429,
    meaning:
      'The rate limit of this client is exceeded. `RateLimit-Policy` has the limit; try again after `Retry-After`.',
  },
  TOO_MANY_CONNECTIONS: {
    status: 429,
    meaning:
      'The limit of open streams or waiting requests is reached, for this address or in total; or too many bytes of ' +
      'responses to this address have not been read. Try again after `Retry-After`.',
  },
  INTERNAL_SERVER_ERROR: {
    status: 500,
    meaning: 'The service failed. Its log has the cause under the request id.',
  },
  SERVICE_UNAVAILABLE: {
    status: 503,
    meaning: 'The database cannot be reached, or the service is overloaded. Try again after `Retry-After`.',
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

export interface ParameterProblem {
  readonly parameter: string;
  readonly problem: string;
}

/**
 * An error of the catalogue.
 *
 * @example throw new ApiError('INVALID_CURSOR', 'The cursor is damaged.', [{ parameter: 'cursor', problem: '…' }])
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly details: readonly ParameterProblem[];

  constructor(code: ErrorCode, message: string, details: readonly ParameterProblem[] = []) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return errorCatalogue[this.code].status;
  }
}
