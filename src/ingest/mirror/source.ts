/**
 * The server that is followed: one polite client.
 *
 * Requests keep a rate between them whoever sends them, wait as long as the server asks, and try again with
 * growing pauses what may go better next time. What comes back is bounded in time and size, and never from
 * another host. Credentials in the URL go into a header and into nothing that anybody reads.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type BackoffLimits, backoffMs } from '../../base/backoff.ts';
import { basicAuthorization, parseRetryAfterMs } from '../../base/http-headers.ts';
import type { Notice } from '../../base/notice.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { withoutCredentials } from '../../base/url-parts.ts';
import { AnswerTooLong, readBody, withDeadline } from '../bounded-exchange.ts';

export interface SourceOptions {
  readonly url: string;
  /** Requests a second, at most. */
  readonly requestsPerSecond: number;
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /** Told when the source makes us wait, in words for people. */
  readonly notice?: Notice;
  readonly timing?: Partial<SourceTiming>;
}

export interface SourceTiming extends BackoffLimits {
  /** For one request, to the last byte of its answer. */
  readonly timeoutMs: number;
  /** The longest that a `Retry-After` is believed. */
  readonly longestRetryAfterMs: number;
}

const usualTiming: SourceTiming = {
  timeoutMs: 30_000,
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
  longestRetryAfterMs: 3_600_000,
};

export interface SourceAnswer {
  readonly status: number;
  /** The body as JSON; undefined without one (304). */
  readonly body: unknown;
  readonly bytes: number;
  readonly etag: string | null;
  readonly isSimulated: boolean;
}

/** The source did not answer as it should, however often it was asked. */
export class SourceFailure extends Error {}

export interface Source {
  /** The URL without credentials, query and trailing slashes: what tells sources apart, and what may be shown. */
  readonly name: string;
  /**
   * The answer to a GET below the URL, 4xx included; throws a SourceFailure after so many attempts in vain.
   */
  get(
    path: string,
    options?: {
      readonly query?: URLSearchParams;
      readonly etag?: string | null;
      readonly attempts?: number;
    },
  ): Promise<SourceAnswer>;
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_REDIRECTS = 5;
const DEFAULT_ATTEMPTS = 8;
/** How often one request waits because it was asked to before that counts as a failure. */
const MAX_OBEYED = 100;
/** Behind so many failures people are told. */
const TOLD_FAILURES = 3;
/** From this on it is worth a word to people that the source asks to wait. */
const LONG_WAIT_MS = 5_000;

/** What one request comes to. */
type Exchange =
  | { readonly answer: SourceAnswer }
  | { readonly location: string }
  /** Not now; `retryAfter` in milliseconds, where the source names a time. */
  | { readonly status: number; readonly retryAfter: number | null };

export function createSource(options: SourceOptions): Source {
  const { requestsPerSecond, userAgent, signal, notice } = options;
  const timing = { ...usualTiming, ...options.timing };
  const base = baseOf(options.url);
  const authorization = basicAuthorization(base);
  const name = withoutCredentials(base).href.replace(/\/+$/, '');
  /** When the next request may go out, on the clock of performance.now(). */
  let nextAt = 0;

  const turn = async () => {
    for (;;) {
      const now = performance.now();
      if (now >= nextAt) {
        nextAt = now + 1000 / requestsPerSecond;
        return;
      }
      await delay(Math.ceil(nextAt - now), undefined, { signal });
    }
  };

  const exchange = (target: URL, etag: string | null) =>
    withDeadline(signal, async (deadline): Promise<Exchange> => {
      deadline.restart(timing.timeoutMs, new TooSlow(`did not answer within ${timing.timeoutMs / 1000} s`));
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
      if (!isWorthRetrying(status)) return { answer: await readAnswer(response) };
      await response.body?.cancel();
      return { status, retryAfter: parseRetryAfterMs(headers.get('retry-after'), Date.now()) };
    });

  const once = async (url: URL, etag: string | null): Promise<Exclude<Exchange, { location: string }>> => {
    for (let target = url, redirects = 0; ; redirects++) {
      await turn();
      const outcome = await exchange(target, etag);
      if (!('location' in outcome)) return outcome;
      target = redirectTarget(outcome.location, target, name);
      if (redirects >= MAX_REDIRECTS) {
        throw new OperatorError(`${name} redirects in circles.`, 'Check the URL.');
      }
    }
  };

  /** The answer, or why there is none; throws what no further attempt would change. */
  const attempt = async (
    url: URL,
    etag: string | null,
  ): Promise<
    { readonly answer: SourceAnswer } | { readonly problem: string; readonly askedMs: number | null }
  > => {
    try {
      const outcome = await once(url, etag);
      if ('answer' in outcome) return outcome;
      const { status, retryAfter } = outcome;
      const askedMs =
        retryAfter === null ? null : Math.max(Math.min(retryAfter, timing.longestRetryAfterMs), 1);
      return { problem: `answered ${status}`, askedMs };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof OperatorError || error instanceof AnswerTooLong) throw error;
      return { problem: reasonOf(error), askedMs: null };
    }
  };

