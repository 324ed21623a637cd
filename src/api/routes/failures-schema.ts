/** Schemas of failed messages by reason. */
import Type from 'typebox';
import { MAX_MESSAGE_IDS } from '../../domain/filters/parameter-values.ts';
import { fixableBy, Reason } from './history-schema.ts';
import {
  count,
  dateTime,
  list,
  messageId,
  named,
  orNull,
  present,
  type ResponseBody,
  text,
} from './response-schema.ts';

export const MAX_REASONS = 50;
export const REASON_LANES = 5;
export const REASON_MESSAGES = 5;

const FailureGroup = Type.Object({
  code: text(
    'As in the reason of an attempt; `not-known` for messages without return data: imported, mirrored, or of a ' +
      'chain that does not report it.',
  ),
  title: text(
    'What happened, without the values of a single message. It may quote untrusted contracts: show ' +
      'it as text.',
  ),
  fixableBy,
  messages: count('Messages that failed for this reason.'),
  readyForManualExecution: count('How many of them can be executed manually.'),
  lanes: list(
    Type.Object({
      sourceNetworkInfo: named('NetworkInfo'),
      destNetworkInfo: named('NetworkInfo'),
      messages: count('Messages of this reason on the lane.'),
    }),
    `The lanes with the most of them, at most ${REASON_LANES}.`,
  ),
  laneCount: count('On how many lanes in all.'),
  newest: list(
    Type.Object({
      messageId: messageId,
      sendTimestamp: dateTime('When it was sent.'),
      readyForManualExecution: Type.Boolean(),
    }),
    `The newest of them, at most ${REASON_MESSAGES}.`,
  ),
});

export const Failures = Type.Object({
  failed: count('Messages sent in the window that are FAILED now.'),
  counted: count('How many of them are grouped by reason here.'),
  truncated: present('Only present when there were too many failed messages: the newest are counted.'),
  reasons: list(FailureGroup, `The reasons with the most messages first, at most ${MAX_REASONS}.`),
  otherReasons: orNull(
    Type.Object({ reasons: count('Further reasons.'), messages: count('Their messages.') }),
    'What is not listed; null where everything is.',
  ),
  days: list(
    Type.Object({
      day: Type.String({ format: 'date', description: 'UTC.' }),
      messages: count('Messages sent on this day.'),
      failed: count('Those of them that are FAILED now.'),
    }),
    'Every day of the window, oldest first; today is the last.',
  ),
  asOf: dateTime('When the reasons were grouped: some seconds ago at most, while messages change.'),
});

export const MessageReasons = Type.Object({
  data: list(
    Type.Object({
      messageId: messageId,
      reason: orNull(Reason, 'Why its last attempt failed; null where that is not known.'),
    }),
    `Those of the given messages (at most ${MAX_MESSAGE_IDS}) whose last attempt failed, in the given order.`,
  ),
});

export type FailureGroup = ResponseBody<typeof FailureGroup>;
export type Failures = ResponseBody<typeof Failures>;
export type MessageReasons = ResponseBody<typeof MessageReasons>;
