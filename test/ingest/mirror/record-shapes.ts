/**
 * Shapes of records as servers of this API send them: complete, with members that came later, with members left out, with
 * values that the contract does not know, and such that nobody can complete.
 */
import { type Message, summaryKeys, type TokenAmount } from '../../../src/domain/message.ts';
import {
  evmAddress,
  fuji,
  hashOf,
  makeMessage,
  makeToken,
  networkInfo,
  sepolia,
  solanaDevnet,
  svmAddress,
} from '../../fixtures.ts';

type Shape = Readonly<Record<string, unknown>>;

/** In canonical spelling. */
const address = (name: string) => makeMessage({ sender: evmAddress(name) }).sender;
const canonicalOfframp = address('offramp');
const [link, usdc] = makeMessage({
  tokenAmounts: [makeToken(sepolia, fuji, 'LINK'), makeToken(sepolia, fuji, 'USDC')],
}).tokenAmounts as [TokenAmount, TokenAmount];

export interface RecordShape {
  readonly what: string;
  readonly record: Shape;
  /** What the stored record has of it, where that is not what the source wrote. */
  readonly becomes?: Shape;
  /** Paths that had to be derived. */
  readonly derived?: readonly string[];
  /** The path of the problem, for a record that is rejected. */
  readonly rejected?: string;
}

const without = (record: Shape, ...keys: readonly string[]): Shape =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));

let numbers = 0;
/** Each shape is another message. */
const message = (overrides: Partial<Message> = {}): Shape =>
  makeMessage({ number: ++numbers, ...overrides }) as unknown as Shape;
const v2 = (overrides: Partial<Message> = {}): Shape =>
  message({ version: '2.0.0', nonce: null, ...overrides });

const v3Args = {
  gasLimit: '200000',
  requestedFinalityConfig: '0x00010000',
  ccvs: [address('ccv')],
  ccvArgs: ['0x'],
  executor: address('executor'),
  executorArgs: '0x',
  tokenReceiver: address('receiver'),
  tokenArgs: '0x12',
};
const order = { allowOutOfOrderExecution: true };

const pending = {
  sourceAddress: address('verifier'),
  destAddress: address('verifier'),
  metadata: { name: 'Committee' },
  isRequired: true,
  status: 'PENDING',
  verification: null,
};
const completed = {
  ...pending,
  status: 'COMPLETED',
  verification: { data: '0x01', timestamp: '2026-01-01T00:00:30.000Z' },
};
const withVerifier = (verifier: Shape, more: Shape = {}, overrides: Partial<Message> = {}): Shape => ({
  ...v2(overrides),
  verifiers: { items: [verifier], optionalThreshold: 0, ...more },
});
const zero = `0x${'0'.repeat(40)}`;
const item = '$.verifiers.items[0]';

function complete(): RecordShape[] {
  const networks = {
    aptos: networkInfo('aptos-testnet'),
    sui: networkInfo('sui-testnet'),
    ton: networkInfo('ton-testnet'),
  };
  const wide = `0x${hashOf('account').slice(2)}`;
  return [
    ...(['1.2.0', '1.5.0', '1.6.0', '1.6.1-dev', '2.0.0'] as const).map((version) => ({
      what: `version ${version}`,
      record: message({ version }),
    })),
    ...(
      [
        'SENT',
        'SOURCE_FINALIZED',
        'COMMITTED',
        'BLESSED',
        'VERIFYING',
        'VERIFIED',
        'FAILED',
        'SUCCESS',
      ] as const
    ).map((status) => ({ what: `status ${status}`, record: message({ status }) })),
    { what: 'a token', record: message({ tokenAmounts: [link] }) },
    {
      what: 'two tokens',
      record: message({
        tokenAmounts: [link, usdc],
      }),
    },
    { what: 'to Solana', record: message({ destNetworkInfo: solanaDevnet }) },
    { what: 'from Solana', record: message({ sourceNetworkInfo: solanaDevnet }) },
    { what: 'to Aptos', record: message({ destNetworkInfo: networks.aptos, receiver: wide }) },
    {
      what: 'to Sui with its arguments',
      record: {
        ...message({ destNetworkInfo: networks.sui, receiver: wide }),
        extraArgs: { gasLimit: '1', ...order, receiverObjectIds: [wide], tokenReceiver: wide },
      },
    },
    {
      what: 'to TON',
      record: message({ destNetworkInfo: networks.ton, receiver: `0:${wide.slice(2)}` }),
    },
    { what: 'no data', record: message({ data: null }) },
    {
      what: 'no router, nonce or version',
      record: message({ routerAddress: null, nonce: null, version: null }),
    },
    { what: 'a block depth', record: v2({ finality: 12 }) },
    {
      what: 'verifiers and executor',
      record: { ...withVerifier(completed), executor: { address: address('e') } },
    },
    { what: 'no verifiers in the list', record: { ...v2(), verifiers: { items: [], optionalThreshold: 0 } } },
  ];
}

