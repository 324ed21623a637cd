import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { ApiError } from '../../../src/domain/errors.ts';
import { filterNames, filterTable } from '../../../src/domain/filters/filter-table.ts';
import { matches } from '../../../src/domain/filters/matches.ts';
import type { FilterKind } from '../../../src/domain/filters/parameter-values.ts';
import {
  parseSearch as parse,
  type RawParameters,
  rejectParameters,
} from '../../../src/domain/filters/search-parameters.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { digits, evmAddress, hashOf, makeMessage, svmAddress, svmSignature } from '../../fixtures.ts';

/** Parameters as a query, or by name. */
type Asked = string | Readonly<Record<string, string>>;
const rawOf = (asked: Asked): RawParameters =>
  typeof asked === 'string' ? [...new URLSearchParams(asked)] : Object.entries(asked);
const parseSearch = (asked: Asked) => parse(rawOf(asked));

function rejection(asked: Asked): ApiError {
  try {
    parseSearch(asked);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error(`Nothing is wrong with ${JSON.stringify(asked)}`);
}

const wrongParameters = (asked: Asked) => {
  const { code, details, message } = rejection(asked);
  expect(code).toBe('INVALID_PARAMETERS');
  for (const { parameter, problem } of details) expect(message).toContain(`${parameter} ${problem}`);
  return details.map(({ parameter }) => parameter);
};

type Noun = FilterKind<unknown>['noun'];

/** Texts of each kind, with the values that they mean. What is rejected is in test/api/server/rejections.test.ts. */
const accepted: Record<NonNullable<Noun> | 'switch', readonly (readonly [text: string, value: unknown])[]> = {
  address: [
    [evmAddress('a'), [evmAddress('a').slice(2)]],
    [evmAddress('a').toUpperCase().replace('X', 'x'), [evmAddress('a').slice(2)]],
    [`0x${'0'.repeat(24)}${evmAddress('a').slice(2)}`, [evmAddress('a').slice(2)]],
    [svmAddress('a'), [digits('svm', 'a')]],
    [`0:${digits('ton')}`, [`00000000${digits('ton')}`]],
    ['0x1', [`${'0'.repeat(39)}1`]],
  ],
  network: [
    ['16015286601757825753', '16015286601757825753'],
    ['007', '7'],
    ['0', '0'],
    ['18446744073709551615', '18446744073709551615'],
  ],
  switch: [
    ['true', true],
    ['false', undefined],
  ],
  hash: [
    [hashOf('t'), [digits('t')]],
    [hashOf('t').toUpperCase(), [digits('t')]],
    [svmSignature('t'), [digits('a', 't') + digits('b', 't')]],
  ],
  statuses: [
    ['SENT', ['SENT']],
    ['SUCCESS,SENT,SUCCESS', ['SENT', 'SUCCESS']],
    [statuses.join(','), [...statuses]],
  ],
  time: [
    ['2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1)],
    ['2026-01-01T02:00:00+02:00', Date.UTC(2026, 0, 1)],
    ['2026-01-01T00:00Z', Date.UTC(2026, 0, 1)],
    ['2026-01-01T00:00:00.5Z', Date.UTC(2026, 0, 1, 0, 0, 0, 500)],
  ],
  ids: [
    [hashOf('m'), [digits('m')]],
    [hashOf('m').toUpperCase(), [digits('m')]],
    [`${hashOf('m')},${hashOf('n')},${hashOf('m')}`, [digits('m'), digits('n')]],
  ],
  terms: [
    [evmAddress('e'), [{ addresses: [evmAddress('e').slice(2)], hashes: [], messageId: null }]],
    [hashOf('v'), [{ addresses: [digits('v')], hashes: [digits('v')], messageId: digits('v') }]],
    [
      `${svmSignature('w')}, ${svmAddress('w')}`,
      [
        { addresses: [], hashes: [digits('a', 'w') + digits('b', 'w')], messageId: null },
        { addresses: [digits('svm', 'w')], hashes: [digits('svm', 'w')], messageId: null },
      ],
    ],
  ],
};

it('limit is 20 and view full unless told', () => {
  expect(parseSearch({})).toEqual({ filters: {}, view: 'full', limit: 20, after: null });
  for (const limit of ['1', '2', '20', '999', '1000'])
    expect(parseSearch({ limit, view: 'summary' })).toMatchObject({ limit: Number(limit), view: 'summary' });
});

describe('each filter', () => {
  describe.each(filterNames)('%s', (name) => {
    const kind = filterTable[name].kind.noun ?? 'switch';
    test.each(accepted[kind])('takes %s', (text, value) => {
      const filters = value === undefined ? {} : { [name]: value };
      expect(parseSearch({ [name]: text })).toEqual({ filters, view: 'full', limit: 20, after: null });
    });
  });

  it('takes its example, and combines with all others', () => {
    const all = Object.fromEntries(filterNames.map((name) => [name, filterTable[name].example]));
    const { filters } = parseSearch({ ...all, sentBefore: '2026-02-01T00:00:00Z' });
    expect(Object.keys(filters).sort()).toEqual([...filterNames].sort());
  });
});

describe('sentAfter and sentBefore', () => {
  it('enclose a time', () => {
    const { filters } = parseSearch('sentAfter=2026-01-01T00:00:00Z&sentBefore=2026-01-01T00:00:00.001Z');
    expect(filters).toEqual({ sentAfter: Date.UTC(2026, 0, 1), sentBefore: Date.UTC(2026, 0, 1) + 1 });
  });

  it('are rejected when nothing can be between them', () => {
    for (const sentBefore of ['2026-01-01T00:00:00Z', '2025-01-01T00:00:00Z'])
      expect(wrongParameters({ sentAfter: '2026-01-01T00:00:00Z', sentBefore })).toEqual(['sentBefore']);
  });
});

describe('times with finer digits than milliseconds', () => {
  const base = Date.UTC(2026, 0, 1);
  const nanoseconds = (text: string) => BigInt(text.padEnd(9, '0'));

  test.each<[string, number]>([
    ['0000', 0],
    ['0001', 1],
    ['0010', 1],
    ['123456', 124],
    ['9990', 999],
    ['999000001', 1000],
    ['999999999', 1000],
  ])('.%s s is rounded up to %i ms', (fraction, milliseconds) => {
    for (const name of ['sentAfter', 'sentBefore'] as const)
      expect(parseSearch({ [name]: `2026-01-01T00:00:00.${fraction}Z` }).filters).toEqual({
        [name]: base + milliseconds,
      });
  });

  it('find exactly the messages that they say', () => {
    const fractions = fc.oneof(
      fc.integer({ min: 0, max: 4_000_000 }).map((n) => String(n).padStart(9, '0')),
      fc.integer({ min: 0, max: 4_000 }).map((n) => String(n).padStart(6, '0')),
      fc.integer({ min: 0, max: 4 }).map((n) => String(n).padStart(3, '0')),
    );
    fc.assert(
      fc.property(fractions, fc.integer({ min: 0, max: 5 }), (fraction, sentMs) => {
        const message = makeMessage({ sendTimestamp: new Date(base + sentMs).toISOString() });
        const time = `2026-01-01T00:00:00.${fraction}Z`;
        const isAfter = BigInt(sentMs) * 1_000_000n >= nanoseconds(fraction);
        expect(matches(parseSearch({ sentAfter: time }).filters, message)).toBe(isAfter);
        expect(matches(parseSearch({ sentBefore: time }).filters, message)).toBe(!isAfter);
      }),
      { numRuns: 1_000 },
    );
  });

  it('are rejected within one millisecond, in words that say why, and beyond the year 9999', () => {
    const asked = 'sentAfter=2026-01-01T00:00:00.0001Z&sentBefore=2026-01-01T00:00:00.0009Z';
    const { details } = rejection(asked);
    expect(details).toEqual([
      { parameter: 'sentBefore', problem: 'must be later than sentAfter, by a millisecond at least' },
    ]);
    expect(wrongParameters({ sentBefore: '9999-12-31T23:59:59.9991Z' })).toEqual(['sentBefore']);
  });
});

it.each([
  ['sourceTxHash', 'sourceTransactionHash'],
  ['destinationChainSelector', 'destChainSelector'],
  ['readyForManualExec', 'readyForManualExecOnly'],
  ['Cursor', 'cursor'],
  ['reciever', 'receiver'],
  ['messageIds', 'messageId'],
  ['state', 'status'],
])('the unknown parameter %s is rejected with the suggestion %s', (name, nearest) => {
  expect(rejection({ [name]: 'x' }).details).toEqual([
    { parameter: name, problem: expect.stringContaining(`did you mean ${nearest}?`) },
  ]);
});

it('an unknown parameter is told of in a short line, however long it is', () => {
  const many = Array.from({ length: 5000 }, (_, i) => `x${i}=`).join('&');
  expect(rejection({ ['x'.repeat(10_000)]: 'y' }).message.length).toBeLessThan(500);
  expect(rejection({ sender: 'y'.repeat(10_000) }).message.length).toBeLessThan(500);
  expect(rejection(many).details.length).toBeLessThan(100);
});

it('a parameter is unknown where a path takes none at all', () => {
  expect(() => rejectParameters([])).not.toThrow();
  expect(() => rejectParameters([['limit', '5']])).toThrow(/limit is unknown/);
});
