/** What happened to one message: the stages it went through, and every change as it was recorded. */
import Type from 'typebox';
import { ApiError } from '../domain/errors.ts';
import { statuses, statusRank } from '../domain/lifecycle.ts';
import type { Message } from '../domain/message.ts';
import { networkBySelector } from '../domain/networks.ts';
import { refuseParameters } from '../domain/search-parameters.ts';
import { timeline } from '../domain/timeline.ts';
import type { HistoryEntry } from '../store/history.ts';
import { messageIdDigits, messageIdParameter } from './messages.ts';
import type { Route } from './route.ts';

const nullable = (schema: Type.TSchema, description: string) =>
  Type.Union([schema, Type.Null()], { description });
const status = (description: string) => Type.Unsafe({ type: 'string', enum: [...statuses], description });
const time = () => Type.String({ format: 'date-time' });

const place = {
  network: nullable(
    Type.String({ pattern: '^[0-9]+$' }),
    'Chain selector of the network that said so; null where nobody told.',
  ),
  networkName: nullable(Type.String(), 'Name of that network; null where it has none that is known here.'),
  blockNumber: nullable(Type.Integer({ minimum: 0 }), 'Block that said so; null where nobody told.'),
  transactionHash: nullable(Type.String(), 'Transaction that said so; null where none did (finality).'),
};

const Stage = Type.Object({
  status: status('The status that was reached.'),
  at: nullable(
    time(),
    'When the chain reached it; null where only an import knows of the stage, and for finality that was noticed ' +
      'only after what it leads to (history that was read in afterwards).',
  ),
  ...place,
  dwellMs: nullable(
    Type.Integer({ minimum: 0 }),
    'Milliseconds until the next stage; null for the last one and where a time is not known.',
  ),
});

const Change = Type.Object({
  position: Type.String({ pattern: '^[0-9]+$', description: 'Position in the stream of all changes.' }),
  change: Type.Unsafe({
    type: 'string',
    enum: ['created', 'updated', 'removed'],
    description: 'What happened to the record.',
  }),
  status: status('The status after the change; for a removed message the last one it had.'),
  previousStatus: nullable(status('A status.'), 'The status before; null for a message that is new.'),
  reorg: Type.Boolean({
    description: 'A reorganisation took something back: the status went back, or the message is gone.',
  }),
  recordedAt: Type.String({ format: 'date-time', description: 'When this service learned of it.' }),
  occurredAt: nullable(time(), 'When the chain said what the status rests on; null where nobody told.'),
  ...place,
});

const History = Type.Object({
  messageId: Type.String({ pattern: '^0x[a-f0-9]{64}$' }),
  status: nullable(status('A status.'), 'The status now; null for a message that was removed.'),
  stages: Type.Array(Stage, {
    description: 'The way the message has come, as its chains tell it; empty for a message that was removed.',
  }),
  changes: Type.Array(Change, { description: 'Every change in the order in which it was recorded here.' }),
});

export const historyRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/history',
    aliases: ['/messages/{messageId}/history'],
    mediaType: 'application/json',
    operationId: 'getMessageHistory',
    tag: 'Messages',
    summary: 'What happened to a message',
    description:
      'Two views of one message’s way. `stages` is what the chains say now: every status it reached, when and ' +
      'where, and how long it stayed; failed attempts are stages of their own. It is the same whether the message ' +
      'was watched live or read in afterwards. `changes` is what this service recorded, in order: reorganisations ' +
      'stay visible in it (`reorg`), and a message that one of them removed still answers.',
    pathParameters: [messageIdParameter],
    success: { description: 'Its stages and changes.', schema: History },
    errors: [400, 404],
    async handle({ path: { messageId = '' }, query }, { store }) {
      refuseParameters(query);
      const digits = messageIdDigits(messageId);
      const history = await store.messageHistory(digits);
      if (!history) {
        throw new ApiError('MESSAGE_NOT_FOUND', `No message 0x${digits} was ever known here.`);
      }
      const message = history.record === null ? undefined : (JSON.parse(history.record) as Message);
      const stages = message ? timeline(message, history.facts) : [];
      return {
        body: JSON.stringify({
          messageId: `0x${digits}`,
          status: message?.status ?? null,
          stages: stages.map(({ status, at, network, blockNumber, transactionHash, dwellMs }) => ({
            status,
            at,
            network,
            networkName: nameOf(network),
            blockNumber,
            transactionHash,
            dwellMs,
          })),
          changes: history.entries.map(changeBody),
        }),
      };
    },
  },
];

function changeBody(entry: HistoryEntry) {
  const { position, change, status, previousStatus, recordedAt, occurredAt } = entry;
  return {
    position,
    change,
    status,
    previousStatus,
    reorg: isReorg(entry),
    recordedAt,
    occurredAt,
    network: entry.network,
    networkName: nameOf(entry.network),
    blockNumber: entry.blockNumber,
    transactionHash: entry.transactionHash,
  };
}

/** Added facts only ever move a message on: one that goes back has lost some. */
function isReorg({ change, status, previousStatus }: HistoryEntry): boolean {
  if (change === 'removed') return true;
  return previousStatus !== null && statusRank(status) < statusRank(previousStatus);
}

function nameOf(network: string | null): string | null {
  return network === null ? null : (networkBySelector(network)?.name ?? null);
}
