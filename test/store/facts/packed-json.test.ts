/** Packed JSON: exact for every value, whatever a chain or a source wrote, and short for what facts mostly say. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { dictionaryMembers, dictionaryTexts } from '../../../src/store/facts/packed-dictionary.ts';
import {
  type JsonValue,
  type PackingContext,
  packJson,
  unpackJson,
} from '../../../src/store/facts/packed-json.ts';
import { evmAddress, hashOf, svmAddress, svmSignature } from '../../fixtures.ts';

const textAfter = (value: JsonValue, context: PackingContext = []) =>
  JSON.stringify(unpackJson(packJson(value, context), context));
const expectExact = (value: JsonValue, context?: PackingContext) => {
  expect(textAfter(value, context)).toBe(JSON.stringify(value));
};

const anyHexText = fc
  .tuple(
    fc.uint8Array({ maxLength: 200 }),
    fc.constantFrom('0x', '0X', ''),
    fc.func(fc.boolean()),
    fc.constantFrom('', 'g', '0'),
  )
  .map(([bytes, prefix, isUpper, rest]) => {
    const digits = [...Buffer.from(bytes).toString('hex')].map((c, i) => (isUpper(i) ? c.toUpperCase() : c));
    return prefix + digits.join('') + rest;
  });
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  // Any UTF-16 units: also halves of surrogate pairs, and U+0000.
  fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
  fc.constantFrom(...dictionaryTexts, ...dictionaryMembers),
  anyHexText,
  fc.bigInt(0n, 2n ** 300n).map(String),
  fc.tuple(fc.constantFrom('0', '-', '+', ' '), fc.nat()).map(([sign, n]) => sign + n),
  fc.date().map((date) => (Number.isNaN(date.getTime()) ? 'never' : date.toISOString())),
  fc.string({ unit: fc.constantFrom(...'123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz') }),
  fc.uint8Array({ minLength: 32, maxLength: 64 }).map((bytes) => svmAddress(bytes.join())),
  fc.nat(90).map((length) => '1'.repeat(length)),
);
const anyNumber = fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger(), fc.nat(80));
const { value: anyValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    anyText,
    anyNumber,
    fc.constantFrom(null, true, false),
    fc.array(tie('value')),
    fc.dictionary(fc.oneof(anyText, fc.constantFrom('__proto__', 'toString', '7')), tie('value')),
  ),
}));

describe('packed JSON', () => {
  it('is exact for every value and context', () => {
    fc.assert(
      fc.property(anyValue, fc.array(fc.oneof(anyText, anyNumber, fc.constant(undefined))), expectExact),
      { numRuns: 400 },
    );
  });

  it.each([
    ['an EIP-55 address', '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 26],
    ['an address in capitals', `0x${'AB'.repeat(20)}`, 28],
    ['a hash', hashOf('one'), 35],
    ['a word that is mostly zero', `0x${'0'.repeat(60)}beef`, 9],
    ['zeros at both ends', `0x${'0'.repeat(40)}77${'0'.repeat(40)}`, 8],
    ['half a byte', '0xabc', undefined],
    ['hex that is none', '0x0000000000000000000g', undefined],
    ['hex that ends in a character behind the alphabet', '0x00é0', undefined],
    ['a wei amount', '123456789012345678901', 12],
    ['a number with a leading zero', '0123', undefined],
    ['a long number', '9'.repeat(10_000), undefined],
    ['a time of a block', '2026-01-31T12:00:00.000Z', 7],
    ['a time with milliseconds', '2026-01-31T12:00:00.001Z', 8],
    ['a day that does not exist', '2026-02-31T12:00:00.000Z', undefined],
    ['a time before 1970', '1969-12-31T23:59:59.999Z', undefined],
    ['a Solana address', svmAddress('one'), 35],
    ['a Solana signature', svmSignature('one'), 67],
    ['digits that are Base58 too', '1'.repeat(40), 20],
    ['the system program', '1'.repeat(32), 2],
    ['half of a surrogate pair', 'a\ud800b', 9],
    ['a surrogate pair', 'a\u{1f600}b', undefined],
    ['a zero character', 'a\u0000b', undefined],
  ])('holds %s', (_, text, bytes) => {
    expectExact([text, text]);
    if (bytes !== undefined) expect(packJson(text)).toHaveLength(bytes);
  });

  it('is exact for values that are nested deeply', () => {
    let value: JsonValue = 'inside\ud800';
    for (let depth = 0; depth < 1_000; depth++) value = depth % 2 === 0 ? [value] : { seen: value };
    expectExact(value);
  });

  it('is exact for a text of megabytes', () => {
    expectExact({ data: `0x${'00ff'.repeat(500_000)}`, other: 'ü'.repeat(1_000_000) });
  });

  it('leaves out members that are undefined, as JSON does', () => {
    expectExact({ kind: 'Executed', messageId: undefined, seen: [-0] });
  });

  it('is not misled by names that contain a comma', () => {
    const [names = ''] = dictionaryMembers;
    expectExact({ [names]: 1 });
    expectExact(Object.fromEntries(names.split(',').map((name) => [name, 1])));
  });

  it('stores what the context has, and what is repeated, once', () => {
    const id = hashOf('message');
    expect(packJson({ messageId: id }, [id]).length).toBeLessThan(6);
    expect(packJson([id, id, id]).length).toBeLessThan(42);
    const many = Array.from({ length: 100 }, (_, index) => evmAddress(index));
    expectExact([...many, ...many]);
    expect(packJson([...many, ...many]).length).toBeLessThan(100 * 22 + 100 * 2 + 10);
  });

  it('names a version, and rejects one that it does not know, and bytes that are cut off or too many', () => {
    const packed = packJson({ kind: 'Executed', at: 'never' });
    expect(packed[0]).toBe(1);
    expect(() => unpackJson(Buffer.concat([Buffer.of(9), packed.subarray(1)]))).toThrow(
      'The version of packed JSON is 9, which is not known',
    );
    for (let length = 0; length < packed.length; length++)
      expect(() => unpackJson(packed.subarray(0, length))).toThrow(/cut off|version/);
    expect(() => unpackJson(Buffer.concat([packed, Buffer.of(0)]))).toThrow('behind its end');
  });
});

// Stored facts refer to entries by their places: these lists may only grow at their ends.
test.each([
  ['texts', dictionaryTexts, 158, 'b36f8a2df84c43ef2d399aa6b126720d6cd9aabaa02956d051c510f21bf7a762'],
  ['members', dictionaryMembers, 42, '2b351de12ec82798edd945553c254d973a190a8a119086cbaf70a0c38ffe9572'],
])('the first entries of the dictionary of %s stay what they are', (_, entries, count, expected) => {
  const first = JSON.stringify(entries.slice(0, count));
  expect(entries.length).toBeGreaterThanOrEqual(count);
  expect(new Set(entries).size).toBe(entries.length);
  expect(createHash('sha256').update(first).digest('hex')).toBe(expected);
});
