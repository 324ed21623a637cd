/** A value outside of components, which they follow. */
import { useSyncExternalStore } from 'react';

export function createStore<T>(initial: T) {
  const listeners = new Set<() => void>();
  let value = initial;
  /** Returns what ends it. */
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    get: () => value,
    set(next: T): void {
      if (Object.is(value, next)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    subscribe,
    use: () => useSyncExternalStore(subscribe, () => value),
  };
}
