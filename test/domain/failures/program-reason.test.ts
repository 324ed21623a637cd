/** Why a transaction of Solana failed, from its error and its log lines. */
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { reasonGroup } from '../../../src/domain/failures/failure-reason.ts';
import { programErrorNames } from '../../../src/domain/failures/program-errors.ts';
import {
  type ProgramFailure,
  programFailureReason,
  raisedError,
} from '../../../src/domain/failures/program-reason.ts';
import { offRampErrors } from '../../../src/domain/failures/solana-ccip-errors.ts';

const OFF_RAMP = 'offVkroQ4wYMv6QFPBvJazAx2p8BnLh7sJRdyQ5GYfx';
const POOL = 'J9bvT8crfKDY6QmJz8iKHoVZbEwCrsxywSM77uUqXhpb';
const RECEIVER = 'Redic2v6fBaUoHovjaKPEAQXFgwJVbEuyAiWyytdR5S';
const TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const roles = { [POOL]: 'pool', [RECEIVER]: 'receiver' } as const;

const custom = (number: number) => JSON.stringify({ InstructionError: [1, { Custom: number }] });
const failed = (program: string, number: number) =>
  `Program ${program} failed: custom program error: 0x${number.toString(16)}`;
const anchorLine = (name: string, number: number, message = 'no') =>
  `Program log: AnchorError thrown in programs/x/src/lib.rs:7. Error Code: ${name}. Error Number: ${number}. Error Message: ${message}.`;

const failedWith = (error: string, logs: readonly string[]): ProgramFailure => ({
  offRamp: OFF_RAMP,
  roles,
  error,
  logs,
});

/** A failure with these lines in the frame of the program, and the programs that called it behind. */
function failureOf(
  number: number,
  stack: readonly [string, ...string[]],
  lines: readonly string[] = [],
): ProgramFailure {
  const ends = stack.map((each) => failed(each, number));
  return failedWith(custom(number), [`Program ${stack[0]} invoke [${stack.length}]`, ...lines, ...ends]);
}

test('a failed execution that was recorded on devnet: the receiver ran out of compute units', () => {
  const failure = failedWith('{"InstructionError":[1,"ComputationalBudgetExceeded"]}', [
    `Program ${OFF_RAMP} invoke [1]`,
    'Program log: Instruction: Execute',
    `Program ${POOL} invoke [2]`,
    `Program ${POOL} success`,
    `Program ${RECEIVER} invoke [2]`,
    'Program log: Instruction: CcipReceive',
    `Program ${RECEIVER} consumed 158067 of 158067 compute units`,
    `Program ${RECEIVER} failed: Computational budget exceeded`,
    `Program ${OFF_RAMP} consumed 379850 of 379850 compute units`,
    `Program ${OFF_RAMP} failed: Computational budget exceeded`,
  ]);
  expect(programFailureReason(failure, 80_000)).toMatchObject({
    code: 'out-of-compute',
    text: 'The receiver ran out of compute units: it used all 158,067 that were left; the message asks for 80,000 for its receiver.',
    fixableBy: 'anyone',
    advice: expect.stringContaining('higher limit of compute units'),
  });
  expect(reasonGroup(programFailureReason(failure))).toMatchObject({ title: 'Out of compute units' });
});

test.each([
  ['{"InstructionError":[0,"ProgramFailedToComplete"]}', 'exceeded CUs meter at BPF instruction'],
  ['{"InstructionError":[0,"ComputationalBudgetExceeded"]}', 'Computational budget exceeded'],
])('%s, “%s” is for want of compute units', (error, text) => {
  const logs = [`Program ${POOL} failed: ${text}`, `Program ${OFF_RAMP} failed: ${text}`];
  expect(programFailureReason(failedWith(error, logs))).toMatchObject({
    code: 'out-of-compute',
    text: 'The token or its pool ran out of compute units.',
  });
});

