/** Layouts of events, instructions, extra arguments and accounts: what is encoded is read, any other bytes are rejected. */
import { hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UnreadableDataError } from '../../../src/ingest/engine/json-rpc/answer-reader.ts';
import {
  type Account,
  isAllowedOffRamp,
  isExecuted,
  readDestChain,
  readManualExecutionDelay,
  readReferencedRouter,
  readRouterConfig,
  readSourceChain,
} from '../../../src/ingest/svm/accounts.ts';
import { discriminatorOf } from '../../../src/ingest/svm/decode/borsh.ts';
import {
  type EventName,
  eventNameOf,
  type InstructionName,
  instructionNameOf,
  readEvent,
  readExtraArgs,
  readInstruction,
  relayedEvent,
  selfEmittedEventName,
} from '../../../src/ingest/svm/decode/layouts.ts';
import { readTransaction } from '../../../src/ingest/svm/decode/transaction-facts.ts';
import { trustedPrograms } from '../../../src/ingest/svm/programs.ts';
import { parseTransaction } from '../../../src/ingest/svm/transaction.ts';
import { deployedPrograms } from '../../solana/ccip-accounts.ts';
import type { ReceivedBody, SentBody } from '../../solana/ccip-events.ts';
import * as encoded from '../../solana/ccip-events.ts';
import { receivedVector, sentVector } from '../../solana/published-vectors.ts';
import { concat, fromHex, pubkey, toHex, u32, u64, u128 } from '../../solana/runtime/bytes.ts';
import { solanaDevnet } from '../../solana/world-options.ts';

const program = deployedPrograms.router;
const zero = '1'.repeat(32);
const root = {
  sourceChainSelector: 7n,
  onRampAddress: new Uint8Array(20).fill(0xaa),
  minSeqNr: 3n,
  maxSeqNr: 5n,
  merkleRoot: new Uint8Array(32).fill(0xbb),
};
const readRoot = { ...root, merkleRoot: toHex(root.merkleRoot) };
const prices = [{ destChainSelector: 7n, usdPerUnitGas: 5n }];
const leaf = fromHex(receivedVector.leaf);
const { header } = sentVector.body;
const sent: SentBody = {
  ...sentVector.body,
  tokenAmounts: sentVector.body.tokenAmounts.map((token) => ({ ...token, amount: 500n })),
};
/** With its id in hexadecimal digits, as the decoders have it. */
const decoded = (body: SentBody | ReceivedBody) => ({
  ...body,
  header: { ...body.header, messageId: toHex(body.header.messageId) },
});

const events: readonly (readonly [EventName, Uint8Array, object])[] = [
  ['CommitReportAccepted', encoded.commitReportAccepted(root, prices), { root: readRoot }],
  ['CommitReportAccepted', encoded.commitReportAccepted(undefined, prices), { root: undefined }],
  ['OfframpAdded', encoded.offRampListed(true, 7n, program), { sourceChainSelector: 7n, offramp: program }],
  [
    'CcipVersionForDestChainVersionBumped',
    encoded.versionChanged('Bumped', 7n, 20n, 0n),
    { destChainSelector: 7n, previousSequenceNumber: 20n, newSequenceNumber: 0n },
  ],
  [
    'CCIPMessageSent',
    encoded.ccipMessageSent(sent),
    { destChainSelector: 20n, sequenceNumber: 30n, message: decoded(sent) },
  ],
  [
    'ExecutionStateChanged',
    encoded.executionStateChanged(header, leaf, 'success'),
    {
      sourceChainSelector: 10n,
      sequenceNumber: 30n,
      messageId: toHex(header.messageId),
      messageHash: receivedVector.leaf,
      state: 2,
    },
  ],
];

const report = encoded.executionReport(receivedVector.body, [leaf]);
const instructions: readonly (readonly [InstructionName, Uint8Array, object])[] = [
  [
    'ccip_send',
    encoded.ccipSend(sent, [program]),
    { destChainSelector: 20n, tokens: [{ mint: program, amount: 500n }] },
  ],
  ['commit', encoded.commitInstruction(1n, root, prices), { root: readRoot }],
  // The report is in an account of its own.
  ['execute', encoded.executeInstruction(new Uint8Array(), 1n, Uint8Array.of(8)), { report: undefined }],
  [
    'manually_execute',
    encoded.manuallyExecuteInstruction(report, Uint8Array.of(8)),
    {
      report: {
        sourceChainSelector: 67n,
        message: decoded(receivedVector.body),
        proofs: [receivedVector.leaf],
      },
    },
  ],
];

