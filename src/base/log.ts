/** Log lines of long-running parts. The caller that starts a part passes the function that writes them. */

/**
 * - `info`: normal operation.
 * - `warn`: degraded; it is retried and may recover without help.
 * - `error`: does not recover without the operator.
 */
export type LogLineLevel = 'info' | 'warn' | 'error';

export interface LogDetails {
  /** Default: `info`. */
  readonly level?: LogLineLevel;
  /** Name of the network that the line is about. */
  readonly network?: string;
}

export type WriteLog = (line: string, details?: LogDetails) => void;
