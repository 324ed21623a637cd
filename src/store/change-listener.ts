/**
 * Wakes those who follow the history whenever it may have grown, in whichever process it was written.
 *
 * PostgreSQL's notifications are the quick way. They need a connection that is alive, so it proves that with a query every
 * second; one that does not answer is replaced. Beside that the position of the store is read every second over the
 * connections for reads, so that nobody who follows stays behind when notifications do not come.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { CHANGE_CHANNEL } from './changes.ts';
import { WatchedClient } from './client.ts';

const RECONNECT_AFTER_MS = 500;
const PROOF_EVERY_MS = 1_000;
const PROOF_TIMEOUT_MS = 2_000;
const LOOK_EVERY_MS = 1_000;
const LOOK_AGAIN_AFTER_MS = 250;

export interface ChangeListener {
  /** Whether notifications come. */
  readonly isConnected: boolean;
  close(): Promise<void>;
}

/**
 * Is called without a position when there may be changes, and every second with the position that the store has. The same
 * position may come again and again.
 */
export type WakeFollower = (position?: number) => void;

/** Calls `onChange` with every notification, and whenever the connection is new and some may have been missed. */
export function listenForChanges(connection: pg.ClientConfig, onChange: () => void): ChangeListener {
  const stopping = new AbortController();
  let client: WatchedClient | undefined;
  let isConnected = false;

  const listen = async () => {
    while (!stopping.signal.aborted) {
      const current = new WatchedClient({
        ...connection,
        application_name: 'lanescan listener',
        query_timeout: PROOF_TIMEOUT_MS,
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
          await Promise.race([pause(PROOF_EVERY_MS, stopping.signal), ended]);
          if (stopping.signal.aborted) break;
          await current.query('select 1');
        }
      } catch {
        // Broken or silent: the next round replaces it.
      }
      isConnected = false;
      await current.end().catch(() => undefined);
      await pause(RECONNECT_AFTER_MS, stopping.signal);
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

/** One listener and one look a second for all followers of a process; none while nobody follows. */
export function createChangeSignal(
  listen: (onChange: () => void) => ChangeListener,
  readPosition: () => Promise<number>,
): (wake: WakeFollower) => ChangeListener {
  const followers = new Set<WakeFollower>();
  let shared: ChangeListener | undefined;

  const wakeAll = (position?: number) => {
    for (const wake of followers) wake(position);
  };

  const start = (): ChangeListener => {
    const stopping = new AbortController();
    const listener = listen(() => wakeAll());
    const look = async () => {
      while (!stopping.signal.aborted) {
        const position = await readPosition().catch(() => undefined);
        if (position !== undefined && !stopping.signal.aborted) wakeAll(position);
        await pause(position === undefined ? LOOK_AGAIN_AFTER_MS : LOOK_EVERY_MS, stopping.signal);
      }
    };
    void look();
    return {
      get isConnected() {
        return listener.isConnected;
      },
      async close() {
        stopping.abort();
        await listener.close();
      },
    };
  };

  return (wake) => {
    // A set holds a function once, and the same one may follow twice.
    const own: WakeFollower = (position) => wake(position);
    followers.add(own);
    shared ??= start();
    return {
      get isConnected() {
        return shared?.isConnected ?? false;
      },
      async close() {
        if (!followers.delete(own) || followers.size > 0) return;
        const last = shared;
        shared = undefined;
        await last?.close();
      },
    };
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
