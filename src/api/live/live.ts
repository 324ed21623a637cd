/** Limits of long requests: slots for streams, waiting requests and exports, and the catch-up reads of streams. */
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { ApiError } from '../../domain/errors.ts';
import type { Store } from '../../store/store.ts';
import { addressGroup } from '../server/client-address.ts';
import { FeedChange } from './change-feed.ts';

/** A stream that waits for its turn. */
export interface CatchUpTurn<Change> {
  readonly client: string;
  /** The changes after this position are read. */
  readonly position: number;
  isWanted(): boolean;
  /** Gets the changes in order, in slices. Its time counts like that of the read. */
  pass(changes: readonly Change[]): void;
}

/** The most time that reads for streams that catch up take, of the time that passes. */
export const CATCH_UP_SHARE = 1 / 3;

/** Changes that are passed on before other requests get a turn of the event loop. */
const SLICE_CHANGES = 20;

const systemClock = {
  /** Monotonic, in milliseconds. */
  now: () => performance.now(),
  pause: (ms: number): Promise<unknown> => delay(ms, undefined, { ref: false }),
};

/**
 * Scheduler of the catch-up reads of streams: how much of a process, and of the database, streams that begin in the past may
 * take from searches.
 *
 * One read runs at a time, and after it the scheduler pauses, so that reads and what follows from them take at most
 * `CATCH_UP_SHARE` of the time, whatever the number of streams, their filters and the load. Clients take turns, so that one
 * with many streams does not slow down the others. Streams at the same position share one read.
 */
export function createCatchUp<Change>(
  read: (position: number) => Promise<readonly Change[]>,
  clock = systemClock,
) {
  interface Waiting extends CatchUpTurn<Change> {
    resolve(): void;
    reject(error: unknown): void;
  }
  /** By group of addresses, the next one to have a turn first. */
  const queues = new Map<string, Waiting[]>();
  let isRunning = false;

  /** The first turn of the group whose turn it is, with all that wait at the same position. */
  const takeNext = (): readonly Waiting[] => {
    for (const [group, [first, ...others]] of queues) {
      queues.delete(group);
      if (others.length > 0) queues.set(group, others);
      if (first?.isWanted()) return [first, ...takeAt(first.position)];
      first?.resolve();
    }
    return [];
  };

  const takeAt = (position: number): Waiting[] => {
    const taken: Waiting[] = [];
    for (const [group, turns] of queues) {
      const others = turns.filter((turn) => turn.position !== position);
      if (others.length === turns.length) continue;
      taken.push(...turns.filter((turn) => turn.position === position));
      if (others.length > 0) queues.set(group, others);
      else queues.delete(group);
    }
    return taken;
  };

  /** Returns how long it took, without the time of other requests in between. */
  const run = async (turns: readonly Waiting[]): Promise<number> => {
    let startedAt = clock.now();
    let busyMs = 0;
    try {
      const changes = await read(turns[0]?.position ?? 0);
      for (const turn of turns) {
        for (let at = 0; at < changes.length; at += SLICE_CHANGES) {
          turn.pass(changes.slice(at, at + SLICE_CHANGES));
          busyMs += clock.now() - startedAt;
          await setImmediate();
          startedAt = clock.now();
        }
        turn.resolve();
      }
    } catch (error) {
      for (const turn of turns) turn.reject(error);
    }
    return busyMs + clock.now() - startedAt;
  };

  const runAll = async (): Promise<void> => {
    isRunning = true;
    for (let turns = takeNext(); turns.length > 0; turns = takeNext()) {
      await clock.pause((await run(turns)) * (1 / CATCH_UP_SHARE - 1));
    }
    isRunning = false;
  };

  return {
    /** Resolves after the turn; rejects when the read fails. */
    next: (turn: CatchUpTurn<Change>) =>
      new Promise<void>((resolve, reject) => {
        const group = addressGroup(turn.client);
        queues.set(group, [...(queues.get(group) ?? []), { ...turn, resolve, reject }]);
        if (!isRunning) void runAll();
      }),
  };
}

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
