/** Facts as rows: whatever a fact says, in whatever spelling, it is read back with the text that its id is the hash of. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTransactionHash } from '../../../src/domain/addresses.ts';
import { type Fact, isRangeFact, isRootFact, type MessageFact } from '../../../src/domain/facts.ts';
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
import { anyFact, someHash } from '../../fixtures/any-fact.ts';
import {
  digits,
  fuji,
  hashOf,
  makeExecuted,
  makeExecutionDetails,
  makeMessage,
  makeRootBlessed,
  makeSent,
  makeToken,
  networkInfo,
  sepolia,
  solanaDevnet,
  svmAddress,
  svmSignature,
} from '../../fixtures.ts';
import { rowAsRead } from './row-as-read.ts';

const readBack = (fact: Fact): readonly Fact[] => {
  if (isRootFact(fact)) return [readRootFact(rowAsRead(rootFactValues(fact)))];
  if (isRangeFact(fact))
    return rangePieces(fact).map((piece) => {
      const { sourceSelector: source_selector, destSelector: dest_selector } = piece;
      const range = { source_selector, dest_selector, from_sequence: piece.from, to_sequence: piece.to };
      return readRangeFact({ ...rowAsRead(rangeFactValues(fact, piece)), ...range });
    });
  const values = messageFactValues(fact, factId(JSON.stringify(fact)));
  return [readMessageFact(rowAsRead({ ...values }), values.message_id)];
};
const expectExact = (fact: Fact) => {
  for (const read of readBack(fact)) expect(JSON.stringify(read)).toBe(JSON.stringify(fact));
};

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
    const token = makeToken(sepolia, fuji, 'LINK');
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
