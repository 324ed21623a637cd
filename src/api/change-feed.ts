/**
 * Every change of the store, as it becomes visible, for everybody in this process who follows.
 *
 * One connection listens and one reader reads, however many follow: a notification wakes the feed, and the
 * history tells it what happened. Positions have no gaps and become visible in order, so that "everything behind
 * the last position" is never too little and never twice.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../domain/errors.ts';
import { matches } from '../domain/matches.ts';
import { type Message, type MessageSummary, summaryKeys } from '../domain/message.ts';
import type { Filters, View } from '../domain/query.ts';
import type { ChangeListener } from '../store/change-listener.ts';
import { type ChangesRead, messageAtChange, type RecordedChange } from '../store/history.ts';
import type { Store } from '../store/store.ts';
import { addressGroup } from './client-address.ts';
import type { ChangeEvent } from './schemas/history.ts';

/** Is given changes in order, none twice. Must not throw. */
export type Follower = (changes: readonly FeedChange[]) => void;

export interface Following {
  /** The follower is called with everything behind this position, in order. */
  readonly from: number;
  stop(): void;
}

export interface ChangeFeed {
  /** How far the feed has read; wakes it where it sleeps. */
  position(): Promise<number>;
  /**
   * Follows everything behind a position, where the feed still remembers all of it; what it remembers is handed
   * over before this returns. Undefined where it does not: read the history on from there and try again.
   */
  followFrom(position: number, follower: Follower): Following | undefined;
  /** Follows one message; costs nothing for changes of others. */
  followMessage(messageId: string, follower: (change: FeedChange) => void): Promise<Following>;
  /** How many follow now. */
  readonly followers: number;
  readonly status: FeedStatus;
  close(): Promise<void>;
}

export interface FeedStatus {
  /** `idle` while nobody follows; `behind` when the store has had changes for a while that the feed has not. */
  readonly feed: 'idle' | 'current' | 'behind' | 'unknown';
  /** Whether notifications of changes come. Without them the feed looks every second. */
  readonly listener: 'idle' | 'connected' | 'away';
}

/**
 * A change with its message as it was then, as far as the history tells: the status, whether it was ready for
 * manual execution, and the receipt are those of the change; everything else is as it is now. Whatever several
 * followers need of it is made once.
 */
export class FeedChange {
  readonly position: number;
  readonly recorded: RecordedChange;
  #message: Message | undefined;
  readonly #events = new Map<View, Buffer>();
  readonly #matching = new Map<string, boolean>();

  constructor(recorded: RecordedChange) {
    this.position = Number(recorded.position);
    this.recorded = recorded;
  }

  get message(): Message {
    this.#message ??= messageAtChange(this.recorded);
    return this.#message;
  }

