/** The steps of a message, and the forecast of its delivery. */

import type { Delivery, Stage } from '../../../src/client/api-types.ts';
import { type Status, statusRank, usesVerifiers } from '../../../src/domain/lifecycle.ts';
import type { Message } from '../../../src/domain/message.ts';
import { duration } from '../../../src/text/format.ts';

export interface Step {
  readonly status: Status;
  readonly state: 'reached' | 'current' | 'ahead';
  readonly stage: Stage | null;
  /** Milliseconds since the step before; null where a time is not known. */
  readonly tookMs: number | null;
}

const committedWay: readonly Status[] = ['SENT', 'SOURCE_FINALIZED', 'COMMITTED', 'BLESSED', 'SUCCESS'];
const verifiedWay: readonly Status[] = ['SENT', 'SOURCE_FINALIZED', 'VERIFYING', 'VERIFIED', 'SUCCESS'];

/** The stages that were reached, then those that are still to come; stages that were skipped are left out. */
export function stepsOf({ version, status }: Pick<Message, 'version' | 'status'>, stages: readonly Stage[]) {
  const reached = stages.map(
    (stage, index): Step => ({
      status: stage.status,
      state: index === stages.length - 1 && status !== 'SUCCESS' ? 'current' : 'reached',
      stage,
      tookMs: stages[index - 1]?.dwellMs ?? null,
    }),
  );
  const way = usesVerifiers(version) ? verifiedWay : committedWay;
  const ahead = way
    .filter((next) => statusRank(next) > statusRank(status))
    .map((next): Step => ({ status: next, state: 'ahead', stage: null, tookMs: null }));
  return [...reached, ...ahead];
}

export interface Forecast {
  readonly kind: 'on-time' | 'soon' | 'slow' | 'overdue';
  readonly words: string;
}

/** Forecast from the lane's delivery times for a message in flight; null where the lane has no deliveries. */
export function forecast(elapsedMs: number, { p50Ms, p90Ms, p99Ms }: Delivery): Forecast | null {
  if (p50Ms === null || p90Ms === null || p99Ms === null) return null;
  const [usual, most, nearlyAll] = [duration(p50Ms), duration(p90Ms), duration(p99Ms)];
  if (elapsedMs <= p50Ms) {
    const left = duration(p50Ms - elapsedMs);
    return { kind: 'on-time', words: `About ${left} to go; half of this lane’s messages take ${usual}.` };
  }
  if (elapsedMs <= p90Ms) {
    const left = duration(p90Ms - elapsedMs);
    const words = `Any moment now, within ${left} as a rule; 9 of 10 take less than ${most}.`;
    return { kind: 'soon', words };
  }
  if (elapsedMs <= p99Ms) {
    const words = `Slower than 9 of 10 on this lane, which take less than ${most}. That happens; overdue after ${nearlyAll}.`;
    return { kind: 'slow', words };
  }
  return { kind: 'overdue', words: `Overdue: 99 of 100 messages on this lane take less than ${nearlyAll}.` };
}
