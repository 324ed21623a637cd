/** Schemas of the history of a message (attempts and why they failed, stages, changes), and of failed messages by reason. */
import Type from 'typebox';
import { MAX_MESSAGE_IDS } from '../../domain/filters/parameter-values.ts';
import { MAX_ATTEMPTS, MAX_HISTORY_ROWS } from '../../domain/filters/query.ts';
import { statuses } from '../../domain/lifecycle.ts';
import type { Message, MessageSummary } from '../../domain/message.ts';
import {
  count,
  dateTime,
  daysOfWindow,
  decimal,
  flag,
  laneNetworks,
  list,
  messageId,
  oneOf,
  orNull,
  present,
  type ResponseBody,
  text,
} from './response-schema.ts';

const DecodedError = Type.Object({
  name: text('Name of the error, as in the contract: `TokenRateLimitReached`.'),
  arguments: Type.Array(
    Type.Object({
      name: orNull(Type.String(), 'Null where the signature has no name for it.'),
      value: text('Numbers in decimal, addresses and bytes in hexadecimal.'),
    }),
  ),
  cut: flag('The off-ramp truncated its data: arguments may be missing or incomplete.'),
  namedBy: oneOf(
    ['lanescan', 'operator', 'program'],
    'Source of the name: the built-in tables of Lanescan, an ABI added by the operator of this server, or the log of a ' +
      'program on Solana.',
  ),
});

const fixers = ['anyone', 'sender', 'receiver-owner', 'pool-owner', 'network', 'nobody', 'unknown'] as const;

export const fixableBy = oneOf(fixers, 'Who can fix it. `anyone`: a manual execution is all it takes.');

export const Reason = Type.Object({
  code: text(
    'For grouping: the name of the innermost error, or `out-of-gas`, `no-reason` (reverted without data) or ' +
      '`unknown-error`. On Solana also `out-of-compute`, `program-error` (a number without a name) and ' +
      '`transaction-failed`. Any contract can use the name of any error: act on it together with `saidBy`.',
  ),
  saidBy: oneOf(
    ['ccip', 'receiver', 'token-pool', 'other-instruction', 'unknown'],
    'Where the error comes from: contracts of CCIP, the receiver, the token or its pool, or on Solana another instruction of the ' +
      'transaction. `unknown`: the log was truncated, or the off-ramp of 2.0 passed on the error of a contract that it ' +
      'called. Only `ccip` speaks for the lane.',
  ),
  text: text(
    'What happened, in a sentence that says whose claim it is. It may quote untrusted contracts: show it as text.',
  ),
  fixableBy,
  advice: text('What to do.'),
  error: orNull(DecodedError, 'The innermost error; null where it is empty or not known.'),
  wrappers: list(DecodedError, 'The errors around it, from the outside in.'),
  data: text('The data of the innermost error, shortened where it is long.'),
});

export const Attempt = Type.Object({
  outcome: oneOf(['SUCCESS', 'FAILED'], 'Result of the attempt.'),
  at: orNull(Type.String({ format: 'date-time' }), 'Time of the block; null where it is unknown.'),
  network: Type.String({ pattern: '^[0-9]+$', description: 'Chain selector of the destination.' }),
  networkName: orNull(Type.String(), 'Name of that network; null where it is unknown.'),
  blockNumber: orNull(Type.Integer({ minimum: 0 }), 'Null where it is unknown.'),
  blockHash: orNull(Type.String(), 'Null where it is unknown.'),
  transactionHash: orNull(Type.String(), 'Null where it is unknown.'),
  logIndex: orNull(Type.Integer({ minimum: 0 }), 'Null where it is unknown.'),
  caller: orNull(
    Type.String(),
    'The account that sent the transaction; null where it was not read. It is read for failed attempts, and for all of 2.0.',
  ),
  gasUsed: orNull(
    decimal('Gas of the whole execution; on Solana the compute units of the transaction.'),
    'Null where the off-ramp does not say (1.5, 2.0).',
  ),
  returnData: orNull(
    Type.String({ pattern: '^0x([a-f0-9]{2})*$' }),
    'What the execution returned, the first 4,096 bytes of it; null where it is unknown, and on Solana.',
  ),
  transactionError: orNull(
    Type.String(),
    'The error of a failed transaction on Solana, as JSON: `{"InstructionError":[1,{"Custom":6001}]}`. Null elsewhere.',
  ),
  logs: orNull(
    Type.Array(Type.String()),
    'The last log lines of a failed transaction on Solana, shortened. They are untrusted text of programs: ' +
      'show it as text. Null elsewhere.',
  ),
  reason: orNull(Reason, 'Why it failed; null for a success, and where nothing is known of it.'),
  removedAt: orNull(
    Type.String({ format: 'date-time' }),
    'When a reorganisation removed its block: the attempt no longer counts. Null for an attempt that still counts.',
  ),
});

