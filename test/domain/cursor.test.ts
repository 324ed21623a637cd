import { crc32 } from 'node:zlib';
import { base64urlnopad } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { type Cursor, decodeCursor, encodeCursor } from '../../src/domain/cursor.ts';
import { ApiError } from '../../src/domain/errors.ts';
import { statuses } from '../../src/domain/lifecycle.ts';
import type { Filters } from '../../src/domain/query.ts';
import { parseSearch, type RawParameters } from '../../src/domain/search-parameters.ts';
import { LATEST_TIME } from '../../src/domain/time.ts';
import { digits, evmAddress, hashOf, svmAddress, svmSignature } from '../fixtures.ts';

const after = { sentAt: Date.UTC(2026, 0, 1), messageId: digits('last') };

const hex = (min: number, max = min) =>
  fc.uint8Array({ minLength: min, maxLength: max }).map((bytes) => Buffer.from(bytes).toString('hex'));
const meanings = fc.array(hex(20, 80), { minLength: 1, maxLength: 3 });
const milliseconds = fc.integer({ min: 0, max: LATEST_TIME });
const selector = fc.bigInt(0n, 2n ** 64n - 1n).map(String);

const filters: fc.Arbitrary<Filters> = fc.record(
  {
    sender: meanings,
    receiver: meanings,
    sourceChainSelector: selector,
    destChainSelector: selector,
    readyForManualExecOnly: fc.constant(true as const),
    sourceTransactionHash: meanings,
    status: fc.subarray([...statuses], { minLength: 1 }),
    sentAfter: milliseconds,
    sentBefore: milliseconds,
    address: meanings,
    sourceTokenAddress: meanings,
    destTransactionHash: meanings,
    messageId: fc.array(hex(32), { minLength: 1, maxLength: 5 }),
    q: fc.array(
      fc.record({
        addresses: fc.array(hex(20, 32), { maxLength: 2 }),
        hashes: fc.array(hex(32, 64), { maxLength: 2 }),
        messageId: fc.option(hex(32)),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  },
  { requiredKeys: [] },
);

const cursors: fc.Arbitrary<Cursor> = fc.record({
  filters,
  view: fc.constantFrom('full' as const, 'summary' as const),
  after: fc.record({ sentAt: milliseconds, messageId: hex(32) }),
});

/** What decoding says: the cursor, or the code of its refusal. Any other exception is a failure. */
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

/** A cursor whose checksum is right, whatever it holds. */
function forged(payload: string | Uint8Array, version = 2): string {
  const bytes = Buffer.from(payload);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(bytes));
  return base64urlnopad.encode(Buffer.concat([Buffer.from([version]), checksum, bytes]));
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

  it('with any one character changed is refused', () => {
    fc.assert(
      fc.property(cursors, fc.nat(), fc.constantFrom(...'ABab09_-+/=. é'), (cursor, position, character) => {
        const text = encodeCursor(cursor);
        const at = position % text.length;
        fc.pre(text[at] !== character);
        expect(decoded(text.slice(0, at) + character + text.slice(at + 1))).toBe('INVALID_CURSOR');
      }),
      { numRuns: 1000 },
    );
  });

  it('with every single character changed in turn is refused', () => {
    const text = encodeCursor({ filters: { sender: [digits('x')] }, view: 'summary', after });
    for (let at = 0; at < text.length; at++) {
      const character = text[at] === 'A' ? 'B' : 'A';
      expect(decoded(text.slice(0, at) + character + text.slice(at + 1))).toBe('INVALID_CURSOR');
    }
  });

  it('cut short anywhere, or with anything added, is refused', () => {
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

  it('that is any other text is refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.string({ unit: 'binary' })), (text) => {
        expect(decoded(text)).toBe('INVALID_CURSOR');
      }),
      { numRuns: 1000 },
    );
  });

  it('of another version is refused, even with a right checksum', () => {
    const payload = JSON.stringify({ f: {}, v: 'full', k: [after.sentAt, after.messageId] });
    expect(decoded(forged(payload))).toEqual({ filters: {}, view: 'full', after });
    for (const version of [0, 1, 255]) expect(decoded(forged(payload, version))).toBe('INVALID_CURSOR');
  });

  it('that is longer than any of ours is refused without being read', () => {
    expect(decoded('A'.repeat(1_000_000))).toBe('INVALID_CURSOR');
  });

  const key = [after.sentAt, after.messageId];
  test.each<[string, unknown]>([
    ['no JSON', undefined],
    ['null', null],
    ['an array', []],
    ['no key', { f: {}, v: 'full' }],
    ['no filters', { v: 'full', k: key }],
    ['another view', { f: {}, v: 'all', k: key }],
    ['a key of one', { f: {}, v: 'full', k: [1] }],
    ['a key of three', { f: {}, v: 'full', k: [...key, 1] }],
    ['a time that no calendar has', { f: {}, v: 'full', k: [8.64e15, after.messageId] }],
    ['a time before 1970', { f: { sentAfter: -1 }, v: 'full', k: key }],
    ['half a millisecond', { f: {}, v: 'full', k: [0.5, after.messageId] }],
    ['a short id', { f: {}, v: 'full', k: [1, 'ab'] }],
    ['an unknown filter', { f: { nope: 1 }, v: 'full', k: key }],
    ['an unknown member', { f: {}, v: 'full', k: key, x: 1 }],
    ['an unknown status', { f: { status: ['NOPE'] }, v: 'full', k: key }],
    ['a sender that is no bytes', { f: { sender: ['xyz'] }, v: 'full', k: key }],
    ['no sender', { f: { sender: [] }, v: 'full', k: key }],
    ['a number for a text', { f: { sourceChainSelector: 5 }, v: 'full', k: key }],
    ['false', { f: { readyForManualExecOnly: false }, v: 'full', k: key }],
    ['101 ids', { f: { messageId: Array.from({ length: 101 }, (_, i) => digits(i)) }, v: 'full', k: key }],
  ])('that was forged to hold %s is refused', (_, payload) => {
    expect(decoded(forged(payload === undefined ? '{"f":' : JSON.stringify(payload)))).toBe('INVALID_CURSOR');
  });

  it('that was forged from random bytes is refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ minLength: 1 }), fc.json()), (payload) => {
        expect(decoded(forged(payload))).toBe('INVALID_CURSOR');
      }),
      { numRuns: 500 },
    );
  });
});