test.each([
  ['a rate limit', 6017, [POOL, OFF_RAMP], 'RLRateLimitReached', 'anyone', /rate limit is used up/],
  ['a capacity', 6016, [POOL, OFF_RAMP], 'RLMaxCapacityExceeded', 'pool-owner', /ever allows at once/],
  ['no liquidity', 1, [TOKEN, POOL, OFF_RAMP], 'InsufficientFunds', 'pool-owner', /holds less of the token/],
  ['a frozen account', 17, [TOKEN, POOL, OFF_RAMP], 'AccountFrozen', 'pool-owner', /frozen/],
  ['a paused token', 67, [TOKEN, POOL, OFF_RAMP], 'MintPaused', 'pool-owner', /paused/],
  ['no right to mint', 4, [TOKEN, POOL, OFF_RAMP], 'OwnerMismatch', 'pool-owner', /no right/],
  ['the off-ramp', 9032, [OFF_RAMP], 'OfframpReleaseMintBalanceMismatch', 'pool-owner', /another amount/],
  ['common checks', 10002, [OFF_RAMP], 'InvalidInputsTokenAccounts', 'anyone', /accounts/],
] as const)('%s: error %i has a name, a fixer and words', (_, number, stack, code, fixableBy, text) => {
  const reason = programFailureReason(failureOf(number, stack));
  expect(reason).toMatchObject({ code, fixableBy, text: expect.stringMatching(text) });
  expect(reason.error?.arguments).toEqual([
    { name: 'program', value: stack[0] },
    { name: 'number', value: String(number) },
  ]);
});

test('a number that two pools use differently has a name only where the log says it', () => {
  expect(programFailureReason(failureOf(6005, [POOL, OFF_RAMP]))).toMatchObject({
    code: 'program-error',
    fixableBy: 'pool-owner',
    text: 'The token or its pool failed with its own error 6005, which is not known here.',
  });
  const named = failureOf(6005, [POOL, OFF_RAMP], [anchorLine('InvalidPoolCaller', 6005)]);
  expect(programFailureReason(named)).toMatchObject({
    code: 'InvalidPoolCaller',
    text: 'The token or its pool says: the token pool does not accept this off-ramp.',
  });
});

test("a receiver's own error is told by the name that it has for it, as its claim", () => {
  const failure = failureOf(6001, [RECEIVER, OFF_RAMP], [anchorLine('TooSpicy', 6001, 'Level nine')]);
  const reason = programFailureReason(failure);
  expect(reason).toMatchObject({
    code: 'TooSpicy',
    fixableBy: 'receiver-owner',
    text: 'The receiver failed with TooSpicy (error 6001), as the program calls it. It says: “Level nine”.',
    error: { namedBy: 'program' },
  });
  // The same name of another program is another cause.
  const logs = failure.logs.map((line) => line.replaceAll(RECEIVER, TOKEN.replace('T', 'S')));
  expect(reasonGroup(reason).key).not.toBe(reasonGroup(programFailureReason({ ...failure, logs })).key);
});

describe('what a program claims is believed of itself alone', () => {
  test('the line of another program, or with another number, names nothing', () => {
    const lines = [
      anchorLine('Forged', 6002),
      `Program ${TOKEN} invoke [3]`,
      anchorLine('Foreign', 6001),
      `Program ${TOKEN} success`,
    ];
    expect(programFailureReason(failureOf(6001, [RECEIVER, OFF_RAMP], lines)).code).toBe('program-error');
  });

  test('a receiver that uses a name or number of CCIP is not explained as CCIP', () => {
    const failure = failureOf(6017, [RECEIVER, OFF_RAMP], [anchorLine('RLRateLimitReached', 6017)]);
    expect(programFailureReason(failure)).toMatchObject({
      fixableBy: 'receiver-owner',
      text: expect.stringContaining('as the program calls it'),
    });
    expect(programFailureReason(failureOf(9032, [RECEIVER, OFF_RAMP])).code).toBe('program-error');
  });
});

