import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { ApiError } from '../../../src/domain/errors.ts';
import { createCursorCodec } from '../../../src/domain/filters/cursor.ts';
import type { FilterKind } from '../../../src/domain/filters/parameter-values.ts';
import { filterNames, filterTable } from '../../../src/domain/filters/filter-table.ts';
import { matches } from '../../../src/domain/filters/matches.ts';
import {
  parseSearch as parse,
  type RawParameters,
  rejectParameters,
  searchParameterNames,
} from '../../../src/domain/filters/search-parameters.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { createCursorMac } from '../../../src/store/schema/cursor-key.ts';
import { digits, evmAddress, hashOf, makeMessage, svmAddress, svmSignature } from '../../fixtures.ts';

const cursors = createCursorCodec(createCursorMac(Buffer.alloc(32, 'key')));
/** Parameters as a query, or by name. */
type Asked = string | Readonly<Record<string, string>>;
const rawOf = (asked: Asked): RawParameters =>
  typeof asked === 'string' ? [...new URLSearchParams(asked)] : Object.entries(asked);
const parseSearch = (asked: Asked) => parse(rawOf(asked), cursors);
const after = { sentAt: Date.UTC(2026, 0, 1), messageId: digits('last') };
const filters = { sender: [digits('sender').slice(0, 40)], status: ['SENT' as const] };
const cursor = cursors.encode({ filters, view: 'full', after });

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

/** Texts of each kind, with the values that they mean. */
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

const rejected: Record<keyof typeof accepted, readonly string[]> = {
  address: [
    'x',
    '0x',
    '0xg',
    ` ${evmAddress('a')}`,
    `${evmAddress('a')},`,
    `0x${'0'.repeat(65)}`,
    'a'.repeat(400),
    '0',
  ],
  hash: [
    'x',
    '0x',
    hashOf('t').slice(0, -1),
    `${hashOf('t')}0`,
    evmAddress('a'),
    `${hashOf('t')},${hashOf('u')}`,
  ],
  network: ['-1', '1.5', '1e3', '0x1', ' 1', 'sepolia', '18446744073709551616', '1'.repeat(21), '١'],
  time: [
    '2026',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '1767225600',
    'now',
    '2026-02-30T00:00:00Z',
    '1969-12-31T23:59:59Z',
  ],
  switch: ['TRUE', 'yes', '1', '0', 'true,false', ' true'],
  statuses: ['sent', 'NOPE', 'SENT,', ',SENT', 'SENT;SUCCESS', 'SENT, SUCCESS'],
  ids: [
    digits('m'),
    hashOf('m').slice(0, -1),
    `${hashOf('m')},`,
    evmAddress('m'),
    Array.from({ length: 101 }, (_, i) => hashOf(i)).join(','),
  ],
  terms: [
    'x',
    'hello world',
    `${evmAddress('a')},`,
    `${evmAddress('a')},nope`,
    Array.from({ length: 11 }, (_, i) => evmAddress(i)).join(','),
  ],
};

describe('limit', () => {
  it('is 20 unless told', () => {
    expect(parseSearch({})).toEqual({ filters: {}, view: 'full', limit: 20, after: null });
  });

  test.each(['1', '2', '20', '999', '1000'])('takes %s', (limit) => {
    expect(parseSearch({ limit }).limit).toBe(Number(limit));
  });

  test.each(['0', '1001', '-1', '1.5', 'abc', '', ' 5', '5 ', '1e3', '+5', '0x10', '9999999999', 'NaN', '٥'])(
    'rejects %j',
    (limit) => {
      expect(wrongParameters({ limit })).toEqual(['limit']);
      if (limit !== '') expect(rejection({ limit }).message).toContain('1 to 1000');
    },
  );
});

describe('view', () => {
  it('is full or summary', () => {
    expect(parseSearch({ view: 'full' }).view).toBe('full');
    expect(parseSearch({ view: 'summary' }).view).toBe('summary');
    for (const view of ['FULL', 'short', '', 'full,summary'])
      expect(wrongParameters({ view })).toEqual(['view']);
  });
});

