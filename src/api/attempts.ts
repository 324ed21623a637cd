/** Attempts to execute a message, with the reasons of those that failed. */
import { type Attempt, attemptsOf } from '../domain/attempts.ts';
import { ApiError } from '../domain/errors.ts';
import type { FailureReason } from '../domain/failures/failure-reason.ts';
import type { DecodedError } from '../domain/failures/revert-data.ts';
import type { Message } from '../domain/message.ts';
import { networkBySelector } from '../domain/networks.ts';
import { refuseParameters } from '../domain/search-parameters.ts';
import { messageIdDigits, messageIdParameter } from './messages.ts';
import { indexedSoFar } from './networks.ts';
import type { Route } from './route.ts';
import { type Attempt as AttemptBody, Attempts } from './schemas/attempts.ts';

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
      'words what happened, who can fix it, and what to do.',
    pathParameters: [messageIdParameter],
    success: { description: 'Its attempts.', schema: Attempts },
    errors: [400, 404],
    async handle({ path: { messageId = '' }, query }, { store }) {
      refuseParameters(query);
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
        attempts: attemptsOf(JSON.parse(found.record) as Message, found.facts).map(attemptBody),
        ...(found.isTruncated && { truncated: true as const }),
      };
      return { body: JSON.stringify(body) };
    },
  },
];

function attemptBody({ network, reason, ...attempt }: Attempt): AttemptBody {
  return {
    ...attempt,
    network,
    networkName: networkBySelector(network)?.name ?? null,
    reason: reason && reasonBody(reason),
  };
}

export function reasonBody({ code, text, fixableBy, advice, error, wrappers, data }: FailureReason) {
  return {
    code,
    text,
    fixableBy,
    advice,
    error: error && errorBody(error),
    wrappers: wrappers.map(errorBody),
    data,
  };
}

function errorBody({ name, arguments: given, isCut }: DecodedError) {
  return {
    name,
    arguments: given.map((argument) => ({ name: argument.name ?? null, value: argument.value })),
    cut: isCut,
  };
}
