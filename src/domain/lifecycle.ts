/**
 * The life of a message, written down once.
 *
 * Evidence only ever moves a message to the right in `statuses`; that order is what makes the fold blind
 * to the order in which facts arrive. Commit lanes (protocol 1.6 and below) and verifier lanes (above)
 * use different statuses between finality and execution and never mix in practice; where hostile or
 * broken input mixes them all the same, the order below still decides.
 */

export const statuses = [
  'SENT',
  'SOURCE_FINALIZED',
  'COMMITTED',
  'BLESSED',
  'VERIFYING',
  'VERIFIED',
  'FAILED',
  'SUCCESS',
] as const;

export type Status = (typeof statuses)[number];

/** What can be learned about a message, each kind bearing on its status. */
export type Evidence =
  | 'sent'
  | 'sourceFinalized'
  | 'committed'
  | 'blessed'
  | 'verifying'
  | 'verified'
  | 'failed'
  | 'succeeded';

/** The status that each kind of evidence shows by itself. */
export const shownStatus: Readonly<Record<Evidence, Status>> = {
  sent: 'SENT',
  sourceFinalized: 'SOURCE_FINALIZED',
  committed: 'COMMITTED',
  blessed: 'BLESSED',
  verifying: 'VERIFYING',
  verified: 'VERIFIED',
  failed: 'FAILED',
  succeeded: 'SUCCESS',
};

/** The status after a piece of evidence: the later of the two. FAILED may become SUCCESS, and nothing goes back. */
export function nextStatus(status: Status, evidence: Evidence): Status {
  const shown = shownStatus[evidence];
  return statusRank(shown) > statusRank(status) ? shown : status;
}

/** How far along a status is; the store keeps this number. */
export function statusRank(status: Status): number {
  return statuses.indexOf(status);
}

/** Lanes above protocol 1.6 are verified by verifiers instead of committed and blessed. */
export function usesVerifiers(version: string | null): boolean {
  if (version === null) return false;
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return major > 1 || (major === 1 && minor > 6);
}
