/**
 * The scripted runtime against Solana's real virtual machine: the expected lines, stack heights, return data and errors were
 * recorded from Agave's (LiteSVM 1.4.1) with a program that does what these plans say.
 */
import { describe, expect, test } from 'vitest';
import { addressOf } from './bytes.ts';
import { type Call, COMPUTE_BUDGET, customFailure, runTransaction } from './runtime.ts';

// Lengths of addresses count where a log is cut off: both have 44 characters.
const [first, second] = [addressOf('first'), addressOf('b')];
const [one, seven] = [new Uint8Array([1]), new Uint8Array([7])];

/** Programs by letters, and without compute units: they depend on a program's code. */
function outcomeOf(...instructions: readonly Call[]) {
  const landing = { signature: '2'.repeat(87), slot: 5, recentBlockhash: addressOf('block') };
  const { meta } = runTransaction({ feePayer: addressOf('payer'), instructions }, landing);
  const plain = (text: string) =>
    text
      .replace(first, 'A')
      .replace(second, 'B')
      .replace(/consumed \d+ of \d+ compute units/, 'consumed');
  const { err, innerInstructions, returnData } = meta;
  return {
    logs: meta.logMessages.map((line) => plain(line).replace(/^Program /, '')),
    ...(err !== null && { err }),
    ...(innerInstructions.length > 0 && {
      inner: innerInstructions.map(({ index, instructions: inner }) => [
        index,
        ...inner.map(({ stackHeight }) => stackHeight),
      ]),
    }),
    ...(returnData && { returned: [plain(returnData.programId), returnData.data[0]] }),
  };
}

const returning: Call = { program: second, steps: [{ returns: seven }] };
const returnedByB = ['B invoke [2]', 'B consumed', 'return: B Bw==', 'B success'];

describe('a call', () => {
  test.each<readonly [string, Call, ReturnType<typeof outcomeOf>]>([
    ['that logs nothing', { program: first }, { logs: ['A invoke [1]', 'A consumed', 'A success'] }],
    [
      'with an empty text and an empty value',
      { program: first, steps: [{ log: '' }, { data: new Uint8Array() }] },
      { logs: ['A invoke [1]', 'log: ', 'data: ', 'A consumed', 'A success'] },
    ],
    [
      'whose callee returns a value that it does not look at',
      { program: first, steps: [{ call: returning }] },
      {
        logs: ['A invoke [1]', ...returnedByB, 'A consumed', 'return: A Bw==', 'A success'],
        inner: [[0, 2]],
        returned: ['B', 'Bw=='],
      },
    ],
    [
      'that forgets the value of an earlier callee',
      { program: first, steps: [{ call: returning }, { call: { program: second, data: one } }] },
      {
        logs: [
          'A invoke [1]',
          ...returnedByB,
          ...['B invoke [2]', 'B consumed', 'B success', 'A consumed', 'A success'],
        ],
        inner: [[0, 2, 2]],
      },
    ],
    [
      'that fails after it has returned a value',
      { program: first, steps: [{ returns: seven }, { fails: customFailure(17) }] },
      {
        logs: ['A invoke [1]', 'A consumed', 'return: A Bw==', 'A failed: custom program error: 0x11'],
        err: { InstructionError: [0, { Custom: 17 }] },
        returned: ['A', 'Bw=='],
      },
    ],
    [
      'that calls itself',
      { program: first, steps: [{ call: { program: first, data: one, steps: [{ log: 'inside' }] } }] },
      {
        logs: [
          ...['A invoke [1]', 'A invoke [2]', 'log: inside'],
          ...['A consumed', 'A success', 'A consumed', 'A success'],
        ],
        inner: [[0, 2]],
      },
    ],
    [
      'of a built-in program',
      { program: COMPUTE_BUDGET, isNative: true, data: new Uint8Array([2, 0, 1, 0, 0]) },
      { logs: [`${COMPUTE_BUDGET} invoke [1]`, `${COMPUTE_BUDGET} success`] },
    ],
  ])('%s', (_, call, recorded) => {
    expect(outcomeOf(call)).toEqual(recorded);
  });
});

test('a failure inside ends all calls around it, and the instructions behind it', () => {
  const failing: Call = {
    program: second,
    data: one,
    steps: [{ log: 'in' }, { fails: customFailure(6_001) }],
  };
  const around: Call = { program: first, steps: [{ data: seven }, { call: failing }, { log: 'never' }] };
  expect(outcomeOf({ program: second }, around, { program: second, data: seven })).toEqual({
    logs: [
      ...['B invoke [1]', 'B consumed', 'B success'],
      ...['A invoke [1]', 'data: Bw==', 'B invoke [2]', 'log: in', 'B consumed'],
      ...['B failed: custom program error: 0x1771', 'A consumed', 'A failed: custom program error: 0x1771'],
    ],
    err: { InstructionError: [1, { Custom: 6_001 }] },
    inner: [[1, 2]],
  });
});

test('of a log of 10,000 bytes what does not fit is left out, and shorter lines behind it are kept', () => {
  const logsWith = (length: number) =>
    outcomeOf({ program: first, steps: [{ log: 'x'.repeat(length) }, { log: 'short' }] }).logs.map((line) =>
      line.replace(/x+/, 'X'),
    );
  expect(logsWith(9_800)).toEqual(['A invoke [1]', 'log: X', 'log: short', 'A consumed', 'Log truncated']);
  expect(logsWith(9_923)).toEqual(['A invoke [1]', 'log: X', 'Log truncated']);
  expect(logsWith(9_924)).toEqual(['A invoke [1]', 'Log truncated', 'log: short', 'A consumed', 'A success']);
});
