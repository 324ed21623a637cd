/** Mirrors of a stand-in, run to their end or followed until the test ends. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { compareNewestFirst } from '../../../src/domain/filters/matches.ts';
import type { Message } from '../../../src/domain/message.ts';
import type { MirrorOptions } from '../../../src/ingest/mirror/intake.ts';
import { followSource } from '../../../src/ingest/mirror/mirror.ts';
import { createSource, type SourceTiming } from '../../../src/ingest/mirror/source.ts';
import type { Store } from '../../../src/store/store.ts';
import { openTestStore } from '../../database.ts';
import type { StandIn } from './stand-in.ts';

/** The timeout is generous: on a busy machine an answer that comes late would be asked for again. */
const quick: Partial<SourceTiming> = { firstPauseMs: 5, longestPauseMs: 50, timeoutMs: 60_000 };

export async function openStoreForTest(): Promise<Store & { readonly url: string }> {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  return store;
}

interface Run extends Partial<MirrorOptions> {
  readonly requestsPerSecond?: number;
  readonly sourceTiming?: Partial<SourceTiming>;
  readonly url?: string;
}

export function run(standIn: Pick<StandIn, 'url'>, store: Store, options: Run = {}) {
  const signal = options.signal ?? AbortSignal.timeout(170_000);
  return followSource({
    source: createSource({
      url: options.url ?? standIn.url,
      requestsPerSecond: options.requestsPerSecond ?? 1_000,
      userAgent: 'lanescan/test',
      signal,
      timing: { ...quick, ...options.sourceTiming },
    }),
    store,
    once: true,
    ...options,
    signal,
  });
}

export async function stored(store: Store): Promise<Message[]> {
  const all: Message[] = [];
  for await (const batch of store.exportRecords({})) all.push(...batch.map((record) => JSON.parse(record)));
  return all;
}

export const shown = (standIn: StandIn) => [...standIn.records.values()].sort(compareNewestFirst);

export async function expectEqual(store: Store, standIn: StandIn): Promise<void> {
  expect(await stored(store)).toEqual(shown(standIn));
}

/** Follows until the test ends. */
export function follow(standIn: Pick<StandIn, 'url'>, store: Store, options: Run = {}) {
  const stop = new AbortController();
  const following = run(standIn, store, {
    once: false,
    signal: stop.signal,
    timing: { roundIntervalMs: 30, minCheckIntervalMs: 30, maxCheckIntervalMs: 60, failurePauseMs: 20 },
    ...options,
  });
  const end = async () => {
    stop.abort();
    return following;
  };
  onTestFinished(async () => {
    await end();
  });
  return { end, following };
}

export async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 5_000; tries++) {
    if (await condition()) return;
    await delay(20);
  }
  throw new Error('It never came about');
}

export const isEqual = (store: Store, standIn: StandIn) => async () =>
  JSON.stringify((await stored(store)).map(({ messageId, status }) => [messageId, status])) ===
  JSON.stringify(shown(standIn).map(({ messageId, status }) => [messageId, status]));
