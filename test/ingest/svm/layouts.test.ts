/** Layouts of events, instructions, extra arguments and accounts: what is encoded is read, any other bytes are rejected. */
import { base58, hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findNetwork, type Network } from '../../../src/domain/networks/networks.ts';
import {
  isAllowedOffRamp,
  isExecuted,
  readCommitReport,
  readDestChain,
  readManualExecutionDelay,
  readReferencedRouter,
  readRouterConfig,
  readSourceChain,
} from '../../../src/ingest/svm/accounts.ts';
import { UnreadableDataError } from '../../../src/ingest/svm/decode/borsh.ts';
import { discriminatorOf } from '../../../src/ingest/svm/decode/discriminators.ts';
import { type EventName, eventNameOf, readEvent } from '../../../src/ingest/svm/decode/events.ts';
import { readExtraArgs } from '../../../src/ingest/svm/decode/extra-args.ts';
import {
  type InstructionName,
  instructionNameOf,
  readInstruction,
  relayedEvent,
  selfEmittedEventName,
} from '../../../src/ingest/svm/decode/instructions.ts';
import { readTransaction } from '../../../src/ingest/svm/decode/transaction-facts.ts';
import { trustedPrograms } from '../../../src/ingest/svm/programs.ts';
import { parseTransaction } from '../../../src/ingest/svm/transaction.ts';

const program = 'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C';
const programHex = hex.encode(base58.decode(program));
const zero = '1'.repeat(32);
const u64 = (value: number) => Buffer.from(new BigUint64Array([BigInt(value)]).buffer).toString('hex');
const u32 = (value: number) => Buffer.from(new Uint32Array([value]).buffer).toString('hex');
const bytes = (digits: string) => u32(digits.length / 2) + digits;

const root = `${u64(7)}${bytes('aa'.repeat(20))}${u64(3)}${u64(5)}${'bb'.repeat(32)}`;
const readRoot = {
  sourceChainSelector: 7n,
  onRampAddress: hex.decode('aa'.repeat(20)),
  minSeqNr: 3n,
  maxSeqNr: 5n,
  merkleRoot: `0x${'bb'.repeat(32)}`,
};
const prices = `${u32(1)}${'00'.repeat(60)}${u32(2)}${'00'.repeat(72)}`;
const header = `${'cc'.repeat(32)}${u64(7)}${u64(9)}${u64(4)}${u64(0)}`;
const report =
  `${u64(7)}${header}${bytes('aa'.repeat(20))}${bytes('0102')}${programHex}` +
  `${u32(1)}${bytes('dd'.repeat(20))}${programHex}${u32(90)}${bytes('')}${u64(5)}${'00'.repeat(24)}` +
  `${u32(1000)}${u64(14)}${u32(1)}${bytes('0a')}${u32(1)}${'ee'.repeat(32)}`;

const events: readonly (readonly [EventName, string, unknown])[] = [
  ['CommitReportAccepted', `01${root}${prices}`, { name: 'CommitReportAccepted', root: readRoot }],
  ['CommitReportAccepted', `00${prices}`, { name: 'CommitReportAccepted', root: undefined }],
  [
    'OfframpAdded',
    `${u64(7)}${programHex}`,
    { name: 'OfframpAdded', sourceChainSelector: 7n, offramp: program },
  ],
  [
    'CcipVersionForDestChainVersionBumped',
    `${u64(7)}${u64(20)}${u64(0)}`,
    {
      name: 'CcipVersionForDestChainVersionBumped',
      destChainSelector: 7n,
      previousSequenceNumber: 20n,
      newSequenceNumber: 0n,
    },
  ],
];

const instructions: readonly (readonly [InstructionName, string, unknown])[] = [
  [
    'ccip_send',
    `${u64(7)}${bytes('aa')}${bytes('')}${u32(1)}${programHex}${u64(500)}${programHex}${bytes('')}${bytes('00')}`,
    { name: 'ccip_send', destChainSelector: 7n, tokens: [{ mint: program, amount: 500n }] },
  ],
  [
    'commit',
    `${'00'.repeat(64)}${bytes(`${prices}01${root}${u32(1)}${'00'.repeat(64)}`)}${u32(1)}${'00'.repeat(32)}${u32(0)}${'00'.repeat(32)}`,
    { name: 'commit', root: readRoot },
  ],
  ['execute', `${bytes('')}${'00'.repeat(64)}${bytes('08')}`, { name: 'execute', report: undefined }],
];

