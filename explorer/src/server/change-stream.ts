/** The stream of changes, open only while somebody looks and resumed without a gap when they come back. */
import { useEffect, useRef, useState } from 'react';
import { checkServer, onServerBack } from './api-client.ts';
import type { LiveChange } from './api-types.ts';

/** A stream that was refused (too many, a restart of the server) is asked for again after this. */
const REOPEN_AFTER_MS = 5_000;

export type LiveState = 'connecting' | 'live' | 'off';

interface Following {
  /** Filters of the stream; null follows nothing. */
  readonly parameters: Readonly<Record<string, string>> | null;
  readonly onChange: (change: LiveChange) => void;
  /** The stream has begun: what happened before that is not told. */
  readonly onBegin?: () => void;
}

/**
 * Follows the changes of messages that match.
 *
 * A browser has few connections for one server, and each stream takes one: a hidden tab gives its own back.
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

    const hear = (event: MessageEvent<string>) => {
      position = event.lastEventId || position;
      listeners.current.onChange(JSON.parse(event.data) as LiveChange);
    };
    const open = () => {
      clearTimeout(reopening);
      if (source || document.visibilityState === 'hidden') return;
      setState('connecting');
      isReady = false;
      const after = position === undefined ? '' : `&after=${position}`;
      source = new EventSource(`/v2/messages/stream?${key}${after}`);
      source.addEventListener('ready', (event) => {
        const isBeginning = position === undefined;
        position = event.lastEventId || position;
        isReady = true;
        setState('live');
        if (isBeginning) listeners.current.onBegin?.();
      });
      for (const name of ['created', 'updated', 'removed']) source.addEventListener(name, hear);
      source.addEventListener('error', () => {
        setState('connecting');
        checkServer();
        // A connection that broke is taken up again by the browser; one that was refused is not.
        if (source?.readyState !== EventSource.CLOSED) return;
        // A position that was never taken is one of another database: the demo makes a new one at each start.
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
    // By then the browser may wait long until it tries again.
    const unwatch = onServerBack(() => {
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
