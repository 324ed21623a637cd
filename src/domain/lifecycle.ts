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

/**
 * The status that follows from each status and each kind of evidence. FAILED may become SUCCESS, steps may
 * be skipped, and nothing else goes back. The type makes the table complete; tests prove that the rows
 * agree with each other in every order.
 */
export const lifecycle: Record<Status, Record<Evidence, Status>> = {
  SENT: {
    sent: 'SENT',
    sourceFinalized: 'SOURCE_FINALIZED',
    committed: 'COMMITTED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  SOURCE_FINALIZED: {
    sent: 'SOURCE_FINALIZED',
    sourceFinalized: 'SOURCE_FINALIZED',
    committed: 'COMMITTED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  COMMITTED: {
    sent: 'COMMITTED',
    sourceFinalized: 'COMMITTED',
    committed: 'COMMITTED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  BLESSED: {
    sent: 'BLESSED',
    sourceFinalized: 'BLESSED',
    committed: 'BLESSED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  VERIFYING: {
    sent: 'VERIFYING',
    sourceFinalized: 'VERIFYING',
    committed: 'VERIFYING',
    blessed: 'VERIFYING',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  VERIFIED: {
    sent: 'VERIFIED',
    sourceFinalized: 'VERIFIED',
    committed: 'VERIFIED',
    blessed: 'VERIFIED',
    verifying: 'VERIFIED',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  FAILED: {
    sent: 'FAILED',
    sourceFinalized: 'FAILED',
    committed: 'FAILED',
    blessed: 'FAILED',
    verifying: 'FAILED',
    verified: 'FAILED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  SUCCESS: {
    sent: 'SUCCESS',
    sourceFinalized: 'SUCCESS',
    committed: 'SUCCESS',
    blessed: 'SUCCESS',
    verifying: 'SUCCESS',
    verified: 'SUCCESS',
    failed: 'SUCCESS',
    succeeded: 'SUCCESS',
  },
};

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
