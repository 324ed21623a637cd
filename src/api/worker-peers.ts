/**
 * The worker processes on one port, as one of them sees the others: rate limits hold across all of them, and a scrape of
 * any of them returns the metrics of all.
 */
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { createRateLimiter, type RateLimiter, type RateLimitOptions, type TokenUse } from './rate-limit.ts';

/** The metrics of one process, in the JSON form that prom-client aggregates. */
export type ProcessMetrics = readonly MetricObjectWithValues<MetricValue<string>>[];

export interface WorkerPeers {
  /** The aggregated metrics of all worker processes, this one included, as text. */
  scrape(): Promise<string>;
  /** Sets how the metrics of this process are read. */
  onMetricsRequest(read: () => Promise<ProcessMetrics>): void;
  /** Sends the tokens that clients took from this process to all others. */
  sendTokenUse(use: TokenUse): void;
  /** Sets what receives the tokens that clients took from other processes. */
  onTokenUse(receive: (use: TokenUse) => void): void;
}

/** How long the requests of a client to one process may be unknown to the others. */
const SHARE_INTERVAL_MS = 100;

export interface SharedRateLimiter extends RateLimiter {
  close(): void;
}

/** A rate limiter that counts the requests to all worker processes. Each keeps its own buckets and shares what it takes. */
export function createSharedRateLimiter(
  options: RateLimitOptions,
  peers: WorkerPeers | undefined,
): SharedRateLimiter {
  let taken = new Map<string, number>();
  const limiter = createRateLimiter(
    options,
    undefined,
    peers && ((client) => taken.set(client, (taken.get(client) ?? 0) + 1)),
  );
  peers?.onTokenUse((use) => limiter.charge(use));
  const sharing =
    peers &&
    setInterval(() => {
      if (taken.size === 0) return;
      peers.sendTokenUse([...taken]);
      taken = new Map();
    }, SHARE_INTERVAL_MS).unref();
  return {
    take: limiter.take,
    charge: limiter.charge,
    get clients() {
      return limiter.clients;
    },
    close: () => clearInterval(sharing),
  };
}
