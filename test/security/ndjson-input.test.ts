// @module-tag slow: imports files of hundreds of megabytes
/**
 * NDJSON that is damaged, enormous or made to harm: each bad line is named by its number and costs itself alone, and no
 * input makes the importer grow.
 */
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildProgram, freshFolder, lanescanOn, start } from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeMessage } from '../fixtures.ts';
import { queryOnce } from '../postgres.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';

let database: TestDatabase;
let folder: string;

beforeAll(buildProgram);
beforeEach(async () => {
  database = await createTestDatabase();
  folder = freshFolder();
});
afterEach(() => database.drop());

const record = (number: number, overrides: object = {}) => ({ ...makeMessage({ number }), ...overrides });
const line = (number: number, overrides: object = {}) => JSON.stringify(record(number, overrides));
/** A member name that an object literal would not take as one. */
const withProto = (text: string, member: string) => text.replace('{', `{"__proto__":${member},`);

async function storedIds(): Promise<readonly string[]> {
  const ids = `select '0x' || encode(message_id, 'hex') as id from message order by 1`;
  return (await queryOnce<{ id: string }>(database.url, ids)).map(({ id }) => id);
}
const idsOf = (...numbers: readonly number[]) =>
  numbers.map((number) => makeMessage({ number }).messageId).sort();

interface Reject {
  readonly line: number;
  readonly problems: readonly { readonly path: string; readonly problem: string }[];
}

async function importBytes(bytes: Buffer | string, name = 'input.ndjson') {
  const file = path.join(folder, name);
  const rejectsFile = path.join(folder, 'rejects.ndjson');
  writeFileSync(file, bytes);
  writeFileSync(rejectsFile, '');
  const outcome = await lanescanOn(database, 'import', '--rejects', rejectsFile, file);
  const rejects = readFileSync(rejectsFile, 'utf8')
    .split('\n')
    .filter((text) => text !== '')
    .map((text): Reject => JSON.parse(text));
  return { ...outcome, rejects };
}

const nested = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
const bytes = (...parts: readonly (string | readonly number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from([...part]))));

/** A line that is no record, and what must be said of it. */
const wrongBytes: Readonly<Record<string, readonly number[]>> = {
  'a byte that never occurs': [0xff],
  'a continuation without a start': [0x80],
  'a character that breaks off': [0xe2, 0x82],
  'a slash in two bytes': [0xc0, 0xaf],
  'half a surrogate pair': [0xed, 0xa0, 0x80],
  'a character beyond the last': [0xf4, 0x90, 0x80, 0x80],
};
const beginning = line(99).replace(/"displayName":.*/, '"displayName":"');
/** With this JSON as the value of a member. */
const withJson = (member: string, json: string) =>
  bytes(line(99, { [member]: 'HERE' }).replace('"HERE"', json));
