import fc from 'fast-check';
import { decodeAbiParameters, encodeAbiParameters, getAddress, parseAbiParameters } from 'viem';
import { describe, expect, test } from 'vitest';
import * as abi from '../../../src/ingest/evm/contracts/abi.ts';
import { compileDecoder, type Params } from '../../../src/ingest/evm/contracts/abi-decoder.ts';
import type { Hex } from '../../../src/ingest/evm/rpc/chain.ts';

/** What the program reads: the data of events with every kind of value, and extra arguments. */
const shapes: readonly (readonly [name: string, params: Params])[] = [
  ['a 1.5 message', abi.ccipSendRequested.data],
  ['a 1.6 message', abi.ccipMessageSent16.data],
  ['a 2.0 message', abi.ccipMessageSent20.data],
  ['a 1.5 commit', abi.reportAccepted.data],
  ['a 1.6 commit', abi.commitReportAccepted.data],
  ['an execution', abi.executionStateChanged16.data],
  ['ramps of a router', abi.getOffRamps.outputs],
  ['the verifiers of a message', abi.getCcvsForMessage.outputs],
  ['a text', abi.typeAndVersion.outputs],
  ['extra arguments for Solana', abi.svmExtraArgsV1],
  ['a list of structures without names', parseAbiParameters('(uint8, bytes)[] list, bool flag')],
];

describe.each(shapes)('the decoder of %s', (_, params) => {
  const decode = compileDecoder(params);

  test('reads what the library has encoded', () => {
    fc.assert(
      fc.property(arbitrariesOf(params), (values) => {
        const data = encodeAbiParameters(params, values as never);
        expect(decode(data)).toEqual(decodeAbiParameters(params, data));
      }),
      { numRuns: 60 },
    );
  });

  test('comes to the same as the library for bytes that were changed or cut off', () => {
    fc.assert(
      fc.property(arbitrariesOf(params), changes, (values, wanted) => {
        const data = changed(encodeAbiParameters(params, values as never), wanted);
        expect(outcomeOf(() => decode(data))).toEqual(outcomeOf(() => decodeAbiParameters(params, data)));
      }),
      { numRuns: 300 },
    );
  });
});

test('offsets that all point to the same bytes do not make a short text mean a huge value', () => {
  const decode = compileDecoder(parseAbiParameters('bytes[] list'));
  const word = (value: number) => value.toString(16).padStart(64, '0');
  const elements = 10_000;
  const blob = 'ab'.repeat(32 * elements);
  const offsets = word(32 * elements).repeat(elements);
  const data: Hex = `0x${word(32)}${word(elements)}${offsets}${word(32 * elements)}${blob}`;
  expect(() => decode(data)).toThrow('too often');
});

function outcomeOf(read: () => unknown): unknown {
  try {
    return { values: read() };
  } catch {
    return 'rejected';
  }
}

interface Change {
  readonly word: number;
  readonly value: number;
  readonly cutOff: number;
}

const changes = fc.record({ word: fc.nat(40), value: fc.nat(400), cutOff: fc.nat(3) });

/** One word with another small number, which may be an offset or a length, and some bytes less. */
function changed(data: Hex, { word, value, cutOff }: Change): Hex {
  const words = (data.slice(2).match(/.{64}/g) ?? []) as string[];
  if (words.length > 0) words[word % words.length] = value.toString(16).padStart(64, '0');
  const digits = words.join('');
  return `0x${digits.slice(0, digits.length - 2 * cutOff)}`;
}

function arbitrariesOf(params: Params): fc.Arbitrary<readonly unknown[]> {
  return fc.tuple(...params.map(arbitraryOf));
}

function arbitraryOf(param: Params[number]): fc.Arbitrary<unknown> {
  const { type } = param;
  const bytes = (minLength: number, maxLength: number) =>
    fc
      .uint8Array({ minLength, maxLength })
      .map((content): Hex => `0x${Buffer.from(content).toString('hex')}`);
  if (type.endsWith('[]'))
    return fc.array(arbitraryOf({ ...param, type: type.slice(0, -2) }), { maxLength: 3 });
  if (type === 'tuple') {
    const components = 'components' in param ? param.components : [];
    const isNamed = components.every(({ name }) => name);
    return arbitrariesOf(components).map((values) =>
      isNamed ? Object.fromEntries(components.map(({ name }, index) => [name, values[index]])) : values,
    );
  }
  if (type === 'bytes') return bytes(0, 70);
  if (type === 'string') return fc.string({ unit: 'binary', maxLength: 40 });
  if (type === 'address') return bytes(20, 20).map((address) => getAddress(address));
  if (type === 'bool') return fc.boolean();
  const [, name, size] = /^(uint|bytes)(\d+)$/.exec(type) ?? [];
  if (name === 'bytes') return bytes(Number(size), Number(size));
  const max = 2n ** BigInt(size ?? 0) - 1n;
  return fc.bigInt({ min: 0n, max }).map((value) => (Number(size) > 48 ? value : Number(value)));
}
