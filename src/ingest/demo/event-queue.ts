/** The event queue of the discrete-event simulation: a priority queue by time. */
import type { Fact } from '../../domain/facts.ts';

/** Runs at its time and returns its facts. */
export type SimulatedEvent = () => Fact | readonly Fact[] | undefined;

interface Entry {
  readonly at: number;
  readonly minedAt: number;
  readonly event: SimulatedEvent;
}

/** A sorted list: only events of messages in flight are in it, and most are added near its end. */
export function createEventQueue() {
  /** The latest first, so that the earliest is taken from the end. */
  const entries: Entry[] = [];
  return {
    /** Events of the same time run in the order in which they were added. */
    add(at: number, minedAt: number, event: SimulatedEvent): void {
      let low = 0;
      let high = entries.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        const other = entries[middle];
        if (other && (other.at - at || other.minedAt - minedAt) > 0) low = middle + 1;
        else high = middle;
      }
      entries.splice(low, 0, { at, minedAt, event });
    },

    /** Removes the earliest event, unless it is later than `time`. */
    nextUntil(time: number): SimulatedEvent | undefined {
      const earliest = entries.at(-1);
      return earliest && earliest.at <= time ? entries.pop()?.event : undefined;
    },
  };
}
