/** Limits of long requests: slots for streams, waiting requests and exports, and the catch-up reads of streams. */
import { ApiError } from '../../domain/errors.ts';
import type { Store } from '../../store/store.ts';
import { addressGroup } from '../server/client-address.ts';
import { createCatchUp } from './catch-up.ts';
import { FeedChange } from './change-feed.ts';

export const defaultLiveLimits = {
  streams: 5_000,
  streamsPerAddress: 100,
  waiters: 10_000,
  waitersPerAddress: 500,
  /** Of the few exports that the store runs at a time. */
  exportsPerAddress: 2,
  /** An export holds a snapshot, which holds back vacuum: it is cut off after this long. */
  exportMs: 30 * 60_000,
  /** Interval of the heartbeats of a stream. */
  heartbeatMs: 15_000,
  /** What a stream buffers for a slow reader. */
  bufferedBytes: 1_000_000,
  /** A reader that takes nothing of its buffer for this long is dropped. */
  stalledMs: 20_000,
};

export type LiveLimits = Readonly<typeof defaultLiveLimits>;

/** Slots for long-lived requests, limited in total and for each address (IPv6: a /64, as for the rate limit). */
export function createSlots(what: string, total: number, perAddress: number) {
  const usedByGroup = new Map<string, number>();
  let used = 0;
  return {
    get used() {
      return used;
    },
    /** Throws TOO_MANY_CONNECTIONS when no slot is free. The returned function releases the slot; it is idempotent. */
    acquire(address: string): () => void {
      const group = addressGroup(address);
      const ownUsed = usedByGroup.get(group) ?? 0;
      if (ownUsed >= perAddress) {
        throw new ApiError(
          'TOO_MANY_CONNECTIONS',
          `Your address has ${ownUsed} ${what} open, which is the limit. Close one, or try again later.`,
        );
      }
      if (used >= total) {
        throw new ApiError(
          'TOO_MANY_CONNECTIONS',
          `All ${total} ${what} of this server are in use. Try again later, or use another server.`,
        );
      }
      usedByGroup.set(group, ownUsed + 1);
      used++;
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        used--;
        const remaining = (usedByGroup.get(group) ?? 1) - 1;
        if (remaining === 0) usedByGroup.delete(group);
        else usedByGroup.set(group, remaining);
      };
    },
  };
}

/** What the routes with long-lived requests share. */
export type Live = ReturnType<typeof createLive>;

/** Changes of one catch-up read, which is no larger than the buffer of a stream: a slow client keeps no other records in memory. */
const CHANGES_PER_READ = 200;

export function createLive(store: Pick<Store, 'changesAfter'>, given: Partial<LiveLimits> = {}) {
  const limits = { ...defaultLiveLimits, ...given };
  return {
    limits,
    streams: createSlots('streams', limits.streams, limits.streamsPerAddress),
    waiters: createSlots('waiting requests', limits.waiters, limits.waitersPerAddress),
    // Limited for each address only: the store limits their number in total.
    exports: createSlots('exports', Number.POSITIVE_INFINITY, limits.exportsPerAddress),
    catchUp: createCatchUp(async (position) => {
      const { changes } = await store.changesAfter(String(position), CHANGES_PER_READ, limits.bufferedBytes);
      return changes.map((change) => new FeedChange(change));
    }),
  };
}
