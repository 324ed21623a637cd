/**
 * No text makes the service think for long: every pattern that input can reach gets the shapes that make patterns
 * backtrack, a hundred kilobytes long.
 *
 * Work must not grow with the square of the length. Four times as much of it then takes four times as long, and not
 * sixteen times; what is done in no time at all is not worth a comparison.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { matchingTag } from '../../src/api/server/caching.ts';
import { chooseCoding } from '../../src/api/server/compression.ts';
import { createRateLimiter } from '../../src/api/server/rate-limit.ts';
import { parseRetryAfterMs } from '../../src/base/http-headers.ts';
import { parseTime } from '../../src/base/iso-time.ts';
import { nearestName } from '../../src/base/nearest-name.ts';
import { createRedactor } from '../../src/base/url-parts.ts';
import { wrapped } from '../../src/cli/output/terminal-text.ts';
import { addressBytes, transactionHashBytes } from '../../src/domain/addresses.ts';
import { createCursorCodec } from '../../src/domain/filters/cursor.ts';
import { parseSearch, searchParameterNames } from '../../src/domain/filters/search-parameters.ts';
import { meaningsOf } from '../../src/domain/filters/search-text.ts';
import { csvLine } from '../../src/domain/records/export-format.ts';
import { parseMessage } from '../../src/domain/records/message-parser.ts';
import { classifyEvmRpcError } from '../../src/ingest/evm/rpc/evm-rpc-errors.ts';
import { createCursorMac } from '../../src/store/schema/cursor-key.ts';
import { printable, printableJson } from '../../src/text/format.ts';
import { abiValues, textOf } from '../../src/text/payload.ts';
import { dispatcherTimings } from '../../src/webhooks/dispatcher.ts';
import { decideRetry } from '../../src/webhooks/retry.ts';
import { startServerForTest } from '../api/running-server.ts';
import { evmAddress, fuji, makeMessage, makeToken, sepolia } from '../fixtures.ts';

const LENGTH = 100_000;
const FACTOR = 4;
/** Between four times and sixteen times as long, with room for a machine that is busy with something else. */
const WORST_RATIO = 10;
/** A square of a hundred thousand takes seconds on any machine. */
const NO_TIME_MS = 200;

/** Texts of about a length, each of them bad for some kind of pattern: repetition, and an end that does not fit. */
const shapes: Readonly<Record<string, (length: number) => string>> = {
  letters: (n) => 'a'.repeat(n),
  digits: (n) => '1'.repeat(n),
  zeros: (n) => `${'0'.repeat(n)}1`,
  'hexadecimal that ends badly': (n) => `0x${'0'.repeat(n)}!`,
  'base58 that ends badly': (n) => `${'1'.repeat(n)}0`,
  'base58 of the highest digit': (n) => 'z'.repeat(n),
  spaces: (n) => `${' '.repeat(n)}x`,
  'spaces at the end': (n) => `x${' '.repeat(n)}`,
  'spaces and line ends': (n) => `${' \r\n\t'.repeat(n / 4)}x`,
  commas: (n) => ','.repeat(n),
  'short words with commas': (n) => 'a,'.repeat(n / 2),
  dashes: (n) => `${'a-'.repeat(n / 2)}!`,
  dots: (n) => `1${'.1'.repeat(n / 2)}!`,
  slashes: (n) => `${'/'.repeat(n)}x`,
  colons: (n) => `${'a:'.repeat(n / 2)}!`,
  'a time with a long fraction': (n) => `2026-01-01T00:00:00.${'0'.repeat(n)}!`,
  brackets: (n) => '['.repeat(n),
  'ranges that are never closed': (n) => 'range ['.repeat(n / 7),
  'limits one after the other': (n) => `${'limited to '.repeat(n / 11)}x`,
  'numbers in words': (n) => `${'max 1,'.repeat(n / 6)}x`,
  quotes: (n) => '"\\'.repeat(n / 2),
  'weights that are none': (n) => 'gzip;q=0.0.0,'.repeat(n / 13),
  'surrogate pairs': (n) => '😀'.repeat(n / 2),
  'marks upon marks': (n) => `a${'\u0301'.repeat(n)}`,
  'controls and directions': (n) => '\u0000\u202e'.repeat(n / 2),
  percents: (n) => '%'.repeat(n),
};

function milliseconds(work: () => unknown): number {
  const times = Array.from({ length: 3 }, () => {
    const startedAt = performance.now();
    try {
      work();
    } catch {
      // An error is as good as an answer, as long as it comes soon.
    }
    return performance.now() - startedAt;
  });
  return Math.min(...times);
}

function expectNotSquare(what: string, work: (length: number) => unknown): void {
  const ratios: number[] = [];
  // What else runs on the machine can make a line look like a square, but hardly three times in a row.
  while (ratios.length < 3) {
    const long = milliseconds(() => work(LENGTH));
    if (long < NO_TIME_MS) return;
    ratios.push(long / milliseconds(() => work(LENGTH / FACTOR)));
    if (Math.min(...ratios) <= WORST_RATIO) return;
  }
  expect({ what, ratios }).toEqual({ what, ratios: 'those of a line' });
}

const cursors = createCursorCodec(createCursorMac(Buffer.alloc(32)));
const limiter = createRateLimiter({
  rateLimit: false,
  apiKeys: [{ name: 'a', sha256: '0'.repeat(64), perSecond: 1, burst: 1 }],
});
const attempt = { number: 1, firstAt: new Date(0), endedAt: new Date(0) };

