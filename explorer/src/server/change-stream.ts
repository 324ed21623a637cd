/** The client of the change stream (server-sent events): open while the page is visible, then resumed without a gap. */
import { useEffect, useRef, useState } from 'react';
import type { LiveChange } from '../../../src/client/api-types.ts';
import { basePath, checkServer, serverAway } from './api-client.ts';

/** Pause before a new attempt after the server rejected a stream (too many streams, or a restart). */
const REOPEN_AFTER_MS = 5_000;

export type LiveState = 'connecting' | 'live' | 'off';

interface Following {
  /** Filters of the stream; null follows nothing. */
  readonly parameters: Readonly<Record<string, string>> | null;
  readonly onChange: (change: LiveChange) => void;
  /** The stream has begun. It does not report earlier changes. */
  readonly onBegin?: () => void;
}

/**
 * Follows the changes of messages that match.
 *
 * A browser allows few connections to one server, and each stream takes one: a hidden tab closes its stream.
 */
export function useLiveChanges({ parameters, onChange, onBegin }: Following): LiveState {
  const [state, setState] = useState<LiveState>('off');
  const listeners = useRef({ onChange, onBegin });
  useEffect(() => {
    listeners.current = { onChange, onBegin };
  });

  const key = parameters === null ? null : new URLSearchParams(parameters).toString();
  useEffect(() => {
    if (key === null) return;
    let position: string | undefined;
    let source: EventSource | undefined;
    let reopening: ReturnType<typeof setTimeout> | undefined;
    let isReady = false;

    const onEvent = (event: MessageEvent<string>) => {
      position = event.lastEventId || position;
      listeners.current.onChange(JSON.parse(event.data) as LiveChange);
    };
    const open = () => {
      clearTimeout(reopening);
      if (source || document.visibilityState === 'hidden') return;
      setState('connecting');
      isReady = false;
      const after = position === undefined ? '' : `&after=${position}`;
      source = new EventSource(`${basePath}/v2/messages/stream?${key}${after}`);
      source.addEventListener('ready', (event) => {
        const isBeginning = position === undefined;
        position = event.lastEventId || position;
        isReady = true;
        setState('live');
        if (isBeginning) listeners.current.onBegin?.();
      });
      for (const name of ['created', 'updated', 'removed']) source.addEventListener(name, onEvent);
      source.addEventListener('error', () => {
        setState('connecting');
        checkServer();
        // The browser reconnects after a broken connection, but not after a rejected one.
        if (source?.readyState !== EventSource.CLOSED) return;
        // The server rejects a position of another database: the demo creates a new one at each start.
        if (!isReady) position = undefined;
        shut();
        reopening = setTimeout(open, REOPEN_AFTER_MS);
      });
    };
    const shut = () => {
      source?.close();
      source = undefined;
    };
    const onVisibility = () => {
      if (document.visibilityState === 'visible') open();
      else shut();
    };

    open();
    document.addEventListener('visibilitychange', onVisibility);
    // By then the browser may wait long before its next attempt.
    const unwatch = serverAway.subscribe(() => {
      if (serverAway.get()) return;
      shut();
      open();
    });
    return () => {
      unwatch();
      document.removeEventListener('visibilitychange', onVisibility);
      clearTimeout(reopening);
      shut();
      setState('off');
    };
  }, [key]);
  return state;
}
