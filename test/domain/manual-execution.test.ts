/** The parts of manual executions that need no chain: encoding, tokens that need attestations, inputs of other servers. */
import { encodeAbiParameters, encodeFunctionData, type Hex, parseAbi } from 'viem';
import { expect, test } from 'vitest';
import { encodeCall, parseFunction } from '../../src/domain/manual-execution/abi-encoding.ts';
import { parseExactJson, UnusableInputsError } from '../../src/domain/manual-execution/input-values.ts';
import { prepareVerified } from '../../src/domain/manual-execution/prepared-execution.ts';
import { needsAttestation } from '../../src/domain/manual-execution/ramp-messages.ts';

test('calls are encoded as the library encodes them: tuples in place and by offset, nested lists, empty ones', () => {
  const values = {
    fixed: { id: 7n, flag: true },
    moving: { text: '0x010203' as Hex, lists: [['0x' as Hex], [], [`0x${'ab'.repeat(40)}` as Hex]] },
    pairs: [{ to: `0x${'11'.repeat(20)}` as Hex, amount: 2n ** 256n - 1n }],
    tag: '0x01020304' as Hex,
  };
  const [a, b, c, d] = [values.fixed, values.moving, values.pairs, values.tag];
  expect(
    encodeCall(
      parseFunction(
        'f((uint64 id,bool flag) fixed,(bytes text,bytes[][] lists) moving,(address to,uint256 amount)[] pairs,bytes4 tag)',
      ),
      values,
    ),
  ).toBe(
    encodeFunctionData({
      abi: parseAbi([
        'struct Fixed { uint64 id; bool flag; }',
        'struct Moving { bytes text; bytes[][] lists; }',
        'struct Pair { address to; uint256 amount; }',
        'function f(Fixed fixed_, Moving moving, Pair[] pairs, bytes4 tag)',
      ]),
      args: [a, b, c, d],
    }),
  );
  expect(() => encodeCall(parseFunction('f(uint8 small)'), { small: 256n })).toThrow(RangeError);
});

const words = (...numbers: readonly bigint[]) =>
  encodeAbiParameters(
    numbers.map(() => ({ type: 'uint256' })),
    [...numbers],
  );

test.each<readonly [what: string, data: Hex, isNeeded: boolean]>([
  ['nothing', '0x', false],
  ['the decimals of the token', words(18n), false],
  ['a nonce and a domain, as USDC', words(123_456n, 6n), true],
  ['a hash, as LBTC', `0x${'9f'.repeat(32)}`, true],
  ['two words that are no nonce and domain', words(2n ** 200n, 6n), false],
  ['something of the pool’s own', '0x1234', false],
])('a pool that leaves %s', (_what, data, isNeeded) => {
  expect(needsAttestation(data)).toBe(isNeeded);
});

test('integers of other servers are not rounded, and text is left alone', () => {
  expect(
    parseExactJson('{"a":16015286601757825753,"b":"x: 16015286601757825753, \\"y","c":[5,1e3]}'),
  ).toEqual({
    a: '16015286601757825753',
    b: 'x: 16015286601757825753, "y',
    c: [5, 1000],
  });
  expect(() => parseExactJson('<html>')).toThrow(UnusableInputsError);
});

test('an encoded message of another id is refused', () => {
  const material = {
    offramp: `0x${'11'.repeat(20)}`,
    encodedMessage: '0x01',
    verifierAddresses: [],
    ccvData: [],
  };
  expect(() => prepareVerified(`0x${'22'.repeat(32)}`, material)).toThrow(/is not the id of the message/);
});