  /** Whether a search would have found the message then. `key` stands for the filters: followers share answers. */
  matches(filters: Filters, key: string): boolean {
    let isMatch = this.#matching.get(key);
    if (isMatch === undefined) {
      isMatch = matches(filters, this.message);
      if (this.#matching.size < REMEMBERED_MATCHES) this.#matching.set(key, isMatch);
    }
    return isMatch;
  }

  /** The change as a server-sent event. */
  event(view: View): Buffer {
    let event = this.#events.get(view);
    if (!event) {
      const { position, change, status, previousStatus } = this.recorded;
      const message =
        view === 'full'
          ? this.message
          : (Object.fromEntries(summaryKeys.map((name) => [name, this.message[name]])) as MessageSummary);
      const data: ChangeEvent = { position, change, status, previousStatus, message };
      event = Buffer.from(`id: ${position}\nevent: ${change}\ndata: ${JSON.stringify(data)}\n\n`);
      this.#events.set(view, event);
    }
    return event;
  }
}

/** Many followers ask the same few questions; the answers to more of them are not worth their memory. */
const REMEMBERED_MATCHES = 100;

const CHANGES_PER_READ = 500;
const RETRY_AFTER_MS = 250;
/** A feed that has been behind the store for so long, or has not learnt the store's position, is not just a moment late. */
const BEHIND_AFTER_MS = 5_000;
/** What the feed remembers, so that those who come back soon need no database: changes, and their bytes. */
const RECENT_CHANGES = 1_000;
const RECENT_BYTES = 4_000_000;

type FeedStore = Pick<Store, 'changesAfter' | 'latestPosition' | 'onChanges'>;

/** Costs nothing until somebody follows. */
export function createChangeFeed(store: FeedStore): ChangeFeed {
  const followers = new Set<Follower>();
  const messageFollowers = new Map<string, Set<(change: FeedChange) => void>>();
  let messageFollowerCount = 0;
  const stopping = new AbortController();
  const recent = createRecentChanges();
  let listener: ChangeListener | undefined;
  /** How far the feed has read; undefined while it sleeps. */
  let position: number | undefined;
  let starting: Promise<void> | undefined;
  let reading: Promise<void> | undefined;
  let hasMore = false;
  /** When the position of the store was learnt last. */
  let lookedAt = performance.now();
  /** A position that the store has had since then, and the feed may not have reached. */
  let owed: { readonly position: number; readonly since: number } | undefined;

  const wake = (known?: number) => {
    if (known !== undefined) {
      lookedAt = performance.now();
      if (position === undefined || known <= position) {
        owed = undefined;
        return;
      }
      if (!owed || owed.position <= position) owed = { position: known, since: lookedAt };
    }
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
      if (position === undefined || followers.size + messageFollowerCount === 0) {
        position = undefined;
        recent.clear();
        return;
      }
      let read: ChangesRead;
      try {
        read = await store.changesAfter(String(position), CHANGES_PER_READ);
      } catch {
        hasMore = true;
        await delay(RETRY_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
        continue;
      }
      hasMore ||= read.hasMore;
      if (read.changes.length > 0 && !stopping.signal.aborted)
        hand(read.changes.map((change) => new FeedChange(change)));
    }
  };

  /** Synchronous: whoever comes meanwhile comes before all of it or after. */
  const hand = (changes: readonly FeedChange[]) => {
    position = changes.at(-1)?.position;
    recent.add(changes);
    for (const follower of [...followers]) follower(changes);
    if (messageFollowerCount === 0) return;
    for (const change of changes) {
      for (const follower of [...(messageFollowers.get(change.recorded.messageId) ?? [])]) follower(change);
    }
  };

  const start = async () => {
    listener ??= store.onChanges(wake);
    lookedAt = performance.now();
    const latest = Number(await store.latestPosition());
    if (position !== undefined) return;
    position = latest;
    recent.clear();
  };

  const awake = async (): Promise<number> => {
    while (position === undefined) {
      if (stopping.signal.aborted) {
        throw new ApiError('SERVICE_UNAVAILABLE', 'This server is stopping. Try again shortly.');
      }
      starting ??= start().finally(() => {
        starting = undefined;
      });
      await starting;
    }
    return position;
  };

  return {
    get followers() {
      return followers.size + messageFollowerCount;
    },

    get status(): FeedStatus {
      if (listener === undefined || position === undefined) return { feed: 'idle', listener: 'idle' };
      const longAgo = performance.now() - BEHIND_AFTER_MS;
      const isBehind = owed !== undefined && owed.position > position && owed.since < longAgo;
      return {
        feed: isBehind ? 'behind' : lookedAt < longAgo ? 'unknown' : 'current',
        listener: listener.isConnected ? 'connected' : 'away',
      };
    },

    position: awake,

    followFrom(from, follower) {
      if (position === undefined || stopping.signal.aborted) return undefined;
      if (from < position) {
        const missed = recent.behind(from, position);
        if (!missed) return undefined;
        follower(missed);
      }
      // Where another process has read further than this feed, the feed has still to come to `from`.
      const isAhead = from > position;
      const own: Follower = isAhead
        ? (changes) => follower(changes.filter((change) => change.position > from))
        : (changes) => follower(changes);
      followers.add(own);
      wake();
      return { from, stop: () => followers.delete(own) };
    },

    async followMessage(messageId, follower) {
      // The feed may fall asleep between its word and ours; from here to `wake` nothing comes in between.
      while (position === undefined) await awake();
      const from = position;
      const those = messageFollowers.get(messageId) ?? new Set();
      messageFollowers.set(messageId, those.add(follower));
      messageFollowerCount++;
      wake();
      return {
        from,
        stop: () => {
          if (!those.delete(follower)) return;
          messageFollowerCount--;
          if (those.size === 0) messageFollowers.delete(messageId);
        },
      };
    },

    async close() {
      stopping.abort();
      await listener?.close();
      await reading;
    },
  };
}

/** The latest changes that were read, without a gap, within bounds. */
function createRecentChanges() {
  let changes: FeedChange[] = [];
  let bytes = 0;
  const size = ({ recorded }: FeedChange) => recorded.record.length;
  return {
    add(more: readonly FeedChange[]): void {
      changes.push(...more);
      for (const change of more) bytes += size(change);
      let dropped = 0;
      while (changes.length - dropped > RECENT_CHANGES || bytes > RECENT_BYTES) {
        const change = changes[dropped++];
        if (!change) break;
        bytes -= size(change);
      }
      if (dropped > 0) changes = changes.slice(dropped);
    },
    clear(): void {
      changes = [];
      bytes = 0;
    },
    /** Everything from behind `from` up to `to`; undefined where some of it is forgotten. */
    behind(from: number, to: number): readonly FeedChange[] | undefined {
      const count = to - from;
      return count <= changes.length ? changes.slice(changes.length - count) : undefined;
    },
  };
}

/** Bounds of what keeps a connection open. */
export interface LiveLimits {
  readonly streams: number;
  readonly streamsPerAddress: number;
  readonly waiters: number;
  readonly waitersPerAddress: number;
  /** How often a stream shows that it lives. */
  readonly heartbeatMs: number;
  /** What a stream holds in memory for a reader that takes nothing at the moment. */
  readonly bufferedBytes: number;
  /** A reader that leaves what it was offered for this long is dropped. */
  readonly stalledMs: number;
}

export const defaultLiveLimits: LiveLimits = {
  streams: 5_000,
  streamsPerAddress: 100,
  waiters: 10_000,
  waitersPerAddress: 500,
  heartbeatMs: 15_000,
  bufferedBytes: 1_000_000,
  stalledMs: 20_000,
};

/** Places for those who stay: so many for one address (IPv6: a /64, as for the rate limit), and so many in all. */
export interface Seats {
  readonly taken: number;
  /** Throws TOO_MANY_CONNECTIONS where none is free. The function gives the place back, once. */
  take(address: string): () => void;
}

export function createSeats(what: string, inAll: number, perAddress: number): Seats {
  const byGroup = new Map<string, number>();
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take(address) {
      const group = addressGroup(address);
      const own = byGroup.get(group) ?? 0;
      if (own >= perAddress) {
        throw new ApiError(
          'TOO_MANY_CONNECTIONS',
          `Your address has ${own} ${what} open, which is the most. Close one, or try again later.`,
        );
      }
      if (taken >= inAll) {
        throw new ApiError(
          'TOO_MANY_CONNECTIONS',
          `All ${inAll} ${what} that this server can hold are taken. Try again later, or at another server.`,
        );
      }
      byGroup.set(group, own + 1);
      taken++;
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        taken--;
        const left = (byGroup.get(group) ?? 1) - 1;
        if (left === 0) byGroup.delete(group);
        else byGroup.set(group, left);
      };
    },
  };
}

/** What the routes that keep connections open share. */
export interface Live {
  readonly limits: LiveLimits;
  readonly streams: Seats;
  readonly waiters: Seats;
  /** Streams that catch up take turns, so that the database's connections are there for searches. */
  takeTurn<T>(read: () => Promise<T>): Promise<T>;
}

const TURNS_AT_ONCE = 2;

export function createLive(given: Partial<LiveLimits> = {}): Live {
  const limits = { ...defaultLiveLimits, ...given };
  return {
    limits,
    streams: createSeats('streams', limits.streams, limits.streamsPerAddress),
    waiters: createSeats('waiting requests', limits.waiters, limits.waitersPerAddress),
    takeTurn: createTurns(TURNS_AT_ONCE),
  };
}

function createTurns(atOnce: number): Live['takeTurn'] {
  const waiting: (() => void)[] = [];
  let taken = 0;
  return async (read) => {
    if (taken < atOnce) taken++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await read();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else taken--;
    }
  };
}
