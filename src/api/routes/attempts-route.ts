/** Attempts to execute a message, with the reasons of those that failed. */
import { attemptJson } from '../../domain/attempt-json.ts';
import { attemptsOf } from '../../domain/attempts.ts';
import { ApiError } from '../../domain/errors.ts';
import { rejectParameters } from '../../domain/filters/search-parameters.ts';
import type { Message } from '../../domain/message.ts';
import { Attempts } from '../schemas/attempts-schema.ts';
import type { Route } from '../server/route.ts';
import { messageIdDigits, messageIdParameter } from './messages-route.ts';
import { indexedSoFar } from './networks-route.ts';

export const attemptRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/attempts',
    aliases: ['/messages/{messageId}/attempts'],
    mediaType: 'application/json',
    operationId: 'getExecutionAttempts',
    tag: 'Messages',
    summary: 'Attempts to execute a message, and why they failed',
    description:
      'Every execution of the message on its destination, successful or not: transaction, caller, gas, return data. ' +
      'For a failed one the return data is decoded, through the errors that wrap each other, and `reason` says in ' +
      'words what happened, who can fix it, and what to do. An attempt whose block a reorganisation removed stays in the ' +
      'list, with `removedAt`.',
    pathParameters: [messageIdParameter],
    success: { description: 'Its attempts.', schema: Attempts },
    errors: [400, 404],
    async handle({ path: { messageId = '' }, query }, { store }) {
      rejectParameters(query);
      const digits = messageIdDigits(messageId);
      const found = await store.messageExecutions(digits);
      if (!found) {
        throw new ApiError(
          'MESSAGE_NOT_FOUND',
          `No message 0x${digits} is known here. ${await indexedSoFar(store)}`,
        );
      }
      const body: Attempts = {
        messageId: `0x${digits}`,
        attempts: attemptsOf(JSON.parse(found.record) as Message, found.facts, found.removed).map(
          attemptJson,
        ),
        ...(found.isTruncated && { truncated: true as const }),
      };
      return { body: JSON.stringify(body) };
    },
  },
];
