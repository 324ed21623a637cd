/** Why an execution failed: the data of real errors is put into the right words, and no data breaks anything. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { type Hex, hexToBytes, toFunctionSelector } from 'viem';
import { describe, expect, test } from 'vitest';
import { parseSignature, selectorOf } from '../../../src/domain/abi-types.ts';
import { ccipErrors } from '../../../src/domain/failures/ccip-errors.ts';
import {
  type FailedAttempt,
  failureReason,
  reasonGroup,
} from '../../../src/domain/failures/failure-reason.ts';
import { libraryErrors } from '../../../src/domain/failures/library-errors.ts';
import { decodeRevertData, errorTable, knownErrors } from '../../../src/domain/failures/revert-data.ts';
import {
  inReceiver as byReceiver,
  encodeError as encode,
  inToken,
  rateLimit,
  TOKEN,
  encodeText as text,
} from '../../fixtures/revert-data.ts';

const ID = `0x${'11'.repeat(32)}`;
const DECADE = 315_360_000n;
/** What off-ramps and routers copy of return data at most. */
const MAX_RETURN_BYTES = 132;

const cut = (data: Hex): Hex => data.slice(0, 2 + 2 * MAX_RETURN_BYTES) as Hex;
const inReceiver = (data: Hex) => byReceiver(cut(data));
const reasonOf = (returnData: Hex, attempt: Partial<FailedAttempt> = {}) =>
  failureReason({ returnData: hexToBytes(returnData), ...attempt });

describe('the receiver', () => {
  test.each<[how: string, data: Hex, code: string, said: string]>([
    ['a message: it is quoted', inReceiver(text('not today')), 'Error', 'with the message “not today”.'],
    [
      'a long message: as much as the router has kept of it is quoted',
      inReceiver(text('a'.repeat(300))),
      'Error',
      `with the message “${'a'.repeat(MAX_RETURN_BYTES - 68)}…”.`,
    ],
    [
      'a custom error that is known, without an explanation: it is written out',
      inReceiver(encode('ERC721NonexistentToken(uint256)', 12n)),
      'ERC721NonexistentToken',
      'with ERC721NonexistentToken(tokenId: 12).',
    ],
  ])('reverted with %s', (_how, data, code, said) => {
    const reason = reasonOf(data);
    expect(reason).toMatchObject({
      code,
      fixableBy: 'receiver-owner',
      text: `The receiver reverted ${said}`,
    });
    expect(reason.wrappers.map(({ name }) => name)).toEqual(['ReceiverError']);
  });

  test('reverted with a message that 2.0 has cut off before its text', () => {
    expect(reasonOf(cut(inReceiver(text('not today'))))).toMatchObject({
      code: 'Error',
      fixableBy: 'receiver-owner',
      text: expect.stringContaining('which the off-ramp has cut off'),
    });
  });

  test('failed a check of the compiler', () => {
    expect(reasonOf(inReceiver(encode('Panic(uint256)', 17n))).text).toBe(
      'The receiver stopped: an addition, subtraction or multiplication overflowed (panic 17).',
    );
    expect(reasonOf(inReceiver(encode('Panic(uint256)', 2n ** 255n))).code).toBe('Panic');
  });

  test('raised a custom error that is not known: its data is shown, and an ABI of the operator names it', () => {
    const data = inReceiver(encode('TooSpicy(uint8 level, string dish)', 9, 'curry'));
    const unknown = reasonOf(data);
    expect(unknown.code).toBe('unknown-error');
    expect(unknown.text).toContain(toFunctionSelector('TooSpicy(uint8,string)'));
    const added = errorTable(['TooSpicy(uint8 level,string dish)']);
    expect(failureReason({ returnData: hexToBytes(data) }, [added, knownErrors])).toMatchObject({
      code: 'TooSpicy',
      text: "The receiver reverted with TooSpicy(level: 9, dish: curry). The error's name comes from the ABIs that this server's operator has added.",
    });
  });

  test.each([
    ['used up its gas limit', { gasUsed: 251_000n, gasLimit: 200_000n }, 'out-of-gas'],
    ['may have, where the off-ramp does not say what it used', { gasLimit: 200_000n }, 'out-of-gas'],
    ['had gas left', { gasUsed: 90_000n, gasLimit: 200_000n }, 'no-reason'],
  ])('reverted with nothing and %s', (_title, gas, code) => {
    const reason = reasonOf(inReceiver('0x'), gas);
    expect(reason.code).toBe(code);
    if (code === 'out-of-gas') expect(reason.text).toContain('its gas limit is 200,000');
    expect(reason.fixableBy).toBe(code === 'out-of-gas' ? 'anyone' : 'receiver-owner');
  });

  test('is paused', () => {
    expect(reasonOf(inReceiver(encode('EnforcedPause()'))).fixableBy).toBe('receiver-owner');
    expect(reasonOf(inReceiver(text('Pausable: paused'))).text).toBe(
      'The receiver reverted with the message “Pausable: paused”. In other words: the called contract is paused.',
    );
  });
});