  /** Whoever else is about to ask waits too. */
  const obey = (askedMs: number, problem: string) => {
    nextAt = Math.max(nextAt, performance.now() + askedMs);
    if (askedMs >= LONG_WAIT_MS)
      notice?.(`${name} ${problem} and asks to wait ${Math.round(askedMs / 1000)} s`, { level: 'warn' });
  };

  return {
    name,
    async get(path, { query, etag = null, attempts = DEFAULT_ATTEMPTS } = {}) {
      const url = new URL(`${name}${path}`);
      if (query) url.search = query.toString();
      let obeyed = 0;
      for (let failures = 0; ; ) {
        signal.throwIfAborted();
        const outcome = await attempt(url, etag);
        if ('answer' in outcome) return outcome.answer;
        const { problem, askedMs } = outcome;
        if (askedMs !== null) obey(askedMs, problem);
        // Being asked to wait is no failure of this request.
        if (askedMs === null || ++obeyed > MAX_OBEYED) failures++;
        if (failures >= attempts) throw new SourceFailure(`${name}${path} ${problem} (${attempts} attempts)`);
        if (askedMs === null && failures === TOLD_FAILURES)
          notice?.(`${name} ${problem}; still trying`, { level: 'warn' });
        await delay(askedMs ?? backoffMs(failures, timing, Math.random()), undefined, { signal });
      }
    },
  };
}

function baseOf(text: string): URL {
  const remedy = 'Give the address in front of /v2, such as https://lanescan.example.org.';
  if (!URL.canParse(text)) throw new OperatorError('The URL to mirror is not one.', remedy);
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new OperatorError(
      `The URL to mirror begins with ${url.protocol}//, not http:// or https://.`,
      remedy,
    );
  if (url.search !== '' || url.hash !== '')
    throw new OperatorError('The URL to mirror has a query or a fragment.', `${remedy} Filters are flags.`);
  // Some paste the address of the search itself.
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
  throw new OperatorError(
    `${name} redirects to ${target ? target.origin : 'something that is no URL'}, another host.`,
    'If you trust that one, mirror it directly.',
  );
}

/** Time-outs, too many requests, and whatever a server blames on itself. */
function isWorthRetrying(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

async function readAnswer(response: Response): Promise<SourceAnswer> {
  const { status, headers } = response;
  const content = await readBody(response, MAX_ANSWER_BYTES);
  let body: unknown;
  try {
    body = content.length === 0 ? undefined : JSON.parse(content.toString('utf8'));
  } catch (error) {
    // A page of HTML that tells of a refusal is an answer all the same; half a record is none.
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

class TooSlow extends Error {}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  if (error instanceof TooSlow) return message;
  if (error instanceof SyntaxError) return 'answered with broken JSON';
  return `could not be read (${cause?.code ?? cause?.message ?? message})`;
}
