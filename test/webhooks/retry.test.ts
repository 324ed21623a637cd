/** What becomes of a delivery after an attempt, case by case. */
import { describe, expect, test } from 'vitest';
import { dispatcherTimings } from '../../src/webhooks/dispatcher.ts';
import { decideRetry, type RetryDecision } from '../../src/webhooks/retry.ts';
import type { ReceiverResponse } from '../../src/webhooks/sender.ts';

const now = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;

function decide(
  result: Partial<ReceiverResponse> | Error,
  { number = 1, age = 0, random = 1 } = {},
): RetryDecision {
  const answer =
    result instanceof Error ? result : { status: 500, text: '', retryAfter: undefined, ...result };
  const attempt = { number, firstAt: new Date(now - age), endedAt: new Date(now) };
  return decideRetry(answer, attempt, dispatcherTimings, random);
}

const pauseOf = (decision: RetryDecision) =>
  decision.kind === 'retry' ? decision.at.getTime() - now : decision.kind;

describe('an attempt', () => {
  test.each([200, 201, 202, 204, 299])('that is answered with %i has delivered', (status) => {
    expect(decide({ status })).toEqual({ kind: 'delivered' });
  });

  test.each([101, 301, 304, 400, 401, 404, 408, 425, 429, 500, 502, 503])(
    'answered with %i is made again',
    (status) => {
      expect(pauseOf(decide({ status }))).toBe(5_000);
    },
  );

  test('pauses double from 5 s to an hour; chance takes away up to half', () => {
    const pauses = [1, 2, 3, 4, 10, 11, 40, 5_000].map((number) => pauseOf(decide({}, { number })));
    expect(pauses).toEqual([5_000, 10_000, 20_000, 40_000, 2_560_000, HOUR, HOUR, HOUR]);
    expect(pauseOf(decide({}, { number: 3, random: 0 }))).toBe(10_000);
  });

  test('is the last after a day, which is not left out by a long pause before it', () => {
    expect(pauseOf(decide({}, { number: 30, age: 23.5 * HOUR }))).toBe(0.5 * HOUR);
    expect(decide({}, { number: 31, age: 24 * HOUR }).kind).toBe('park');
    // The receiver unsubscribes.
    expect(decide({ status: 410 }).kind).toBe('park');
  });

  test.each([
    ['120', 120_000],
    ['0', 5_000],
    ['1', 5_000],
    ['999999999', HOUR],
    [new Date(now + 90_000).toUTCString(), 90_000],
    [new Date(now - 90_000).toUTCString(), 5_000],
    ['soon', 5_000],
    ['-5', 5_000],
  ])('Retry-After: %s makes the pause %i ms', (retryAfter, expected) => {
    expect(pauseOf(decide({ status: 503, retryAfter }))).toBe(expected);
  });

  test.each([
    [429, true],
    [503, true],
    [413, false],
    [500, false],
  ])('Retry-After with %i pauses all deliveries: %s', (status, pausesAll) => {
    expect(decide({ status, retryAfter: '60' })).toMatchObject({ kind: 'retry', pausesAll });
  });

  test('errors are told in short, whatever the receiver says', () => {
    const decision = decide({ text: `\0 a\n\n b${'!'.repeat(5000)}` });
    const error = decision.kind === 'retry' ? decision.failure.error : '';
    expect(error).toMatch(/^HTTP 500: a b!+…$/);
    expect(error).toHaveLength(300);
    const several = Object.assign(new AggregateError([new Error('connect ECONNREFUSED ::1:1')]), {
      message: '',
    });
    expect(decide(several)).toMatchObject({ failure: { error: 'connect ECONNREFUSED ::1:1', status: null } });
  });
});