const deep = nested('[', ']', 10_000);
const strangeFamily = { ...record(1).sourceNetworkInfo, chainFamily: '__proto__' };
const badLines: readonly (readonly [what: string, bytes: Buffer, problem: RegExp])[] = [
  ...Object.entries(wrongBytes).map(
    ([what, sequence]) => [what, bytes(beginning, sequence, '"}'), /UTF-8/] as const,
  ),
  ['ten thousand arrays in each other', bytes(deep), /must be an object/],
  ['ten thousand objects in each other', bytes(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`), /missing/],
  ['a million arrays that never end', bytes('['.repeat(1_000_000)), /not valid JSON/],
  ['depth where a network belongs', withJson('sourceNetworkInfo', deep), /must be an object/],
  ['depth where text belongs', withJson('sender', deep), /must be/],
  ['a number of 400 digits', bytes(line(99, { sequenceNumber: '9'.repeat(400) })), /must be/],
  ['an infinite number', withJson('sequenceNumber', '9'.repeat(400)), /must be/],
  ['an infinite log index', withJson('sendLogIndex', '1e400'), /must be/],
  ['a number of 400 digits after the point', bytes(line(99, { sendLogIndex: Number.EPSILON })), /must be/],
  ['a NUL between members', bytes(line(99).replace(',', ',\u0000')), /not valid JSON/],
  ['two records on a line', bytes(line(98), line(99)), /not valid JSON/],
  ['carriage returns only', bytes(line(98), '\r', line(99)), /not valid JSON/],
  ['UTF-16', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(line(99), 'utf16le')]), /UTF-8/],
  [
    'a status of the prototype',
    bytes(withProto(line(99, { status: undefined }), '{"status":"SENT"}')),
    /is missing/,
  ],
  ['a record that is all prototype', bytes(`{"__proto__":${line(99)}}`), /is missing/],
  ['a status that every object has', bytes(line(99, { status: 'constructor' })), /SENT/],
  ['a chain family that every object has', bytes(line(99, { sourceNetworkInfo: strangeFamily })), /must be/],
];

test('a bad line is named by its number with what is wrong, whatever it is; all others are in', async () => {
  const numbers = badLines.map((_, index) => index + 1);
  const file = Buffer.concat(
    badLines.flatMap(([, bad], index) => [bad, bytes('\n', line(index + 1), '\r\n')]),
  );
  const { code, stdout, rejects } = await importBytes(file);
  expect(rejects.map((reject) => reject.line)).toEqual(numbers.map((number) => number * 2 - 1));
  for (const [index, [what, , problem]] of badLines.entries()) {
    const said = rejects[index]?.problems.map((each) => each.problem).join('; ');
    expect({ what, said }).toEqual({ what, said: expect.stringMatching(problem) });
    expect(said?.length, what).toBeLessThan(3_000);
  }
  expect(stdout).toContain(`${numbers.length} new, 0 updated, 0 unchanged, ${numbers.length} rejected`);
  expect(code).toBe(3);
  expect(await storedIds()).toEqual(idsOf(...numbers));
});

describe('a record with strange members', () => {
  const manyMembers = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`m${i}`, i]));
  const strange: readonly (readonly [what: string, text: string])[] = [
    ['a prototype of its own', withProto(line(1), '{"polluted":true}')],
    ['a constructor', line(1, { constructor: { prototype: { polluted: true } } })],
    ['depth in a member that a record does not have', line(1).replace('{', `{"x":${deep},`)],
    ['a name that PostgreSQL cannot hold', line(1, { 'a\u0000b': 1 })],
    ['ten thousand more members', line(1, manyMembers)],
  ];

  test('a byte order mark before any line is none: files may have been put together', async () => {
    const { code } = await importBytes(`\ufeff${line(1)}\n\ufeff${line(2)}\n`);
    expect(code).toBe(0);
    expect(await storedIds()).toEqual(idsOf(1, 2));
  });

  test.each(strange)('is taken without them: %s', async (_what, text) => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    const { code } = await importBytes(text);
    expect(code).toBe(0);
    expect(await storedIds()).toEqual(idsOf(1));
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  /** Every text that a record takes freely. */
  const withTexts = (text: string) =>
    record(1, { sourceNetworkInfo: { ...record(1).sourceNetworkInfo, name: text, displayName: text } });

  test.each([
    ['NUL', 'a\u0000b'],
    ['half a surrogate pair', 'a\ud800b'],
    ['every control character', Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('')],
    ['quotes and backslashes', `'"\\'"\\\\`],
    ['right to left', '\u202eabc\u2066'],
  ])('keeps its text as it was, or says why not: %s', async (_what, text) => {
    const { code, rejects } = await importBytes(JSON.stringify(withTexts(text)));
    const shown = await lanescanOn(database, 'search', '--json');
    if (code === 0) expect(JSON.parse(shown.stdout)).toMatchObject(withTexts(text));
    else expect(rejects).toMatchObject([{ line: 1, problems: [{ problem: expect.stringMatching(/\w/) }] }]);
  });
});

describe('gzip', () => {
  const whole = gzipSync(`${line(1)}\n${line(2)}\n`);
  const flipped = Buffer.from(whole);
  flipped[flipped.length - 6] = (flipped.at(-6) ?? 0) ^ 0xff;

  /** What is in afterwards: exactly these, or at most those that it holds. */
  test.each([
    ['only its two first bytes', whole.subarray(0, 2), /The lines before the damage/, []],
    ['only its header', whole.subarray(0, 10), /The lines before the damage/, []],
    ['no checksum', whole.subarray(0, -8), /The lines before the damage/, [1, 2]],
    [
      'a second member that breaks off',
      Buffer.concat([whole, whole.subarray(0, 9)]),
      /The lines before/,
      [1, 2],
    ],
    ['a wrong checksum', flipped, /\(incorrect data check\)/, null],
    [
      'something else behind it',
      Buffer.concat([whole, Buffer.from(line(3))]),
      /\(incorrect header check\)/,
      null,
    ],
  ] as const)('with %s is told, and what came before is in', async (_what, damaged, problem, stored) => {
    const { code, stderr } = await importBytes(damaged, 'damaged.ndjson.gz');
    expect(stderr).toContain('damaged.ndjson.gz is damaged gzip (');
    expect(stderr).toMatch(problem);
    expect(code).toBe(1);
    if (stored) expect(await storedIds()).toEqual(idsOf(...stored));
    else expect(idsOf(1, 2)).toEqual(expect.arrayContaining([...(await storedIds())]));
  });

  test('within gzip is no record', async () => {
    const { code, rejects } = await importBytes(gzipSync(whole));
    expect(code).toBe(3);
    expect(rejects.length).toBeGreaterThan(0);
    expect(await storedIds()).toEqual([]);
  });

  test('of nothing, and no bytes at all, are no error', async () => {
    for (const empty of [gzipSync(''), Buffer.alloc(0)]) expect((await importBytes(empty)).code).toBe(0);
  });
});

