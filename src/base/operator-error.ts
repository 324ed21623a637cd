/**
 * An error that the operator has to fix: one line says what is wrong, one says what to do. The command line prints both,
 * without a stack trace.
 *
 * @example throw new OperatorError('The data folder ./data is read-only.', 'Choose another with --data, or change its permissions.')
 */
export class OperatorError extends Error {
  readonly remedy: string;

  constructor(what: string, remedy: string, options?: { cause?: unknown }) {
    super(what, options);
    this.name = 'OperatorError';
    this.remedy = remedy;
  }
}

/** The result of `work`. Its error becomes one for the operator, if it is not one already. */
export function explained<T>(work: () => T, what: (message: string) => string, remedy: string): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(what((error as Error).message), remedy, { cause: error });
  }
}
