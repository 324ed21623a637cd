/** Notices: what long-running parts report to the operator. Whoever starts them decides where the lines go. */

/**
 * - `info`: normal life.
 * - `warn`: degraded; it is retried and may pass by itself.
 * - `error`: does not pass by itself; the operator has to act.
 */
export type NoticeLevel = 'info' | 'warn' | 'error';

export interface NoticeDetails {
  /** `info` where it is left out. */
  readonly level?: NoticeLevel;
  /** Name of the network that it is about. */
  readonly network?: string;
}

export type Notice = (line: string, details?: NoticeDetails) => void;