describe('the token pool', () => {
  test('has used up its rate limit: how long to wait is said, unless 2.0 has cut off the numbers', () => {
    const data = encode('TokenRateLimitReached(uint256,uint256,address)', 3_600n, 1_500_000n, TOKEN);
    expect(reasonOf(inToken(data))).toMatchObject({
      ...{ code: 'TokenRateLimitReached', fixableBy: 'anyone' },
      text: expect.stringContaining('1,500,000 smallest units'),
      advice: expect.stringContaining('3,600 seconds'),
    });
    expect(reasonOf(cut(inToken(data)))).toMatchObject({
      ...{ code: 'TokenRateLimitReached', fixableBy: 'anyone' },
      text: "The token or its pool says: the token pool's rate limit is used up (the off-ramp cut off the numbers).",
      advice: 'The limit refills with time: wait. Then execute the message manually.',
    });
  });

  test.each([
    ['TokenMaxCapacityExceeded(uint256,uint256,address)', [5n, 9n, TOKEN]],
    ['InsufficientLiquidity()', []],
    ['ERC20InsufficientBalance(address,uint256,uint256)', [TOKEN, 5n, 9n]],
    ['SenderNotMinter(address)', [TOKEN]],
    ['EnforcedPause()', []],
    ['Error(string)', ['ERC20: transfer amount exceeds balance']],
  ] as const)('reverts with %s: its owner can fix it', (signature, args) => {
    expect(reasonOf(inToken(encode(signature, ...args)))).toMatchObject({
      code: signature.slice(0, signature.indexOf('(')),
      fixableBy: 'pool-owner',
    });
  });
});

test('errors inside of errors are peeled, from the outside in', () => {
  const called = byReceiver(encode('CallFailed(uint256,bytes)', 2n, text('inner')));
  const reason = reasonOf(encode('NoStateProgressMade(bytes32,bytes)', ID, called));
  expect(reason.wrappers.map(({ name }) => name)).toEqual([
    'NoStateProgressMade',
    'ReceiverError',
    'CallFailed',
  ]);
  expect(reason.wrappers[0]?.arguments).toEqual([{ name: 'messageId', value: ID }]);
  expect(reason.text).toContain('“inner”');
});

test('an error that holds itself, again and again, ends', () => {
  let data = text('end');
  for (let depth = 0; depth < 30; depth++) data = encode('ReceiverError(bytes)', data);
  const { wrappers, error } = reasonOf(data);
  expect(wrappers).toHaveLength(6);
  expect(error?.name).toBe('ReceiverError');
});

test('1 MB of return data, and text that is not UTF-8, are shortened and read', () => {
  const large = reasonOf(inToken(text('x'.repeat(1_000_000))));
  expect(large.text.length).toBeLessThan(2_000);
  const bytes = hexToBytes(text('aaaa'));
  bytes.set([0xff, 0xfe, 0xc3, 0x28], bytes.length - 32);
  expect(failureReason({ returnData: bytes }).text).toContain('��');
});

