/** Histogram of delivery times: exact to 5 per cent, small enough to keep for every lane and day, and additive. */

const GROWTH = 1.05;

/** A hundred years: longer delivery times are counted as this one. A clock set back by it still shows a date. */
export const MAX_DELIVERY_MS = 100 * 365 * 86_400_000;

/** Messages of one lane that are overdue are counted up to this number. */
export const MAX_OVERDUE = 10_000;

/** Counts by bucket. */
export type DeliveryHistogram = ReadonlyMap<number, number>;

export function deliveryBucket(ms: number): number {
  return ms < 1 ? 0 : Math.floor(Math.log(ms) / Math.log(GROWTH)) + 1;
}

/** The middle of a bucket, in milliseconds. */
export function bucketMs(bucket: number): number {
  return bucket === 0 ? 0 : Math.min(Math.round(GROWTH ** (bucket - 0.5)), MAX_DELIVERY_MS);
}

/** The time within which this share (0 to 1) was delivered, in milliseconds; null for an empty histogram. */
export function percentile(histogram: DeliveryHistogram, share: number): number | null {
  const total = [...histogram.values()].reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let seen = 0;
  const buckets = [...histogram].sort(([a], [b]) => a - b);
  for (const [bucket, count] of buckets) {
    seen += count;
    if (seen >= total * share) return bucketMs(bucket);
  }
  return bucketMs(buckets.at(-1)?.[0] ?? 0);
}

/** A histogram in the form of the store: alternating bucket and count, without zeros. */
export function flatHistogram(histogram: DeliveryHistogram): number[] {
  return [...histogram].filter(([, count]) => count !== 0).flat();
}

export function addFlatHistogram(sum: Map<number, number>, flat: readonly number[]): void {
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const bucket = flat[i] ?? 0;
    sum.set(bucket, (sum.get(bucket) ?? 0) + (flat[i + 1] ?? 0));
  }
}
