/** The record over the wire, held against the specification's tables as they are written there. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { statuses } from '../../../src/domain/lifecycle.ts';
import type { Message } from '../../../src/domain/message.ts';
import { barest, evmToSvm, sampleMessages } from '../../fixtures/sample-messages.ts';
import { type RunningServer, type SearchBody, startServer } from '../running-server.ts';

type JsonObject = Record<string, unknown>;
type Rule = (value: unknown) => boolean;

const isString: Rule = (value) => typeof value === 'string' && value !== '';
const isBoolean: Rule = (value) => typeof value === 'boolean';
const isInteger: Rule = (value) => Number.isSafeInteger(value);
const isDecimal: Rule = (value) => typeof value === 'string' && /^[0-9]+$/.test(value);
const isHex: Rule = (value) => typeof value === 'string' && /^0x([0-9a-f]{2})*$/.test(value);
const isTime: Rule = (value) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value);
const oneOf =
  (...values: readonly string[]): Rule =>
  (value) =>
    values.includes(value as string);
const matching =
  (pattern: RegExp): Rule =>
  (value) =>
    typeof value === 'string' && pattern.test(value);
const nullOr =
  (rule: Rule): Rule =>
  (value) =>
    value === null || rule(value);
const arrayOf =
  (rule: Rule): Rule =>
  (value) =>
    Array.isArray(value) && value.every(rule);

/** Every field of the table and no other; `optional` ones may be absent, but not null. */
const object =
  (fields: Readonly<Record<string, Rule>>, optional: Readonly<Record<string, Rule>> = {}): Rule =>
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    const members = value as JsonObject;
    const wrong = [
      ...Object.entries(fields).filter(
        ([name, rule]) => !Object.hasOwn(members, name) || !rule(members[name]),
      ),
      ...Object.entries(optional).filter(
        ([name, rule]) => Object.hasOwn(members, name) && !rule(members[name]),
      ),
    ].map(([name]) => name);
    const extra = Object.keys(members).filter((name) => !(name in fields) && !(name in optional));
    expect({ wrong, extra }, JSON.stringify(value)).toEqual({ wrong: [], extra: [] });
    return true;
  };

/** The specification's tables, row by row. `displayName` is what the ecosystem's client expects besides. */
const networkInfo = object({
  name: isString,
  chainSelector: matching(/^[0-9]+$/),
  chainId: isString,
  chainFamily: oneOf('EVM', 'SVM'),
  displayName: nullOr(isString),
});
const tokenAmount = object({
  sourceTokenAddress: isString,
  destTokenAddress: isString,
  sourcePoolAddress: isString,
  amount: isDecimal,
  extraData: nullOr(isString),
  destGasAmount: nullOr(isDecimal),
});
const evmExtraArgs = object({ gasLimit: isDecimal, allowOutOfOrderExecution: isBoolean });
const svmExtraArgs = object({
  computeUnits: isInteger,
  accountIsWritableBitmap: isString,
  allowOutOfOrderExecution: isBoolean,
  tokenReceiver: isString,
  accounts: arrayOf(isString),
});
const verifier = object({
  sourceAddress: isString,
  destAddress: isString,
  metadata: object({ name: isString }, { logoUrl: (value) => URL.canParse(value as string) }),
  isRequired: isBoolean,
  status: oneOf('PENDING', 'COMPLETED'),
  verification: nullOr(object({ data: isHex, timestamp: isTime })),
});
const feeItem = object({
  contractAddress: isString,
  feeType: oneOf('VERIFIER', 'EXECUTOR', 'TOKEN_POOL', 'NETWORK'),
  amount: isDecimal,
});
const summaryFields = {
  origin: isString,
  messageId: matching(/^0x[a-fA-F0-9]{64}$/),
  sender: isString,
  receiver: isString,
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
  sendTransactionHash: isString,
  sendTimestamp: isTime,
};
const messageFields: Readonly<Record<string, Rule>> = {
  ...summaryFields,
  nonce: nullOr(isString),
  sequenceNumber: isString,
  onramp: isString,
  routerAddress: nullOr(isString),
  sendBlockNumber: isInteger,
  sendLogIndex: isInteger,
  receiptTransactionHash: nullOr(isString),
  receiptTimestamp: nullOr(isTime),
  deliveryTime: nullOr(isInteger),
  data: nullOr(isHex),
  tokenAmounts: arrayOf(tokenAmount),
  extraArgs: (value) => ('computeUnits' in (value as JsonObject) ? svmExtraArgs : evmExtraArgs)(value),
  readyForManualExecution: isBoolean,
  version: nullOr(matching(/^\d+\.\d+\.\d+$/)),
  finality: isInteger,
  verifiers: nullOr(object({ items: arrayOf(verifier), optionalThreshold: isInteger })),
  executor: nullOr(object({ address: isString })),
  fees: object({
    fixedFeesDetails: object({ tokenAddress: isString, totalAmount: isDecimal }, { items: arrayOf(feeItem) }),
  }),
};

const nullableFields = [
  'nonce',
  'routerAddress',
  'receiptTransactionHash',
  'receiptTimestamp',
  'deliveryTime',
  'data',
  'version',
  'verifiers',
  'executor',
];

let server: RunningServer;
let full: readonly Message[];
beforeAll(async () => {
  server = await startServer(sampleMessages);
  full = (await server.ask('/v2/messages?limit=1000')).json<SearchBody>().data;
});
afterAll(() => server.close());

describe('the whole record', () => {
  test('has every field of the specification, of its type, and no other', () => {
    expect(full).toHaveLength(sampleMessages.length);
    const isMessage = object(messageFields);
    for (const message of full) isMessage(message);
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
    const isSummary = object(summaryFields);
    data.forEach((summary, index) => {
      isSummary(summary);
      expect(Object.keys(summary)).toHaveLength(9);
      expect(full[index]).toMatchObject(summary);
    });
  });

  test('view=full is the whole record', async () => {
    const { data } = (await server.ask('/v2/messages?view=full&limit=1000')).json<SearchBody>();
    expect(data).toEqual(full);
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