function withUnknownMembers(): RecordShape[] {
  return [
    { what: 'the off-ramp', record: { ...message(), offramp: canonicalOfframp } },
    {
      what: 'the off-ramp in lower case',
      record: { ...message(), offramp: canonicalOfframp.toLowerCase() },
      becomes: { offramp: canonicalOfframp },
    },
    {
      what: 'the off-ramp as null',
      record: { ...message(), offramp: null },
      becomes: { offramp: undefined },
    },
    {
      what: 'an off-ramp on Solana',
      record: { ...message({ destNetworkInfo: solanaDevnet }), offramp: svmAddress('offramp') },
    },
    {
      what: 'an off-ramp that is none',
      record: { ...message(), offramp: 'somewhere' },
      becomes: { offramp: undefined },
    },
    { what: 'the encoded message', record: { ...v2(), encodedMessage: '0x01ab' } },
    {
      what: 'the encoded message without 0x',
      record: { ...v2(), encodedMessage: '01AB' },
      becomes: { encodedMessage: '0x01ab' },
    },
    {
      what: 'fees in basis points',
      record: withFees({ bpsFeeDetails: [{ bps: 20, amount: '7', feeType: 'TOKEN_POOL' }] }),
    },
    { what: 'an empty list of fees in basis points', record: withFees({ bpsFeeDetails: [] }) },
    {
      what: 'fees in basis points as null',
      record: withFees({ bpsFeeDetails: null }),
      becomes: withFees({}, numbers),
    },
    { what: 'another kind of fees', record: withFees({ gasFeeDetails: { amount: '1' } }) },
    { what: 'the arguments of 2.0 with the order', record: { ...v2(), extraArgs: { ...order, ...v3Args } } },
    {
      what: 'arguments of the future',
      record: { ...message(), extraArgs: { gasLimit: '1', ...order, tier: 3 } },
    },
    { what: 'a text', record: { ...message(), laneTier: 'gold' } },
    { what: 'a number', record: { ...message(), retries: 3 } },
    { what: 'null', record: { ...message(), intent: null } },
    { what: 'an object', record: { ...message(), intent: { id: 'i1', steps: [{ kind: 'swap' }] } } },
    { what: 'a list', record: { ...message(), tags: ['a', 'b'] } },
    {
      what: 'a network with a logo',
      record: { ...message(), sourceNetworkInfo: { ...sepolia, logoUrl: 'https://example.org/x.svg' } },
    },
    {
      what: 'a network with a nonce',
      record: { ...message(), destNetworkInfo: { ...fuji, nonce: '7' } },
    },
    {
      what: 'a token with a symbol',
      record: {
        ...message(),
        tokenAmounts: [{ ...link, symbol: 'LINK', decimals: 18 }],
      },
    },
    {
      what: 'a verifier with more metadata',
      record: withVerifier({ ...completed, metadata: { name: 'C', operator: 'x' }, weight: 2 }),
    },
    {
      what: 'an executor with a name',
      record: { ...v2(), executor: { address: address('e'), name: 'E' } },
    },
    {
      what: 'the status of an older mirror',
      record: { ...message({ status: 'SENT' }), reportedStatus: 'UNCONFIRMED' },
    },
  ];
}

