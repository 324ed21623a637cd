import { createHmac } from 'node:crypto';
import { base64urlnopad } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { LATEST_TIME } from '../../../src/base/iso-time.ts';
import { addressBytes, transactionHashBytes } from '../../../src/domain/addresses.ts';
import { ApiError } from '../../../src/domain/errors.ts';
import { type Cursor, createCursorCodec } from '../../../src/domain/filters/cursor.ts';
import { filterNames, filterTable } from '../../../src/domain/filters/filter-table.ts';
import type { FilterKind } from '../../../src/domain/filters/parameter-values.ts';
import { type Filters, isTimeRange } from '../../../src/domain/filters/query.ts';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { createCursorMac } from '../../../src/store/schema/cursor-key.ts';
import { digits, evmAddress, hashOf, svmAddress, svmSignature } from '../../fixtures.ts';

const key = Buffer.alloc(32, 'a key of this test');
const { encode: encodeCursor, decode: decodeCursor } = createCursorCodec(createCursorMac(key));
const after = { sentAt: Date.UTC(2026, 0, 1), messageId: digits('last') };

const hex = (min: number, max = min) =>
  fc.uint8Array({ minLength: min, maxLength: max }).map((bytes) => Buffer.from(bytes).toString('hex'));
const milliseconds = fc.integer({ min: 0, max: LATEST_TIME });

/** Values of each kind of filter. */
const valuesOf: Record<FilterKind<unknown>['noun'] & string, fc.Arbitrary<unknown>> = {
  address: fc.array(hex(20, 363), { minLength: 1, maxLength: 1 }),
  network: fc.bigInt(0n, 2n ** 64n - 1n).map(String),
  hash: fc.uniqueArray(hex(32, 64), { minLength: 1, maxLength: 2 }),
  statuses: fc.subarray([...statuses], { minLength: 1 }),
  time: milliseconds,
  ids: fc.uniqueArray(hex(32), { minLength: 1, maxLength: 5 }),
  terms: fc.array(
    fc
      .record({
        addresses: fc.array(hex(20, 32), { maxLength: 1 }),
        hashes: fc.uniqueArray(hex(32, 64), { maxLength: 2 }),
        messageId: fc.option(hex(32)),
      })
      .filter(({ addresses, hashes }) => addresses.length + hashes.length > 0),
    { minLength: 1, maxLength: 4 },
  ),
};

const filters: fc.Arbitrary<Filters> = fc
  .record(
    Object.fromEntries(
      filterNames.map((name) => {
        const { noun } = filterTable[name].kind;
        return [name, noun === null ? fc.constant(true) : valuesOf[noun]];
      }),
    ),
    { requiredKeys: [] },
  )
  .map((values) => values as Filters)
  .filter(isTimeRange);

const cursors: fc.Arbitrary<Cursor> = fc.record({
  filters,
  view: fc.constantFrom('full' as const, 'summary' as const),
  after: fc.record({ sentAt: milliseconds, messageId: hex(32) }),
});

/** What decoding says: the cursor, or the code of its error. Any other exception is a failure. */
function decoded(text: string): Cursor | string {
  try {
    return decodeCursor(text);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.status).toBe(400);
    expect(error.details).toEqual([{ parameter: 'cursor', problem: expect.any(String) }]);
    return error.code;
  }
}

/** A cursor whose MAC is right, whatever it holds. */
function signed(payload: string | Uint8Array, version = 3): string {
  const bytes = Buffer.from(payload);
  const mac = createHmac('sha256', key)
    .update(Buffer.from([version]))
    .update(bytes)
    .digest();
  return base64urlnopad.encode(Buffer.concat([Buffer.from([version]), mac.subarray(0, 16), bytes]));
}

/** A term of `q` that may mean these addresses. */
function term(...addresses: readonly string[]) {
  return { addresses, hashes: [] as readonly string[], messageId: null };
}

