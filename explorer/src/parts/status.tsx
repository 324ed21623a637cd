/** A status as a badge: colour, icon and word, always together. */
import type { ReactNode } from 'react';
import type { Status } from '../../../src/domain/lifecycle.ts';
import { statusWords } from '../../../src/text/message-words.ts';

export type Tone = 'waiting' | 'moving' | 'verified' | 'done' | 'failed';

export const statusTones: Record<Status, Tone> = {
  SENT: 'waiting',
  SOURCE_FINALIZED: 'moving',
  COMMITTED: 'moving',
  BLESSED: 'verified',
  VERIFYING: 'moving',
  VERIFIED: 'verified',
  FAILED: 'failed',
  SUCCESS: 'done',
};

/** The filled share of the disc, for a message in flight. */
const shares: Partial<Record<Status, number>> = {
  SOURCE_FINALIZED: 0.25,
  COMMITTED: 0.5,
  VERIFYING: 0.5,
  BLESSED: 0.75,
  VERIFIED: 0.75,
};

export function StatusIcon({ status }: { readonly status: Status }) {
  return (
    <svg className={`status-icon tone-${statusTones[status]}`} viewBox="0 0 16 16" aria-hidden="true">
      {statusShape(status)}
    </svg>
  );
}

function statusShape(status: Status): ReactNode {
  if (status === 'SUCCESS') {
    return (
      <>
        <circle cx="8" cy="8" r="7" fill="currentColor" />
        <path className="status-sign" d="m4.9 8.2 2.2 2.2 4-4.6" />
      </>
    );
  }
  if (status === 'FAILED') {
    return (
      <>
        <path
          d="M8 1.2c.5 0 .9.2 1.1.6l6 10.7c.5.9-.1 2-1.1 2H2c-1 0-1.6-1.1-1.1-2l6-10.7c.2-.4.6-.6 1.1-.6Z"
          fill="currentColor"
        />
        <path className="status-sign" d="M8 5.6v3.6M8 11.7v.1" />
      </>
    );
  }
  const share = shares[status] ?? 0;
  return (
    <>
      <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.6" />
      {share > 0 && <path d={wedge(share)} fill="currentColor" />}
    </>
  );
}

/** A sector that begins at 12 o'clock, clockwise. */
function wedge(share: number): string {
  const angle = share * 2 * Math.PI;
  const [x, y] = [8 + 4 * Math.sin(angle), 8 - 4 * Math.cos(angle)];
  return `M8 8V4A4 4 0 ${share > 0.5 ? 1 : 0} 1 ${x} ${y}Z`;
}

export function StatusBadge({ status }: { readonly status: Status }) {
  return (
    <span className={`status tone-${statusTones[status]}`}>
      <StatusIcon status={status} />
      {statusWords[status]}
    </span>
  );
}
