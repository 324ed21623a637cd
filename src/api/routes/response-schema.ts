/** Schemas that several responses use: common fields, the schemas that OpenAPI refers to by name, a page of messages. */
import Type from 'typebox';
import { errorCatalogue } from '../../domain/errors.ts';
import type { Message as MessageRecord, MessageSummary as SummaryRecord } from '../../domain/message.ts';
import * as record from '../../domain/records/message-schema.ts';

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

const Pagination = Type.Object({
  limit: Type.Integer({ description: 'Page size that was asked for.' }),
  hasNextPage: Type.Boolean({ description: 'Whether there are more messages after this page.' }),
  cursor: Type.Union([
    Type.String({ description: 'Send it back as `cursor` for the next page.' }),
    Type.Null({ description: 'This was the last page.' }),
  ]),
});

const ErrorBody = Type.Object({
  error: oneOf(
    Object.keys(errorCatalogue),
    'Code from a closed catalogue; a code never changes its meaning.',
  ),
  message: text('What was wrong and what to do, for people.'),
  requestId: Type.String({ format: 'uuid', description: 'The same as in `X-Request-ID`.' }),
  details: list(
    Type.Object({
      parameter: text('The parameter that is wrong.'),
      problem: text('What is wrong with it and what it takes.'),
    }),
    'One entry for each parameter that is wrong; empty for other errors.',
  ),
});

export type ErrorBody = ResponseBody<typeof ErrorBody>;

/** Schemas that the OpenAPI document names, with their descriptions; the order is the order of its pages. */
export const namedSchemas = {
  Message: [
    record.Message,
    'The full record of a message. A field without a value is `null`, never left out.',
  ],
  MessageSummary: [
    record.MessageSummary,
    'The nine leading fields of a message: what `view=summary` returns.',
  ],
  NetworkInfo: [record.NetworkInfo, 'A network at one end of a lane.'],
  TokenAmount: [record.TokenAmount, 'One token transfer.'],
  EvmExtraArgs: [
    record.EvmExtraArgs,
    'Extra arguments for execution on EVM chains (and on others with the same gas model).',
  ],
  SvmExtraArgs: [record.SvmExtraArgs, 'Extra arguments for execution on SVM chains (Solana).'],
  Verifiers: [
    record.Verifiers,
    'The verifiers of the message and their progress; only on lanes above version 1.6.',
  ],
  Verifier: [record.Verifier, 'One verifier, its policy and its verification.'],
  Fees: [record.Fees, 'What was paid for the message.'],
  FeeItem: [record.FeeItem, 'One part of the fee.'],
  Pagination: [Pagination, 'The position of a page in its walk.'],
  Error: [ErrorBody, 'The format of every error.'],
} satisfies Record<string, [schema: Type.TSchema, description: string]>;

/** A reference to a named schema, as the OpenAPI document writes it. */
export const named = <Name extends keyof typeof namedSchemas>(name: Name) =>
  Type.Unsafe<Type.Static<(typeof namedSchemas)[Name][0]>>({ $ref: `#/components/schemas/${name}` });

/** The two ends of a lane. */
export const laneNetworks = {
  sourceNetworkInfo: named('NetworkInfo'),
  destNetworkInfo: named('NetworkInfo'),
};

/** @param more what is known of each day */
export const daysOfWindow = <T extends Type.TProperties>(more: T) => {
  const day = Type.String({ format: 'date', description: 'UTC.' });
  const items = Type.Object({ day, messages: count('Messages sent on this day.'), ...more });
  return list(items, 'Every day of the window, oldest first; today is the last.');
};

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
