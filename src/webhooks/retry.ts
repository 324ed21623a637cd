/**
 * The retry policy: what happens to a delivery after an attempt.
 *
 * Only a 2xx is a success. Everything else is retried for a day with exponential backoff, also 4xx: a 401 or 404 from a
 * receiver is most often a failed deployment, which is fixed within hours. The one exception is 410 Gone, with which
 * Standard Webhooks lets a receiver unsubscribe.
 */
import { type BackoffLimits, backoffMs } from '../base/backoff.ts';
import { parseRetryAfterMs } from '../base/http-headers.ts';
import type { ReceiverResponse } from './sender.ts';

export interface RetryTimings extends BackoffLimits {
  /** From the first attempt to the last one, after which a delivery is parked. */
  readonly retryForMs: number;
}

export type RetryDecision =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly at: Date; readonly pausesAll: boolean; readonly failure: Failure }
  | { readonly kind: 'park'; readonly failure: Failure };

export interface Failure {
  readonly error: string;
  readonly status: number | null;
}

const MAX_ERROR_LENGTH = 300;

/** @param random from 0 to 1 */
export function decideRetry(
  result: ReceiverResponse | Error,
  /** Its number is counted from 1. */
  attempt: { readonly number: number; readonly firstAt: Date; readonly endedAt: Date },
  timings: RetryTimings,
  random: number,
): RetryDecision {
  if (!(result instanceof Error) && result.status >= 200 && result.status < 300) return { kind: 'delivered' };
  const failure = failureOf(result);
  const { number, firstAt, endedAt } = attempt;
  const lastAt = firstAt.getTime() + timings.retryForMs;
  if (failure.status === 410 || endedAt.getTime() >= lastAt) return { kind: 'park', failure };
  const asked = result instanceof Error ? 0 : (parseRetryAfterMs(result.retryAfter, endedAt.getTime()) ?? 0);
  // Retry-After is capped.
  const pause = Math.max(backoffMs(number, timings, random), Math.min(asked, timings.longestPauseMs));
  return {
    kind: 'retry',
    at: new Date(Math.min(endedAt.getTime() + pause, lastAt)),
    // Other statuses speak of this event alone: an event that is too large must not stop the others.
    pausesAll: asked > 0 && (failure.status === 429 || failure.status === 503),
    failure,
  };
}

function failureOf(result: ReceiverResponse | Error): Failure {
  if (result instanceof Error) return { error: clipped(reasonOf(result)), status: null };
  const { status, text } = result;
  const redirect =
    status >= 300 && status < 400 ? ' (redirects are not followed; configure the final URL)' : '';
  // PostgreSQL does not store the character 0.
  const said = text.replaceAll('\0', ' ').replace(/\s+/g, ' ').trim();
  return { error: clipped(`HTTP ${status}${redirect}${said === '' ? '' : `: ${said}`}`), status };
}

function reasonOf(error: Error): string {
  // Of several addresses that were tried, each has its error.
  const { code, errors } = error as NodeJS.ErrnoException & { errors?: readonly Error[] };
  return error.message || errors?.[0]?.message || code || error.name;
}

function clipped(text: string): string {
  return text.length <= MAX_ERROR_LENGTH ? text : `${text.slice(0, MAX_ERROR_LENGTH - 1)}…`;
}
