/** What becomes of a delivery after an attempt, case by case. */
import { describe, expect, test } from 'vitest';
import { courierTimings } from '../../src/webhooks/courier.ts';
import { judge, type Verdict } from '../../src/webhooks/retry.ts';
import type { Answer } from '../../src/webhooks/sender.ts';

const now = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;

function judged(result: Partial<Answer> | Error, { number = 1, age = 0, random = 1 } = {}): Verdict {
  const answer =
    result instanceof Error ? result : { status: 500, text: '', retryAfter: undefined, ...result };
  const attempt = { number, firstAt: new Date(now - age), endedAt: new Date(now) };
  return judge(answer, attempt, courierTimings, random);
}

const pauseOf = (verdict: Verdict) => (verdict.kind === 'retry' ? verdict.at.getTime() - now : verdict.kind);

describe('an attempt', () => {
  test.each([200, 201, 202, 204, 299])('that is answered with %i has delivered', (status) => {
    expect(judged({ status })).toEqual({ kind: 'delivered' });
  });

  test.each([301, 304, 400, 401, 404, 408, 425, 429, 500, 502, 503])(
    'answered with %i is made again',
    (status) => {
      expect(pauseOf(judged({ status }))).toBe(5_000);
    },
  );

  test('pauses double from 5 s to an hour; chance takes away up to half', () => {
    const pauses = [1, 2, 3, 4, 10, 11, 40, 5_000].map((number) => pauseOf(judged({}, { number })));
    expect(pauses).toEqual([5_000, 10_000, 20_000, 40_000, 2_560_000, HOUR, HOUR, HOUR]);
    expect(pauseOf(judged({}, { number: 3, random: 0 }))).toBe(10_000);
  });

  test('is the last after a day, which is not left out by a long pause before it', () => {
    expect(pauseOf(judged({}, { number: 30, age: 23.5 * HOUR }))).toBe(0.5 * HOUR);
    expect(judged({}, { number: 31, age: 24 * HOUR }).kind).toBe('park');
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
    expect(pauseOf(judged({ status: 503, retryAfter }))).toBe(expected);
  });

  test('errors are told in short, whatever the receiver says', () => {
    const verdict = judged({ text: `\0 a\n\n b${'!'.repeat(5000)}` });
    const error = verdict.kind === 'retry' ? verdict.failure.error : '';
    expect(error).toMatch(/^HTTP 500: a b!+…$/);
    expect(error).toHaveLength(300);
    const several = Object.assign(new AggregateError([new Error('connect ECONNREFUSED ::1:1')]), {
      message: '',
    });
    expect(judged(several)).toMatchObject({ failure: { error: 'connect ECONNREFUSED ::1:1', status: null } });
  });
});
