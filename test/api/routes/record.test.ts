/** The record over the wire, held against the specification's tables as they are written there. */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { beforeAll, describe, expect, test } from 'vitest';
import { statuses } from '../../../src/domain/lifecycle.ts';
import type { Message } from '../../../src/domain/message.ts';
import { barest, evmToSvm, sampleMessages } from '../../fixtures/sample-messages.ts';
import { type SearchBody, serverForAll } from '../running-server.ts';

const text = Type.String({ minLength: 1 });
const flag = Type.Boolean();
const integer = Type.Integer();
const matching = (pattern: RegExp) => Type.String({ pattern: pattern.source });
const decimal = matching(/^[0-9]+$/);
const hex = matching(/^0x([0-9a-f]{2})*$/);
const time = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const oneOf = (...values: readonly string[]) => Type.Union(values.map((value) => Type.Literal(value)));
const nullOr = (rule: Type.TSchema) => Type.Union([rule, Type.Null()]);
/** Every field of the table and no other. */
const object = (fields: Type.TProperties) => Type.Object(fields, { additionalProperties: false });

/** The specification's tables, row by row. `displayName` is what the ecosystem's client expects besides. */
const networkInfo = object({
  name: text,
  chainSelector: decimal,
  chainId: text,
  chainFamily: oneOf('EVM', 'SVM'),
  displayName: nullOr(text),
});
const tokenAmount = object({
  sourceTokenAddress: text,
  destTokenAddress: text,
  sourcePoolAddress: text,
  amount: decimal,
  extraData: nullOr(text),
  destGasAmount: nullOr(decimal),
});
const evmExtraArgs = object({ gasLimit: decimal, allowOutOfOrderExecution: flag });
const svmExtraArgs = object({
  computeUnits: integer,
  accountIsWritableBitmap: text,
  allowOutOfOrderExecution: flag,
  tokenReceiver: text,
  accounts: Type.Array(text),
});
const verifier = object({
  sourceAddress: text,
  destAddress: text,
  metadata: object({ name: text, logoUrl: Type.Optional(matching(/^https:\/\/\S+$/)) }),
  isRequired: flag,
  status: oneOf('PENDING', 'COMPLETED'),
  verification: nullOr(object({ data: hex, timestamp: time })),
});
const feeItem = object({
  contractAddress: text,
  feeType: oneOf('VERIFIER', 'EXECUTOR', 'TOKEN_POOL', 'NETWORK'),
  amount: decimal,
});
const summaryFields = {
  origin: text,
  messageId: matching(/^0x[a-fA-F0-9]{64}$/),
  sender: text,
  receiver: text,
  status: oneOf(
    'SENT',
    'SOURCE_FINALIZED',
    'COMMITTED',
    'BLESSED',
    'VERIFYING',
    'VERIFIED',
    'SUCCESS',
    'FAILED',
  ),
  sourceNetworkInfo: networkInfo,
  destNetworkInfo: networkInfo,
  sendTransactionHash: text,
  sendTimestamp: time,
};
const messageFields = {
  ...summaryFields,
  nonce: nullOr(text),
  sequenceNumber: text,
  onramp: text,
  routerAddress: nullOr(text),
  sendBlockNumber: integer,
  sendLogIndex: integer,
  receiptTransactionHash: nullOr(text),
  receiptTimestamp: nullOr(time),
  deliveryTime: nullOr(integer),
  data: nullOr(hex),
  tokenAmounts: Type.Array(tokenAmount),
  extraArgs: Type.Union([evmExtraArgs, svmExtraArgs]),
  readyForManualExecution: flag,
  version: nullOr(matching(/^\d+\.\d+\.\d+$/)),
  finality: integer,
  verifiers: nullOr(object({ items: Type.Array(verifier), optionalThreshold: integer })),
  executor: nullOr(object({ address: text })),
  fees: object({
    fixedFeesDetails: object({
      tokenAddress: text,
      totalAmount: decimal,
      items: Type.Optional(Type.Array(feeItem)),
    }),
  }),
};

const nullableFields = Object.entries<Type.TSchema>(messageFields)
  .filter(([, rule]) => Compile(rule).Check(null))
  .map(([name]) => name);

