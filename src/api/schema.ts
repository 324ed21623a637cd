/** What goes over the wire beside the record itself: pages, errors, health. */
import Type from 'typebox';
import { errorCatalogue } from '../domain/errors.ts';
import {
  EvmExtraArgs,
  FeeItem,
  Fees,
  Message,
  MessageSummary,
  NetworkInfo,
  SvmExtraArgs,
  TokenAmount,
  Verifier,
  Verifiers,
} from '../domain/message-schema.ts';
import { DEFAULT_LIMIT, MAX_LIMIT } from '../domain/query.ts';
import { type FilterName, filterNames, filterParameters } from '../domain/search-parameters.ts';
import type { RouteParameter } from './route.ts';

/** Schemas that the OpenAPI document names; the order is the order of its pages. */
export const namedSchemas: Record<string, Type.TSchema> = {
  Message,
  MessageSummary,
  NetworkInfo,
  TokenAmount,
  EvmExtraArgs,
  SvmExtraArgs,
  Verifiers,
  Verifier,
  Fees,
  FeeItem,
  Pagination: Type.Object({
    limit: Type.Integer({ description: 'Page size that was asked for.' }),
    hasNextPage: Type.Boolean({ description: 'Whether there are more messages behind this page.' }),
    cursor: Type.Union([
      Type.String({ description: 'Send it back as `cursor` for the next page.' }),
      Type.Null({ description: 'This was the last page.' }),
    ]),
  }),
  Error: Type.Object({
    error: Type.Unsafe<string>({
      type: 'string',
      enum: Object.keys(errorCatalogue),
      description: 'Code from a closed catalogue; a code never changes its meaning.',
    }),
    message: Type.String({ description: 'What was wrong and what to do, for people.' }),
    requestId: Type.String({ format: 'uuid', description: 'The same as in `X-Request-ID`.' }),
    details: Type.Array(
      Type.Object({
        parameter: Type.String({ description: 'The parameter that is wrong.' }),
        problem: Type.String({ description: 'What is wrong with it and what it takes.' }),
      }),
      { description: 'One entry for each parameter that is wrong; empty where none is.' },
    ),
  }),
};

/** What each named schema is, in a line. */
export const schemaDescriptions: Readonly<Record<string, string>> = {
  Message: 'The whole record of a message. A field without a value is `null`, never left out.',
  MessageSummary: 'The nine leading fields of a message: what `view=summary` returns.',
  NetworkInfo: 'A network at one end of a lane.',
  TokenAmount: 'One token transfer.',
  EvmExtraArgs: 'Extra arguments for execution on EVM chains (and on those that count gas as they do).',
  SvmExtraArgs: 'Extra arguments for execution on SVM chains (Solana).',
  Verifiers: 'Who verifies the message and how far they are; lanes above version 1.6 have them.',
  Verifier: 'One verifier, its policy and its verification.',
  Fees: 'What was paid for the message.',
  FeeItem: 'One part of the fee.',
  Pagination: 'Where a page stands in its walk.',
  Error: 'The one shape of everything that goes wrong.',
};

/** A reference to a named schema, as the OpenAPI document writes it. */
export const named = (name: keyof typeof namedSchemas & string): Type.TSchema =>
  Type.Unsafe({ $ref: `#/components/schemas/${name}` });

export const SearchResult = Type.Object({
  data: Type.Array(Type.Unsafe({ anyOf: [named('Message'), named('MessageSummary')] }), {
    description: 'Messages, newest first. Whole records, or with `view=summary` their nine leading fields.',
  }),
  pagination: named('Pagination'),
});

export const Health = Type.Object({
  status: Type.Unsafe<string>({ type: 'string', enum: ['ok'] }),
});

export const Readiness = Type.Object({
  status: Type.Unsafe<string>({ type: 'string', enum: ['ready'] }),
  simulated: Type.Boolean({
    description: 'True where the data is the demo’s and no chain stands behind it.',
  }),
});

/** The filters, in the words of the domain. */
export const filterQueryParameters: readonly RouteParameter[] = filterNames.map((name) => ({
  name,
  description: filterParameters[name].description,
  schema: filterSchema(name),
  example: name === 'readyForManualExecOnly' ? true : filterParameters[name].example,
}));

/** The parameters of the search. */
export const searchQueryParameters: readonly RouteParameter[] = [
  ...filterQueryParameters,
  {
    name: 'cursor',
    description:
      '`pagination.cursor` of the page before. It carries the filters: sent together with any filter it is refused. ' +
      'It is signed, and valid on every server with the same database.',
    schema: { type: 'string' },
  },
  {
    name: 'limit',
    description: 'Page size; goes with filters, with a cursor, or alone.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
  },
  {
    name: 'view',
    description: '`full` returns whole records, `summary` their nine leading fields. A cursor remembers it.',
    schema: { type: 'string', enum: ['full', 'summary'], default: 'full' },
  },
];

function filterSchema(name: FilterName): Record<string, unknown> {
  switch (name) {
    case 'readyForManualExecOnly':
      return { type: 'boolean' };
    case 'sentAfter':
    case 'sentBefore':
      return { type: 'string', format: 'date-time' };
    case 'sourceChainSelector':
    case 'destChainSelector':
      return { type: 'string', pattern: '^[0-9]+$' };
    default:
      return { type: 'string' };
  }
}
