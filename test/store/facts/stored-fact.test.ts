/** Facts as rows: whatever a fact says, in whatever spelling, it is read back with the text that its id is the hash of. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTransactionHash } from '../../../src/domain/addresses.ts';
import {
  type Fact,
  isRangeFact,
  isRootFact,
  type MessageFact,
  type Observation,
} from '../../../src/domain/facts.ts';
import { parseMessage } from '../../../src/domain/records/message-parser.ts';
import { hashBytes, hashText } from '../../../src/store/facts/hash-bytes.ts';
import { FAILED_EXECUTION, kindNumber, kindNumbers } from '../../../src/store/facts/kinds.ts';
import {
  factId,
  messageFactValues,
  rangeFactValues,
  readMessageFact,
  readRangeFact,
  readRootFact,
  rootFactValues,
  storedPlaceOf,
} from '../../../src/store/facts/stored-fact.ts';
import { rangePieces } from '../../../src/store/write/lane-facts.ts';
import { anyRecord } from '../../fixtures/any-record.ts';
import {
  canonical,
  digits,
  hashOf,
  makeExecuted,
  makeExecutionDetails,
  makeMessage,
  makeRange,
  makeRootBlessed,
  makeSent,
  makeSnapshot,
  makeToken,
  networkInfo,
  sepolia,
  solanaDevnet,
  svmAddress,
  svmSignature,
} from '../../fixtures.ts';

/** A row as the driver returns it. */
const asRead = (values: Readonly<Record<string, unknown>>) => {
  const bytes = ['block_hash', 'transaction', 'merkle_root', 'message_id', 'fact_id'];
  return Object.fromEntries(
    Object.entries(values).map(([column, value]) => {
      if (value === null || Buffer.isBuffer(value) || value === undefined) return [column, value];
      if (bytes.includes(column)) return [column, Buffer.from(String(value), 'hex')];
      if (column === 'seen_at') return [column, new Date(String(value))];
      return [column, column === 'block_number' ? String(value) : value];
    }),
  );
};

const readBack = (fact: Fact): readonly Fact[] => {
  if (isRootFact(fact)) return [readRootFact(asRead(rootFactValues(fact)))];
  if (isRangeFact(fact))
    return rangePieces(fact).map((piece) => {
      const { sourceSelector: source_selector, destSelector: dest_selector } = piece;
      const range = { source_selector, dest_selector, from_sequence: piece.from, to_sequence: piece.to };
      return readRangeFact({ ...asRead(rangeFactValues(fact, piece)), ...range });
    });
  const values = messageFactValues(fact, factId(JSON.stringify(fact)));
  return [readMessageFact(asRead({ ...values }), values.message_id)];
};
const expectExact = (fact: Fact) => {
  for (const read of readBack(fact)) expect(JSON.stringify(read)).toBe(JSON.stringify(fact));
};

const networks = [
  sepolia,
  solanaDevnet,
  ...['aptos', 'sui', 'ton', 'canton'].map((name) => networkInfo(`${name}-testnet`)),
];
const someText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.nat(0xffff), { maxLength: 70 }).map((units) => String.fromCharCode(...units)),
);
const someHash = fc.oneof(
  fc.nat().map((n) => hashOf(n)),
  fc.nat().map((n) => hashOf(n).toUpperCase().replace('X', 'x')),
  fc.nat().map((n) => digits(n)),
  fc.nat().map((n) => svmAddress(n)),
  fc.nat().map((n) => svmSignature(n)),
  fc.nat().map((n) => `1220${digits(n)}`),
  fc.nat().map((n) => `0:${digits(n)}:77:${digits(n, 'b')}`),
  fc.string({ unit: fc.constantFrom('a', 'ü', '\u0000'), minLength: 29, maxLength: 66 }),
  someText,
);
const observation: fc.Arbitrary<Observation> = fc.record({
  // Also of a network that is not known here, as where its settings were removed.
  network: fc.constantFrom(
    ...networks.map(({ chainSelector }) => chainSelector),
    '78',
    '0078',
    '18446744073709551615',
  ),
  blockNumber: fc.oneof(fc.maxSafeNat(), fc.nat(40), fc.constant(-1)),
  blockHash: someHash,
  transactionHash: fc.option(someHash),
  logIndex: fc.option(fc.oneof(fc.maxSafeNat(), fc.nat(40))),
  at: fc.oneof(
    fc.nat(2_000_000_000).map((seconds) => new Date(1000 * seconds).toISOString()),
    fc
      .date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
      .map((date) => date.toISOString()),
    fc.constantFrom('2026-01-01T00:00:00Z', '1970-01-01', 'never', ''),
  ),
});
const messageId = fc.nat().map((n) => hashOf('any message', n));
const message = anyRecord.filter((record) => parseMessage(record).ok).map(canonical);
const decimal = fc.bigInt(0n, 2n ** 64n - 1n).map(String);
const root = fc
  .nat()
  .chain((n) => fc.constantFrom(hashOf('root', n), `0x${digits('root', n).toUpperCase()}`));
