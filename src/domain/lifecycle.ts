/**
 * The lifecycle of a message.
 *
 * Evidence only moves a message to the right in `statuses`, which makes the fold independent of the order in which facts
 * arrive. Commit lanes (protocol 1.6 and below) and verifier lanes (above) have different statuses between finality and
 * execution, and do not mix in practice; where invalid input mixes them, the order below decides.
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

/** The status that each kind of evidence proves by itself. */
export const shownStatus = {
  sent: 'SENT',
  sourceFinalized: 'SOURCE_FINALIZED',
  committed: 'COMMITTED',
  blessed: 'BLESSED',
  verifying: 'VERIFYING',
  verified: 'VERIFIED',
  failed: 'FAILED',
  succeeded: 'SUCCESS',
} as const satisfies Record<string, Status>;

export type Evidence = keyof typeof shownStatus;

/** The status after a piece of evidence: the later of the two. FAILED may become SUCCESS; no status goes back. */
export function nextStatus(status: Status, evidence: Evidence): Status {
  const shown = shownStatus[evidence];
  return statusRank(shown) > statusRank(status) ? shown : status;
}

/** The position of a status in the lifecycle; the store keeps this number. */
export function statusRank(status: Status): number {
  return statuses.indexOf(status);
}

/** Lanes above protocol 1.6 are verified by verifiers instead of committed and blessed. */
export function usesVerifiers(version: string | null): boolean {
  if (version === null) return false;
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return major > 1 || (major === 1 && minor > 6);
}