describe('events', () => {
  test.each(events)('%s', (name, body, expected) => {
    const data = hex.decode(discriminatorOf('event', name) + body);
    expect(eventNameOf(data)).toBe(name);
    expect(readEvent(name, data)).toEqual(expected);
    expect(() => readEvent(name, hex.decode(`${hex.encode(data)}00`))).toThrow('1 bytes are left over');
    expect(() => readEvent(name, data.subarray(0, -1))).toThrow(UnreadableDataError);
  });
});

describe('instructions', () => {
  test.each(instructions)('%s', (name, body, expected) => {
    const data = hex.decode(discriminatorOf('global', name) + body);
    expect(instructionNameOf(data)).toBe(name);
    expect(readInstruction(name, data)).toEqual(expected);
  });

  test('manually_execute has the message in its report', () => {
    const data = hex.decode(`${discriminatorOf('global', 'manually_execute')}${bytes(report)}${bytes('')}`);
    expect(readInstruction('manually_execute', data)).toMatchObject({
      report: {
        sourceChainSelector: 7n,
        message: {
          header: { messageId: `0x${'cc'.repeat(32)}`, sequenceNumber: 4n },
          tokenAmounts: [{ destTokenAddress: program, destGasAmount: 90, amount: 5n }],
          computeUnits: 1000,
          isWritableBitmap: 14n,
        },
        proofs: [`0x${'ee'.repeat(32)}`],
      },
    });
  });

  test('a relayed event is the bytes behind their length, which must be all of them', () => {
    const relay = discriminatorOf('global', 'cpi_event');
    expect(relayedEvent(hex.decode(`${relay}${bytes('0102')}`))).toEqual(Uint8Array.of(1, 2));
    expect(() => relayedEvent(hex.decode(`${relay}${bytes('0102')}00`))).toThrow(UnreadableDataError);
    expect(relayedEvent(Uint8Array.of(1, 2, 3))).toBeUndefined();
  });

  test('an event of CCIP 2.0 is recognised by its name', () => {
    const data = hex.decode(`e445a52e51cb9a1d${discriminatorOf('event', 'CCIPMessageSentV2')}00`);
    expect(selfEmittedEventName(data)).toBe('CCIPMessageSentV2');
    expect(selfEmittedEventName(data.subarray(8))).toBeUndefined();
  });
});

describe('extra arguments', () => {
  test.each([
    [`181dcf10${'0a'.padEnd(32, '0')}01`, { gasLimit: '10', allowOutOfOrderExecution: true }],
    [
      `1f3b3aba${u32(80_000)}${u64(14)}00${programHex}${u32(1)}${programHex}`,
      {
        computeUnits: 80_000,
        accountIsWritableBitmap: '14',
        allowOutOfOrderExecution: false,
        tokenReceiver: program,
        accounts: [program],
      },
    ],
    [
      `21ea4ca9${'0b'.padEnd(32, '0')}01${programHex}${u32(0)}`,
      { gasLimit: '11', allowOutOfOrderExecution: true },
    ],
  ])('%s', (digits, expected) => {
    expect(readExtraArgs(hex.decode(digits))).toEqual(expected);
  });

  test('an unknown tag is named', () => {
    expect(() => readExtraArgs(hex.decode('a69dd4aa00'))).toThrow('the unknown tag 0xa69dd4aa');
  });
});

