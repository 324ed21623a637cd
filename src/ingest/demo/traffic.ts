/**
 * Send times of simulated messages, as endless lazy generators.
 *
 * The history has a lower rate than live traffic. Its last minutes already have the live rate, so that the first visitor
 * finds messages in every status.
 */

import { bursts, MAX_PERIODIC_SHARE, periodicSenders, rhythm } from './parameters.ts';
import type { Randomness } from './randomness.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Live traffic begins at most this long before `startsAt`, with at most this share of the history's messages. */
const MAX_LEAD_MS = 6 * MINUTE_MS;
const MAX_LEAD_SHARE = 0.1;

export interface TrafficOptions {
  readonly startsAt: number;
  readonly historyMessages: number;
  readonly historyDays: number;
  readonly liveMessagesPerMinute: number;
}

export type Traffic = Readonly<ReturnType<typeof planTraffic>>;

export function planTraffic(options: TrafficOptions) {
  const { startsAt, historyMessages } = options;
  const from = startsAt - options.historyDays * DAY_MS;
  const rate = options.liveMessagesPerMinute / MINUTE_MS;
  const leadMs =
    rate > 0 ? Math.min(MAX_LEAD_MS, (historyMessages * MAX_LEAD_SHARE) / rate, startsAt - from) : 0;
  return {
    from,
    busyFrom: startsAt - leadMs,
    /** All messages between `from` and `busyFrom`. */
    quietMessages: historyMessages - leadMs * rate,
    busyMessagesPerMs: rate,
  };
}

/** Average number of messages for each send of a user, with its batch and its burst. */
const MESSAGES_PER_SEND =
  meanSize(bursts.batchChance, bursts.batchSizes) * meanSize(bursts.burstChance, bursts.burstSizes);

function meanSize(chance: number, sizes: readonly number[]): number {
  const mean = sizes.reduce((total, size) => total + size, 0) / sizes.length;
  return 1 + chance * (mean - 1);
}

/** Send times of users. The rate accounts for the batches and bursts that follow each of them. */
export function* userTimes(traffic: Traffic, randomness: Randomness): Generator<number> {
  const { from, busyFrom } = traffic;
  const quietSpan = busyFrom - from;
  const periodicRate = (rate: number) =>
    periodicSenders.reduce(
      (total, sender) => total + 1 / periodicIntervalMs(sender.intervalSeconds, rate),
      0,
    );

  const quietRate = quietSpan > 0 ? traffic.quietMessages / quietSpan : 0;
  const quietSends = Math.round(((quietRate - periodicRate(quietRate)) * quietSpan) / MESSAGES_PER_SEND);
  for (const position of positions(quietSends, randomness)) {
    yield timeInRhythm(from, busyFrom, position / quietSends);
  }

  const busyRate = traffic.busyMessagesPerMs;
  const busySends = (busyRate - periodicRate(busyRate)) / MESSAGES_PER_SEND;
  if (busySends <= 0) return;
  for (const position of positions(Number.POSITIVE_INFINITY, randomness)) {
    yield busyFrom + position / busySends;
  }
}

/** Send times of a machine that sends periodically. */
export function* periodicTimes(
  traffic: Traffic,
  intervalSeconds: number,
  randomness: Randomness,
): Generator<number> {
  const quietRate = traffic.quietMessages / (traffic.busyFrom - traffic.from);
  const quietInterval = periodicIntervalMs(intervalSeconds, quietRate);
  const busyInterval = periodicIntervalMs(intervalSeconds, traffic.busyMessagesPerMs);
  const jitter = () => randomness.between(0.95, 1.05);

  let time = traffic.from + quietInterval * randomness.fraction();
  for (; time < traffic.busyFrom; time += quietInterval * jitter()) yield time;
  time = traffic.busyFrom + busyInterval * randomness.fraction();
  for (; Number.isFinite(time); time += busyInterval * jitter()) yield time;
}

function periodicIntervalMs(intervalSeconds: number, messagesPerMs: number): number {
  return Math.max(intervalSeconds * 1_000, 1 / (MAX_PERIODIC_SHARE * messagesPerMs));
}

/**
 * As many random positions between 0 and `count`, in order. Drawn in groups: each group is randomly distributed, and the
 * total is exactly `count`.
 */
function* positions(count: number, randomness: Randomness): Generator<number> {
  const groupSize = 16;
  for (let first = 0; first < count; first += groupSize) {
    const size = Math.min(groupSize, count - first);
    const drawn = Array.from({ length: size }, () => first + randomness.fraction() * size);
    yield* drawn.sort((a, b) => a - b);
  }
}

/** The time by which `share` of the traffic between two times was sent, given the daily rhythm. */
function timeInRhythm(from: number, to: number, share: number): number {
  const target = trafficUntil(from) + share * (trafficUntil(to) - trafficUntil(from));
  let low = from;
  let high = to;
  while (high - low > 1) {
    const middle = (low + high) / 2;
    if (trafficUntil(middle) < target) low = middle;
    else high = middle;
  }
  return Math.round(low);
}

/** The integral of 1 + strength × cos(time of day after the peak). */
function trafficUntil(time: number): number {
  const angle = 2 * Math.PI * (time / DAY_MS - rhythm.peakHour / 24);
  return time + rhythm.ofAllTraffic * (DAY_MS / (2 * Math.PI)) * Math.sin(angle);
}

/** How busy a lane is at an hour of the day, 1 on average. */
export function laneRhythm(hour: number, peakHour: number): number {
  return 1 + rhythm.ofOneLane * Math.cos((2 * Math.PI * (hour - peakHour)) / 24);
}