test.each(events)('the event %s is read, and neither fewer nor more bytes', (name, data, expected) => {
  expect(eventNameOf(data)).toBe(name);
  expect(readEvent(name, data)).toEqual({ name, ...expected });
  expect(() => readEvent(name, concat(data, Uint8Array.of(0)))).toThrow('1 bytes are left over');
  expect(() => readEvent(name, data.subarray(0, -1))).toThrow(UnreadableDataError);
});

describe('instructions', () => {
  test.each(instructions)('%s', (name, data, expected) => {
    expect(instructionNameOf(data)).toBe(name);
    expect(readInstruction(name, data)).toEqual({ name, ...expected });
  });

  test('a relayed event is the bytes behind their length, which must be all of them', () => {
    const relay = encoded.relayedEvent(Uint8Array.of(1, 2));
    expect(relayedEvent(relay)).toEqual(Uint8Array.of(1, 2));
    expect(() => relayedEvent(concat(relay, Uint8Array.of(0)))).toThrow(UnreadableDataError);
    expect(relayedEvent(Uint8Array.of(1, 2, 3))).toBeUndefined();
  });

  test('an event of CCIP 2.0 is recognised by its name', () => {
    const data = hex.decode(`e445a52e51cb9a1d${discriminatorOf('event', 'CCIPMessageSentV2')}00`);
    expect(selfEmittedEventName(data)).toBe('CCIPMessageSentV2');
    expect(selfEmittedEventName(data.subarray(8))).toBeUndefined();
  });
});

describe('extra arguments', () => {
  const accounts = [program];
  const svm = { computeUnits: 80_000, isWritableBitmap: 14n, tokenReceiver: program, accounts };
  const sui = concat(fromHex('21ea4ca9'), u128(11n), Uint8Array.of(1), pubkey(program), u32(0));
  test.each([
    ['of EVM', encoded.evmExtraArgs(10n, true), { gasLimit: '10', allowOutOfOrderExecution: true }],
    [
      'of Solana',
      encoded.svmExtraArgs(svm),
      {
        computeUnits: 80_000,
        accountIsWritableBitmap: '14',
        allowOutOfOrderExecution: true,
        tokenReceiver: program,
        accounts,
      },
    ],
    ['of Sui', sui, { gasLimit: '11', allowOutOfOrderExecution: true }],
  ])('%s', (_, bytes, expected) => {
    expect(readExtraArgs(bytes)).toEqual(expected);
  });

  test('of an unknown tag are rejected with it', () => {
    expect(() => readExtraArgs(hex.decode('a69dd4aa00'))).toThrow('the unknown tag 0xa69dd4aa');
  });
});

describe('accounts', () => {
  /** An account with values at their offsets. */
  const account = (
    type: string,
    size: number,
    values: Readonly<Record<number, Uint8Array>> = {},
  ): Account => {
    const data = new Uint8Array(size);
    data.set(hex.decode(discriminatorOf('account', type)));
    for (const [offset, value] of Object.entries(values)) data.set(value, Number(offset));
    return { owner: program, data };
  };
  const key = pubkey(program);
  const onRamp = Uint8Array.of(0xaa, 0xbb);
  const destChain = account('DestChain', 34, { 17: u64(5n) });
  const renumbered = account('DestChain', 34, { 17: u64(5n), 25: u64(9n), 33: Uint8Array.of(2) });
  const sourceChain = account('SourceChain', 96, { 17: u64(6n), 28: onRamp, 92: u32(2) });

  test.each<readonly [string, unknown, unknown]>([
    [
      'the configuration of a router',
      readRouterConfig(account('Config', 210, { 10: u64(42n), 114: key }), program),
      { chainSelector: 42n, rmnRemote: program },
    ],
    ['a lane', readDestChain(destChain, program), { lastNumber: 5n, numberLeft: undefined }],
    ['a lane with new numbers', readDestChain(renumbered, program), { lastNumber: 5n, numberLeft: 9n }],
    ['a source', readSourceChain(sourceChain, program), { minSeqNr: 6n, onRamp }],
    [
      'the router of an off-ramp',
      readReferencedRouter(account('ReferenceAddresses', 137, { 9: key }), program),
      program,
    ],
    [
      'the delay of manual execution',
      readManualExecutionDelay(account('Config', 104, { 24: u64(3600n) }), program),
      3600,
    ],
    ['an allowed off-ramp', isAllowedOffRamp(account('AllowedOfframp', 8), program), true],
  ])('have %s at its offsets', (_, found, expected) => {
    expect(found).toEqual(expected);
  });

  test('of commits have two bits for each message: 11 is untouched, 12 has succeeded, 13 is in progress', () => {
    const commit = account('CommitReport', 89, { 57: u64(11n), 65: u64(13n), 73: Uint8Array.of(0x18) });
    const executed = [10n, 11n, 12n, 13n, 14n].filter((number) => isExecuted(commit, program, number));
    expect(executed).toEqual([12n]);
  });

  test('of another owner or type are rejected', () => {
    for (const other of [{ ...destChain, owner: zero }, sourceChain])
      expect(() => readDestChain(other, program)).toThrow(UnreadableDataError);
    for (const other of [{ ...account('AllowedOfframp', 8), owner: zero }, destChain, undefined])
      expect(isAllowedOffRamp(other, program)).toBe(false);
  });
});

