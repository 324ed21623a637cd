/** What one transaction of the virtual cluster says: long data, several calls in one transaction, and calls that failed. */
import { describe, expect, test } from 'vitest';
import type { Fact } from '../../../src/domain/facts.ts';
import { UnreadableDataError } from '../../../src/ingest/engine/json-rpc/answer-reader.ts';
import { decodeBase58 } from '../../../src/ingest/svm/decode/borsh.ts';
import {
  readTransaction,
  type TransactionReading,
} from '../../../src/ingest/svm/decode/transaction-facts.ts';
import { trustedPrograms } from '../../../src/ingest/svm/programs.ts';
import { parseTransaction } from '../../../src/ingest/svm/transaction.ts';
import { chatter, type ExecuteCall, sendCall, wrapped } from '../../solana/ccip-calls.ts';
import { dapp, mintOf } from '../../solana/ccip-deployment.ts';
import { ccipMessageSent, plainInstruction, type SentBody } from '../../solana/ccip-events.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { type EvmMessage, messageIdOf } from '../../solana/received-messages.ts';
import { addressOf, concat, fromHex, toBase58, toBase64, toHex } from '../../solana/runtime/bytes.ts';
import {
  budgetExceeded,
  type Call,
  customFailure,
  type LedgerTransaction,
  LOG_BYTES,
  type Step,
} from '../../solana/runtime/runtime.ts';
import { type SendOptions, sepolia, solanaDevnet } from '../../solana/world-options.ts';

const world = createSolanaWorld();
const { cluster, programs } = world;
const { router, offRamp, rmnRemote } = programs;
const sender = addressOf('sender');
const trusted = trustedPrograms(
  [
    { role: 'router', program: router },
    { role: 'offRamp', program: offRamp, router, source: sepolia.network.selector },
  ],
  new Map([[router, rmnRemote]]),
);

function readingOf({ signature, slot, version, message, meta }: LedgerTransaction): TransactionReading {
  const answer = { slot, version, blockTime: 1, transaction: { signatures: [signature], message }, meta };
  return readTransaction(
    parseTransaction(answer, signature),
    solanaDevnet,
    trusted,
    '2026-11-01T00:00:00.000Z',
  );
}

const landed = (...instructions: readonly Call[]) => cluster.land({ feePayer: sender, instructions });
const read = (...instructions: readonly Call[]) => readingOf(landed(...instructions));
const factsOf = <Kind extends Fact['kind']>({ facts }: TransactionReading, kind: Kind) =>
  facts.filter((fact): fact is Extract<Fact, { readonly kind: Kind }> => fact.kind === kind);
const reasonsOf = ({ unreadable }: TransactionReading) => unreadable.map(({ reason }) => reason);
const mintsOf = (reading: TransactionReading) =>
  factsOf(reading, 'Sent').map(({ message }) => [
    message.messageId,
    ...message.tokenAmounts.map(({ sourceTokenAddress }) => sourceTokenAddress),
  ]);
const outcomesOf = (reading: TransactionReading) =>
  factsOf(reading, 'Executed').map(({ messageId, success }) => [messageId, success]);

/**
 * Lands calls behind so much chatter that the log ends at the first line with this text. Not even the shortest line of a
 * frame fits behind it; where `isLeftOut`, this line does not fit either, and shorter ones behind it do.
 */
function landedCut(text: string, calls: readonly Call[], { isLeftOut = false } = {}): LedgerTransaction {
  const chatterer = addressOf('chatterer');
  const plan = (textBytes: number) => [chatter(chatterer, textBytes), ...calls];
  const { logMessages } = cluster.rehearse({ feePayer: sender, instructions: plan(0) }).meta;
  const last = logMessages.findIndex((line) => line.includes(text));
  const used = logMessages.slice(0, last + 1).reduce((sum, line) => sum + line.length, 0);
  const cut = landed(...plan(LOG_BYTES - used - (isLeftOut ? -40 : 10)));
  expect(cut.meta.logMessages).toContain('Log truncated');
  expect(cut.meta.logMessages.some((line) => line.includes(text))).toBe(!isLeftOut);
  return cut;
}
/** How the lines of an execution and of a message start. */
const BEGUN = 'Program data: ubCM';
const SENT = 'Program data: F01J';

// ---- Sends

const longData = (bytes: number): `0x${string}` => `0x${'5a'.repeat(bytes)}`;

interface Sent {
  readonly body: SentBody;
  readonly call: Call;
}