function incomplete(): RecordShape[] {
  const allowed = '$.extraArgs.allowOutOfOrderExecution';
  return [
    {
      what: 'V3 arguments in full',
      record: { ...v2(), extraArgs: v3Args },
      becomes: { extraArgs: { ...v3Args, ...order } },
      derived: [allowed],
    },
    {
      what: 'V3 arguments: gas limit alone',
      record: { ...v2(), extraArgs: { gasLimit: '0' } },
      becomes: { extraArgs: { gasLimit: '0', ...order } },
      derived: [allowed],
    },
    {
      what: 'V3 arguments: gas limit and finality',
      record: { ...v2({ finality: 1 }), extraArgs: { gasLimit: '100000', finality: 1 } },
      becomes: { extraArgs: { gasLimit: '100000', finality: 1, ...order } },
      derived: [allowed],
    },
    {
      what: 'V3 arguments: block confirmations',
      record: { ...v2({ finality: 5 }), extraArgs: { gasLimit: '1', blockConfirmations: 5 } },
      becomes: { extraArgs: { gasLimit: '1', blockConfirmations: 5, ...order } },
      derived: [allowed],
    },
    {
      what: 'V1 arguments in order',
      record: { ...message({ version: '1.5.0', nonce: '4' }), extraArgs: { gasLimit: '1' } },
      becomes: { extraArgs: { gasLimit: '1', allowOutOfOrderExecution: false } },
      derived: [allowed],
    },
    {
      what: 'V1 arguments out of order',
      record: { ...message({ version: '1.5.0', nonce: '0' }), extraArgs: { gasLimit: '1' } },
      becomes: { extraArgs: { gasLimit: '1', ...order } },
      derived: [allowed],
    },
    {
      what: 'no finality',
      record: without(message(), 'finality'),
      becomes: { finality: 0 },
      derived: ['$.finality'],
    },
    {
      what: 'no finality beside a requested depth',
      record: {
        ...without(v2(), 'finality'),
        extraArgs: { ...order, ...v3Args, requestedFinalityConfig: '0x00000005' },
      },
      becomes: { finality: 5 },
      derived: ['$.finality'],
    },
    {
      what: 'finality as null',
      record: { ...message(), finality: null },
      becomes: { finality: 0 },
      derived: ['$.finality'],
    },
    ...(['SENT', 'FAILED', 'SUCCESS'] as const).map((status) => ({
      what: `not whether it is ready, ${status}`,
      record: without(message({ status }), 'readyForManualExecution'),
      becomes: { readyForManualExecution: status === 'FAILED' },
      derived: ['$.readyForManualExecution'],
    })),
    {
      what: 'nothing that may be null',
      record: without(message(), 'nonce', 'routerAddress', 'data', 'version', 'verifiers', 'executor'),
      becomes: {
        nonce: null,
        routerAddress: null,
        data: null,
        version: null,
        verifiers: null,
        executor: null,
      },
    },
    {
      what: 'no receipt',
      record: without(message(), 'receiptTransactionHash', 'receiptTimestamp', 'deliveryTime'),
      becomes: { receiptTransactionHash: null, receiptTimestamp: null, deliveryTime: null },
    },
    {
      what: 'no display names',
      record: {
        ...message(),
        sourceNetworkInfo: without(sepolia, 'displayName'),
        destNetworkInfo: without(fuji, 'displayName'),
      },
      becomes: { sourceNetworkInfo: sepolia, destNetworkInfo: fuji },
    },
    {
      what: 'no family of a known network',
      record: { ...message(), destNetworkInfo: without(fuji, 'chainFamily') },
      becomes: { destNetworkInfo: fuji },
      derived: ['$.destNetworkInfo.chainFamily'],
    },
    ...[undefined, null].flatMap((absent): RecordShape[] => [
      shapeOfVerifier('destAddress', absent, { destAddress: zero }),
      shapeOfVerifier('metadata', absent, { metadata: { name: 'Verifier' } }),
      shapeOfVerifier('isRequired', absent, { isRequired: true }),
      shapeOfVerifier('status', absent, { status: 'PENDING' }),
    ]),
    {
      what: 'not whether a verifier is required, after success',
      record: withVerifier({ ...pending, isRequired: null }, {}, { status: 'SUCCESS' }),
      becomes: { verifiers: { items: [{ ...pending, isRequired: false }], optionalThreshold: 0 } },
      derived: [`${item}.isRequired`],
    },
    {
      what: 'no status of a verifier that is done',
      record: withVerifier(without(completed, 'status')),
      becomes: { verifiers: { items: [completed], optionalThreshold: 0 } },
      derived: [`${item}.status`],
    },
    {
      what: 'no threshold',
      record: withVerifier(pending, { optionalThreshold: undefined }),
      becomes: { verifiers: { items: [pending], optionalThreshold: 0 } },
      derived: ['$.verifiers.optionalThreshold'],
    },
    {
      what: 'verifiers without a list',
      record: { ...v2(), verifiers: { optionalThreshold: 0 } },
      becomes: { verifiers: { items: [], optionalThreshold: 0 } },
      derived: ['$.verifiers.items'],
    },
    {
      what: 'no name of a verifier',
      record: withVerifier({ ...pending, metadata: {} }),
      becomes: {
        verifiers: { items: [{ ...pending, metadata: { name: 'Verifier' } }], optionalThreshold: 0 },
      },
      derived: [`${item}.metadata.name`],
    },
    {
      what: 'a verifier with a logo that is null',
      record: withVerifier({ ...pending, metadata: { name: 'C', logoUrl: null } }),
      becomes: { verifiers: { items: [{ ...pending, metadata: { name: 'C' } }], optionalThreshold: 0 } },
    },
  ];
}

