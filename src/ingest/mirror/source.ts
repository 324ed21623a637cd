/**
 * HTTP client for the mirrored server.
 *
 * All requests share one rate limit and an adaptive limit of concurrency, obey `Retry-After`, and are retried with exponential
 * backoff. Responses are bounded in time and size, and never come from another host. Credentials of the URL go into a header; they are never shown.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type BackoffLimits, backoffMs } from '../../base/backoff.ts';
import { basicAuthorization, parseRetryAfterMs } from '../../base/http-headers.ts';
import type { Notice } from '../../base/notice.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { withoutCredentials } from '../../base/url-parts.ts';
import { ResponseTooLongError, readBody, withDeadline } from '../bounded-exchange.ts';
import { createRequestSlots } from './request-slots.ts';

export interface SourceOptions {
  readonly url: string;
  /** Rate limit. */
  readonly requestsPerSecond: number;
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /** Receives log lines, for example when the source asks to wait. */
  readonly notice?: Notice;
  readonly timing?: Partial<SourceTiming>;
}

export interface SourceTiming extends BackoffLimits {
  /** For one request, to the last byte of its response. */
  readonly timeoutMs: number;
  /** A longer `Retry-After` is shortened to this. */
  readonly longestRetryAfterMs: number;
}

const defaultTiming: SourceTiming = {
  timeoutMs: 30_000,
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
  longestRetryAfterMs: 3_600_000,
};

export interface SourceResponse {
  readonly status: number;
  /** The body as JSON; undefined without one (304). */
  readonly body: unknown;
  readonly bytes: number;
  readonly etag: string | null;
  readonly isSimulated: boolean;
}

/** The source failed in all attempts, or what it said cannot be used. */
export class SourceError extends Error {
  /** What an operator can do where the first answer is like this: the configuration may be wrong. */
  readonly remedy: string | undefined;

  /** `what` has no full stop. */
  constructor(what: string, remedy?: string) {
    super(what);
    this.remedy = remedy;
  }
}

export interface Source {
  /** The URL without credentials, query and trailing slashes: identifies the source, and may be shown. */
  readonly name: string;
  /**
   * The response to a GET below the URL, 4xx included; throws a SourceError when all attempts failed.
   */
  get(
    path: string,
    options?: {
      readonly query?: URLSearchParams;
      readonly etag?: string | null;
      readonly attempts?: number;
    },
  ): Promise<SourceResponse>;
}

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const MAX_REDIRECTS = 5;
const DEFAULT_ATTEMPTS = 8;
/** Waits of one request by `Retry-After`; further ones count as failures. */
const MAX_REQUESTED_WAITS = 100;
/** This many failures in a row are logged. */
const LOGGED_FAILURES = 3;
/** Longer waits by `Retry-After` are logged. */
const LOGGED_WAIT_MS = 5_000;

/** At most this much of the time that passed unused is made up for. */
const CATCH_UP_MS = 100;

/** The outcome of one request. */
type Exchange =
  | { readonly response: SourceResponse }
  | { readonly location: string }
  /** To be retried. */
  | { readonly status: number; readonly retryAfterMs: number | null };

