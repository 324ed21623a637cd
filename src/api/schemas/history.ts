/** Schemas of what happened to a message: its stages, and the changes of its record. */
import Type from 'typebox';
import { statuses } from '../../domain/lifecycle.ts';
import type { Message, MessageSummary } from '../../domain/message.ts';
import { MAX_HISTORY_ROWS } from '../../domain/query.ts';
import { type Answer, dateTime, decimal, oneOf, orNull } from './fields.ts';

const status = (description: string) => oneOf(statuses, description);
const time = () => Type.String({ format: 'date-time' });

const place = {
  network: orNull(
    Type.String({ pattern: '^[0-9]+$' }),
    'Chain selector of the network that said so; null where nobody told.',
  ),
  networkName: orNull(Type.String(), 'Name of that network; null where it has none that is known here.'),
  blockNumber: orNull(Type.Integer({ minimum: 0 }), 'Block that said so; null where nobody told.'),
  transactionHash: orNull(Type.String(), 'Transaction that said so; null where none did (finality).'),
};

export const Stage = Type.Object({
  status: status('The status that was reached.'),
  at: orNull(
    time(),
    'When the chain reached it; null where only an import knows of the stage, and for finality that was noticed ' +
      'only after what it leads to (history that was read in afterwards).',
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
    description: 'A reorganisation took something back: the status went back, or the message is gone.',
  }),
  recordedAt: dateTime('When this service learned of it.'),
  occurredAt: orNull(time(), 'When the chain said what the status rests on; null where nobody told.'),
  ...place,
});

export const History = Type.Object({
  messageId: Type.String({ pattern: '^0x[a-f0-9]{64}$' }),
  status: orNull(status('A status.'), 'The status now; null for a message that was removed.'),
  stages: Type.Array(Stage, {
    description: 'The way the message has come, as its chains tell it; empty for a message that was removed.',
  }),
  changes: Type.Array(Change, {
    description: `Every change in the order in which it was recorded here; the latest ${MAX_HISTORY_ROWS} where there are more.`,
  }),
  truncated: Type.Optional(
    Type.Literal(true, {
      description:
        `Only there where the message has more than ${MAX_HISTORY_ROWS} changes or failed attempts: earlier changes ` +
        'and some of the attempts are left out. `/v2/messages/stream?messageId=…&after=0` has every change.',
    }),
  ),
});

export type Stage = Answer<typeof Stage>;
export type Change = Answer<typeof Change>;
export type History = Answer<typeof History>;

/** The data of an event in the stream of changes; the message is as it was at that change. */
export interface ChangeEvent extends Pick<Change, 'position' | 'change' | 'status' | 'previousStatus'> {
  readonly message: Message | MessageSummary;
}
