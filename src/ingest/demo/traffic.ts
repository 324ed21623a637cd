/**
 * Send times of simulated messages, as an endless lazy generator.
 *
 * The history has a lower rate than live traffic, and a daily rhythm. Its last minutes already have the live rate, so that
 * the first visitor finds messages in every status.
 */
import { bursts } from './parameters.ts';
import type { Randomness } from './randomness.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Live traffic begins at most this long before `startsAt`, with at most this share of the history's messages. */
const MAX_LEAD_MS = 6 * MINUTE_MS;
const MAX_LEAD_SHARE = 0.1;
/** How strongly traffic depends on the hour of the day (UTC): 0 not at all, 1 none at night. */
const RHYTHM = 0.35;
const PEAK_HOUR = 15;

/** Average number of messages for each send of a user, with the batch and the burst that may follow it. */
const MESSAGES_PER_SEND =
  meanSize(bursts.batchChance, bursts.batchSizes) * meanSize(bursts.burstChance, bursts.burstSizes);

function meanSize(chance: number, sizes: readonly number[]): number {
  const mean = sizes.reduce((total, size) => total + size, 0) / sizes.length;
  return 1 + chance * (mean - 1);
}

/**
 * @param from beginning of the history, in milliseconds since 1970
 * @param startsAt its end, where live traffic begins
 */
export function* sendTimes(
  from: number,
  startsAt: number,
  historyMessages: number,
  liveMessagesPerMinute: number,
  randomness: Randomness,
): Generator<number> {
  const liveRate = liveMessagesPerMinute / MINUTE_MS;
  const leadMs =
    liveRate > 0 ? Math.min(MAX_LEAD_MS, (historyMessages * MAX_LEAD_SHARE) / liveRate, startsAt - from) : 0;
  const liveFrom = startsAt - leadMs;
  const quietRate = (historyMessages - leadMs * liveRate) / (liveFrom - from);
  /** Sends that are due, with the fraction that is carried over to the next span. */
  let due = 0;
  for (let at = from; at < liveFrom || liveRate > 0; ) {
    const isLive = at >= liveFrom;
    const spanMs = isLive ? MINUTE_MS : Math.min(HOUR_MS, liveFrom - at);
    const angle = 2 * Math.PI * (at / DAY_MS - PEAK_HOUR / 24);
    const rate = isLive ? liveRate : quietRate * (1 + RHYTHM * Math.cos(angle));
    due += (rate * spanMs) / MESSAGES_PER_SEND;
    const first = at;
    const times = Array.from({ length: Math.floor(due) }, () => first + randomness.fraction() * spanMs);
    due -= times.length;
    yield* times.sort((a, b) => a - b);
    at += spanMs;
  }
}