/** VmHWM of Linux: the most memory that a process has ever had. */
const canMeasure = process.platform === 'linux';
const MEGABYTE = 1_000_000;

/** Imports from a pipe while somebody writes it, and tells how large the process grew. */
async function measureImport(chunks: Iterable<Buffer>) {
  const rejectsFile = path.join(folder, 'rejects.ndjson');
  const running = start(['import', '-', '--rejects', rejectsFile], {
    env: { DATABASE_URL: database.url },
    input: null,
  });
  const { stdin, pid, exitCode } = running.child;
  let peak = 0;
  let isRunning = exitCode === null;
  const measuring = (async () => {
    while (isRunning) {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        peak = Math.max(peak, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024);
      } catch {
        // It has ended since.
      }
      await delay(20);
    }
  })();
  for (const chunk of chunks) if (!stdin.write(chunk)) await once(stdin, 'drain');
  stdin.end();
  const outcome = await running.outcome;
  isRunning = false;
  await measuring;
  const rejects = existsSync(rejectsFile) ? readFileSync(rejectsFile, 'utf8') : '';
  return { ...outcome, peak, rejects };
}

function* repeated(chunk: Buffer, times: number): Generator<Buffer> {
  for (let n = 0; n < times; n++) yield chunk;
}

function* bomb(content: Buffer, times: number): Generator<Buffer> {
  yield gzipSync(`${line(1)}\n`);
  yield* repeated(gzipSync(content), times);
  yield gzipSync(`\n${line(2)}\n`);
}

/** A process that has just started has 60 MB, a batch being read and one being written 16 MB each. */
const PEAK_LIMIT = 400 * MEGABYTE;

describe.runIf(canMeasure)('memory stays bounded, and the lines around it get in', () => {
  test('with a line of 100 MB', async () => {
    const { code, peak, rejects } = await measureImport(
      (function* () {
        yield bytes(line(1), '\n"');
        yield* repeated(Buffer.alloc(MEGABYTE, 'x'), 100);
        yield bytes('"\n', line(2), '\n');
      })(),
    );
    expect(JSON.parse(rejects)).toMatchObject({
      line: 2,
      problems: [{ problem: expect.stringMatching(/^is 100000002 bytes long; the maximum is \d+/) }],
    });
    expect(code).toBe(3);
    expect(await storedIds()).toEqual(idsOf(1, 2));
    expect(peak).toBeLessThan(PEAK_LIMIT);
  });

  test('with gzip that unpacks to a line a thousand times its size', async () => {
    const times = isFull ? 200 : 10;
    const { code, peak, rejects } = await measureImport(bomb(Buffer.alloc(50 * MEGABYTE), times));
    expect(JSON.parse(rejects)).toMatchObject({ line: 2 });
    expect(rejects).toContain(`is ${times * 50 * MEGABYTE} bytes long`);
    expect(code).toBe(3);
    expect(await storedIds()).toEqual(idsOf(1, 2));
    expect(peak).toBeLessThan(PEAK_LIMIT);
  });

  test('with gzip that unpacks to millions of lines of nothing', async () => {
    const { code, peak, rejects } = await measureImport(
      bomb(Buffer.alloc(MEGABYTE, '\n \t\r\n'), isFull ? 100 : 4),
    );
    expect({ code, rejects }).toEqual({ code: 0, rejects: '' });
    expect(await storedIds()).toEqual(idsOf(1, 2));
    expect(peak).toBeLessThan(PEAK_LIMIT);
  });

  test('with 300,000 lines of which most are no records', async () => {
    const fat = `0x${'ab'.repeat(5_000)}`;
    const records = Array.from({ length: 100 }, (_, number) => `${line(number, { data: fat })}\n`);
    // One record to fourteen lines that are none, a thousand lines at a time.
    const chunk = (n: number) =>
      Array.from({ length: 1_000 }, (_, i) => (i % 15 === 0 ? records[(n + i) % 100] : '[]\n')).join('');
    const { code, stdout, peak } = await measureImport(
      (function* () {
        for (let n = 0; n < 300; n++) yield Buffer.from(chunk(n));
      })(),
    );
    expect(stdout).toMatch(/^stdin: 100 new, 0 updated, 20,000 unchanged, 279,900 rejected\n/);
    expect(code).toBe(3);
    expect(peak).toBeLessThan(PEAK_LIMIT);
  });

  test('with records of the largest size that is taken, one after the other', async () => {
    const large = Array.from({ length: isFull ? 100 : 12 }, (_, index) =>
      bytes(line(index + 1, { data: `0x${'ab'.repeat(999_000)}` }), '\n'),
    );
    const { code, peak } = await measureImport(large);
    expect(code).toBe(0);
    expect(await storedIds()).toHaveLength(large.length);
    expect(peak).toBeLessThan(PEAK_LIMIT);
  });
});
