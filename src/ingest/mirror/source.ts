/**
 * The mirrored server, read through the client of the API.
 *
 * All requests share one rate limit and an adaptive limit of concurrency, obey `Retry-After`, and are retried with exponential
 * backoff. Responses never come from another host.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type BackoffLimits, backoffMs } from '../../base/backoff.ts';
import { parseRetryAfterMs } from '../../base/http-headers.ts';
import type { WriteLog } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { withoutCredentials } from '../../base/url-parts.ts';
import {
  type ApiResponse,
  createClient,
  type Query,
  serverUrlProblem,
  TransportError,
} from '../../client/client.ts';

export interface SourceTiming extends BackoffLimits {
  /** For one request, to the last byte of its response. */
  readonly timeoutMs: number;
}

const defaultTiming: SourceTiming = {
  timeoutMs: 30_000,
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
};

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

interface RequestOptions {
  readonly query?: Query;
  readonly etag?: string | null;
  readonly attempts?: number;
}

export type Source = ReturnType<typeof createSource>;

/** A longer `Retry-After` is shortened to this. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
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

export function createSource(options: {
  readonly url: string;
  /** Rate limit. */
  readonly requestsPerSecond: number;
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /** Receives log lines, for example when the source asks to wait. */
  readonly writeLog?: WriteLog;
  readonly timing?: Partial<SourceTiming>;
}) {
  const { requestsPerSecond, userAgent, signal, writeLog } = options;
  const timing = { ...defaultTiming, ...options.timing };
  const urlProblem = serverUrlProblem(options.url);
  if (urlProblem !== null)
    throw new OperatorError(
      `The URL to mirror ${urlProblem}.`,
      'Give the part before /v2, such as https://lanescan.example.org. Filters are flags.',
    );
  const { get, server: name } = createClient({
    url: options.url,
    headers: { 'User-Agent': userAgent },
    timeoutMs: timing.timeoutMs,
    signal,
  });
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

  const followRedirects = async (
    path: string,
    query: Query | undefined,
    etag: string | null,
    noteTurn: (hasWaited: boolean) => void,
  ): Promise<ApiResponse> => {
    const headers: Record<string, string> = etag === null ? {} : { 'If-None-Match': etag };
    noteTurn(await waitForTurn());
    let response = await get(path, { query, headers });
    let from = `${name}${path}`;
    for (let redirects = 0; ; redirects++) {
      const location = response.headers.get('location');
      const isRedirect = response.status >= 300 && response.status < 400 && response.status !== 304;
      if (!isRedirect || location === null) return response;
      from = redirectTarget(location, new URL(from), name);
      if (redirects >= MAX_REDIRECTS)
        throw new SourceError(`${name} redirects more than ${MAX_REDIRECTS} times`, 'Check the URL.');
      noteTurn(await waitForTurn());
      response = await get(from, { headers });
    }
  };

  /** The response, or the problem; throws errors that a further attempt would not change. */
  const attempt = async (...request: Parameters<typeof followRedirects>) => {
    try {
      const response = await followRedirects(...request);
      const { status, headers } = response;
      // Timeouts, rate limits, and server errors are worth another attempt.
      if (![408, 425, 429].includes(status) && status < 500) return { response };
      const retryAfterMs = parseRetryAfterMs(headers.get('retry-after'), Date.now());
      const requestedMs =
        retryAfterMs === null ? null : Math.max(Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS), 1);
      return { problem: `answered ${status}`, requestedMs };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TransportError)) throw error;
      return { problem: error.problem, requestedMs: null };
    }
  };

  /** All requests wait, not only the one that was answered so. */
  const pauseAll = (requestedMs: number, problem: string) => {
    nextAt = Math.max(nextAt, performance.now() + requestedMs);
    if (requestedMs >= LOGGED_WAIT_MS)
      writeLog?.(`${name} ${problem} and asks to wait ${Math.round(requestedMs / 1000)} s`, {
        level: 'warn',
      });
  };

  return {
    /** The URL without credentials, query and trailing slashes: identifies the source, and may be shown. */
    name,
    /** The response to a GET below the URL, 4xx included; throws a SourceError when all attempts failed. */
    async get(path: string, { query, etag = null, attempts = DEFAULT_ATTEMPTS }: RequestOptions = {}) {
      let requestedWaits = 0;
      for (let failures = 0; ; ) {
        signal.throwIfAborted();
        const { outcome } = await slots.run(async () => {
          let isRateBound = false;
          const outcome = await attempt(path, query, etag, (hasWaited) => {
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
          writeLog?.(`${name} ${problem}; still trying`, { level: 'warn' });
        await delay(requestedMs ?? backoffMs(failures, timing, Math.random()), undefined, { signal });
      }
    },
  };
}

function redirectTarget(location: string, from: URL, name: string): string {
  const target = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const isSafer = from.protocol === 'http:' && target?.protocol === 'https:';
  // The port may only change together with the scheme, from one default to the other.
  const isSameHost =
    target !== undefined &&
    target.hostname === from.hostname &&
    (target.host === from.host || isSafer) &&
    (target.protocol === from.protocol || isSafer);
  if (isSameHost) return withoutCredentials(target).href;
  throw new SourceError(
    `${name} redirects to ${target ? target.origin : 'an invalid URL'}, another host`,
    'If you trust that host, mirror it directly.',
  );
}

const FIRST_LIMIT = 4;
const MAX_LIMIT = 64;

export interface RequestOutcome {
  /** The server has too many requests, or failed. */
  readonly isOverloaded: boolean;
  /** The request waited for the rate limit: more slots would not make it faster. */
  readonly isRateBound: boolean;
}

/**
 * Adaptive concurrency of requests to the mirrored server (additive increase, multiplicative decrease).
 *
 * The rate limit says how many requests a second may begin; how many must be under way for that depends on how long the
 * server takes to answer. The limit grows while all slots are used, requests succeed and the rate limit would allow more. It
 * halves when the server says that it has too many requests, or fails.
 */
export function createRequestSlots() {
  let limit = FIRST_LIMIT;
  let used = 0;
  const waiting: (() => void)[] = [];

  const release = () => {
    used--;
    while (used < Math.floor(limit) && waiting.length > 0) {
      used++;
      waiting.shift()?.();
    }
  };
  const adapt = ({ isOverloaded, isRateBound }: RequestOutcome, wasFull: boolean) => {
    if (isOverloaded) limit = Math.max(1, limit / 2);
    else if (wasFull && !isRateBound) limit = Math.min(MAX_LIMIT, limit + 1 / limit);
  };

  return {
    /** How many requests may be under way. */
    get limit() {
      return Math.floor(limit);
    },
    /** Waits for a slot, and gives it back when the work ends. */
    async run<T extends RequestOutcome>(work: () => Promise<T>): Promise<T> {
      if (used < Math.floor(limit)) used++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      const wasFull = waiting.length > 0;
      try {
        const result = await work();
        adapt(result, wasFull);
        return result;
      } finally {
        release();
      }
    },
  };
}
