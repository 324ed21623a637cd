/** Histograms of a lane's messages: by send time and by delivery time. */

import type { Delivery } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { clockTime, dayName, duration } from '../../../src/text/format.ts';
import type { Bar } from '../parts/charts.tsx';

const HOUR_MS = 3_600_000;
/** Usual widths of a bar, in milliseconds. */
const barWidthsMs = [
  HOUR_MS / 60,
  HOUR_MS / 12,
  HOUR_MS / 4,
  HOUR_MS,
  3 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  24 * HOUR_MS,
  7 * 24 * HOUR_MS,
  30 * 24 * HOUR_MS,
];
const MAX_BARS = 48;

/** From the oldest message until now, with the smallest width that needs at most `MAX_BARS`. */
export function timeBars(messages: readonly Message[], now: number): readonly Bar[] {
  const times = messages.map(({ sendTimestamp }) => Date.parse(sendTimestamp));
  const oldest = Math.min(now, ...times);
  const width =
    barWidthsMs.find((one) => (now - oldest) / one <= MAX_BARS) ?? Math.ceil((now - oldest) / MAX_BARS);
  const first = Math.floor(oldest / width) * width;
  const count = Math.max(1, Math.ceil((Math.max(now, ...times) - first + 1) / width));
  const tally = Array.from({ length: count }, () => ({ done: 0, underWay: 0, failed: 0 }));
  messages.forEach(({ status }, index) => {
    const bar = tally[Math.floor(((times[index] ?? first) - first) / width)];
    if (!bar) return;
    if (status === 'SUCCESS') bar.done++;
    else if (status === 'FAILED') bar.failed++;
    else bar.underWay++;
  });
  return tally.map(({ done, underWay, failed }, index) => {
    const iso = new Date(first + index * width).toISOString();
    const isDay = width >= 24 * HOUR_MS;
    const name = isDay ? dayName(iso) : `${dayName(iso)}, ${clockTime(iso).slice(0, 5)}`;
    return {
      key: iso,
      name,
      ...(index % Math.ceil(count / 4) === 0 && { tick: name }),
      parts: [
        { series: 'Delivered', tone: 'done', value: done },
        { series: 'In flight', tone: 'moving', value: underWay },
        { series: 'Failed', tone: 'failed', value: failed },
      ],
    };
  });
}

const DELIVERY_BARS = 32;

/** Logarithmic bars: delivery times differ by orders of magnitude. Null where nothing was delivered. */
export function deliveryBars(
  messages: readonly Message[],
  { p50Ms, p90Ms, p99Ms }: Delivery,
): {
  readonly bars: readonly Bar[];
  readonly marks: readonly { readonly at: number; readonly name: string }[];
} | null {
  const times = messages
    .filter(({ status, deliveryTime }) => status === 'SUCCESS' && deliveryTime !== null && deliveryTime > 0)
    .map(({ deliveryTime }) => deliveryTime ?? 0)
    .sort((a, b) => a - b);
  const shortest = times[0];
  const longest = times.at(-1);
  if (shortest === undefined || longest === undefined) return null;
  const low = Math.log(shortest * 0.95);
  const high = Math.log(Math.max(longest, p99Ms ?? 0) * 1.05);
  const place = (ms: number) => ((Math.log(ms) - low) / (high - low)) * DELIVERY_BARS;
  const tally = new Array<number>(DELIVERY_BARS).fill(0);
  for (const time of times) {
    const bar = Math.min(DELIVERY_BARS - 1, Math.floor(place(time)));
    tally[bar] = (tally[bar] ?? 0) + 1;
  }
  const edge = (index: number) => Math.exp(low + ((high - low) * index) / DELIVERY_BARS);
  const bars = tally.map(
    (value, index): Bar => ({
      key: String(index),
      name: `${duration(edge(index))} to ${duration(edge(index + 1))}`,
      ...(index % 8 === 0 && { tick: duration(edge(index)) }),
      parts: [{ series: 'Deliveries', tone: 'moving', value }],
    }),
  );
  const marks = [
    { ms: p50Ms, name: '50 %' },
    { ms: p90Ms, name: '90 %' },
    { ms: p99Ms, name: '99 %' },
  ].flatMap(({ ms, name }) => {
    const at = ms === null ? -1 : place(ms);
    return at >= 0 && at <= DELIVERY_BARS ? [{ at, name }] : [];
  });
  return { bars, marks };
}