/** Answers that are nearly transactions: any part may be anything. */
const anyAnswer = () => {
  const nearly = (value: fc.Arbitrary<unknown>) => fc.oneof({ weight: 20, arbitrary: value }, fc.anything());
  const instruction = nearly(
    fc.record({
      programIdIndex: nearly(fc.constantFrom(0, 1)),
      data: nearly(fc.string()),
      stackHeight: nearly(fc.constantFrom(null, 2, 3)),
    }),
  );
  return fc.record({
    slot: nearly(fc.nat()),
    blockTime: nearly(fc.option(fc.nat())),
    transaction: nearly(
      fc.record({
        signatures: nearly(fc.constant(['signature'])),
        message: nearly(
          fc.record({
            accountKeys: nearly(fc.constant([program, zero])),
            instructions: nearly(fc.array(instruction)),
          }),
        ),
      }),
    ),
    meta: nearly(
      fc.record({
        err: nearly(fc.constant(null)),
        logMessages: nearly(
          fc.array(
            fc.oneof(
              fc.constant(`Program ${program} invoke [1]`),
              fc.constant(`Program ${program} success`),
              fc.base64String().map((text) => `Program data: ${text}`),
            ),
          ),
        ),
        innerInstructions: nearly(
          fc.array(fc.record({ index: fc.nat(3), instructions: fc.array(instruction) }), { maxLength: 2 }),
        ),
        loadedAddresses: nearly(fc.constant({ writable: [], readonly: [] })),
      }),
    ),
  });
};

function expectReadOrRejected(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(UnreadableDataError);
  }
}

test('any answer is read as a transaction, or rejected with a reason, and whatever it says is decoded', () => {
  const trusted = trustedPrograms([{ role: 'router', program }], new Map([[program, zero]]));
  let read = 0;
  fc.assert(
    fc.property(anyAnswer(), (answer) =>
      expectReadOrRejected(() => {
        const transaction = parseTransaction(answer, 'signature');
        readTransaction(transaction, solanaDevnet, trusted, '2026-01-01T00:00:00.000Z');
        read++;
      }),
    ),
    { numRuns: 2_000 },
  );
  expect(read).toBeGreaterThan(0);
});

test('any bytes are read, or rejected with a reason', () => {
  const readers: readonly ((data: Uint8Array) => unknown)[] = [
    ...events.map(([name]) => readEvent.bind(undefined, name)),
    ...instructions.map(([name]) => readInstruction.bind(undefined, name)),
    readExtraArgs,
    relayedEvent,
    selfEmittedEventName,
    (data) => isExecuted({ owner: program, data }, program, 3n),
    (data) => readSourceChain({ owner: program, data }, program),
  ];
  // Small numbers are likely lengths and flags.
  const soup = fc.array(fc.oneof(fc.constantFrom(0, 1, 2), fc.integer({ min: 0, max: 255 })), {
    maxLength: 300,
  });
  fc.assert(
    fc.property(soup, fc.nat(), (given, choice) =>
      expectReadOrRejected(() => readers[choice % readers.length]?.(Uint8Array.from(given))),
    ),
    { numRuns: 2_000 },
  );
});
