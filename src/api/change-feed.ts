/**
 * Every change of the store, as it becomes visible, for everybody in this process who follows.
 *
 * One connection listens and one reader reads, however many follow: a notification wakes the feed, and the
 * history tells it what happened. Positions have no gaps and become visible in order, so that "everything behind
 * the last position" is never too little and never twice.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ChangeListener } from '../store/change-listener.ts';
import type { RecordedChange } from '../store/history.ts';
import type { Store } from '../store/store.ts';

export type Follower = (changes: readonly RecordedChange[]) => void;

export interface Following {
  /** The follower is called with everything behind this position, in order. */
  readonly from: string;
  stop(): void;
}

export interface ChangeFeed {
  follow(follower: Follower): Promise<Following>;
  /** How many follow now. */
  readonly followers: number;
  close(): Promise<void>;
}

const CHANGES_PER_READ = 500;
const RETRY_AFTER_MS = 1_000;

type FeedStore = Pick<Store, 'changesAfter' | 'latestPosition' | 'onChanges'>;

/** Costs nothing until somebody follows. */
export function createChangeFeed(store: FeedStore): ChangeFeed {
  const followers = new Set<Follower>();
  const stopping = new AbortController();
  let listener: ChangeListener | undefined;
  let position: string | undefined;
  let starting: Promise<void> | undefined;
  let reading: Promise<void> | undefined;
  let hasMore = false;

  const wake = () => {
    hasMore = true;
    reading ??= readOn().finally(() => {
      reading = undefined;
      if (hasMore && !stopping.signal.aborted) wake();
    });
  };

  const readOn = async () => {
    while (hasMore && !stopping.signal.aborted) {
      hasMore = false;
      // With nobody there the feed sleeps; the next follower starts at the latest position.
      if (followers.size === 0 || position === undefined) {
        position = undefined;
        return;
      }
      try {
        const changes = await store.changesAfter(position, CHANGES_PER_READ);
        const last = changes.at(-1);
        if (!last) continue;
        position = last.position;
        hasMore ||= changes.length === CHANGES_PER_READ;
        for (const follower of [...followers]) follower(changes);
      } catch {
        hasMore = true;
        await delay(RETRY_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
  };

  const start = async () => {
    listener ??= store.onChanges(wake);
    while (position === undefined) {
      const latest = await store.latestPosition();
      position ??= latest;
    }
  };

  return {
    get followers() {
      return followers.size;
    },
    async follow(follower) {
      while (position === undefined) {
        starting ??= start().finally(() => {
          starting = undefined;
        });
        await starting;
      }
      followers.add(follower);
      wake();
      return { from: position, stop: () => followers.delete(follower) };
    },
    async close() {
      stopping.abort();
      followers.clear();
      await listener?.close();
      await reading;
    },
  };
}