export function createSource(options: SourceOptions): Source {
  const { requestsPerSecond, userAgent, signal, notice } = options;
  const timing = { ...defaultTiming, ...options.timing };
  const base = baseOf(options.url);
  const authorization = basicAuthorization(base);
  const name = withoutCredentials(base).href.replace(/\/+$/, '');
  /** When the next request may go out, on the clock of performance.now(). */
  let nextAt = 0;
  const slots = createRequestSlots();
  // Every request under way listens to it; Node warns of a leak from the eleventh on.
  setMaxListeners(0, signal);

  /** Resolves when the rate allows the next request, to whether it had to wait for that. */
  const takeTurn = async (): Promise<boolean> => {
    for (let hasWaited = false; ; hasWaited = true) {
      const now = performance.now();
      if (now >= nextAt) {
        // A timer that was late must not cost requests: a little of the time is made up for.
        nextAt = Math.max(nextAt, now - CATCH_UP_MS) + 1000 / requestsPerSecond;
        return hasWaited;
      }
      await delay(Math.ceil(nextAt - now), undefined, { signal });
    }
  };
  let lastTurn: Promise<unknown> = Promise.resolve();
  /** Requests take their turns one after the other, so that only the first of them has a timer. */
  const waitForTurn = (): Promise<boolean> => {
    const turn = lastTurn.then(takeTurn);
    lastTurn = turn.catch(() => undefined);
    return turn;
  };

  const exchange = (target: URL, etag: string | null) =>
    withDeadline(signal, async (deadline): Promise<Exchange> => {
      deadline.restart(
        timing.timeoutMs,
        new TimeoutError(`did not answer within ${timing.timeoutMs / 1000} s`),
      );
      const response = await fetch(target, {
        redirect: 'manual',
        signal: deadline.signal,
        headers: {
          Accept: 'application/json',
          'User-Agent': userAgent,
          ...(authorization !== null && { Authorization: authorization }),
          ...(etag !== null && { 'If-None-Match': etag }),
        },
      });
      const { status, headers } = response;
      const location = headers.get('location');
      if (status >= 300 && status < 400 && status !== 304 && location !== null) {
        await response.body?.cancel();
        return { location };
      }
      if (!isWorthRetrying(status)) return { response: await readResponse(response) };
      await response.body?.cancel();
      return { status, retryAfterMs: parseRetryAfterMs(headers.get('retry-after'), Date.now()) };
    });

  const followRedirects = async (
    url: URL,
    etag: string | null,
    noteTurn: (hasWaited: boolean) => void,
  ): Promise<Exclude<Exchange, { location: string }>> => {
    for (let target = url, redirects = 0; ; redirects++) {
      noteTurn(await waitForTurn());
      const outcome = await exchange(target, etag);
      if (!('location' in outcome)) return outcome;
      target = redirectTarget(outcome.location, target, name);
      if (redirects >= MAX_REDIRECTS) {
        throw new SourceError(`${name} redirects more than ${MAX_REDIRECTS} times`, 'Check the URL.');
      }
    }
  };

  /** The response, or the problem; throws errors that a further attempt would not change. */
  const attempt = async (
    url: URL,
    etag: string | null,
    noteTurn: (hasWaited: boolean) => void,
  ): Promise<
    { readonly response: SourceResponse } | { readonly problem: string; readonly requestedMs: number | null }
  > => {
    try {
      const outcome = await followRedirects(url, etag, noteTurn);
      if ('response' in outcome) return outcome;
      const { status, retryAfterMs } = outcome;
      const requestedMs =
        retryAfterMs === null ? null : Math.max(Math.min(retryAfterMs, timing.longestRetryAfterMs), 1);
      return { problem: `answered ${status}`, requestedMs };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SourceError || error instanceof ResponseTooLongError) throw error;
      return { problem: reasonOf(error), requestedMs: null };
    }
  };

  /** All requests wait, not only the one that was answered so. */
  const pauseAll = (requestedMs: number, problem: string) => {
    nextAt = Math.max(nextAt, performance.now() + requestedMs);
    if (requestedMs >= LOGGED_WAIT_MS)
      notice?.(`${name} ${problem} and asks to wait ${Math.round(requestedMs / 1000)} s`, { level: 'warn' });
  };

  return {
    name,
    async get(path, { query, etag = null, attempts = DEFAULT_ATTEMPTS } = {}) {
      const url = new URL(`${name}${path}`);
      if (query) url.search = query.toString();
      let requestedWaits = 0;
      for (let failures = 0; ; ) {
        signal.throwIfAborted();
        const { outcome } = await slots.run(async () => {
          let isRateBound = false;
          const outcome = await attempt(url, etag, (hasWaited) => {
            isRateBound = hasWaited;
          });
          return { outcome, isOverloaded: !('response' in outcome), isRateBound };
        });
        if ('response' in outcome) return outcome.response;
        const { problem, requestedMs } = outcome;
        if (requestedMs !== null) pauseAll(requestedMs, problem);
        // A requested wait is not a failure of this request.
        if (requestedMs === null || ++requestedWaits > MAX_REQUESTED_WAITS) failures++;
        if (failures >= attempts) throw new SourceError(`${name}${path} ${problem} (${attempts} attempts)`);
        if (requestedMs === null && failures === LOGGED_FAILURES)
          notice?.(`${name} ${problem}; still trying`, { level: 'warn' });
        await delay(requestedMs ?? backoffMs(failures, timing, Math.random()), undefined, { signal });
      }
    },
  };
}

function baseOf(text: string): URL {
  const remedy = 'Give the part before /v2, such as https://lanescan.example.org.';
  if (!URL.canParse(text)) throw new OperatorError('The URL to mirror is not a valid URL.', remedy);
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new OperatorError(
      `The URL to mirror begins with ${url.protocol}//, not http:// or https://.`,
      remedy,
    );
  if (url.search !== '' || url.hash !== '')
    throw new OperatorError('The URL to mirror has a query or a fragment.', `${remedy} Filters are flags.`);
  // Accepts the URL of the search itself.
  url.pathname = url.pathname.replace(/\/+$/, '').replace(/\/v2(\/messages)?$/, '');
  return url;
}

function redirectTarget(location: string, from: URL, name: string): URL {
  const target = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const isSafer = from.protocol === 'http:' && target?.protocol === 'https:';
  // The port may only change together with the scheme, from one default to the other.
  const isSameHost =
    target !== undefined &&
    target.hostname === from.hostname &&
    (target.host === from.host || isSafer) &&
    (target.protocol === from.protocol || isSafer);
  if (isSameHost) return withoutCredentials(target);
  throw new SourceError(
    `${name} redirects to ${target ? target.origin : 'an invalid URL'}, another host`,
    'If you trust that host, mirror it directly.',
  );
}

/** Timeouts, rate limits, and server errors. */
function isWorthRetrying(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

async function readResponse(response: Response): Promise<SourceResponse> {
  const { status, headers } = response;
  const content = await readBody(response, MAX_RESPONSE_BYTES);
  let body: unknown;
  try {
    body = content.length === 0 ? undefined : JSON.parse(content.toString('utf8'));
  } catch (error) {
    // An error page in HTML is a response; an incomplete record is not.
    if (status < 400) throw error;
  }
  return {
    status,
    body,
    bytes: content.length,
    etag: headers.get('etag'),
    isSimulated: headers.get('x-lanescan-simulated') === 'true',
  };
}

class TimeoutError extends Error {}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  if (error instanceof TimeoutError) return message;
  if (error instanceof SyntaxError) return 'answered with broken JSON';
  return `could not be read (${cause?.code ?? cause?.message ?? message})`;
}
