/** History of one message: its stages, every recorded change, and the attempts to execute it. */
import { attemptJson, attemptsOf } from '../../domain/attempts.ts';
import { ApiError } from '../../domain/errors.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import { timeline } from '../../domain/timeline.ts';
import type { HistoryEntry } from '../../store/query/history.ts';
import { json } from '../server/caching.ts';
import type { Route } from '../server/route.ts';
import { Attempts, type Change, History, type Stage } from './history-schema.ts';
import { messageIdDigits, unknownMessage } from './requested-message.ts';

export const historyRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/history',
    operationId: 'getMessageHistory',
    tag: 'Messages',
    summary: 'What happened to a message',
    description:
      'Two views of one message. `stages` is what the chains say now: every status it reached, when and where, and ' +
      'how long it stayed; failed attempts are separate stages. It is the same whether the message was indexed ' +
      'live or afterwards. `changes` is what this service recorded, in order: reorganisations ' +
      'stay visible in it (`reorg`), and a message that one of them removed still answers.',
    success: { description: 'Its stages and changes.', schema: History },
    errors: [404],
    async handle({ path }, { store }) {
      const digits = messageIdDigits(path);
      const history = await store.messageHistory(digits);
      if (!history) {
        throw new ApiError('MESSAGE_NOT_FOUND', `No message 0x${digits} was ever known here.`);
      }
      const message = history.record === null ? undefined : (JSON.parse(history.record) as Message);
      const stages = message ? timeline(message, history.facts) : [];
      return json<History>({
        messageId: `0x${digits}`,
        status: message?.status ?? null,
        stages: stages.map(({ status, at, dwellMs, ...place }) => ({
          status,
          at,
          ...placeBody(place),
          dwellMs,
        })),
        changes: history.entries.map(changeBody),
        ...(history.isTruncated && { truncated: true as const }),
      });
    },
  },
  {
    path: '/v2/messages/{messageId}/attempts',
    operationId: 'getExecutionAttempts',
    tag: 'Messages',
    summary: 'Attempts to execute a message, and why they failed',
    description:
      'Every execution of the message on its destination, successful or not: transaction, caller, gas, return data. ' +
      'For a failed one the return data is decoded, through the errors that wrap each other, and `reason` says in ' +
      'words what happened, who can fix it, and what to do. An attempt whose block a reorganisation removed stays in the ' +
      'list, with `removedAt`.',
    success: { description: 'Its attempts.', schema: Attempts },
    errors: [404],
    async handle({ path }, { store }) {
      const digits = messageIdDigits(path);
      const found = await store.messageExecutions(digits);
      if (!found) throw await unknownMessage(store, digits);
      const message = JSON.parse(found.record) as Message;
      return json<Attempts>({
        messageId: `0x${digits}`,
        attempts: attemptsOf(message, found.facts, found.removed).map(attemptJson),
        ...(found.isTruncated && { truncated: true as const }),
      });
    },
  },
];

type Place = Pick<Stage, 'network' | 'networkName' | 'blockNumber' | 'transactionHash'>;

function changeBody(entry: HistoryEntry): Change {
  const { position, change, status, previousStatus, recordedAt, occurredAt, derived } = entry;
  return {
    position,
    change,
    status,
    previousStatus,
    reorg: isReorg(entry),
    recordedAt,
    occurredAt,
    ...placeBody(entry),
    ...(derived.length > 0 && { derived: [...derived] }),
  };
}

/** New facts only advance a message, so one that goes back has lost facts. */
function isReorg({ change, status, previousStatus }: HistoryEntry): boolean {
  if (change === 'removed') return true;
  return previousStatus !== null && statusRank(status) < statusRank(previousStatus);
}

function placeBody({ network, blockNumber, transactionHash }: Omit<Place, 'networkName'>): Place {
  const networkName = network === null ? null : (networkBySelector(network)?.name ?? null);
  return { network, networkName, blockNumber, transactionHash };
}