const anyFact: fc.Arbitrary<Fact> = fc.oneof(
  fc.record(
    {
      kind: fc.constant('Sent'),
      message: message.map(
        ({
          status,
          receiptTransactionHash,
          receiptTimestamp,
          deliveryTime,
          readyForManualExecution,
          ...sent
        }) => sent,
      ),
      execution: fc.oneof(
        fc.record({ message: message.map((value) => ({ ...value, extraArgs: value.data })) }),
        fc.record({ encodedMessage: someText, offramp: someHash }),
      ),
      seen: observation,
    },
    { requiredKeys: ['kind', 'message', 'seen'] },
  ),
  message.map(makeSnapshot),
  fc.record({
    kind: fc.constantFrom('SourceFinalized', 'ManualExecutionOpened'),
    messageId,
    seen: observation,
  }),
  fc.record({ kind: fc.constant('Executed'), messageId, success: fc.boolean(), seen: observation }),
  // Another order of members.
  fc.record({ seen: observation, success: fc.boolean(), messageId, kind: fc.constant('Executed') }),
  fc.record({
    kind: fc.constant('VerifierPolicy'),
    messageId,
    required: fc.array(someHash, { maxLength: 3 }),
    optional: fc.array(someHash, { maxLength: 3 }),
    optionalThreshold: fc.nat(300),
    seen: observation,
  }),
  fc.record({
    kind: fc.constant('VerifierCompleted'),
    messageId,
    verifier: someHash,
    data: someHash,
    seen: observation,
  }),
  fc.record(
    {
      kind: fc.constant('ExecutionDetails'),
      messageId,
      returnData: fc.option(someHash),
      gasUsed: fc.option(decimal),
      caller: fc.option(someHash),
      failure: fc.record({
        offRamp: someHash,
        roles: fc.dictionary(someHash, fc.constantFrom('receiver', 'pool', 'rmn')),
        error: someText,
        logs: fc.array(someText, { maxLength: 5 }),
      }),
      seen: observation,
    },
    { requiredKeys: ['kind', 'messageId', 'returnData', 'gasUsed', 'caller', 'seen'] },
  ),
  fc
    .tuple(
      fc.bigInt(0n, 2n ** 63n),
      fc.bigInt(0n, 1_000n),
      fc.constantFrom('Committed', 'Blessed'),
      root,
      observation,
      fc.boolean(),
    )
    .map(([from, length, kind, merkleRoot, seen, isKnown]) => ({
      ...makeRange(kind as 'Committed', makeMessage(), 1, 2),
      fromSequenceNumber: String(from),
      toSequenceNumber: String(from + length),
      merkleRoot,
      ...(isKnown && { offramp: svmAddress('off-ramp') }),
      seen,
    })),
  fc.record({ kind: fc.constantFrom('RootBlessed', 'RootRemoved'), merkleRoot: root, seen: observation }),
) as fc.Arbitrary<Fact>;

