/**
 * Adaptive concurrency of requests to the mirrored server (additive increase, multiplicative decrease).
 *
 * The rate limit says how many requests a second may begin; how many must be under way for that depends on how long the
 * server takes to answer. The limit grows while all slots are used, requests succeed and the rate limit would allow more. It
 * halves when the server says that it has too many requests, or fails.
 */

const FIRST_LIMIT = 4;
const MAX_LIMIT = 64;

export interface RequestOutcome {
  /** The server has too many requests, or failed. */
  readonly isOverloaded: boolean;
  /** The request waited for the rate limit: more slots would not make it faster. */
  readonly isRateBound: boolean;
}

export interface RequestSlots {
  /** How many requests may be under way. */
  readonly limit: number;
  /** Waits for a slot, and gives it back when the work ends. */
  run<T extends RequestOutcome>(work: () => Promise<T>): Promise<T>;
}

export function createRequestSlots(): RequestSlots {
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
    get limit() {
      return Math.floor(limit);
    },
    async run(work) {
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