/** A call that sends a message; its token has the given mint. */
function sendOf(options: SendOptions, mint = mintOf(0), { isRelayed = true, more = '' } = {}): Sent {
  const body = world.bodyOf(options, sepolia);
  const call = sendCall({ programs, body, isRelayed, mints: body.tokenAmounts.map(() => mint) });
  return { body, call: { ...call, data: concat(call.data ?? new Uint8Array(), fromHex(more)) } };
}
const idOf = ({ body }: Sent) => toHex(body.header.messageId);
const eventOf = ({ body }: Sent) => toBase64(ccipMessageSent(body));

test('a send with long data is read where its event was cut off', () => {
  const sent = sendOf({ data: longData(3_000), tokens: [7n] });
  const reading = readingOf(landedCut(SENT, [wrapped(dapp, sent.call)], { isLeftOut: true }));
  expect(reading.unreadable).toEqual([]);
  expect(mintsOf(reading)).toEqual([[idOf(sent), mintOf(0)]]);
});

describe('an instruction of a trusted program', () => {
  test.each([0, 1, 8, 9, 100, 3_000, 10_240])('has data in base58 of any length: %i bytes', (length) => {
    for (const first of length > 1_000 ? [1] : [0, 1, 255]) {
      const data = Uint8Array.from({ length }, (_, index) => (index < 2 ? first : 37 * index));
      expect(toHex(decodeBase58(toBase58(data)))).toBe(toHex(data));
    }
  });

  test('that cannot be decoded is kept as unreadable', () => {
    const calls: readonly Call[] = [
      { program: router, data: plainInstruction('ccip_send', new Uint8Array([1, 2])) },
      { program: offRamp, data: plainInstruction('commit', new Uint8Array([1, 2])) },
      { program: offRamp, data: plainInstruction('execute', new Uint8Array([1, 2])) },
    ];
    for (const call of calls) {
      const { program } = call;
      expect(read(call).unreadable).toContainEqual(
        expect.objectContaining({
          address: program,
          reason: expect.stringMatching(/^(?:ccip_send|commit|execute): .*bytes are/),
        }),
      );
    }
  });

  test('whose data is not base58 is kept as unreadable, and the event beside it is read', () => {
    const sent = sendOf({ tokens: [7n] });
    const transaction = landed(sent.call);
    const instructions = transaction.message.instructions.map((one) => ({ ...one, data: '0OIl' }));
    const reading = readingOf({ ...transaction, message: { ...transaction.message, instructions } });
    expect(reasonsOf(reading)).toEqual(['an instruction: data that is not base58']);
    expect(mintsOf(reading)).toEqual([[idOf(sent), '1'.repeat(32)]]);
  });

  test('with more data than any call can have is rejected with the whole answer, as the fault of the node', () => {
    const transaction = landed(sendOf({}).call);
    const instructions = transaction.message.instructions.map((one) => ({
      ...one,
      data: 'z'.repeat(60_000),
    }));
    expect(() => readingOf({ ...transaction, message: { ...transaction.message, instructions } })).toThrow(
      new UnreadableDataError('an instruction with 60000 characters of data'),
    );
  });

  test('may have more bytes than its arguments, as the program ignores them', () => {
    const sent = sendOf({ tokens: [7n] }, mintOf(1), { more: '0xdeadbeef' });
    const reading = readingOf(landedCut(SENT, [sent.call], { isLeftOut: true }));
    expect(reading.unreadable).toEqual([]);
    expect(mintsOf(reading)).toEqual([[idOf(sent), mintOf(1)]]);
  });
});

test('an event whose call is not among the instructions is a contradiction, and its mint is unknown', () => {
  const sent = sendOf({ tokens: [7n] });
  const transaction = landed(wrapped(dapp, sent.call));
  const reading = readingOf({ ...transaction, meta: { ...transaction.meta, innerInstructions: [] } });
  expect(reading.isContradictory).toBe(true);
  expect(mintsOf(reading)).toEqual([[idOf(sent), '1'.repeat(32)]]);
});

describe('several sends of one transaction', () => {
  const twoSends = (isRelayed: boolean): readonly [Sent, Sent] => [
    sendOf({ tokens: [7n], data: longData(2_000) }, mintOf(1), { isRelayed }),
    sendOf({ tokens: [7n] }, mintOf(2), { isRelayed }),
  ];

  test('of the same amount have their own mints where the first event was cut off', () => {
    const [junk, usdc] = twoSends(true);
    const cut = landedCut(eventOf(junk), [junk.call, usdc.call], { isLeftOut: true });
    const reading = readingOf(cut);
    expect(reading.unreadable).toEqual([]);
    expect(new Map(mintsOf(reading).map(([id, mint]) => [id, mint]))).toEqual(
      new Map([
        [idOf(junk), mintOf(1)],
        [idOf(usdc), mintOf(2)],
      ]),
    );
  });

  test('have their own mints where the first has no copy either, which is kept as unreadable', () => {
    const [junk, usdc] = twoSends(false);
    const cut = landedCut(eventOf(junk), [junk.call, usdc.call], { isLeftOut: true });
    const reading = readingOf(cut);
    expect(reasonsOf(reading)).toEqual([
      'a message was sent, and its event was not found: the logs are cut off',
    ]);
    expect(mintsOf(reading)).toEqual([[idOf(usdc), mintOf(2)]]);
  });

  test('within calls of other programs have their own mints', () => {
    const [junk, usdc] = twoSends(true);
    const version: Call = { program: router, data: plainInstruction('type_version') };
    const reading = read(version, wrapped(dapp, junk.call), wrapped(dapp, version), usdc.call);
    expect(reading.unreadable).toEqual([]);
    expect(mintsOf(reading)).toEqual([
      [idOf(junk), mintOf(1)],
      [idOf(usdc), mintOf(2)],
    ]);
  });
});