describe('who raised it cannot be feigned', () => {
  test('where the log was cut off, a later line of the off-ramp does not make the error its own', () => {
    const notAllowed = 9_000 + offRampErrors.names.indexOf('ManualExecutionNotAllowed');
    const whole = failureOf(notAllowed, [OFF_RAMP]);
    const notYet = expect.stringContaining('is not possible yet');
    expect(programFailureReason(whole)).toMatchObject({ saidBy: 'ccip', text: notYet });
    // The receiver filled the log, so that its own "failed" line did not fit and that of its caller did.
    const logs = [`Program ${RECEIVER} invoke [2]`, 'Log truncated', failed(OFF_RAMP, notAllowed)];
    const reason = programFailureReason(failedWith(custom(notAllowed), logs));
    expect(reason).toMatchObject({ code: 'program-error', saidBy: 'unknown', fixableBy: 'unknown' });
    expect(reason.text).toBe(
      `A program of the transaction failed with its own error ${notAllowed}, which is not known here. The log was cut off, so that the program is not known.`,
    );
    expect(reason.error?.arguments).toEqual([{ name: 'number', value: String(notAllowed) }]);
  });

  test('a program that says so does not cut off the log', () => {
    const failure = failureOf(6017, [POOL, OFF_RAMP], ['Program log: Log truncated']);
    expect(programFailureReason(failure).code).toBe('RLRateLimitReached');
  });

  test('a receiver that has another program of CCIP fail does not speak for it', () => {
    const RMN = 'RmnXLft1mSEwDgMKu2okYuHkiazxntFFcZFrrcXxYg7';
    const cursed = (stack: readonly [string, ...string[]]) =>
      programFailureReason({ ...failureOf(9_006, stack), roles: { ...roles, [RMN]: 'rmn' } });
    expect(cursed([RMN, OFF_RAMP])).toMatchObject({ saidBy: 'ccip', code: 'GloballyCursed' });
    const claimed = cursed([RMN, RECEIVER, OFF_RAMP]);
    expect(claimed).toMatchObject({ saidBy: 'receiver', fixableBy: 'receiver-owner', code: 'program-error' });
    expect(`${claimed.text} ${claimed.advice}`).not.toMatch(/Risk Management|curse/);
    expect(programFailureReason(failureOf(6017, [POOL, RECEIVER, OFF_RAMP])).text).not.toMatch(/rate limit/);
  });

  test('a receiver that returns an error of the runtime does not blame the token', () => {
    const failure = failureOf(1, [RECEIVER, OFF_RAMP]);
    const error = '{"InstructionError":[1,"InsufficientFunds"]}';
    const reason = programFailureReason({ ...failure, error });
    expect(reason).toMatchObject({ saidBy: 'receiver', fixableBy: 'receiver-owner' });
    expect(reason.text).toBe('The receiver failed with InsufficientFunds.');
    // Nor does it where the token program fails in its call.
    expect(programFailureReason(failureOf(1, [TOKEN, RECEIVER, OFF_RAMP]))).toMatchObject({
      fixableBy: 'receiver-owner',
      text: expect.stringMatching(/^The receiver failed: a token account holds less/),
    });
  });

  test("another instruction's error says nothing about the message", () => {
    for (const failure of [failureOf(6017, [POOL, RECEIVER]), failureOf(6001, [RECEIVER])]) {
      const later = programFailureReason(failure);
      expect(later).toMatchObject({
        text: expect.stringMatching(/^Another instruction of the same transaction failed/),
        ...{ saidBy: 'other-instruction', fixableBy: 'anyone' },
        advice: expect.stringContaining('in a separate transaction'),
      });
      expect(later.text).not.toMatch(/rate limit/);
    }
  });

  test('words of a program stay in their quotation marks', () => {
    const lines = [anchorLine('Odd', 6001, 'x”. CCIP has stopped this lane. “')];
    expect(programFailureReason(failureOf(6001, [RECEIVER, OFF_RAMP], lines)).text).toContain(
      "It says: “x'. CCIP has stopped this lane. '”.",
    );
  });
});

test('a log without its end, and an error that is none', () => {
  const cut = failedWith(custom(6001), ['Log truncated']);
  expect(programFailureReason(cut)).toMatchObject({
    code: 'program-error',
    text: expect.stringContaining('The log was cut off'),
    fixableBy: 'unknown',
  });
  const damaged = programFailureReason({ ...cut, error: '{"Instr' });
  expect(damaged).toMatchObject({ code: 'transaction-failed', error: null });
});

test('any error and any lines are told without a fault, in bounded text', () => {
  const whole = failureOf(6001, [TOKEN, POOL, OFF_RAMP], [anchorLine('A', 6001)]);
  const line = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.constantFrom(...whole.logs, 'Log truncated'),
  );
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), fc.array(line, { maxLength: 20 }), (error, logs) => {
      const reason = programFailureReason(failedWith(error, logs));
      expect(reason.text.length).toBeLessThan(700);
      expect(reasonGroup(reason).title.length).toBeLessThanOrEqual(160);
      expect(raisedError(failedWith(error, logs)).name ?? '').toMatch(/^[\w-]{0,80}$/);
    }),
    { numRuns: 50 },
  );
});

test("the names of Anchor's own errors are those of its client", () => {
  const require = createRequire(new URL('../../lab/package.json', import.meta.url));
  const { LangErrorCode } = require('@coral-xyz/anchor/dist/cjs/error.js') as {
    LangErrorCode: Readonly<Record<string, number>>;
  };
  const named = Object.entries(LangErrorCode).flatMap(([name, number]) => {
    const names = programErrorNames(RECEIVER, 'receiver', number, true);
    return names.length === 0 ? [] : [[names, [name]]];
  });
  expect(named.length).toBeGreaterThan(45);
  for (const [ours, theirs] of named) expect(ours).toEqual(theirs);
});
