import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bucketMs, deliveryBucket, percentile } from '../../src/domain/delivery-times.ts';
import '../fixtures.ts';

function histogramOf(times: readonly number[]): Map<number, number> {
  const histogram = new Map<number, number>();
  for (const time of times) {
    const bucket = deliveryBucket(time);
    histogram.set(bucket, (histogram.get(bucket) ?? 0) + 1);
  }
  return histogram;
}

/** Nearest rank: the smallest time within which this share was delivered. */
function exactPercentile(times: readonly number[], share: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

test('a time is told within 5 per cent of itself, from a millisecond to a year', () => {
  let worst = 0;
  const check = (time: number) => {
    const error = Math.abs(bucketMs(deliveryBucket(time)) - time) / time;
    if (error > worst) worst = error;
  };
  for (let time = 1; time <= 100_000; time++) check(time);
  for (let time = 100_000; time <= 366 * 86_400_000; time = Math.ceil(time * 1.0007)) check(time);
  expect(worst).toBeLessThan(0.05);
});

test('percentiles are within 5 per cent of the exact ones, whatever the times', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.integer({ min: 1, max: 100 }),
          fc.integer({ min: 1, max: 3_600_000 }),
          fc.integer({ min: 600_000, max: 900_000 }),
          fc.integer({ min: 1, max: 1_000_000_000 }),
        ),
        { minLength: 1, maxLength: 300 },
      ),
      fc.constantFrom(0.5, 0.9, 0.99),
      (times, share) => {
        const exact = exactPercentile(times, share);
        const told = percentile(histogramOf(times), share) ?? Number.NaN;
        expect(Math.abs(told - exact) / exact).toBeLessThan(0.05);
      },
    ),
    { numRuns: 500 },
  );
});

test('a larger time never falls into a smaller bucket, and every bucket fits its column', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.maxSafeNat(), (one, other) => {
      const [smaller, larger] = one < other ? [one, other] : [other, one];
      expect(deliveryBucket(smaller)).toBeLessThanOrEqual(deliveryBucket(larger));
      expect(deliveryBucket(larger)).toBeLessThan(32_768);
    }),
  );
});

test('clocks that disagree, by which a delivery took no time or less, count as no time', () => {
  expect(deliveryBucket(0)).toBe(0);
  expect(deliveryBucket(-5_000)).toBe(0);
  expect(percentile(histogramOf([-5_000, 0, 0]), 0.99)).toBe(0);
});

test('nothing delivered has no percentile, also where counts went back to zero', () => {
  expect(percentile(new Map(), 0.5)).toBeNull();
  expect(percentile(new Map([[100, 0]]), 0.5)).toBeNull();
});