describe('no data breaks it', () => {
  const selectors = [...knownErrors.keys()];
  test('arbitrary bytes, behind any known selector', () => {
    fc.assert(
      fc.property(
        fc.option(fc.constantFrom(...selectors), { nil: '' }),
        fc.uint8Array({ maxLength: 300 }),
        (selector, bytes) => {
          const reason = failureReason({
            returnData: Uint8Array.from([...hexToBytes(`0x${selector}`), ...bytes]),
          });
          expect(reason.text.length).toBeGreaterThan(0);
          expect(reason.text.length).toBeLessThan(10_000);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('what viem encodes of any error is decoded to the same values', () => {
    const argument = fc.oneof(
      fc.record({ type: fc.constant('uint256'), value: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }) }),
      fc.record({ type: fc.constant('int24'), value: fc.integer({ min: -8_388_608, max: 8_388_607 }) }),
      fc.record({ type: fc.constant('bool'), value: fc.boolean() }),
      fc.record({ type: fc.constant('string'), value: fc.string({ maxLength: 80 }) }),
      fc.record({
        type: fc.constant('uint64[]'),
        value: fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 5 }),
      }),
      fc.record({
        type: fc.constant('(uint8,string)[2]'),
        value: fc.array(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.string({ maxLength: 40 })), {
          minLength: 2,
          maxLength: 2,
        }),
      }),
    );
    const shown = (value: unknown): string =>
      Array.isArray(value) ? `[${value.map(shown).join(', ')}]` : String(value);
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 5 }), (given) => {
        const signature = `Any(${given.map(({ type }) => type).join(',')})`;
        const data = hexToBytes(encode(signature, ...given.map(({ value }) => value)));
        const { error } = decodeRevertData(data, [errorTable([signature])]);
        expect(error?.arguments.map(({ value }) => value)).toEqual(given.map(({ value }) => shown(value)));
      }),
    );
  });
});

