/**
 * How many pieces of history are read at once: slow start, up to what keeps the endpoints' rate limits busy.
 *
 * Rate limits are kept by the endpoints themselves; what is read beyond them only waits there, and requests of the head
 * wait behind it. So the limit begins at one, grows with every piece that succeeds, and stops at about half a second's
 * worth of requests. Where answers take longer than that, it grows on as long as the rate is not used up. A failure takes
 * it back to one, and from then on it grows by one with every piece, which doubles it in a round trip.
 */

export interface Concurrency {
  readonly limit: number;
  /** A piece was read. */
  succeed(): void;
  /** A piece failed: begin again with one. */
  fail(): void;
}

export interface ConcurrencyOptions {
  /** Of each endpoint. */
  readonly requestsPerSecond: number;
  /** Endpoints that are healthy, and how many requests all of them have been sent so far. */
  readonly usage: () => { readonly healthy: number; readonly requests: number };
  /** How many pieces are being read. */
  readonly inFlight: () => number;
  /** Milliseconds that only ever grow. */
  readonly clock: () => number;
}

const USUAL_QUEUE_SECONDS = 0.5;
const LONGEST_QUEUE_SECONDS = 4;
const MIN_PER_ENDPOINT = 2;
const MAX_PER_ENDPOINT = 64;
/** How much the limit grows with a piece before anything has failed: 1, 5, 25, 125 in three round trips. */
const FIRST_GROWTH = 4;
const MAX_IN_ALL = 256;
const MEASURED_EVERY_MS = 1_000;
/** Above this share the rate limit is what bounds the speed. */
const USED_UP = 0.85;

export function createConcurrency(options: ConcurrencyOptions): Concurrency {
  const { requestsPerSecond, usage, inFlight, clock } = options;
  let limit = 1;
  let growth = FIRST_GROWTH;
  let queueSeconds = USUAL_QUEUE_SECONDS;
  let measured = { at: clock(), requests: usage().requests };

  const ceiling = (): number => {
    const wanted = Math.ceil(requestsPerSecond * queueSeconds);
    const perEndpoint = Math.min(MAX_PER_ENDPOINT, Math.max(MIN_PER_ENDPOINT, wanted));
    return Math.min(MAX_IN_ALL, perEndpoint * Math.max(1, usage().healthy));
  };

  /** Answers that take long leave the rate unused although as many are under way as may be. */
  const measure = (): void => {
    const now = clock();
    const { requests, healthy } = usage();
    const passedMs = now - measured.at;
    if (passedMs < MEASURED_EVERY_MS) return;
    const perSecond = ((requests - measured.requests) * 1000) / passedMs;
    const isUnused = perSecond < USED_UP * requestsPerSecond * Math.max(1, healthy);
    const isBusy = inFlight() + 1 >= ceiling();
    if (isUnused && isBusy) queueSeconds = Math.min(LONGEST_QUEUE_SECONDS, queueSeconds * 1.5);
    measured = { at: now, requests };
  };

  return {
    get limit() {
      return Math.min(limit, ceiling());
    },
    succeed() {
      measure();
      limit = Math.min(limit + growth, ceiling());
    },
    fail() {
      limit = 1;
      growth = 1;
    },
  };
}
