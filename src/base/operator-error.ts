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