describe('a cursor', () => {
  it('gives back what was put in', () => {
    fc.assert(
      fc.property(cursors, (cursor) => {
        const text = encodeCursor(cursor);
        expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(decodeCursor(text)).toEqual(cursor);
      }),
      { numRuns: 500 },
    );
  });

  it('is the same text for the same search, and another for another key', () => {
    const cursor: Cursor = { filters: {}, view: 'full', after };
    expect(encodeCursor(cursor)).toBe(encodeCursor(structuredClone(cursor)));
    expect(encodeCursor({ ...cursor, after: { ...after, sentAt: 1 } })).not.toBe(encodeCursor(cursor));
  });

  /** With one character, or one bit, changed. */
  const withCharacter = (text: string, at: number, character: string) =>
    text.slice(0, at) + character + text.slice(at + 1);
  const withBit = (text: string, bit: number) => {
    const bytes = Buffer.from(text, 'base64url');
    bytes[bit >> 3] = (bytes.at(bit >> 3) ?? 0) ^ (1 << (bit & 7));
    return bytes.toString('base64url');
  };
  const bitsOf = (text: string) => Buffer.from(text, 'base64url').length * 8;

  it('with any one character or bit changed is rejected', () => {
    const characters = fc.constantFrom(...'ABab09_-+/=. é');
    fc.assert(
      fc.property(cursors, fc.nat(), characters, (cursor, position, character) => {
        const text = encodeCursor(cursor);
        const at = position % text.length;
        fc.pre(text[at] !== character);
        expect(decoded(withCharacter(text, at, character))).toBe('INVALID_CURSOR');
        expect(decoded(withBit(text, position % bitsOf(text)))).toBe('INVALID_CURSOR');
      }),
      { numRuns: 1000 },
    );
  });

  it('cut short anywhere, or with anything added, is rejected', () => {
    const text = encodeCursor({ filters: { status: ['SENT'] }, view: 'full', after });
    for (let length = 0; length < text.length; length++)
      expect(decoded(text.slice(0, length))).toBe('INVALID_CURSOR');
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 20 }), (more) => {
        expect(decoded(text + more)).toBe('INVALID_CURSOR');
        expect(decoded(more + text)).toBe('INVALID_CURSOR');
      }),
      { numRuns: 300 },
    );
  });

  it('that is any other text is rejected', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.string({ unit: 'binary' })), (text) => {
        expect(decoded(text)).toBe('INVALID_CURSOR');
      }),
      { numRuns: 1000 },
    );
  });

  const payload = JSON.stringify({ f: {}, v: 'full', k: [after.sentAt, after.messageId] });

  it('has an HMAC-SHA-256 over version and payload, of which it shows the first 16 bytes', () => {
    expect(encodeCursor({ filters: {}, view: 'full', after })).toBe(signed(payload));
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), fc.uint8Array(), (bytes, data) => {
        const mac = createHmac('sha256', bytes).update(data).digest().subarray(0, 16).toString('latin1');
        const { sign, verify } = createCursorMac(Buffer.from(bytes));
        const text = Buffer.from(data).toString('latin1');
        expect(sign(text)).toBe(mac);
        expect(verify(text, mac)).toBe(true);
        const changed = `${mac.charAt(0) === 'x' ? 'y' : 'x'}${mac.slice(1)}`;
        for (const other of ['', mac.slice(1), `${mac}x`, changed]) expect(verify(text, other)).toBe(false);
      }),
    );
  });

  it('of another version is rejected, even with a right MAC', () => {
    expect(decoded(signed(payload))).toEqual({ filters: {}, view: 'full', after });
    for (const version of [0, 1, 2, 4, 255]) {
      expect(() => decodeCursor(signed(payload, version))).toThrow('issued by another version');
    }
  });

  const last = [after.sentAt, after.messageId];
  test.each<[string, unknown]>([
    ['no JSON', undefined],
    ['null', null],
    ['an array', []],
    ['no key', { f: {}, v: 'full' }],
    ['no filters', { v: 'full', k: last }],
    ['another view', { f: {}, v: 'all', k: last }],
    ['a key of one', { f: {}, v: 'full', k: [1] }],
    ['a key of three', { f: {}, v: 'full', k: [...last, 1] }],
    ['a time that no calendar has', { f: {}, v: 'full', k: [8.64e15, after.messageId] }],
    ['a time before 1970', { f: { sentAfter: -1 } }],
    ['half a millisecond', { f: {}, v: 'full', k: [0.5, after.messageId] }],
    ['a short id', { f: {}, v: 'full', k: [1, 'ab'] }],
    ['an unknown filter', { f: { nope: 1 } }],
    ['an unknown member', { f: {}, v: 'full', k: last, x: 1 }],
    ['an unknown status', { f: { status: ['NOPE'] } }],
    ['a sender that is no bytes', { f: { sender: ['xyz'] } }],
    ['no sender', { f: { sender: [] } }],
    ['a number for a text', { f: { sourceChainSelector: 5 } }],
    ['false', { f: { readyForManualExecOnly: false } }],
    ['an id twice', { f: { messageId: [digits(1), digits(1)] } }],
    ['two senders', { f: { sender: ['00', '01'] } }],
    ['a sender of 364 bytes', { f: { sender: ['00'.repeat(364)] } }],
    ['three hashes', { f: { sourceTransactionHash: ['00', '01', '02'] } }],
    ['a hash of 65 bytes', { f: { destTransactionHash: ['00'.repeat(65)] } }],
    ['a selector with a leading zero', { f: { destChainSelector: '01' } }],
    ['a status twice', { f: { status: ['SENT', 'SENT'] } }],
    ['no term', { f: { q: [] } }],
    ['a term of nothing but an id', { f: { q: [{ ...term(), messageId: digits(1) }] } }],
    ['a term with two addresses', { f: { q: [term('00', '01')] } }],
    ['a term with three hashes', { f: { q: [{ ...term(), hashes: ['00', '01', '02'] }] } }],
  ])('that holds %s is rejected, even with a right MAC', (_, payload) => {
    const hasOnlyFilters = payload instanceof Object && Object.keys(payload).join() === 'f';
    const held = hasOnlyFilters ? { ...payload, v: 'full', k: last } : payload;
    expect(decoded(signed(JSON.stringify(held) ?? '{"f":'))).toBe('INVALID_CURSOR');
  });

  it('that is made of random bytes is rejected, even with a right MAC', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ minLength: 1 }), fc.json()), (payload) => {
        expect(decoded(signed(payload))).toBe('INVALID_CURSOR');
      }),
      { numRuns: 500 },
    );
  });
});

