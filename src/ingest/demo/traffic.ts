/**
 * When messages are sent: endless, lazy streams of times.
 *
 * A history of any length is quiet compared with live traffic. Its last minutes are already as busy as what
 * follows, so that whoever looks first finds messages in every status.
 */
import type { Randomness } from './randomness.ts';
import { company, heartbeatLargestShare, heartbeats, rhythm } from './world.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

const longestLead = 6 * minute;
const largestShareOfLead = 0.1;

export interface TrafficOptions {
  readonly startsAt: number;
  readonly historyMessages: number;
  readonly historyDays: number;
  readonly liveMessagesPerMinute: number;
}

export interface Traffic {
  readonly from: number;
  readonly busyFrom: number;
  /** Messages, by whomever, between `from` and `busyFrom`. */
  readonly quietMessages: number;
  readonly busyMessagesPerMillisecond: number;
}

export function planTraffic(options: TrafficOptions): Traffic {
  const { startsAt, historyMessages } = options;
  const from = startsAt - options.historyDays * day;
  const rate = options.liveMessagesPerMinute / minute;
  const lead =
    rate > 0 ? Math.min(longestLead, (historyMessages * largestShareOfLead) / rate, startsAt - from) : 0;
  return {
    from,
    busyFrom: startsAt - lead,
    quietMessages: historyMessages - lead * rate,
    busyMessagesPerMillisecond: rate,
  };
}

/** Messages that one send of the crowd brings along, itself included, on average. */
const companySize =
  meanSize(company.batchChance, company.batchSizes) * meanSize(company.flurryChance, company.flurrySizes);

function meanSize(chance: number, sizes: readonly number[]): number {
  const mean = sizes.reduce((total, size) => total + size, 0) / sizes.length;
  return 1 + chance * (mean - 1);
}

/** Times of the crowd's sends; what comes in company with each of them is already allowed for. */
export function* crowdTimes(traffic: Traffic, randomness: Randomness): Generator<number> {
  const { from, busyFrom } = traffic;
  const quietSpan = busyFrom - from;
  const beats = (rate: number) =>
    heartbeats.reduce((total, beat) => total + 1 / heartbeatInterval(beat.everySeconds, rate), 0);

  const quietRate = quietSpan > 0 ? traffic.quietMessages / quietSpan : 0;
  const quietSends = Math.round(((quietRate - beats(quietRate)) * quietSpan) / companySize);
  for (const position of positions(quietSends, randomness)) {
    yield timeInRhythm(from, busyFrom, position / quietSends);
  }

  const busyRate = traffic.busyMessagesPerMillisecond;
  const busySends = (busyRate - beats(busyRate)) / companySize;
  if (busySends <= 0) return;
  for (const position of positions(Number.POSITIVE_INFINITY, randomness)) {
    yield busyFrom + position / busySends;
  }
}

/** Times of a machine that sends by the clock. */
export function* heartbeatTimes(
  traffic: Traffic,
  everySeconds: number,
  randomness: Randomness,
): Generator<number> {
  const quietRate = traffic.quietMessages / (traffic.busyFrom - traffic.from);
  const quietInterval = heartbeatInterval(everySeconds, quietRate);
  const busyInterval = heartbeatInterval(everySeconds, traffic.busyMessagesPerMillisecond);
  const jitter = () => randomness.between(0.95, 1.05);

  let time = traffic.from + quietInterval * randomness.fraction();
  for (; time < traffic.busyFrom; time += quietInterval * jitter()) yield time;
  time = traffic.busyFrom + busyInterval * randomness.fraction();
  for (; Number.isFinite(time); time += busyInterval * jitter()) yield time;
}

function heartbeatInterval(everySeconds: number, messagesPerMillisecond: number): number {
  return Math.max(everySeconds * 1_000, 1 / (heartbeatLargestShare * messagesPerMillisecond));
}

/**
 * As many random positions between 0 and `count`, in order. Drawn by the handful: each handful is as uneven
 * as chance makes it, and yet the whole has exactly the count that was asked for.
 */
function* positions(count: number, randomness: Randomness): Generator<number> {
  const handful = 16;
  for (let first = 0; first < count; first += handful) {
    const size = Math.min(handful, count - first);
    const drawn = Array.from({ length: size }, () => first + randomness.fraction() * size);
    yield* drawn.sort((a, b) => a - b);
  }
}

/** The time at which `share` of the traffic between two times is over, given that nights are quiet. */
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
  const angle = 2 * Math.PI * (time / day - rhythm.peakHour / 24);
  return time + rhythm.ofAllTraffic * (day / (2 * Math.PI)) * Math.sin(angle);
}

/** How busy a lane is at an hour of the day, 1 on average. */
export function laneRhythm(hour: number, peakHour: number): number {
  return 1 + rhythm.ofOneLane * Math.cos((2 * Math.PI * (hour - peakHour)) / 24);
}
