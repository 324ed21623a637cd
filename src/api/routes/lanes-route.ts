/**
 * Lanes (volume, delivery times, messages in flight, missing sequence numbers) and totals over all messages. Every write
 * maintains them: nothing is counted at request time.
 */
import { ApiError } from '../../domain/errors.ts';
import { address } from '../../domain/filters/parameter-values.ts';
import { statuses } from '../../domain/lifecycle.ts';
import type { DayCounts } from '../../store/query/lanes.ts';
import { json } from '../server/caching.ts';
import type { Route } from '../server/route.ts';
import { LaneLatency, LaneList, NAMED_RANGES, Stats, TOP_LANES } from './networks-schema.ts';
import { chainSelector, integer, parametersOf } from './query-parameters.ts';

/** A response lists at most this many lanes; `total` is the full number. */
const MAX_LANES = 1_000;

export const DEFAULT_WINDOW_DAYS = 30;
export const MAX_WINDOW_DAYS = 365;

const DAY_MS = 86_400_000;

/** A latency is the median of this many latest deliveries, searched in this many latest messages. */
const LATENCY_SAMPLES = 200;
const LATENCY_CANDIDATES = 5_000;
/** Fewer deliveries are not representative. */
const LATENCY_MINIMUM = 5;
/** Finality is an unsigned 32-bit number of blocks. */
const MAX_BLOCKS = 4_294_967_295;

/** The first UTC day of a window that ends today: `2026-01-31`. */
export function windowStart(now: Date, windowDays: number): string {
  return dayOf(new Date(now.getTime() - (windowDays - 1) * DAY_MS));
}

export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}

/** Every day of a window; days without messages have the counts `none`. */
export function everyDay<T extends { readonly day: string }>(
  first: string,
  windowDays: number,
  counted: readonly T[],
  none: Omit<T, 'day'>,
): T[] {
  const known = new Map(counted.map((day) => [day.day, day]));
  return Array.from({ length: windowDays }, (_, index) => {
    const day = dayOf(new Date(Date.parse(first) + index * DAY_MS));
    return known.get(day) ?? ({ day, ...none } as T);
  });
}

const sourceChainSelector = chainSelector('Chain selector of the source network.', '16015286601757825753');
const destChainSelector = chainSelector('Chain selector of the destination network.', '14767482510784806043');
const windowDays = integer(
  'Length of the window in days, today (UTC) included.',
  1,
  MAX_WINDOW_DAYS,
  DEFAULT_WINDOW_DAYS,
);
export const laneParameters = parametersOf({ sourceChainSelector, destChainSelector, windowDays });
const statsParameters = parametersOf({ windowDays });
const latencyParameters = parametersOf({
  sourceChainSelector: { ...sourceChainSelector, isRequired: true },
  destChainSelector: { ...destChainSelector, isRequired: true },
  numOfBlocks: integer(
    'Only messages that wait for this many block confirmations (their `finality`); 0, or left out: only ' +
      'those that wait for the finality of their chain.',
    0,
    MAX_BLOCKS,
    0,
  ),
  sourceTokenAddress: {
    description: 'Only messages that transfer this token, by its address on the source chain.',
    schema: { type: 'string' },
    example: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
    parse: address,
  },
});