const server = serverForAll(sampleMessages);
let full: readonly Message[];
beforeAll(async () => {
  full = (await server.ask('/v2/messages?limit=1000')).json<SearchBody>().data;
});

describe('the whole record', () => {
  test('has every field of the specification, of its type, and no other', () => {
    expect(full).toHaveLength(sampleMessages.length);
    const rules = Compile(object(messageFields));
    for (const message of full)
      expect([message.messageId, ...rules.Errors(message)]).toEqual([message.messageId]);
  });

  test('says exactly what was stored, in both the search and the single answer', async () => {
    const byId = new Map(full.map((message) => [message.messageId, message]));
    for (const message of sampleMessages) {
      expect(byId.get(message.messageId)).toEqual(message);
      const single = await server.ask(`/v2/messages/${message.messageId}`);
      expect(single.json<Message>()).toEqual(message);
    }
  });

  test('writes null where there is nothing, and never leaves a field out', async () => {
    const { text } = await server.ask(`/v2/messages/${barest.messageId}`);
    expect(nullableFields).toHaveLength(9);
    for (const field of nullableFields) expect(text).toContain(`"${field}":null`);
    expect(text).toContain('"tokenAmounts":[]');
    expect(text).toContain('"displayName":null');
  });

  test('is in the samples in every shape: statuses, versions, families, verifiers, fees', () => {
    expect(new Set(full.map(({ status }) => status))).toEqual(new Set(statuses));
    expect(new Set(full.map(({ version }) => version))).toEqual(new Set(['1.5.0', '1.6.0', '2.0.0', null]));
    const families = full.map(
      ({ sourceNetworkInfo, destNetworkInfo }) =>
        `${sourceNetworkInfo.chainFamily}→${destNetworkInfo.chainFamily}`,
    );
    expect(new Set(families)).toEqual(new Set(['EVM→EVM', 'EVM→SVM', 'SVM→EVM']));
    const verifierStatuses = full.flatMap(
      ({ verifiers }) => verifiers?.items.map(({ status }) => status) ?? [],
    );
    expect(new Set(verifierStatuses)).toEqual(new Set(['PENDING', 'COMPLETED']));
    for (const field of nullableFields) {
      const isNull = full.map((message) => message[field as keyof Message] === null);
      expect(new Set(isNull), field).toEqual(new Set([true, false]));
    }
  });

  test('carries integers as JSON integers and amounts as strings, however large', async () => {
    const { text } = await server.ask(`/v2/messages/${evmToSvm.messageId}`);
    expect(text).toMatch(/"sendBlockNumber":1031,/);
    expect(text).toMatch(/"deliveryTime":60000,/);
    expect(text).toMatch(/"computeUnits":0,/);
    expect(text).toContain('"accountIsWritableBitmap":"18446744073709551615"');
    expect(text).toContain('"amount":"5000000000000000000"');
    const widest = await server.ask('/v2/messages?status=SENT&limit=1000');
    expect(widest.text).toContain('"totalAmount":"340282366920938463463374607431768211456"');
  });
});

describe('view=summary', () => {
  test('has exactly the nine leading fields, the same as in the whole record', async () => {
    const { data } = (await server.ask('/v2/messages?view=summary&limit=1000')).json<SearchBody>();
    expect(data).toHaveLength(full.length);
    const rules = Compile(object(summaryFields));
    data.forEach((summary, index) => {
      expect([...rules.Errors(summary)]).toEqual([]);
      expect(Object.keys(summary)).toHaveLength(9);
      expect(full[index]).toMatchObject(summary);
    });
  });

  test('is remembered by a cursor, and can be changed beside it', async () => {
    const first = (await server.ask('/v2/messages?view=summary&limit=2')).json<SearchBody>();
    const { cursor } = first.pagination;
    const remembered = (await server.ask(`/v2/messages?cursor=${cursor}&limit=2`)).json<SearchBody>();
    expect(remembered.data.map((message) => Object.keys(message).length)).toEqual([9, 9]);
    const changed = (await server.ask(`/v2/messages?cursor=${cursor}&limit=2&view=full`)).json<SearchBody>();
    expect(changed.data).toEqual(full.slice(2, 4));
  });
});
