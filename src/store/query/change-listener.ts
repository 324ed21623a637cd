/**
 * Change notifications: wakes followers of the history whenever it may have grown, whichever process wrote it.
 *
 * LISTEN/NOTIFY is the fast way. It needs a live connection, so that is probed with a query every second and replaced when
 * it does not answer. In addition, the position of the store is polled every second over the read pool, so that followers
 * do not fall behind when notifications are lost.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Layout } from '../cluster/layout.ts';
import { CHANGE_CHANNEL } from '../cluster/write-coordinator.ts';
import { createSingleFlight, type Read, type Reads } from '../reads/reads.ts';
import { WatchedClient } from '../server/client.ts';
import { readChangesAfter, readLastChangeAt } from './history.ts';

const RECONNECT_DELAY_MS = 500;
const PROBE_INTERVAL_MS = 1_000;
const PROBE_TIMEOUT_MS = 2_000;
const POLL_INTERVAL_MS = 1_000;
const POLL_RETRY_DELAY_MS = 250;

export interface ChangeListener {
  /** Whether the connection for notifications is up. */
  readonly isConnected: boolean;
  close(): Promise<void>;
}

/**
 * Called without a position when there may be changes, and every second with the position of the store, which may be the
 * same as before.
 */
export type WakeFollower = (position?: number) => void;

/** Calls `onChange` with every notification, and after every connect, because some may have been missed before. */
export function listenForChanges(connection: pg.ClientConfig, onChange: () => void): ChangeListener {
  const stopping = new AbortController();
  let client: WatchedClient | undefined;
  let isConnected = false;

  const listen = async () => {
    while (!stopping.signal.aborted) {
      const current = new WatchedClient({
        ...connection,
        application_name: 'lanescan listener',
        query_timeout: PROBE_TIMEOUT_MS,
      });
      client = current;
      const ended = new Promise<void>((resolve) => current.once('end', resolve));
      let isOpen = true;
      void ended.then(() => {
        isOpen = false;
      });
      current.on('error', () => undefined);
      current.on('notification', () => onChange());
      try {
        // A client that is ended while it connects never settles its promise.
        await Promise.race([current.connect(), ended]);
        await current.query(`listen ${CHANGE_CHANNEL}`);
        isConnected = true;
        onChange();
        while (isOpen) {
          await Promise.race([pause(PROBE_INTERVAL_MS, stopping.signal), ended]);
          if (stopping.signal.aborted) break;
          await current.query('select 1');
        }
      } catch {
        // Broken or silent: the loop replaces it.
      }
      isConnected = false;
      await current.end().catch(() => undefined);
      await pause(RECONNECT_DELAY_MS, stopping.signal);
    }
  };
  const running = listen();
  return {
    get isConnected() {
      return isConnected;
    },
    async close() {
      stopping.abort();
      await client?.end().catch(() => undefined);
      await running;
    },
  };
}

/** One listener and one poll a second for all followers of a process; none while there are no followers. */
function createChangeSignal(
  connection: pg.ClientConfig,
  readPosition: () => Promise<number>,
): (wake: WakeFollower) => ChangeListener {
  const followers = new Set<WakeFollower>();
  let shared: { readonly listener: ChangeListener; readonly polling: AbortController } | undefined;

  const wakeAll = (position?: number) => {
    for (const wake of followers) wake(position);
  };

  const poll = async (stop: AbortSignal) => {
    while (!stop.aborted) {
      const position = await readPosition().catch(() => undefined);
      if (position !== undefined && !stop.aborted) wakeAll(position);
      await pause(position === undefined ? POLL_RETRY_DELAY_MS : POLL_INTERVAL_MS, stop);
    }
  };

  return (wake) => {
    // The same function may follow twice, and a set would hold it once.
    const own: WakeFollower = (position) => wake(position);
    followers.add(own);
    if (!shared) {
      shared = { listener: listenForChanges(connection, () => wakeAll()), polling: new AbortController() };
      void poll(shared.polling.signal);
    }
    return {
      get isConnected() {
        return shared?.listener.isConnected ?? false;
      },
      async close() {
        if (!followers.delete(own) || followers.size > 0) return;
        const last = shared;
        shared = undefined;
        last?.polling.abort();
        await last?.listener.close();
      },
    };
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** `connection` leads to the primary, for notifications. */
export function createChangeReads(reads: Reads, connection: pg.ClientConfig, layout: Layout) {
  return {
    /**
     * The changes of all messages after a position, in order: at most `limit`, and at most `maxBytes` of records
     * (MAX_CHANGES_BYTES by default), but always the first one.
     */
    changesAfter: (position: string, limit: number, maxBytes?: number) =>
      readChangesAfter(reads.readOnPrimaryAs('changes'), position, limit, maxBytes, layout),
    /** The position of the latest change. */
    latestPosition: async () => String((await readPosition(reads.readAs('position'))) ?? 0),
    version: reads.version,
    /** Calls back whenever there may be changes, and every second with the position of the store. */
    onChanges: createChangeSignal(connection, async () =>
      Number(await readPosition(reads.readOnPrimaryAs('position'))),
    ),
    /** When the latest change was recorded; null before the first change. */
    lastChangeAt: createSingleFlight(() => readLastChangeAt(reads.readAs('lastChange'))),
  };
}

async function readPosition(read: Read): Promise<unknown> {
  return (await read('select position from store', []))[0]?.position;
}