// ---- Executions

const first = world.receive();
const second = world.receive();
const tokensOnly = world.receive({ tokens: [5n], hasNoReceiver: true });

/** A call of the off-ramp by anybody. */
const manualCall = (message: EvmMessage, more: Partial<ExecuteCall> = {}): Call =>
  world.executionOf(message, { executor: sender, isManual: true, ...more });
/** A program that calls the off-ramp, does more, and fails. */
const failingCaller = (inner: Call, ...more: readonly Step[]): Call => {
  const outer = wrapped(dapp, inner);
  return { ...outer, steps: [...(outer.steps ?? []), ...more, { fails: customFailure(1) }] };
};
const failing: Call = { program: dapp, steps: [{ fails: customFailure(6_001) }] };

describe('an execution that succeeded in a transaction that failed is no attempt', () => {
  test('where a later instruction fails', () => {
    expect(read(manualCall(first), failing)).toMatchObject({ facts: [], unreadable: [] });
  });

  test('where the program that called the off-ramp fails', () => {
    expect(read(failingCaller(manualCall(first))).facts).toEqual([]);
  });

  test('where the logs are cut off before the off-ramp says that it succeeded', () => {
    for (const calls of [[manualCall(first), failing], [failingCaller(manualCall(first))]]) {
      const cut = landedCut(BEGUN, calls);
      expect(cut.meta.logMessages.join('\n')).not.toContain(`Program ${offRamp} success`);
      expect(readingOf(cut).facts).toEqual([]);
    }
  });

  test('where another message of the transaction fails', () => {
    const failed = manualCall(second, { failure: budgetExceeded });
    expect(outcomesOf(read(manualCall(first), failed))).toEqual([[messageIdOf(second), false]]);
  });
});

describe('an execution that failed is an attempt', () => {
  const failed = manualCall(first, { failure: customFailure(77) });
  const attempt = [[messageIdOf(first), false]];

  test('also where another program has called the off-ramp', () => {
    expect(outcomesOf(read(failed))).toEqual(attempt);
    expect(outcomesOf(read(wrapped(dapp, failed)))).toEqual(attempt);
  });

  test('also where the logs are cut off behind its event', () => {
    const cut = landedCut(BEGUN, [failed]);
    expect(cut.meta.logMessages.join('\n')).not.toContain('failed: ');
    expect(outcomesOf(readingOf(cut))).toEqual(attempt);
  });

  test('unless its logs are cut off and another program has called the off-ramp, which may have failed instead', () => {
    expect(readingOf(landedCut(BEGUN, [wrapped(dapp, failed)])).facts).toEqual([]);
  });
});

describe('where the logs are cut off before its event, an execution', () => {
  const cutOff = chatter(addressOf('chatterer'), LOG_BYTES);

  test('is read from its instruction where the off-ramp has called the receiver or a pool', () => {
    expect(outcomesOf(read(cutOff, manualCall(first)))).toEqual([[messageIdOf(first), true]]);
    expect(outcomesOf(read(cutOff, manualCall(tokensOnly)))).toEqual([[messageIdOf(tokensOnly), true]]);
  });

  /** The off-ramp skips a number that was executed before, whatever message comes with it. */
  test('that the off-ramp has skipped does not make the message of its report SUCCESS', () => {
    const reading = read(cutOff, manualCall(first, { isSkipped: true }));
    expect(reading.facts).toEqual([]);
    expect(reasonsOf(reading)).toEqual([
      'an execution, or a message that the off-ramp skipped as executed before: the logs are cut off',
    ]);
  });
});

test('the call of a receiver with 3,000 bytes keeps its role', () => {
  const message = world.receive({ data: longData(3_000) });
  const call = manualCall(message, { failure: customFailure(77) });
  const [details] = factsOf(read(call), 'ExecutionDetails');
  expect(details?.failure?.roles).toMatchObject({ [message.receiver]: 'receiver' });
});