describe('the tables of errors', () => {
  test('have the selectors that viem computes', () => {
    for (const signature of [...ccipErrors, ...libraryErrors]) {
      const parsed = parseSignature(signature);
      if (!parsed) throw new Error(`${signature} cannot be parsed`);
      expect(`0x${selectorOf(parsed)}`, signature).toBe(toFunctionSelector(`function ${signature}`));
    }
  });

  test('are those of the contracts that the tests deploy', () => {
    const generator = fileURLToPath(new URL('../../../scripts/generate-errors.mjs', import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [generator, '--check'], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });

  test('what is not a signature is rejected', () => {
    const wrong = ['', 'A', 'A(', 'A(uint7)', 'A(uint256 a b)', 'A((uint8)', 'A(x)', 'A(function)', '1A()'];
    for (const signature of wrong) expect(parseSignature(signature), signature).toBeUndefined();
  });
});

// Return data nests: whatever is inside an off-ramp's error are the words of the contract that it called.

const inOlderToken = (data: Hex) => encode('TokenHandlingError(bytes)', data);
type Wrapping = readonly [version: string, name: string, wrap: (data: Hex) => Hex];
const receivers: readonly Wrapping[] = [
  ...['1.2.0', '1.5.0', '1.6.0'].map((version): Wrapping => [version, 'ReceiverError', byReceiver]),
  ['2.0.0', 'ReceiverError', (data) => cut(byReceiver(data))],
];
const tokens: readonly Wrapping[] = [
  ...['1.2.0', '1.5.0'].map((version): Wrapping => [version, 'TokenHandlingError', inOlderToken]),
  ['1.6.0', 'TokenHandlingError', inToken],
  ['2.0.0', 'TokenHandlingError', (data) => cut(inToken(data))],
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
  rateLimit(DECADE),
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

describe.each([
  ...receivers.map(([version, name, wrap]) => ({ version, name, wrap, who: 'The receiver' })),
  ...tokens.map(([version, name, wrap]) => ({ version, name, wrap, who: 'The token or its pool' })),
])('what $who of $version says in $name', ({ version, name, wrap, who }) => {
  const isReceiver = who === 'The receiver';
  const hostile = [...ofCcip, ...(isReceiver ? ofPools : ofReceivers)];
  test('is its own, whatever errors it puts around it', () => {
    const said = new RegExp(`^${who} reverted with `);
    const blamed = isReceiver
      ? { saidBy: 'receiver', fixableBy: 'receiver-owner' }
      : { saidBy: 'token-pool', fixableBy: 'pool-owner' };
    for (const data of [...hostile, ...hostile.flatMap(foreignWrappers)]) {
      const reason = reasonOf(wrap(data), { version });
      expect(`${reason.text} ${reason.advice}`, data).not.toMatch(STATEMENTS);
      expect(reason.text, data).toMatch(said);
      if (isReceiver) expect(reason.advice, data).not.toMatch(/\d/);
      expect(reason.wrappers[0]?.name ?? reason.error?.name, data).toBe(name);
      expect(reason, data).toMatchObject(blamed);
      const { title, fixableBy } = reasonGroup(reason);
      expect(title, data).toMatch(said);
      expect(fixableBy, data).toBe(blamed.fixableBy);
    }
  });
});

test.each(receivers)(
  'what a receiver of %s says in %s is explained where receivers raise it',
  (version, _, wrap) => {
    const reason = reasonOf(wrap(encode('InvalidRouter(address)', TOKEN)), { version });
    expect(reason.text).toBe('The receiver says: it only accepts messages from another router.');
    expect(reasonGroup(reason).title).toBe('The receiver says: it only accepts messages from another router');
  },
);

test.each(tokens)(
  'the waiting time of a pool of %s in %s is told, and not believed without end',
  (version, _, wrap) => {
    const limited = (seconds: bigint) => reasonOf(wrap(rateLimit(seconds)), { version });
    expect(limited(60n).text).toMatch(/^The token or its pool says: the token pool's rate limit is used up/);
    const { advice } = limited(DECADE);
    expect(advice).not.toContain('315');
    if (version === '2.0.0') return;
    expect(limited(60n).advice).toContain('The pool says that this takes 60 seconds or more');
    expect(advice).toContain('The pool says that this takes more than 30 days');
  },
);

describe.each(executions)('%s: in %s', (version, _name, wrap) => {
  const reasonOfWhole = (data: Hex) => reasonOf(wrap(data), { version, isWhole: true });
  test('the receiver speaks for itself, and so does the pool', () => {
    for (const inner of ofCcip) {
      expect(reasonOfWhole(byReceiver(inner))).toMatchObject({
        saidBy: 'receiver',
        fixableBy: 'receiver-owner',
      });
      const pool = version < '1.6' ? encode('TokenHandlingError(bytes)', inner) : inToken(inner);
      expect(reasonOfWhole(pool).saidBy).toBe('token-pool');
    }
  });

  test('an execution cannot say what the off-ramp checks before it', () => {
    const others = ['CursedByRMN()', 'ManualExecutionNotYetEnabled()', 'RootNotCommitted()'];
    for (const signature of ['AlreadyExecuted(uint64)', ...others]) {
      const reason = reasonOfWhole(encode(signature, ...(signature.endsWith('()') ? [] : [1n])));
      expect(reason.text, signature).toMatch(/reverted with/);
      expect(`${reason.text} ${reason.advice}`, signature).not.toMatch(STATEMENTS);
    }
  });
});

test('what the off-ramp itself reverts with is the statement of CCIP', () => {
  const ofTransaction = (data: Hex) => reasonOf(data, { version: '1.6.0', isWhole: true });
  expect(ofTransaction(encode('CursedByRMN(uint64)', 1n))).toMatchObject({
    saidBy: 'ccip',
    fixableBy: 'network',
    text: 'The Risk Management Network has stopped this lane (a curse).',
  });
  expect(ofTransaction(encode('AlreadyExecuted(uint64)', 1n)).advice).toBe('Nothing is left to do.');
});

test('an execution before 2.0 reverts by itself: an off-ramp of 2.0 hands on what contracts it asks revert with', () => {
  const limited = encode('AggregateValueRateLimitReached(uint256,uint256)', 60n, 5n);
  const told = { saidBy: 'ccip', text: "The lane's rate limit on the value of all tokens is used up." };
  expect(reasonOf(limited, { version: '1.5.0' })).toMatchObject(told);
  // An off-ramp of 1.6 asks its rate limiter, which is of CCIP.
  const asked = encode('MessageValidationError(bytes)', limited);
  expect(reasonOf(asked, { version: '1.6.0' })).toMatchObject(told);
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

test('a message cannot leave its quotation marks, and an argument not its parentheses', () => {
  const quoted = reasonOf(byReceiver(text('no”. CCIP has stopped this lane. “'))).text;
  expect(quoted).toBe("The receiver reverted with the message “no'. CCIP has stopped this lane. '”.");
  const data = byReceiver(encode('InvalidConfig(string)', 'no). Nothing is left to do. ('));
  const words = 'The receiver reverted with InvalidConfig(message: “no). Nothing is left to do. (”).';
  expect(reasonOf(data).text).toBe(words);
});

test('groups keep apart who said it', () => {
  const paused = encode('EnforcedPause()');
  const all = [byReceiver(paused), inOlderToken(paused), paused];
  const groups = all.map((data) => reasonGroup(reasonOf(data)));
  expect(new Set(groups.map(({ key }) => key)).size).toBe(3);
  expect(new Set(groups.map(({ title }) => title)).size).toBe(3);
});
