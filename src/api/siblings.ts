/**
 * Processes that answer on one port, as one of them sees the others: what clients take in one counts in all, and whoever
 * asks any of them for metrics learns those of all.
 */
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Takings } from './rate-limit.ts';

/** The metrics of one process, as their library tells them to another process. */
export type ProcessMetrics = readonly MetricObjectWithValues<MetricValue<string>>[];

export interface Siblings {
  /** The metrics of all processes as one text; this one is asked like the others. */
  scrape(): Promise<string>;
  /** How this process is asked for its own. */
  onMetricsAsked(read: () => Promise<ProcessMetrics>): void;
  tellTakings(takings: Takings): void;
  onTakings(hear: (takings: Takings) => void): void;
}

/** How long a client's requests to one process may go unnoticed by the others. */
const TELL_EVERY_MS = 100;

/** Counts what is taken here, and tells the others now and then. */
export function createTakingsTeller(siblings: Siblings): {
  count: (client: string) => void;
  stop: () => void;
} {
  let counted = new Map<string, number>();
  const timer = setInterval(() => {
    if (counted.size === 0) return;
    siblings.tellTakings([...counted]);
    counted = new Map();
  }, TELL_EVERY_MS).unref();
  return {
    count: (client) => counted.set(client, (counted.get(client) ?? 0) + 1),
    stop: () => clearInterval(timer),
  };
}
