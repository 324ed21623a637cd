/**
 * The worker processes on one port, as one of them sees the others: rate limits hold across all of them, and a scrape of
 * any of them returns the metrics of all.
 */
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { createRateLimiter, type RateLimitOptions, type TokenUse } from './rate-limit.ts';

/** The metrics of one process, in the JSON form that prom-client aggregates. */
export type ProcessMetrics = readonly MetricObjectWithValues<MetricValue<string>>[];

export interface WorkerPeers {
  /** The aggregated metrics of all worker processes, this one included, as text. */
  scrape(): Promise<string>;
  onMetricsRequest(read: () => Promise<ProcessMetrics>): void;
  /** Sends the tokens that clients took from a limiter of this process to all others. */
  sendTokenUse(limiter: LimiterName, use: TokenUse): void;
  /** Sets what receives the tokens that clients took from the same limiter of other processes. */
  onTokenUse(limiter: LimiterName, receive: (use: TokenUse) => void): void;
}

/** `costly`: of routes that compute much or ask RPC endpoints. */
type RateLimiterName = 'general' | 'costly';
/** `calls`: to RPC endpoints, whose budget counts for each network. */
export type LimiterName = RateLimiterName | 'calls';

/**
 * How long the requests of a client to one process may be unknown to the others. Costly ones are few, and each is shared at
 * once: a burst to all processes is worth no more than one to a single process.
 */
const shareIntervalsMs: Readonly<Record<RateLimiterName, number>> = { general: 100, costly: 0 };

/** A rate limiter that counts the requests to all worker processes. Each keeps its own buckets and shares what it takes. */
export function createSharedRateLimiter(
  name: RateLimiterName,
  options: RateLimitOptions,
  peers: WorkerPeers | undefined,
) {
  const intervalMs = shareIntervalsMs[name];
  let taken = new Map<string, number>();
  const share = () => {
    if (taken.size === 0) return;
    peers?.sendTokenUse(name, [...taken]);
    taken = new Map();
  };
  const onTake = (client: string) => {
    taken.set(client, (taken.get(client) ?? 0) + 1);
    if (intervalMs === 0) share();
  };
  const limiter = createRateLimiter(options, undefined, peers && onTake);
  peers?.onTokenUse(name, (use) => limiter.charge(use));
  const sharing = peers && intervalMs > 0 ? setInterval(share, intervalMs).unref() : undefined;
  return Object.assign(limiter, { close: () => clearInterval(sharing) });
}