export const Attempts = Type.Object({
  messageId: messageId,
  attempts: list(
    Attempt,
    'In the order of the chain. A message that was imported has at most the one that its record names, and what the ' +
      'record does not say is null.',
  ),
  truncated: present(
    `Only present when there were more than ${MAX_ATTEMPTS} attempts: these are the latest.`,
  ),
});

export type Reason = ResponseBody<typeof Reason>;
export type Attempt = ResponseBody<typeof Attempt>;
export type Attempts = ResponseBody<typeof Attempts>;

const status = (description: string) => oneOf(statuses, description);
const time = () => Type.String({ format: 'date-time' });

const place = {
  network: orNull(
    Type.String({ pattern: '^[0-9]+$' }),
    'Chain selector of the network that reported it; null where it is unknown.',
  ),
  networkName: orNull(Type.String(), 'Name of that network; null where it is unknown.'),
  blockNumber: orNull(Type.Integer({ minimum: 0 }), 'Block that reported it; null where it is unknown.'),
  transactionHash: orNull(
    Type.String(),
    'Transaction that reported it; null for finality, which no transaction reports.',
  ),
};

export const Stage = Type.Object({
  status: status('The status that was reached.'),
  at: orNull(
    time(),
    'When the chain reached it; null where the stage is known only from an import, and for finality that was ' +
      'noticed only after the next stage (history that was indexed afterwards).',
  ),
  ...place,
  dwellMs: orNull(
    Type.Integer({ minimum: 0 }),
    'Milliseconds until the next stage; null for the last one and where a time is not known.',
  ),
});

export const Change = Type.Object({
  position: decimal('Position in the stream of all changes.'),
  change: oneOf(['created', 'updated', 'removed'], 'What happened to the record.'),
  status: status('The status after the change; for a removed message the last one it had.'),
  previousStatus: orNull(status('A status.'), 'The status before; null for a message that is new.'),
  reorg: flag('A chain reorganisation: the status went back, or the message was removed.'),
  recordedAt: dateTime('When this service learned of it.'),
  occurredAt: orNull(
    time(),
    'When the event behind the status happened on its chain; null where it is unknown.',
  ),
  ...place,
  derived: Type.Optional(
    list(
      Type.String(),
      'Only present when the record came incomplete: JSON paths of members that the source had left out and that were ' +
        'derived here.',
    ),
  ),
});

export const History = Type.Object({
  messageId: messageId,
  status: orNull(status('A status.'), 'The status now; null for a message that was removed.'),
  stages: list(
    Stage,
    'Every stage that the message has reached, as its chains report it; empty for a message that was removed.',
  ),
  changes: list(
    Change,
    `Every change in the order in which it was recorded; at most the latest ${MAX_HISTORY_ROWS}.`,
  ),
  truncated: present(
    `Only present when the message has more than ${MAX_HISTORY_ROWS} changes or failed attempts: earlier changes ` +
      'and some of the attempts are left out. `/v2/messages/stream?messageId=…&after=0` has every change.',
  ),
});

export type Stage = ResponseBody<typeof Stage>;
export type Change = ResponseBody<typeof Change>;
export type History = ResponseBody<typeof History>;

/** The data of an event in the stream of changes; the message is as it was at that change. */
export interface ChangeEvent extends Pick<Change, 'position' | 'change' | 'status' | 'previousStatus'> {
  /** The attempt that the change brought; absent in all other changes. */
  readonly attempt?: Attempt;
  readonly message: Message | MessageSummary;
}

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
    Type.Object({ ...laneNetworks, messages: count('Messages of this reason on the lane.') }),
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
  days: daysOfWindow({ failed: count('Those of them that are FAILED now.') }),
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