describe('each filter', () => {
  describe.each(filterNames)('%s', (name) => {
    const kind = filterTable[name].kind.noun ?? 'switch';
    it('takes its example', () => {
      expect(() => parseSearch({ [name]: filterTable[name].example })).not.toThrow();
    });
    test.each(accepted[kind])('takes %s', (text, value) => {
      const filters = value === undefined ? {} : { [name]: value };
      expect(parseSearch({ [name]: text })).toEqual({ filters, view: 'full', limit: 20, after: null });
    });
    test.each(rejected[kind])('rejects %j, naming itself', (text) => {
      expect(wrongParameters({ [name]: text })).toEqual([name]);
    });
    it('rejects an empty value and a second one', () => {
      expect(wrongParameters({ [name]: '' })).toEqual([name]);
      const pair = `${name}=${encodeURIComponent(filterTable[name].example)}`;
      expect(wrongParameters(`${pair}&${pair}`)).toEqual([name]);
    });
  });

  it('combines with all others', () => {
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
    ['000', 0],
    ['0000', 0],
    ['000000000', 0],
    ['000000001', 1],
    ['0001', 1],
    ['001', 1],
    ['0010', 1],
    ['001000001', 2],
    ['0019', 2],
    ['123456', 124],
    ['289', 289],
    ['999', 999],
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

describe('an unknown parameter', () => {
  test.each([
    ['Sender', 'sender'],
    ['sourceTxHash', 'sourceTransactionHash'],
    ['destinationChainSelector', 'destChainSelector'],
    ['readyForManualExec', 'readyForManualExecOnly'],
    ['readyForManualExecutionOnly', 'readyForManualExecOnly'],
    ['limits', 'limit'],
    ['Cursor', 'cursor'],
    ['reciever', 'receiver'],
    ['messageIds', 'messageId'],
    ['state', 'status'],
  ])('%s is rejected with the suggestion %s', (name, nearest) => {
    const { details } = rejection({ [name]: 'x' });
    expect(details).toEqual([
      { parameter: name, problem: expect.stringContaining(`did you mean ${nearest}?`) },
    ]);
  });

  it('that is like none is rejected with the list of all', () => {
    const { message } = rejection({ zzzzzzzzzzzz: 'x' });
    for (const name of searchParameterNames) expect(message).toContain(name);
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', ''])(
    '%j is unknown like any other',
    (name) => {
      expect(wrongParameters({ [name]: 'x' })).toEqual([name]);
      expect(wrongParameters({ cursor, [name]: 'x' })).toEqual([name]);
    },
  );

  it('is told of in a short line, however long it is', () => {
    const many = Array.from({ length: 5000 }, (_, i) => `x${i}=`).join('&');
    expect(rejection({ ['x'.repeat(10_000)]: 'y' }).message.length).toBeLessThan(500);
    expect(rejection({ sender: 'y'.repeat(10_000) }).message.length).toBeLessThan(500);
    expect(rejection(many).details.length).toBeLessThan(100);
  });

  it('is unknown where a path takes none at all', () => {
    expect(() => rejectParameters([])).not.toThrow();
    expect(() => rejectParameters([['limit', '5']])).toThrow(/limit is unknown/);
  });
});

describe('several problems', () => {
  it('are all named', () => {
    const receivers = `receiver=${evmAddress('a')}&receiver=${evmAddress('b')}`;
    const asked = `sender=x&limit=0&view=x&nope=1&status=&${receivers}&sentAfter=x`;
    expect(wrongParameters(asked).sort()).toEqual([
      'limit',
      'nope',
      'receiver',
      'sender',
      'sentAfter',
      'status',
      'view',
    ]);
  });
});

describe('a cursor', () => {
  it('goes alone, with limit and with view', () => {
    expect(parseSearch({ cursor })).toEqual({ filters, view: 'full', limit: 20, after });
    expect(parseSearch({ limit: '7', cursor })).toMatchObject({ filters, limit: 7, after });
    expect(parseSearch({ cursor, view: 'summary' })).toMatchObject({ view: 'summary', filters });
  });

  it('keeps the view of its search unless another is asked for', () => {
    const summary = cursors.encode({ filters, view: 'summary', after });
    expect(parseSearch({ cursor: summary }).view).toBe('summary');
    expect(parseSearch({ cursor: summary, view: 'full' }).view).toBe('full');
  });

  test.each(filterNames)('with %s is a wrong combination, whatever the value', (name) => {
    for (const value of [filterTable[name].example, 'nonsense', '', 'false']) {
      const beside = [
        { cursor, [name]: value },
        { [name]: value, limit: '5', cursor },
        { cursor: 'damaged', [name]: value },
      ];
      for (const asked of beside) {
        const { code, details, message } = rejection(asked);
        expect(code).toBe('INVALID_PARAMETER_COMBINATION');
        expect(details.map(({ parameter }) => parameter)).toEqual([name]);
        expect(message).toContain(name);
      }
    }
  });

  it('with several filters names each once', () => {
    const { details } = rejection(`sender=&q=x&cursor=${cursor}&sender=y`);
    expect(details.map(({ parameter }) => parameter)).toEqual(['sender', 'q']);
  });

  it('that is damaged is rejected', () => {
    expect(rejection({ cursor: `${cursor}A` }).code).toBe('INVALID_CURSOR');
    expect(rejection({ cursor: 'nonsense' })).toMatchObject({ code: 'INVALID_CURSOR', status: 400 });
  });

  it('is rejected when it is empty, repeated, or beside a wrong limit', () => {
    expect(wrongParameters({ cursor: '' })).toEqual(['cursor']);
    expect(wrongParameters(`cursor=${cursor}&cursor=${cursor}`)).toEqual(['cursor']);
    expect(wrongParameters({ cursor, limit: '0' })).toEqual(['limit']);
    expect(wrongParameters({ cursor, nope: '0' })).toEqual(['nope']);
  });
});