/** Everything that takes a text from somebody else. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  ...Object.fromEntries(
    searchParameterNames.map((name) => [
      `the parameter ${name}`,
      (text: string) => parseSearch([[name, text]], cursors),
    ]),
  ),
  'the name of a parameter': (text) => parseSearch([[text, 'x']]),
  'a cursor': cursors.decode,
  'an address': addressBytes,
  'a transaction hash': transactionHashBytes,
  'a time': parseTime,
  'a name that is nearly right': (text) => nearestName(text, searchParameterNames),
  'Accept-Encoding': (text) => chooseCoding(text, LENGTH),
  'If-None-Match': (text) => matchingTag(text, 'validator'),
  Authorization: (text) => limiter.take('6.6.6.6', { authorization: `Bearer ${text}` }),
  'Retry-After': (text) => parseRetryAfterMs(text, 0),
  'what a receiver of webhooks answers': (text) =>
    decideRetry({ status: 500, text, retryAfter: text }, attempt, dispatcherTimings, 1),
  'what a node answers': (text) => classifyEvmRpcError({ code: -32000, message: text }, 'eth_getLogs', true),
  'what repeats a URL': createRedactor(new URL('https://x.example/secret/path?key=secret')),
  'a line of a terminal': printable,
  'a record on a terminal': (text) => printableJson(JSON.stringify({ text })),
  'wrapped text': (text) => wrapped(text, 80),
  'what people type into the search box': (text) => meaningsOf(text),
  'data of a message in the explorer': (text) => {
    const hex = `0x${Buffer.from(text).toString('hex')}`;
    return [textOf(hex), abiValues(hex)];
  },
  ...Object.fromEntries(
    Object.keys(makeMessage()).map((field) => [
      `the field ${field} of a record`,
      (text: string) => parseMessage({ ...makeMessage(), [field]: text }),
    ]),
  ),
  'the name of a network in a record': (text) =>
    parseMessage({ ...makeMessage(), sourceNetworkInfo: { ...sepolia, name: text, displayName: text } }),
  'a verifier of a record': (text) =>
    parseMessage({
      ...makeMessage({ version: '2.0.0' }),
      verifiers: { items: [{ metadata: { name: text, logoUrl: `https://${text}` } }], optionalThreshold: 0 },
    }),
  'the name of a member of a record': (text) => parseMessage({ ...makeMessage(), [text]: 1 }),
  'a cell of a table': (text) => csvLine(makeMessage({ sourceNetworkInfo: { ...sepolia, name: text } })),
};

describe('a hundred kilobytes are read in no time, or in time that grows with their length', () => {
  test.each(Object.entries(readers))('%s', { tags: 'slow' }, (what, read) => {
    for (const [shape, make] of Object.entries(shapes)) {
      expectNotSquare(`${what}: ${shape}`, (length) => read(make(length)));
    }
  });

  test('of thousands of unknown parameters a few are worth a guess at what was meant', () => {
    const lowered = vi.spyOn(String.prototype, 'toLowerCase');
    onTestFinished(() => lowered.mockRestore());
    /** Every guess compares names in lower case. */
    const guessesFor = (count: number) => {
      lowered.mockClear();
      const names = Array.from({ length: count }, (_, index) => `sendr${index}`);
      expect(() => parseSearch(names.map((name) => [name, 'x']))).toThrow(/did you mean sender/);
      return lowered.mock.calls.length;
    };
    expect(guessesFor(1)).toBeGreaterThan(1);
    expect(guessesFor(5_000)).toBe(guessesFor(50));
  });
});

test('amounts, which are divided and grouped with patterns that like them short, have 78 digits at most', () => {
  const token = makeToken(sepolia, fuji, 'LINK');
  const isTaken = (fields: object) => parseMessage({ ...makeMessage(), ...fields }).ok;
  const tokenAddress = evmAddress('fee');
  for (const [amount, expected] of Object.entries({
    [`1${'0'.repeat(77)}`]: true,
    [`1${'0'.repeat(78)}`]: false,
    ['0'.repeat(101)]: false,
  })) {
    expect(isTaken({ tokenAmounts: [{ ...token, amount }] })).toBe(expected);
    const fixedFeesDetails = { tokenAddress, totalAmount: amount, items: [] };
    expect(isTaken({ fees: { fixedFeesDetails } })).toBe(expected);
  }
});

test('the longest headers that are taken are read at once', { tags: 'slow' }, async () => {
  const server = await startServerForTest([makeMessage()]);
  const names = 'Accept Accept-Encoding If-None-Match Authorization X-Forwarded-For Range Cookie';
  for (const name of names.split(' ')) {
    for (const shape of ['spaces', 'commas', 'short words with commas', 'weights that are none', 'dots']) {
      const value = (shapes[shape]?.(55_000) ?? '').trim();
      const times: number[] = [];
      // A square of 55,000 takes seconds each time; a busy machine does not.
      while (times.length < 3 && Math.min(...times) >= 2_000) {
        const startedAt = performance.now();
        const { status } = await server.ask('/v2/messages', { headers: { [name]: value } });
        times.push(performance.now() - startedAt);
        expect([200, 406]).toContain(status);
      }
      expect({ name, shape, isSlow: Math.min(...times) >= 2_000 }).toEqual({ name, shape, isSlow: false });
    }
  }
});
