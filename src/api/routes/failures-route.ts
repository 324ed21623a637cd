/** Failed messages by reason, and the reasons of given messages. */
import { attemptJson, attemptsOf, lastAttempt } from '../../domain/attempts.ts';
import { messageIdList } from '../../domain/filters/parameter-values.ts';
import type { Message } from '../../domain/message.ts';
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
import { DEFAULT_WINDOW_DAYS, dayOf, everyDay, laneParameters, windowStart } from './lanes-route.ts';
import { parametersOf } from './query-parameters.ts';

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
