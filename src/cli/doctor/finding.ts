/** A result of one of the checks of `lanescan doctor`. */
import { OperatorError } from '../../base/operator-error.ts';
import { printable } from '../../text/format.ts';

export interface Finding {
  /** An `error` must be fixed. */
  readonly severity: 'ok' | 'warning' | 'error';
  readonly what: string;
  readonly remedy?: string;
}

const finding = (severity: Finding['severity']) => (what: string, remedy?: string) =>
  ({ severity, what, ...(remedy !== undefined && { remedy }) }) satisfies Finding;
export const ok = finding('ok');
export const warning = finding('warning');
export const failure = finding('error');

/** An operator error as a finding. Any other error is thrown again. */
export function problemFinding(subject: string, error: unknown): Finding {
  if (!(error instanceof OperatorError)) throw error;
  return failure(`${subject}: ${printable(error.message)}`, printable(error.remedy));
}
