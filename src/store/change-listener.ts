/**
 * Hears of every growth of the history, in whichever process it was written.
 *
 * A notification only wakes; what happened stands in the history. So it does no harm when one is lost with a
 * broken connection: the listener wakes everybody once when it is back.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { CHANGE_CHANNEL } from './changes.ts';

const RECONNECT_AFTER_MS = 500;

export interface ChangeListener {
  close(): Promise<void>;
}

/** Calls `onChange` whenever the history may have grown: once at the start, and never twice at a time. */
export function listenForChanges(connection: pg.ClientConfig, onChange: () => void): ChangeListener {
  const stopping = new AbortController();
  let client: pg.Client | undefined;

  const listen = async () => {
    while (!stopping.signal.aborted) {
      const current = new pg.Client({
        ...connection,
        application_name: 'lanescan listener',
        keepAlive: true,
      });
      client = current;
      const ended = new Promise<void>((resolve) => current.once('end', resolve));
      current.on('error', () => undefined);
      current.on('notification', onChange);
      try {
        // A client that is ended while it connects never tells whether it has.
        await Promise.race([current.connect(), ended]);
        await current.query(`listen ${CHANGE_CHANNEL}`);
        onChange();
        await ended;
      } catch {
        await current.end().catch(() => undefined);
      }
      await delay(RECONNECT_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = listen();
  return {
    async close() {
      stopping.abort();
      await client?.end().catch(() => undefined);
      await running;
    },
  };
}