describe('every search that is accepted', () => {
  const roundTrip = (raw: RawParameters) => {
    const query = parseSearch(raw);
    const text = encodeCursor({ filters: query.filters, view: query.view, after });
    expect(parseSearch([['cursor', text]])).toEqual({ ...query, limit: 20, after });
    return text.length;
  };

  it('has a cursor that is accepted, up to a hundred message ids and ten terms', () => {
    const ids = Array.from({ length: 100 }, (_, i) => hashOf('message', i)).join(',');
    roundTrip([['messageId', ids]]);
    roundTrip([
      ['messageId', ids],
      ['q', Array.from({ length: 10 }, (_, i) => svmSignature(i)).join(',')],
      ['sender', svmAddress('a')],
      ['receiver', svmAddress('b')],
      ['address', svmAddress('c')],
      ['sourceTokenAddress', evmAddress('d')],
      ['sourceTransactionHash', svmSignature('e')],
      ['destTransactionHash', svmSignature('f')],
      ['status', statuses.join(',')],
      ['sourceChainSelector', '18446744073709551615'],
      ['destChainSelector', '18446744073709551615'],
      ['sentAfter', '1970-01-01T00:00:00Z'],
      ['sentBefore', '9999-12-31T23:59:59Z'],
      ['readyForManualExecOnly', 'true'],
      ['view', 'summary'],
    ]);
  });

  it('has one even with the longest addresses that there are', () => {
    const party = (name: string) => `${name.padEnd(185, 'x')}::1220${digits(name)}`;
    const coin = (name: string) => `0x2::${name.padEnd(140, 'x')}::${name.padEnd(140, 'y')}`;
    const length = roundTrip([
      ['messageId', Array.from({ length: 100 }, (_, i) => hashOf('message', i)).join(',')],
      ['q', Array.from({ length: 10 }, (_, i) => coin(`q${i}`)).join(',')],
      ['sender', party('a')],
      ['receiver', coin('b')],
      ['address', coin('c')],
      ['sourceTokenAddress', coin('d')],
      ['sourceTransactionHash', svmSignature('e')],
      ['destTransactionHash', svmSignature('f')],
    ]);
    expect(length).toBeLessThan(28_000);
  });
});
