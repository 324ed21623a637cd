/** Schemas that several responses use: common fields, the schemas that OpenAPI refers to by name, a page of messages. */
import Type from 'typebox';
import { errorCatalogue } from '../../domain/errors.ts';
import type { Message as MessageRecord, MessageSummary as SummaryRecord } from '../../domain/message.ts';
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
} from '../../domain/records/message-schema.ts';

export const text = (description: string) => Type.String({ description });
export const flag = (description: string) => Type.Boolean({ description });
export const list = <T extends Type.TSchema>(items: T, description: string) =>
  Type.Array(items, { description });
/** True, or left out. */
export const present = (description: string) => Type.Optional(Type.Literal(true, { description }));
export const messageId = Type.String({ pattern: '^0x[a-f0-9]{64}$' });
export const count = (description: string) => Type.Integer({ minimum: 0, description });
/** An integer as a decimal string: it may have more bits than a JSON number keeps. */
export const decimal = (description: string) => Type.String({ pattern: '^[0-9]+$', description });
export const dateTime = (description: string) => Type.String({ format: 'date-time', description });
export const orNull = <T extends Type.TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
export const oneOf = <T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...(description !== undefined && { description }) });

/** The type of a response body with this schema, read-only at every depth. */
export type ResponseBody<T extends Type.TSchema> = DeepReadonly<Type.Static<T>>;

type DeepReadonly<T> = T extends readonly (infer Element)[]
  ? readonly DeepReadonly<Element>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/** Schemas that the OpenAPI document names; the order is the order of its pages. */
export const namedSchemas = {
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
    hasNextPage: Type.Boolean({ description: 'Whether there are more messages after this page.' }),
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
      { description: 'One entry for each parameter that is wrong; empty for other errors.' },
    ),
  }),
} satisfies Record<string, Type.TSchema>;

export type SchemaName = keyof typeof namedSchemas;

/** A one-line description of each named schema. */
export const schemaDescriptions: Readonly<Record<SchemaName, string>> = {
  Message: 'The full record of a message. A field without a value is `null`, never left out.',
  MessageSummary: 'The nine leading fields of a message: what `view=summary` returns.',
  NetworkInfo: 'A network at one end of a lane.',
  TokenAmount: 'One token transfer.',
  EvmExtraArgs: 'Extra arguments for execution on EVM chains (and on others with the same gas model).',
  SvmExtraArgs: 'Extra arguments for execution on SVM chains (Solana).',
  Verifiers: 'The verifiers of the message and their progress; only on lanes above version 1.6.',
  Verifier: 'One verifier, its policy and its verification.',
  Fees: 'What was paid for the message.',
  FeeItem: 'One part of the fee.',
  Pagination: 'The position of a page in its walk.',
  Error: 'The format of every error.',
};

/** A reference to a named schema, as the OpenAPI document writes it. */
export const named = <Name extends SchemaName>(name: Name) =>
  Type.Unsafe<Type.Static<(typeof namedSchemas)[Name]>>({ $ref: `#/components/schemas/${name}` });

export type ErrorBody = ResponseBody<typeof namedSchemas.Error>;

export const SearchResult = Type.Object({
  data: Type.Array(
    Type.Unsafe<MessageRecord | SummaryRecord>({ anyOf: [named('Message'), named('MessageSummary')] }),
    {
      description: 'Messages, newest first. Full records, or with `view=summary` their nine leading fields.',
    },
  ),
  pagination: named('Pagination'),
});

export type SearchResult = ResponseBody<typeof SearchResult>;