export const laneRoutes: readonly Route[] = [
  {
    path: '/v2/lanes',
    operationId: 'listLanes',
    tag: 'Lanes',
    summary: 'Lanes',
    description:
      'Every lane that has messages, the busiest first: how many, in which status, how long deliveries take, what ' +
      'is overdue, and whether a sequence number is missing. Every write updates these values, so that a response ' +
      `costs the same however many messages there are. At most ${MAX_LANES} lanes; \`total\` is how many match.`,
    queryParameters: laneParameters.declared,
    success: { description: 'The lanes.', schema: LaneList },
    async handle({ query }, { store }) {
      const { windowDays = DEFAULT_WINDOW_DAYS, ...ends } = laneParameters.parse(query);
      const now = new Date();
      const page = await store.lanes({
        ...ends,
        now,
        deliveredSince: windowStart(now, windowDays),
        namedRanges: NAMED_RANGES,
        limit: MAX_LANES,
      });
      return json<LaneList>({
        data: page.lanes.map(({ delivery, onramps, ...lane }) => ({
          ...lane,
          delivery: { windowDays, ...delivery },
          onramps,
        })),
        total: page.total,
      });
    },
  },
  {
    path: '/v2/lanes/latency',
    operationId: 'getLaneLatency',
    tag: 'Lanes',
    summary: 'How long a delivery takes',
    description:
      `An estimate for the next message of a lane: the median delivery time of its latest ${LATENCY_SAMPLES} ` +
      'successful deliveries that match, looked for among its latest ' +
      `${LATENCY_CANDIDATES} messages. At least ${LATENCY_MINIMUM} must match, otherwise the error is ` +
      '`INSUFFICIENT_DATA`.',
    queryParameters: latencyParameters.declared,
    success: { description: 'The estimate.', schema: LaneLatency },
    errors: [404],
    async handle({ query }, { store }) {
      const { numOfBlocks = 0, sourceTokenAddress = null, ...given } = latencyParameters.parse(query);
      const { sourceChainSelector = '', destChainSelector = '' } = given;
      const ends = { sourceChainSelector, destChainSelector };
      const lane = await store.laneIdentity(ends);
      if (!lane) {
        throw new ApiError(
          'LANE_NOT_FOUND',
          `No message from ${sourceChainSelector} to ${destChainSelector} is known here. ` +
            'The lanes that are known are listed at /v2/lanes.',
        );
      }
      const times = await store.recentDeliveries(
        { ...ends, finality: numOfBlocks, sourceTokens: sourceTokenAddress },
        { samples: LATENCY_SAMPLES, candidates: LATENCY_CANDIDATES },
      );
      if (times.length < LATENCY_MINIMUM)
        throw insufficientData(times.length, numOfBlocks, sourceTokenAddress !== null);
      return json<LaneLatency>({ lane, totalMs: median(times) });
    },
  },
];

export const statsRoutes: readonly Route[] = [
  {
    path: '/v2/stats',
    operationId: 'getStats',
    tag: 'Networks',
    summary: 'Totals',
    description:
      'How many messages there are, by status and by the day (UTC) they were sent, and the busiest lanes. Every ' +
      'write updates these values, so that a response costs the same however many messages there are.',
    queryParameters: statsParameters.declared,
    success: { description: 'The totals.', schema: Stats },
    async handle({ query }, { store }) {
      const { windowDays = DEFAULT_WINDOW_DAYS } = statsParameters.parse(query);
      const now = new Date();
      const first = windowStart(now, windowDays);
      const { position, all, topLanes, days } = await store.stats({
        topLanes: TOP_LANES,
        firstDay: first,
        lastDay: dayOf(now),
      });
      return json<Stats>({
        simulated: store.simulated,
        totals: all,
        days: everyDay(first, windowDays, days, { messages: 0, byStatus: noStatuses }),
        topLanes: topLanes.map(({ sourceNetworkInfo, destNetworkInfo, counts }) => ({
          sourceNetworkInfo,
          destNetworkInfo,
          ...counts,
        })),
        position,
      });
    },
  },
];

const noStatuses = Object.fromEntries(statuses.map((status) => [status, 0])) as DayCounts['byStatus'];

/** Rounded to whole milliseconds. */
function median(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  return Math.max(0, Math.round((lower + upper) / 2));
}

function insufficientData(found: number, numOfBlocks: number, isOfToken: boolean): ApiError {
  const finality = numOfBlocks === 0 ? 'the chain’s own finality' : `a finality of ${numOfBlocks} blocks`;
  const conditions = `with ${finality}${isOfToken ? ' and this token' : ''}`;
  const hint =
    numOfBlocks === 0 && !isOfToken
      ? 'Ask again when more has been delivered.'
      : 'Ask with fewer conditions, or when more has been delivered.';
  return new ApiError(
    'INSUFFICIENT_DATA',
    `Among the latest ${LATENCY_CANDIDATES} messages of this lane, ${found === 0 ? 'none' : `only ${found}`} ` +
      `${found > 1 ? 'were' : 'was'} delivered ${conditions}; an estimate needs ${LATENCY_MINIMUM}. ${hint}`,
  );
}
