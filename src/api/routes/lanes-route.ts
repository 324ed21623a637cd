/**
 * Lanes (volume, delivery times, messages in flight, missing sequence numbers) and totals over all messages. Every write
 * maintains them: nothing is counted at request time.
 */
import { attemptJson, attemptsOf, lastAttempt } from '../../domain/attempts.ts';
import { ApiError } from '../../domain/errors.ts';
import { address, messageIdList } from '../../domain/filters/parameter-values.ts';
import { statuses } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import type { DayCounts } from '../../store/query/lanes.ts';
import { json } from '../server/caching.ts';
import type { Route } from '../server/route.ts';
import { type FailureReport, type GroupedFailure, MAX_FAILURES } from './failure-report.ts';
import {
  type FailureGroup,
  Failures,
  MAX_REASONS,
  MessageReasons,
  REASON_LANES,
  REASON_MESSAGES,
} from './history-schema.ts';
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
function everyDay<T extends { readonly day: string }>(
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

// ---- Failed messages by reason, and the reasons of given messages

const reasonParameters = parametersOf({
  messageId: {
    description: 'Message ids, separated by commas; at most 100.',
    schema: { type: 'string' },
    example: '0x58521b02b1b25a1cbbc6ba2f5ea4dd9a5ef3e3b4d6ba0fd5cc8cf0c3ce860ca4',
    isRequired: true,
    parse: messageIdList,
  },
});

export const failureRoutes: readonly Route[] = [
  {
    path: '/v2/stats/failures',
    operationId: 'getFailures',
    tag: 'Messages',
    summary: 'Failed messages by reason',
    description:
      'Messages that are FAILED now and were sent in the window, grouped by why their last attempt failed: what ' +
      'happened, who can fix it, how many, on which lanes, and the newest of them. Messages whose reasons differ only in values ' +
      '(amounts, addresses, seconds) are one group. `days` has the share of failures over time. Of all failed messages ' +
      `the newest ${MAX_FAILURES.toLocaleString('en')} are grouped; \`failed\` counts all of the window.`,
    queryParameters: laneParameters.declared,
    success: { description: 'The reasons.', schema: Failures },
    async handle({ query }, { store, failures }) {
      const { windowDays = DEFAULT_WINDOW_DAYS, ...ends } = laneParameters.parse(query);
      const now = new Date();
      const firstDay = windowStart(now, windowDays);
      const [report, days] = await Promise.all([
        failures.get(),
        store.failureDays({ ...ends, firstDay, lastDay: dayOf(now) }),
      ]);
      const chosen = report.failures.filter(
        ({ sentAt, sourceChainSelector, destChainSelector }) =>
          sentAt >= firstDay &&
          (ends.sourceChainSelector ?? sourceChainSelector) === sourceChainSelector &&
          (ends.destChainSelector ?? destChainSelector) === destChainSelector,
      );
      const groups = groupsOf(chosen);
      const others = groups.slice(MAX_REASONS);
      // Older messages than those that were read may be of the window too.
      const isTruncated = report.isTruncated && (report.failures.at(-1)?.sentAt ?? '') >= firstDay;
      return json<Failures>({
        failed: days.reduce((sum, { failed }) => sum + failed, 0),
        counted: chosen.length,
        ...(isTruncated && { truncated: true as const }),
        reasons: groups.slice(0, MAX_REASONS).map((group) => groupBody(group, report.lanes)),
        otherReasons:
          others.length === 0
            ? null
            : { reasons: others.length, messages: others.reduce((sum, group) => sum + group.length, 0) },
        days: everyDay(firstDay, windowDays, days, { messages: 0, failed: 0 }),
        asOf: new Date(report.madeAt).toISOString(),
      });
    },
  },
  {
    path: '/v2/messages/reasons',
    operationId: 'getMessageReasons',
    tag: 'Messages',
    summary: 'Why given messages failed',
    description:
      'The reason of the last attempt for each of the given messages, for lists that show it beside the record. Messages ' +
      'that are unknown, or whose last attempt did not fail, are left out.',
    queryParameters: reasonParameters.declared,
    success: { description: 'Their reasons.', schema: MessageReasons },
    async handle({ query }, { store }) {
      const { messageId = [] } = reasonParameters.parse(query);
      const found = await store.latestExecutions(messageId);
      return json<MessageReasons>({
        data: found.flatMap(({ record, facts, removed }) => {
          const message = JSON.parse(record) as Message;
          const last = lastAttempt(attemptsOf(message, facts, removed));
          if (last?.outcome !== 'FAILED') return [];
          return [{ messageId: message.messageId, reason: attemptJson(last).reason }];
        }),
      });
    },
  },
];

type Group = [GroupedFailure, ...GroupedFailure[]];

/** The largest group first; each in the order of the failures. */
function groupsOf(failures: readonly GroupedFailure[]): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const failure of failures) {
    const group = groups.get(failure.group.key);
    if (group) group.push(failure);
    else groups.set(failure.group.key, [failure]);
  }
  return [...groups.values()].sort((a, b) => b.length - a.length);
}

function groupBody(group: Readonly<Group>, lanes: FailureReport['lanes']): FailureGroup {
  const { code, title, fixableBy } = group[0].group;
  const counts = new Map<string, number>();
  for (const failure of group) {
    const key = `${failure.sourceChainSelector},${failure.destChainSelector}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const largest = [...counts].sort(([, a], [, b]) => b - a).slice(0, REASON_LANES);
  return {
    code,
    title,
    fixableBy,
    messages: group.length,
    readyForManualExecution: group.filter((failure) => failure.readyForManualExecution).length,
    lanes: largest.flatMap(([key, messages]) => {
      const networks = lanes.get(key);
      return networks ? [{ ...networks, messages }] : [];
    }),
    laneCount: counts.size,
    newest: group.slice(0, REASON_MESSAGES).map(({ messageId, sentAt, readyForManualExecution }) => ({
      messageId,
      sendTimestamp: sentAt,
      readyForManualExecution,
    })),
  };
}