describe('accounts', () => {
  /** An account with values at their offsets. */
  const account = (type: string, size: number, values: Readonly<Record<number, string>>) => {
    const data = new Uint8Array(size);
    data.set(hex.decode(discriminatorOf('account', type)));
    for (const [offset, digits] of Object.entries(values)) data.set(hex.decode(digits), Number(offset));
    return { owner: program, isExecutable: false, data };
  };

  test('are read at their offsets', () => {
    expect(readRouterConfig(account('Config', 210, { 10: u64(42), 114: programHex }), program)).toEqual({
      chainSelector: 42n,
      rmnRemote: program,
    });
    expect(readDestChain(account('DestChain', 34, { 17: u64(5) }), program)).toEqual({
      lastNumber: 5n,
      numberLeft: undefined,
    });
    const renumbered = account('DestChain', 34, { 17: u64(5), 25: u64(9), 33: '02' });
    expect(readDestChain(renumbered, program)).toEqual({ lastNumber: 5n, numberLeft: 9n });
    expect(readReferencedRouter(account('ReferenceAddresses', 137, { 9: programHex }), program)).toBe(
      program,
    );
    expect(readManualExecutionDelay(account('Config', 104, { 24: u64(3600) }), program)).toBe(3600);
    expect(
      readSourceChain(account('SourceChain', 96, { 17: u64(6), 28: 'aabb', 92: u32(2) }), program),
    ).toEqual({ minSeqNr: 6n, onRamp: Uint8Array.of(0xaa, 0xbb) });
    // Two bits a message: 11 is untouched, 12 has succeeded, 13 is in progress.
    const commit = readCommitReport(
      account('CommitReport', 89, { 17: 'bb'.repeat(32), 57: u64(11), 65: u64(13), 73: '18' }),
      program,
    );
    expect(commit.root).toBe(readRoot.merkleRoot);
    expect([10n, 11n, 12n, 13n, 14n].map((number) => isExecuted(commit, number))).toEqual([
      false,
      false,
      true,
      false,
      false,
    ]);
    expect(isAllowedOffRamp(account('AllowedOfframp', 8, {}), program)).toBe(true);
  });

  test('of another owner or type are rejected', () => {
    expect(() => readDestChain({ ...account('DestChain', 34, {}), owner: zero }, program)).toThrow(
      UnreadableDataError,
    );
    expect(() => readDestChain(account('SourceChain', 96, {}), program)).toThrow(UnreadableDataError);
    expect(isAllowedOffRamp({ ...account('AllowedOfframp', 8, {}), owner: zero }, program)).toBe(false);
    expect(isAllowedOffRamp(account('DestChain', 34, {}), program)).toBe(false);
    expect(isAllowedOffRamp(undefined, program)).toBe(false);
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

test('any answer is read as a transaction, or rejected with a reason, and whatever it says is decoded', () => {
  const network = findNetwork('solana-devnet') as Network;
  const trusted = trustedPrograms([{ role: 'router', program }], new Map([[program, zero]]));
  let read = 0;
  fc.assert(
    fc.property(anyAnswer(), (answer) => {
      try {
        const transaction = parseTransaction(answer, 'signature');
        readTransaction(transaction, network, trusted, '2026-01-01T00:00:00.000Z');
        read++;
      } catch (error) {
        expect(error).toBeInstanceOf(UnreadableDataError);
      }
    }),
    { numRuns: 2_000 },
  );
  expect(read).toBeGreaterThan(0);
});

test('any bytes are read, or rejected with a reason', () => {
  const eventNames = [
    ...new Set([...events.map(([name]) => name), 'CCIPMessageSent', 'ExecutionStateChanged']),
  ];
  const readers: readonly ((data: Uint8Array) => unknown)[] = [
    ...eventNames.map((name) => (data: Uint8Array) => readEvent(name as EventName, data)),
    ...(['ccip_send', 'commit', 'execute', 'manually_execute'] as const).map(
      (name) => (data: Uint8Array) => readInstruction(name, data),
    ),
    readExtraArgs,
    relayedEvent,
    selfEmittedEventName,
    (data) => readCommitReport({ owner: program, isExecutable: false, data }, program),
    (data) => readSourceChain({ owner: program, isExecutable: false, data }, program),
  ];
  // Small numbers are likely lengths and flags.
  const soup = fc.array(fc.oneof(fc.constantFrom(0, 1, 2), fc.integer({ min: 0, max: 255 })), {
    maxLength: 300,
  });
  fc.assert(
    fc.property(soup, fc.nat(), (given, choice) => {
      const read = readers[choice % readers.length];
      try {
        read?.(Uint8Array.from(given));
      } catch (error) {
        expect(error).toBeInstanceOf(UnreadableDataError);
      }
    }),
    { numRuns: 2_000 },
  );
});
