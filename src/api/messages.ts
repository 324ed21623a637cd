/** The search, and a message by its id. */
import { ApiError } from '../domain/errors.ts';
import { parseSearch, refuseParameters } from '../domain/search-parameters.ts';
import type { Page } from '../store/store.ts';
import type { Route } from './route.ts';
import { named, SearchResult, searchQueryParameters } from './schema.ts';

export const messageRoutes: readonly Route[] = [
  {
    path: '/v2/messages',
    aliases: ['/messages'],
    mediaType: 'application/json',
    operationId: 'searchMessages',
    tag: 'Messages',
    summary: 'Search messages',
    description:
      'Messages that match every given filter, newest first (by send time, then by message id). A request uses ' +
      'either a cursor or filters, never both; `limit` and `view` go with either. A walk through the pages ' +
      'shows every message that was there at its start exactly once, whatever arrives meanwhile.',
    queryParameters: searchQueryParameters,
    success: { description: 'A page of messages.', schema: SearchResult },
    errors: [400],
    async handle({ query }, { store }) {
      const search = parseSearch(query);
      return { body: pageBody(await store.search(search), search.limit) };
    },
  },
  {
    path: '/v2/messages/{messageId}',
    aliases: ['/messages/{messageId}'],
    mediaType: 'application/json',
    operationId: 'getMessage',
    tag: 'Messages',
    summary: 'One message',
    description: 'The whole record of one message.',
    pathParameters: [
      {
        name: 'messageId',
        description: 'Identifier of the message: 0x and 64 hexadecimal digits.',
        schema: { type: 'string', pattern: '^0x[a-fA-F0-9]{64}$' },
      },
    ],
    success: { description: 'The message.', schema: named('Message') },
    errors: [400, 404],
    async handle({ path: { messageId = '' }, query }, { store }) {
      refuseParameters(query);
      const digits = /^0x([0-9a-fA-F]{64})$/.exec(messageId)?.[1]?.toLowerCase();
      if (digits === undefined) {
        throw new ApiError('INVALID_MESSAGE_ID', 'A message id is 0x followed by 64 hexadecimal digits.', [
          { parameter: 'messageId', problem: 'is not 0x followed by 64 hexadecimal digits' },
        ]);
      }
      const found = await store.findMessage(digits);
      if (!found) {
        throw new ApiError(
          'MESSAGE_NOT_FOUND',
          `No message 0x${digits} is known here. It may be on a network that is not indexed, or too new.`,
        );
      }
      return { body: found.record };
    },
  },
];

/** Stored text goes out as it is: nothing is parsed or serialised again. */
function pageBody({ records, cursor }: Page, limit: number): string {
  const pagination = JSON.stringify({ limit, hasNextPage: cursor !== null, cursor });
  return `{"data":[${records.join(',')}],"pagination":${pagination}}`;
}