function withOtherValues(): RecordShape[] {
  const star = {
    name: 'star',
    chainSelector: '4242',
    chainId: 'star',
    chainFamily: 'Star',
    displayName: null,
  };
  const canton = {
    name: 'canton-x',
    chainSelector: '4243',
    chainId: 'c',
    chainFamily: 'CANTON',
    displayName: null,
  };
  return [
    {
      what: 'status UNCONFIRMED',
      record: { ...message(), status: 'UNCONFIRMED' },
      becomes: { status: 'SENT', reportedStatus: 'UNCONFIRMED' },
    },
    {
      what: 'a status of the future',
      record: { ...message(), status: 'ROUTED' },
      becomes: { status: 'SENT', reportedStatus: 'ROUTED' },
    },
    { what: 'status in lower case', record: { ...message(), status: 'sent' }, becomes: { status: 'SENT' } },
    {
      what: 'verifier status UNKNOWN',
      record: withVerifier({ ...pending, status: 'UNKNOWN' }),
      becomes: {
        verifiers: {
          items: [{ ...pending, status: 'PENDING', reportedStatus: 'UNKNOWN' }],
          optionalThreshold: 0,
        },
      },
    },
    {
      what: 'a threshold as text',
      record: withVerifier(pending, { optionalThreshold: '0' }),
      becomes: { verifiers: { items: [pending], optionalThreshold: 0 } },
    },
    {
      what: 'family evm',
      record: { ...message(), sourceNetworkInfo: { ...sepolia, chainFamily: 'evm' } },
      becomes: { sourceNetworkInfo: sepolia },
    },
    {
      what: 'family Canton',
      record: {
        ...message({ destNetworkInfo: canton as never, receiver: hashOf('party') }),
        destNetworkInfo: { ...canton, chainFamily: 'Canton' },
      },
      becomes: { destNetworkInfo: canton },
    },
    {
      what: 'an unknown family of a known network',
      record: { ...message(), destNetworkInfo: { ...fuji, chainFamily: 'AVM' } },
      becomes: { destNetworkInfo: fuji },
    },
    {
      what: 'an unknown family',
      record: { ...message(), destNetworkInfo: star, receiver: 'star1qqqs' },
    },
    {
      what: 'times with another zone',
      record: { ...message(), sendTimestamp: '2026-02-01T02:00:00+02:00' },
      becomes: { sendTimestamp: '2026-02-01T00:00:00.000Z' },
    },
  ];
}

function rejectedShapes(): RecordShape[] {
  const lacking = (key: string): RecordShape => ({
    what: `no ${key}`,
    record: without(message(), key),
    rejected: `$.${key}`,
  });
  return [
    ...[
      'fees',
      'sendBlockNumber',
      'sendLogIndex',
      'sequenceNumber',
      'onramp',
      'origin',
      'tokenAmounts',
      'extraArgs',
    ].map(lacking),
    {
      what: 'a token without its address',
      record: {
        ...message(),
        tokenAmounts: [{ ...link, destTokenAddress: null }],
      },
      rejected: '$.tokenAmounts[0].destTokenAddress',
    },
    {
      what: 'an amount of zero',
      record: { ...message(), tokenAmounts: [{ ...link, amount: '0' }] },
      rejected: '$.tokenAmounts[0].amount',
    },
    {
      what: 'a receiver of another family',
      record: { ...message(), receiver: svmAddress('x') },
      rejected: '$.receiver',
    },
    {
      what: 'the family of another network',
      record: { ...message({ tokenAmounts: [] }), sourceNetworkInfo: { ...sepolia, chainFamily: 'SVM' } },
      rejected: '$.sourceNetworkInfo.chainFamily',
    },
    {
      what: 'a done verifier without verification',
      record: withVerifier({ ...completed, verification: null }),
      rejected: `${item}.verification`,
    },
  ];
}

function withFees(more: Shape, number?: number): Shape {
  const record = number === undefined ? message() : makeMessage({ number });
  return { ...record, fees: { ...(record.fees as Shape), ...more } };
}

function shapeOfVerifier(key: string, absent: undefined | null, becomes: Shape): RecordShape {
  const verifier = absent === undefined ? without(pending, key) : { ...pending, [key]: null };
  return {
    what: `a verifier whose ${key} is ${absent === undefined ? 'absent' : 'null'}`,
    record: withVerifier(verifier),
    becomes: { verifiers: { items: [{ ...pending, ...becomes }], optionalThreshold: 0 } },
    derived: [`${item}.${key}`],
  };
}

/** All shapes, each as JSON has it. */
export const recordShapes: readonly RecordShape[] = [
  ...complete(),
  ...withUnknownMembers(),
  ...incomplete(),
  ...withOtherValues(),
  ...rejectedShapes(),
].map((shape) => ({ ...shape, record: JSON.parse(JSON.stringify(shape.record)) as Shape }));

/** The record that the store has for a shape. */
export function storedShape({ record, becomes }: RecordShape): Shape {
  return JSON.parse(JSON.stringify({ ...record, ...becomes })) as Shape;
}

/** What the list of the hosted service shows of a record. */
export function summaryOf(record: Shape): Shape {
  return Object.fromEntries(summaryKeys.map((key) => [key, record[key]]));
}