describe('every search that is accepted', () => {
  const roundTrip = (parameters: Readonly<Record<string, string>>) => {
    const query = parseSearch(Object.entries(parameters));
    const text = encodeCursor({ filters: query.filters, view: query.view, after });
    expect(parseSearch([['cursor', text]], { decode: decodeCursor })).toEqual({ ...query, limit: 20, after });
    return text.length;
  };

  it('has a cursor that is accepted, up to a hundred message ids and ten terms', () => {
    const ids = Array.from({ length: 100 }, (_, i) => hashOf('message', i)).join(',');
    roundTrip({ messageId: ids });
    roundTrip({
      messageId: ids,
      q: Array.from({ length: 10 }, (_, i) => svmSignature(i)).join(','),
      ...{ sender: svmAddress('a'), receiver: svmAddress('b'), address: svmAddress('c') },
      ...{ sourceTransactionHash: svmSignature('e'), destTransactionHash: svmSignature('f') },
      ...{ sourceChainSelector: '18446744073709551615', destChainSelector: '18446744073709551615' },
      ...{ sentAfter: '1970-01-01T00:00:00Z', sentBefore: '9999-12-31T23:59:59Z' },
      ...{ sourceTokenAddress: evmAddress('d'), status: statuses.join(','), readyForManualExecOnly: 'true' },
      view: 'summary',
    });
  });

  it('has one where a text means as many things as a text can', () => {
    // A TON hash in hexadecimal, and an SVM signature in base58.
    const ambiguous = `${'1'.repeat(61)}fed`;
    expect(transactionHashBytes(ambiguous)).toHaveLength(2);
    roundTrip({ q: ambiguous });
    roundTrip({ sourceTransactionHash: ambiguous, destTransactionHash: '1'.repeat(64) });
  });

  it('has one whatever text its filters are: no text means more than a cursor may hold', () => {
    const letters = (characters: string, min: number, max = min) =>
      fc
        .array(fc.constantFrom(...characters), { minLength: min, maxLength: max })
        .map((list) => list.join(''));
    const prefixes = ['', '0x', '0X', '0:', '-1:', '1220', 'name::1220', '0x2::a::', `0x${'0'.repeat(24)}`];
    const prefix = fc.constantFrom(...prefixes);
    const body = fc.oneof(
      ...[32, 40, 43, 44, 48, 63, 64, 88].map((length) => letters('0123456789abcdefABCDEF', length)),
      ...[32, 43, 44, 63, 64, 87, 88].map((length) => letters('123456789abcdefABCDEFGz', length)),
      // Many leading ones: the only texts that are base58 of 64 bytes and hexadecimal digits alike.
      ...[0, 1, 2, 3, 4].map((n) => letters('123456789abcdef', n).map((end) => end.padStart(64, '1'))),
      letters('ABCDwxyz0189+/-_', 43).map((text) => `${text}=`),
      letters('ABCDwxyz0189+/-_', 48),
      letters('Aa1:_ x', 1, 300),
    );
    const found = { addresses: 0, hashes: 0 };
    fc.assert(
      fc.property(prefix, body, (start, rest) => {
        const text = start + rest;
        found.addresses = Math.max(found.addresses, addressBytes(text).length);
        found.hashes = Math.max(found.hashes, transactionHashBytes(text).length);
        if (addressBytes(text).length > 0) roundTrip({ sender: text });
        if (transactionHashBytes(text).length > 0) roundTrip({ sourceTransactionHash: text });
      }),
      { numRuns: 5_000 },
    );
    expect(found).toEqual({ addresses: 1, hashes: 2 });
  });

  it('has one even with the longest addresses that there are', () => {
    const party = (name: string) => `${name.padEnd(185, 'x')}::1220${digits(name)}`;
    const coin = (name: string) => `0x2::${name.padEnd(145, 'x')}::${name.padEnd(148, 'y')}`;
    expect(coin('a')).toHaveLength(300);
    const length = roundTrip({
      messageId: Array.from({ length: 100 }, (_, i) => hashOf('message', i)).join(','),
      q: Array.from({ length: 10 }, (_, i) => coin(`q${i}`)).join(','),
      ...{ sender: party('a'), receiver: coin('b'), address: coin('c'), sourceTokenAddress: coin('d') },
      ...{ sourceTransactionHash: svmSignature('e'), destTransactionHash: svmSignature('f') },
    });
    expect(length).toBeLessThan(28_000);
  });
});
