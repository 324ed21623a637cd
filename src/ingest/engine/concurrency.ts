/**
 * How many pieces of history are read at once: slow start, up to what keeps the endpoints' rate limits busy.
 *
 * Rate limits are kept by the endpoints themselves; what is read beyond them only waits there, and requests of the head
 * wait behind it. So the limit begins at one, grows with every piece that succeeds, and stops at about half a second's
 * worth of requests. Where answers take longer than that, it grows on as long as the rate is not used up. A failure takes
 * it back to one, and from then on it grows by one with every piece, which doubles it in a round trip.
 */
import type { EndpointHealth } from './json-rpc/endpoint-pool.ts';

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

/**
 * @param requestsPerSecond of each endpoint
 * @param inFlight how many pieces are being read
 */
export function createConcurrency(
  requestsPerSecond: number,
  health: () => readonly EndpointHealth[],
  inFlight: () => number,
) {
  const requestsSent = () => health().reduce((sum, { requests }) => sum + requests, 0);
  const healthyEndpoints = () => Math.max(1, health().filter(({ healthy }) => healthy).length);
  let limit = 1;
  let growth = FIRST_GROWTH;
  let queueSeconds = USUAL_QUEUE_SECONDS;
  let measured = { at: performance.now(), requests: requestsSent() };

  const ceiling = (): number => {
    const wanted = Math.ceil(requestsPerSecond * queueSeconds);
    const perEndpoint = Math.min(MAX_PER_ENDPOINT, Math.max(MIN_PER_ENDPOINT, wanted));
    return Math.min(MAX_IN_ALL, perEndpoint * healthyEndpoints());
  };

  /** Answers that take long leave the rate unused although as many are under way as may be. */
  const measure = (): void => {
    const now = performance.now();
    const passedMs = now - measured.at;
    if (passedMs < MEASURED_EVERY_MS) return;
    const requests = requestsSent();
    const perSecond = ((requests - measured.requests) * 1000) / passedMs;
    const isUnused = perSecond < USED_UP * requestsPerSecond * healthyEndpoints();
    const isBusy = inFlight() + 1 >= ceiling();
    if (isUnused && isBusy) queueSeconds = Math.min(LONGEST_QUEUE_SECONDS, queueSeconds * 1.5);
    measured = { at: now, requests };
  };

  return {
    get limit() {
      return Math.min(limit, ceiling());
    },
    /** A piece was read. */
    succeed(): void {
      measure();
      limit = Math.min(limit + growth, ceiling());
    },
    /** A piece failed: begin again with one. */
    fail(): void {
      limit = 1;
      growth = 1;
    },
  };
}
