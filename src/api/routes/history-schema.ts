/** Schemas of the history of a message: its stages, and the changes of its record. */
import Type from 'typebox';
import { MAX_HISTORY_ROWS } from '../../domain/filters/query.ts';
import { statuses } from '../../domain/lifecycle.ts';
import type { Message, MessageSummary } from '../../domain/message.ts';
import type { Attempt } from '../schemas/attempts-schema.ts';
import { dateTime, decimal, oneOf, orNull, type ResponseBody } from '../schemas/fields.ts';

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
  reorg: Type.Boolean({
    description: 'A chain reorganisation: the status went back, or the message was removed.',
  }),
  recordedAt: dateTime('When this service learned of it.'),
  occurredAt: orNull(
    time(),
    'When the event behind the status happened on its chain; null where it is unknown.',
  ),
  ...place,
  derived: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Only present when the record came incomplete: JSON paths of members that the source had left out and that were ' +
        'derived here.',
    }),
  ),
});

export const History = Type.Object({
  messageId: Type.String({ pattern: '^0x[a-f0-9]{64}$' }),
  status: orNull(status('A status.'), 'The status now; null for a message that was removed.'),
  stages: Type.Array(Stage, {
    description:
      'Every stage that the message has reached, as its chains report it; empty for a message that was removed.',
  }),
  changes: Type.Array(Change, {
    description: `Every change in the order in which it was recorded; at most the latest ${MAX_HISTORY_ROWS}.`,
  }),
  truncated: Type.Optional(
    Type.Literal(true, {
      description:
        `Only present when the message has more than ${MAX_HISTORY_ROWS} changes or failed attempts: earlier changes ` +
        'and some of the attempts are left out. `/v2/messages/stream?messageId=…&after=0` has every change.',
    }),
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
