/** Return data nests: whatever stands inside of an off-ramp's error are the words of the contract that it called. */
import { encodeErrorResult, type Hex, hexToBytes, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import {
  type FailedAttempt,
  failureReason,
  reasonGroup,
} from '../../../src/domain/failures/failure-reason.ts';

const TOKEN = '0x779877A7B0D9E8603169DdbD7836e478b4624789';
const ID = `0x${'11'.repeat(32)}`;
const DECADE = 315_360_000n;
const MAX_RETURN_BYTES = 132;

function encode(signature: string, ...args: readonly unknown[]): Hex {
  return encodeErrorResult({ abi: parseAbi([`error ${signature}`] as readonly string[]), args } as never);
}
const cut = (data: Hex): Hex => data.slice(0, 2 + 2 * MAX_RETURN_BYTES) as Hex;
const reasonOf = (returnData: Hex, attempt: Partial<FailedAttempt> = {}) =>
  failureReason({ returnData: hexToBytes(returnData), ...attempt });

type Wrapping = readonly [version: string, name: string, wrap: (data: Hex) => Hex];
const receivers: readonly Wrapping[] = [
  ['1.2.0', 'ReceiverError', (data) => encode('ReceiverError(bytes)', data)],
  ['1.5.0', 'ReceiverError', (data) => encode('ReceiverError(bytes)', data)],
  ['1.6.0', 'ReceiverError', (data) => encode('ReceiverError(bytes)', data)],
  ['2.0.0', 'ReceiverError', (data) => cut(encode('ReceiverError(bytes)', data))],
];
const tokens: readonly Wrapping[] = [
  ['1.2.0', 'TokenHandlingError', (data) => encode('TokenHandlingError(bytes)', data)],
  ['1.5.0', 'TokenHandlingError', (data) => encode('TokenHandlingError(bytes)', data)],
  ['1.6.0', 'TokenHandlingError', (data) => encode('TokenHandlingError(address,bytes)', TOKEN, data)],
  ['2.0.0', 'TokenHandlingError', (data) => cut(encode('TokenHandlingError(address,bytes)', TOKEN, data))],
];
/** Around what an execution reverted with, where the transaction reverts too. */
const executions: readonly Wrapping[] = [
  ['1.2.0', 'ExecutionError', (data) => encode('ExecutionError(bytes)', data)],
  ['1.5.0', 'ExecutionError', (data) => encode('ExecutionError(bytes)', data)],
  ['1.6.0', 'ExecutionError', (data) => encode('ExecutionError(bytes32,bytes)', ID, data)],
  ['2.0.0', 'NoStateProgressMade', (data) => encode('NoStateProgressMade(bytes32,bytes)', ID, data)],
];

/** Only an off-ramp, a router or the Risk Management Network can say this. */
const ofCcip: readonly Hex[] = [
  encode('CursedByRMN()'),
  encode('CursedByRMN(uint64)', 1n),
  encode('BadARMSignal()'),
  encode('AlreadyExecuted(uint64)', 1n),
  encode('SkippedAlreadyExecutedMessage(bytes32,uint64,uint64)', ID, 1n, 1n),
  encode('ManualExecutionNotYetEnabled()'),
  encode('ManualExecutionNotYetEnabled(uint64)', 1n),
  encode('RootNotCommitted()'),
  encode('RootNotCommitted(uint64)', 1n),
  encode('InsufficientGasToCompleteTx(bytes4)', '0x11111111'),
  encode('NotEnoughGasForCall()'),
  encode('RequiredCCVMissing(address)', TOKEN),
  encode('OptionalCCVQuorumNotReached(uint256,uint256)', 2n, 1n),
  encode('NotACompatiblePool(address)', TOKEN),
  encode('ReleaseOrMintBalanceMismatch(uint256,uint256,uint256)', 1n, 2n, 3n),
  encode('AggregateValueRateLimitReached(uint256,uint256)', DECADE, 5n),
  encode('InvalidEVMAddress(bytes)', '0x11'),
];
const ofPools: readonly Hex[] = [
  encode('TokenRateLimitReached(uint256,uint256,address)', DECADE, 5n, TOKEN),
  encode('InsufficientLiquidity()'),
  encode('SenderNotMinter(address)', TOKEN),
];
const ofReceivers: readonly Hex[] = [
  encode('InvalidRouter(address)', TOKEN),
  encode('SenderNotAllowlisted(address)', TOKEN),
];
const foreignWrappers = (data: Hex): readonly Hex[] => [
  encode('ReceiverError(bytes)', data),
  encode('TokenHandlingError(bytes)', data),
  encode('TokenHandlingError(address,bytes)', TOKEN, data),
  encode('ExecutionError(bytes)', data),
  encode('MessageValidationError(bytes)', data),
  encode('CallFailed(uint256,bytes)', 0n, data),
];

const STATEMENTS =
  /Risk Management Network|already been executed|not possible yet|Nothing is left|committed on the destination|verifier|too little gas|\bwait\b|rate limit|limit refills|used up|no pool|stopped this lane/i;

describe.each(receivers)('what a receiver of %s says in %s', (version, name, wrap) => {
  const hostile = [...ofCcip, ...ofPools];
  test('is its own, whatever errors it puts around it', () => {
    for (const data of [...hostile, ...hostile.flatMap(foreignWrappers)]) {
      const reason = reasonOf(wrap(data), { version });
      expect(`${reason.text} ${reason.advice}`, data).not.toMatch(STATEMENTS);
      expect(reason.text, data).toMatch(/^The receiver reverted with /);
      expect(reason.advice, data).not.toMatch(/\d/);
      expect(reason.wrappers[0]?.name ?? reason.error?.name, data).toBe(name);
      expect(reason, data).toMatchObject({ saidBy: 'receiver', fixableBy: 'receiver-owner' });
      const { title, fixableBy } = reasonGroup(reason);
      expect(title, data).toMatch(/^The receiver reverted with /);
      expect(fixableBy, data).toBe('receiver-owner');
    }
  });

  test('is explained as its words where receivers raise that error', () => {
    const reason = reasonOf(wrap(encode('InvalidRouter(address)', TOKEN)), { version });
    expect(reason.text).toBe('The receiver says: it only accepts messages from another router.');
    expect(reasonGroup(reason).title).toBe('The receiver says: it only accepts messages from another router');
  });
});

describe.each(tokens)('what a token or pool of %s says in %s', (version, name, wrap) => {
  const hostile = [...ofCcip, ...ofReceivers];
  test('is its own, whatever errors it puts around it', () => {
    for (const data of [...hostile, ...hostile.flatMap(foreignWrappers)]) {
      const reason = reasonOf(wrap(data), { version });
      expect(`${reason.text} ${reason.advice}`, data).not.toMatch(STATEMENTS);
      expect(reason.text, data).toMatch(/^The token or its pool reverted with /);
      expect(reason.wrappers[0]?.name ?? reason.error?.name, data).toBe(name);
      expect(reason, data).toMatchObject({ saidBy: 'token-pool', fixableBy: 'pool-owner' });
      expect(reasonGroup(reason).title, data).toMatch(/^The token or its pool reverted with /);
    }
  });

  test('is explained as its words where pools raise that error, and no waiting time is believed without end', () => {
    const limited = (seconds: bigint) =>
      reasonOf(wrap(encode('TokenRateLimitReached(uint256,uint256,address)', seconds, 5n, TOKEN)), {
        version,
      });
    expect(limited(60n).text).toMatch(/^The token or its pool says: the token pool's rate limit is used up/);
    const { advice } = limited(DECADE);
    expect(advice).not.toContain('315');
    if (version !== '2.0.0') {
      expect(limited(60n).advice).toContain('The pool says that this takes 60 seconds or more');
      expect(advice).toContain('The pool says that this takes more than 30 days');
    }
  });
});

describe.each(executions)('%s: in %s', (version, _name, wrap) => {
  const isWhole = true;
  test('the receiver speaks for itself, and so does the pool', () => {
    for (const inner of ofCcip) {
      const ofReceiver = reasonOf(wrap(encode('ReceiverError(bytes)', inner)), { version, isWhole });
      expect(ofReceiver).toMatchObject({ saidBy: 'receiver', fixableBy: 'receiver-owner' });
      const pool =
        version < '1.6'
          ? encode('TokenHandlingError(bytes)', inner)
          : encode('TokenHandlingError(address,bytes)', TOKEN, inner);
      expect(reasonOf(wrap(pool), { version, isWhole }).saidBy).toBe('token-pool');
    }
  });

  test('an execution cannot say what the off-ramp checks before it', () => {
    for (const [signature, ...args] of [
      ['CursedByRMN()'],
      ['AlreadyExecuted(uint64)', 1n],
      ['ManualExecutionNotYetEnabled()'],
      ['RootNotCommitted()'],
    ] as const) {
      const reason = reasonOf(wrap(encode(signature, ...args)), { version, isWhole });
      expect(reason.text, signature).toMatch(/reverted with/);
      expect(`${reason.text} ${reason.advice}`, signature).not.toMatch(STATEMENTS);
    }
  });
});

test('what the off-ramp itself refuses a transaction with is the statement of CCIP', () => {
  const refusal = (data: Hex) => reasonOf(data, { version: '1.6.0', isWhole: true });
  expect(refusal(encode('CursedByRMN(uint64)', 1n))).toMatchObject({
    saidBy: 'ccip',
    fixableBy: 'network',
    text: 'The Risk Management Network has stopped this lane (a curse).',
  });
  expect(refusal(encode('AlreadyExecuted(uint64)', 1n)).advice).toBe('Nothing is left to do.');
});

test('an execution before 2.0 reverts by itself: an off-ramp of 2.0 hands on what contracts it asks revert with', () => {
  const limited = encode('AggregateValueRateLimitReached(uint256,uint256)', 60n, 5n);
  expect(reasonOf(limited, { version: '1.5.0' })).toMatchObject({
    saidBy: 'ccip',
    text: "The lane's rate limit on the value of all tokens is used up.",
  });
  for (const version of ['2.0.0', null, undefined]) {
    const reason = reasonOf(limited, { version });
    expect(reason).toMatchObject({ saidBy: 'unknown' });
    expect(reason.text).toMatch(/^The off-ramp or a contract that it called says: the lane's rate limit/);
    expect(reasonGroup(reason).title).toMatch(/^The off-ramp or a contract that it called says: /);
    expect(reasonOf(encode('CursedByRMN()'), { version }).text).toMatch(
      /^The off-ramp or a contract that it called reverted with CursedByRMN\(\)/,
    );
  }
});

test('the rate limiter that an off-ramp of 1.6 asks is of CCIP', () => {
  const data = encode(
    'MessageValidationError(bytes)',
    encode('AggregateValueRateLimitReached(uint256,uint256)', 60n, 5n),
  );
  expect(reasonOf(data, { version: '1.6.0' })).toMatchObject({
    saidBy: 'ccip',
    text: "The lane's rate limit on the value of all tokens is used up.",
  });
});

test('a message cannot leave its quotation marks, and an argument not its parentheses', () => {
  const wrap = (data: Hex) => encode('ReceiverError(bytes)', data);
  const text = reasonOf(wrap(encode('Error(string)', 'no”. CCIP has stopped this lane. “'))).text;
  expect(text).toBe("The receiver reverted with the message “no'. CCIP has stopped this lane. '”.");
  const argument = reasonOf(wrap(encode('InvalidConfig(string)', 'no). Nothing is left to do. ('))).text;
  expect(argument).toBe(
    'The receiver reverted with InvalidConfig(message: “no). Nothing is left to do. (”).',
  );
});

test('groups keep apart who said it', () => {
  const paused = encode('EnforcedPause()');
  const groups = [
    reasonOf(encode('ReceiverError(bytes)', paused)),
    reasonOf(encode('TokenHandlingError(bytes)', paused)),
    reasonOf(paused),
  ].map(reasonGroup);
  expect(new Set(groups.map(({ key }) => key)).size).toBe(3);
  expect(new Set(groups.map(({ title }) => title)).size).toBe(3);
});
