/**
 * Change feed: every change of the store, as it becomes visible, for all followers in this process, with one listener and one
 * reader. A notification wakes the feed, which then reads the history. Positions have no gaps and become visible in order, so
 * reading everything after the last position neither misses nor repeats a change.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { attemptJson } from '../../domain/attempts.ts';
import { ApiError } from '../../domain/errors.ts';
import { matches } from '../../domain/filters/matches.ts';
import type { Filters, View } from '../../domain/filters/query.ts';
import { type Message, type MessageSummary, summaryKeys } from '../../domain/message.ts';
import type { ChangeListener } from '../../store/query/change-listener.ts';
import {
  attemptAtChange,
  type ChangesRead,
  messageAtChange,
  type RecordedChange,
} from '../../store/query/history.ts';
import { createSharedRun } from '../../store/reads/reads.ts';
import type { Store } from '../../store/store.ts';
import type { ChangeEvent } from '../routes/history-schema.ts';

/** Receives changes in order, none twice. Must not throw. */
export type Follower = (changes: readonly FeedChange[]) => void;

export type ChangeFeed = ReturnType<typeof createChangeFeed>;

/**
 * A change with its message as it was then, as far as the history has it: the status, the readiness for manual execution
 * and the receipt are those of the change; all other fields are current. What several followers need is computed once.
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

  /** Whether a search would have found the message then. `key` identifies the filters, so followers share results. */
  matches(filters: Filters, key: string): boolean {
    let isMatch = this.#matching.get(key);
    if (isMatch === undefined) {
      isMatch = matches(filters, this.message);
      if (this.#matching.size < MAX_CACHED_MATCHES) this.#matching.set(key, isMatch);
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
      const attempt = attemptAtChange(this.recorded, this.message);
      const brought = attempt && { attempt: attemptJson(attempt) };
      const data: ChangeEvent = { position, change, status, previousStatus, message, ...brought };
      event = Buffer.from(`id: ${position}\nevent: ${change}\ndata: ${JSON.stringify(data)}\n\n`);
      this.#events.set(view, event);
    }
    return event;
  }
}

/** Followers have few different filters; results for more of them are not cached. */
const MAX_CACHED_MATCHES = 100;

const CHANGES_PER_READ = 500;
const RETRY_PAUSE_MS = 250;
/** A feed that has been behind the store, or has not known its position, for longer is reported. */
const BEHIND_AFTER_MS = 5_000;
/** Changes that the feed keeps, so that a client that reconnects soon needs no database read: their number and bytes. */
const RECENT_CHANGES = 1_000;
const RECENT_BYTES = 4_000_000;

/** Idle, and without cost, until there is a follower. */
export function createChangeFeed(store: Pick<Store, 'changesAfter' | 'latestPosition' | 'onChanges'>) {
  const followers = new Set<Follower>();
  const messageFollowers = new Map<string, Set<(change: FeedChange) => void>>();
  let messageFollowerCount = 0;
  const stopping = new AbortController();
  const recent = createRecentChanges();
  let listener: ChangeListener | undefined;
  /** The position up to which the feed has read; undefined while it is idle. */
  let position: number | undefined;
  let reading: Promise<void> | undefined;
  let hasMore = false;
  /** When the position of the store was last known (monotonic ms). */
  let checkedAt = performance.now();
  /** A position that the store has had since then and the feed may not have reached. */
  let target: { readonly position: number; readonly since: number } | undefined;

  const wake = (known?: number) => {
    if (known !== undefined) {
      checkedAt = performance.now();
      if (position === undefined || known <= position) {
        target = undefined;
        return;
      }
      if (!target || target.position <= position) target = { position: known, since: checkedAt };
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
      // Without followers the feed becomes idle; the next follower starts at the latest position.
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
        await delay(RETRY_PAUSE_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
        continue;
      }
      hasMore ||= read.hasMore;
      if (read.changes.length > 0 && !stopping.signal.aborted)
        passOn(read.changes.map((change) => new FeedChange(change)));
    }
  };

  /** Synchronous, so that a new follower gets all of these changes or none. */
  const passOn = (changes: readonly FeedChange[]) => {
    position = changes.at(-1)?.position;
    recent.add(changes);
    for (const follower of [...followers]) follower(changes);
    if (messageFollowerCount === 0) return;
    for (const change of changes) {
      for (const follower of [...(messageFollowers.get(change.recorded.messageId) ?? [])]) follower(change);
    }
  };

  const start = createSharedRun(async () => {
    listener ??= store.onChanges(wake);
    checkedAt = performance.now();
    const latest = Number(await store.latestPosition());
    if (position !== undefined) return;
    position = latest;
    recent.clear();
  });

  const startedPosition = async (): Promise<number> => {
    while (position === undefined) {
      if (stopping.signal.aborted) {
        throw new ApiError('SERVICE_UNAVAILABLE', 'This server is stopping. Try again shortly.');
      }
      await start();
    }
    return position;
  };

  return {
    get followers() {
      return followers.size + messageFollowerCount;
    },

    get status() {
      const idle = { feed: 'idle', listener: 'idle' } as const;
      if (listener === undefined || position === undefined) return idle;
      const threshold = performance.now() - BEHIND_AFTER_MS;
      const isBehind = target !== undefined && target.position > position && target.since < threshold;
      return {
        /** `behind` when the store has had changes for some time that the feed has not read. */
        feed: isBehind ? 'behind' : checkedAt < threshold ? 'unknown' : 'current',
        /** Whether notifications arrive. Without them the feed polls every second. */
        listener: listener.isConnected ? 'connected' : 'away',
      } as const;
    },

    /** The position up to which the feed has read; starts an idle feed. */
    position: startedPosition,

    /**
     * Follows all changes after a position, until the returned function is called. Changes that the feed has read already are
     * passed on before this returns. Undefined where it no longer has all of them: read the history from there and try again.
     */
    followFrom(from: number, follower: Follower): (() => void) | undefined {
      if (position === undefined || stopping.signal.aborted) return undefined;
      if (from < position) {
        const missed = recent.between(from, position);
        if (!missed) return undefined;
        follower(missed);
      }
      // The client may have read further in another process than this feed.
      const isAhead = from > position;
      const own: Follower = (changes) =>
        follower(isAhead ? changes.filter((change) => change.position > from) : changes);
      followers.add(own);
      wake();
      return () => followers.delete(own);
    },

    /** Follows one message; changes of other messages cost it nothing. */
    async followMessage(messageId: string, follower: (change: FeedChange) => void): Promise<() => void> {
      // The feed may become idle before this continues; from here to `wake` everything is synchronous.
      while (position === undefined) await startedPosition();
      const sameMessage = messageFollowers.get(messageId) ?? new Set();
      messageFollowers.set(messageId, sameMessage.add(follower));
      messageFollowerCount++;
      wake();
      return () => {
        if (!sameMessage.delete(follower)) return;
        messageFollowerCount--;
        if (sameMessage.size === 0) messageFollowers.delete(messageId);
      };
    },

    async close(): Promise<void> {
      stopping.abort();
      await listener?.close();
      await reading;
    },
  };
}

/** The latest changes that were read, without gaps, within the bounds above. */
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
    /** All changes after `from` up to `to`; undefined where some are no longer in memory. */
    between(from: number, to: number): readonly FeedChange[] | undefined {
      const count = to - from;
      return count <= changes.length ? changes.slice(changes.length - count) : undefined;
    },
  };
}
