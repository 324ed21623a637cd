/**
 * Rate limit of requests to an endpoint: a token bucket with a burst of one second, a queue of two priorities, and a pause
 * on demand of the endpoint.
 *
 * Bulk requests (those for history, of which many are under way) come after all others. So neither the head nor the
 * requests that finish a piece of history queue behind pieces that have just begun. They do not starve either: where the
 * others would take the whole rate, a fifth of it is theirs.
 */

/** So many urgent calls go for one bulk call that waits. */
const URGENT_PER_BULK = 4;

interface Waiting {
  readonly count: number;
  readonly resume: () => void;
}

export function createTokenBucket(perSecond: number) {
  const capacity = Math.max(1, perSecond);
  const urgent: Waiting[] = [];
  const bulk: Waiting[] = [];
  let tokens = capacity;
  let filledAt = performance.now();
  let pausedUntil = 0;
  /** Urgent calls that went while bulk calls waited, as far as those have not had their share since. */
  let overtaking = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Milliseconds until so many may be sent. */
  const missingMs = (count: number): number => {
    const now = performance.now();
    tokens = Math.min(capacity, tokens + ((now - filledAt) / 1000) * perSecond);
    filledAt = now;
    // More than a second's worth begins with a full bucket, and what comes after it waits longer.
    const missing = Math.min(count, capacity) - tokens;
    return Math.max(pausedUntil - now, missing <= 0 ? 0 : (missing / perSecond) * 1000);
  };

  /** Lets those go that may, and comes back for the next one. */
  const release = (): void => {
    clearTimeout(timer);
    timer = undefined;
    for (;;) {
      const isBulkNext = urgent.length === 0 || (bulk.length > 0 && overtaking >= URGENT_PER_BULK);
      const queue = isBulkNext ? bulk : urgent;
      const [next] = queue;
      if (!next) return;
      const waitMs = missingMs(next.count);
      if (waitMs > 0) {
        timer = setTimeout(release, Math.ceil(waitMs));
        return;
      }
      queue.shift();
      tokens -= next.count;
      const change = isBulkNext ? -URGENT_PER_BULK * next.count : next.count;
      overtaking = bulk.length === 0 ? 0 : Math.max(0, overtaking + change);
      next.resume();
    }
  };

  return {
    /** Resolves when so many requests may be sent; rejects with the reason of the signal when it is aborted. */
    take: (count: number, isBulk: boolean, signal: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const queue = isBulk ? bulk : urgent;
        const leave = () => {
          queue.splice(queue.indexOf(waiting), 1);
          reject(signal.reason);
          release();
        };
        const waiting = {
          count,
          resume() {
            signal.removeEventListener('abort', leave);
            resolve();
          },
        };
        signal.addEventListener('abort', leave);
        queue.push(waiting);
        release();
      }),
    /** No request for this long from now on. */
    pause(ms: number): void {
      pausedUntil = Math.max(pausedUntil, performance.now() + ms);
    },
  };
}
