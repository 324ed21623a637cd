/** Schema of a page of messages. */
import Type from 'typebox';
import type { Message, MessageSummary } from '../../domain/message.ts';
import { named } from '../routes/response-schema.ts';
import type { ResponseBody } from './fields.ts';

export const SearchResult = Type.Object({
  data: Type.Array(
    Type.Unsafe<Message | MessageSummary>({ anyOf: [named('Message'), named('MessageSummary')] }),
    {
      description: 'Messages, newest first. Full records, or with `view=summary` their nine leading fields.',
    },
  ),
  pagination: named('Pagination'),
});

export type SearchResult = ResponseBody<typeof SearchResult>;
