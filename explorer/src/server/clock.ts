/**
 * The server's clock, with a tick every second while the page is visible.
 *
 * Messages carry the times of chains. A computer with a wrong clock would show them in the future, so the offset to the
 * `Date` header of the server's responses is added to the local time.
 */
import { useSyncExternalStore } from 'react';
import { createStore } from './store.ts';

/** `Date` has whole seconds, and a response takes time to arrive: smaller differences are ignored. */
const TOLERANCE_MS = 2_000;

let offsetMs = 0;

export function serverNow(): number {
  return Date.now() + offsetMs;
}

export function setClock(dateHeader: string | null): void {
  const serverTime = dateHeader === null ? Number.NaN : Date.parse(dateHeader);
  if (Number.isNaN(serverTime)) return;
  const difference = serverTime - Date.now();
  if (Math.abs(difference - offsetMs) > TOLERANCE_MS) {
    offsetMs = Math.abs(difference) > TOLERANCE_MS ? difference : 0;
  }
}

const ticks = createStore(0);
function tick(): void {
  if (document.visibilityState === 'visible') ticks.set(ticks.get() + 1);
}
setInterval(tick, 1_000);
document.addEventListener('visibilitychange', tick);

/** A text that depends on the time; rendered again only when it reads differently. */
export function useTimed<T extends string | number | boolean>(read: (now: number) => T): T {
  return useSyncExternalStore(ticks.subscribe, () => read(serverNow()));
}