describe('a stored fact', () => {
  it('is read back exactly, of every kind, on every network, in any spelling', () => {
    fc.assert(fc.property(anyFact, expectExact), { numRuns: 1_000 });
  });

  it('is read back where the table of networks has changed', () => {
    const seen = { ...makeExecuted(makeMessage(), true).seen, network: '4321', blockHash: svmAddress('b') };
    expectExact({
      ...makeExecuted(makeMessage(), false),
      seen: { ...seen, transactionHash: svmSignature('t') },
    });
  });

  it('holds each value once: of 1.6, less than a fourth of its JSON', () => {
    const token = makeToken(sepolia, networks[0] ?? sepolia, 'LINK');
    const sent = makeSent(makeMessage({ tokenAmounts: [token] }));
    const { extraArgs: _, fees, sourceNetworkInfo, destNetworkInfo, ...parts } = sent.message;
    const execution = {
      message: {
        messageId: parts.messageId,
        sourceChainSelector: sourceNetworkInfo.chainSelector,
        destChainSelector: destNetworkInfo.chainSelector,
        sequenceNumber: parts.sequenceNumber,
        nonce: parts.nonce,
        sender: parts.sender,
        receiver: parts.receiver,
        data: parts.data,
        extraArgs: `0x181dcf10${'0'.repeat(59)}30d40${'0'.repeat(63)}1`,
        feeToken: fees.fixedFeesDetails.tokenAddress,
        feeTokenAmount: fees.fixedFeesDetails.totalAmount,
        feeValueJuels: '123456789012345678',
        tokenAmounts: [{ ...token, destGasAmount: undefined, destExecData: `0x${'0'.repeat(59)}15f90` }],
      },
    };
    const fact = { ...sent, execution };
    expectExact(fact);
    const { body } = messageFactValues(fact, factId(JSON.stringify(fact)));
    expect(JSON.stringify(fact).length).toBeGreaterThan(2_300);
    expect(body.length).toBeLessThan(550);
  });

  it('of an execution is a few bytes beside its columns', () => {
    for (const network of [sepolia, solanaDevnet]) {
      const executed = makeExecuted(makeMessage({ destNetworkInfo: network }), false);
      expect(messageFactValues(executed, digits('id')).body.length).toBeLessThan(20);
    }
  });

  it('has the transaction as searches look for it, in any spelling', () => {
    const upper = makeExecuted(makeMessage(), false);
    const hash = upper.seen.transactionHash ?? '';
    const spelled = {
      ...upper,
      seen: { ...upper.seen, transactionHash: `0x${hash.slice(2).toUpperCase()}` },
    };
    const ton = networkInfo('ton-testnet');
    const composite = `0:${digits('a')}:77:${digits('t')}`;
    const onTon = {
      ...upper,
      seen: { ...upper.seen, network: ton.chainSelector, transactionHash: composite },
    };
    for (const [fact, text, family] of [
      [spelled, hash, 'EVM'],
      [onTon, composite, 'TON'],
    ] as const) {
      const { transaction } = messageFactValues(fact, digits('id'));
      expect(transaction).toBe(parseTransactionHash(text, family)?.bytes);
      expectExact(fact);
    }
    expect(storedPlaceOf(spelled.seen)).toBe(storedPlaceOf(upper.seen));
  });
});

describe('a hash as bytes', () => {
  it('is read back exactly, and no two have the same bytes', () => {
    fc.assert(
      fc.property(someHash, (text) => {
        expect(hashText(Buffer.from(hashBytes(text), 'hex'))).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });

  it('has as many bytes as the hash where it is spelled as its chain does', () => {
    expect(hashBytes(hashOf('one'))).toHaveLength(64);
    expect(hashBytes(svmSignature('one'))).toHaveLength(128);
    expect(hashBytes(svmAddress('one'))).toHaveLength(66);
  });
});

it('kinds keep their numbers, and failed executions have one of their own', () => {
  expect(kindNumbers).toEqual({
    Sent: 1,
    SourceFinalized: 2,
    VerifierPolicy: 3,
    VerifierCompleted: 4,
    ManualExecutionOpened: 5,
    Executed: 6,
    ExecutionDetails: 8,
    Snapshot: 9,
    Committed: 10,
    Blessed: 11,
    RootBlessed: 12,
    RootRemoved: 13,
  });
  expect(FAILED_EXECUTION).toBe(7);
  const facts: readonly [MessageFact | Fact, number][] = [
    [makeExecuted(makeMessage(), true), 6],
    [makeExecuted(makeMessage(), false), 7],
    [makeExecutionDetails(makeMessage(), '0x'), 8],
    [makeRootBlessed(makeMessage(), 1, 2), 12],
  ];
  for (const [fact, number] of facts) expect(kindNumber(fact)).toBe(number);
});
