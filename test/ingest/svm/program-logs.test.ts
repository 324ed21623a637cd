/** Which program emitted which data: the grammar of log lines, forged lines, and lines that were cut off. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readProgramLogs } from '../../../src/ingest/svm/decode/program-logs.ts';

const router = 'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C';
const pool = '41FGToCmdaWa1dgZLKFAjvmx6e6AjVTX7SVRibvsMGVB';
const forged = `Program data: ${'F01J'.repeat(40)}`;
const genuine = `Program data: ${'AAAA'.repeat(40)}`;

/** The program of each line of data. */
const emitters = (lines: readonly string[]) =>
  readProgramLogs(lines).emitted.map(({ frame, logIndex }) => [frame.program, logIndex]);

describe('data belongs to the innermost call', () => {
  test('of a call within a call, and of the outer one afterwards', () => {
    const lines = [
      `Program ${router} invoke [1]`,
      'Program log: Instruction: CcipSend',
      `Program ${pool} invoke [2]`,
      forged,
      `Program ${pool} consumed 100 of 1000 compute units`,
      `Program return: ${pool} AAAA`,
      `Program ${pool} success`,
      genuine,
      `Program ${router} success`,
    ];
    expect(emitters(lines)).toEqual([
      [pool, 3],
      [router, 7],
    ]);
    expect(readProgramLogs(lines)).toMatchObject({ isTruncated: false, problem: undefined });
  });

  test.each([
    ['a return value that ends in “success”', `Program return: ${pool} successAAA==`],
    ['a log text that looks like the end of the call', `Program log: Program ${pool} success`],
    ['a text of two lines', `Program log: x\nProgram ${pool} success`],
    ['the end of the call with something behind it', `Program ${pool} success `],
  ])('%s does not end the call of a pool', (_, line) => {
    const lines = [
      `Program ${router} invoke [1]`,
      `Program ${pool} invoke [2]`,
      line,
      forged,
      `Program ${pool} success`,
      `Program ${router} success`,
    ];
    expect(emitters(lines)).toEqual([[pool, 3]]);
  });
});

describe('a call', () => {
  const frames = (lines: readonly string[]) =>
    readProgramLogs(lines).emitted.map(({ frame: { order, depth, outcome } }) => [order, depth, outcome]);

  test('has its place among the calls of its program, its depth and its outcome', () => {
    const call = (depth: number, end: string) => [
      `Program ${router} invoke [${depth}]`,
      genuine,
      `Program ${router} ${end}`,
    ];
    const failed = 'failed: custom program error: 0x1771';
    const lines = [
      ...call(1, 'success'),
      `Program ${pool} invoke [1]`,
      ...call(2, 'success'),
      ...call(2, failed),
      `Program ${pool} ${failed}`,
    ];
    expect(frames(lines)).toEqual([
      [0, 1, 'success'],
      [1, 2, 'success'],
      [2, 2, 'failed'],
    ]);
  });

  test('behind a cut has failed where a call within it, or one around it, has', () => {
    const begun = [`Program ${pool} invoke [1]`, `Program ${router} invoke [2]`, genuine, 'Log truncated'];
    const failed = (program: string) => `Program ${program} failed: custom program error: 0x1771`;
    expect(frames([...begun, failed(router)])).toEqual([[0, 2, 'failed']]);
    expect(frames([...begun, `Program ${pool} invoke [3]`, failed(pool)])).toEqual([[0, 2, 'failed']]);
    // The line of the inner call is longer, and did not fit.
    expect(frames([...begun, failed(pool)])).toEqual([[0, 2, 'failed']]);
  });

  test('behind a cut has an unknown outcome where no line tells it', () => {
    const begun = [`Program ${pool} invoke [1]`, `Program ${router} invoke [2]`, genuine, 'Log truncated'];
    expect(frames(begun)).toEqual([[0, 2, undefined]]);
    expect(frames([...begun, `Program ${router} success`])).toEqual([[0, 2, 'success']]);
    // So short a line may stand behind the end of the call, which did not fit.
    expect(frames([...begun, `Program ${pool} failed: x`])).toEqual([[0, 2, undefined]]);
  });
});

describe('lines that contradict each other are not understood, and nothing of them counts', () => {
  test.each([
    ['a wrong depth', [`Program ${router} invoke [2]`, genuine, `Program ${router} success`]],
    ['the end of another call', [`Program ${router} invoke [1]`, genuine, `Program ${pool} success`]],
    ['no end', [`Program ${router} invoke [1]`, genuine]],
    ['data of nobody', [genuine]],
  ])('%s', (_, lines) => {
    const { emitted, problem } = readProgramLogs(lines);
    expect(emitted).toEqual([]);
    expect(problem).toEqual(expect.any(String));
  });
});

describe('behind the mark of a cut', () => {
  test('a long line still has its program', () => {
    const lines = [`Program ${router} invoke [1]`, 'Log truncated', genuine, `Program ${router} success`];
    expect(emitters(lines)).toEqual([[router, 2]]);
    expect(readProgramLogs(lines).isTruncated).toBe(true);
  });

  test('a line that is shorter than the lines of a call is not believed', () => {
    const lines = [`Program ${router} invoke [1]`, 'Log truncated', 'Program data: AAAA'];
    expect(readProgramLogs(lines)).toEqual({ emitted: [], isTruncated: true, problem: undefined });
  });

  test('calls whose first or last line is missing are no contradiction', () => {
    const lines = [
      `Program ${router} invoke [1]`,
      genuine,
      'Log truncated',
      `Program ${pool} success`,
      `Program ${router} success`,
    ];
    expect(emitters(lines)).toEqual([[router, 1]]);
    expect(readProgramLogs(lines).problem).toBeUndefined();
  });
});

test('any lines are read or rejected with a reason', () => {
  const line = fc.oneof(
    fc.string(),
    fc.constantFrom(
      `Program ${router} invoke [1]`,
      `Program ${pool} invoke [2]`,
      `Program ${router} success`,
      `Program ${pool} failed: custom program error: 0x1`,
      'Log truncated',
      genuine,
    ),
  );
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const { emitted, problem } = readProgramLogs(lines);
      if (problem !== undefined) expect(emitted).toEqual([]);
      for (const { frame, logIndex } of emitted) {
        const begins = lines
          .slice(0, logIndex)
          .filter((text) => text.startsWith(`Program ${frame.program} invoke`));
        expect(begins.length).toBeGreaterThan(0);
      }
    }),
  );
});
