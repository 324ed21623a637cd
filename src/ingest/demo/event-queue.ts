/** The event queue of the discrete-event simulation: a priority queue by time. */
import type { Fact } from '../../domain/facts.ts';

/** Runs at its time and returns at most one fact, so that batches of any size are exact. */
export type SimulatedEvent = () => Fact | readonly Fact[] | undefined;

interface Entry {
  readonly at: number;
  readonly minedAt: number;
  /** Events of the same time run in the order in which they were added. */
  readonly order: number;
  readonly event: SimulatedEvent;
}

export interface EventQueue {
  add(at: number, minedAt: number, event: SimulatedEvent): void;
  /** Removes the earliest event, unless it is later than `time`. */
  nextUntil(time: number): SimulatedEvent | undefined;
}

/** A binary heap, earliest first. */
export function createEventQueue(): EventQueue {
  const heap: Entry[] = [];
  let added = 0;

  const siftDown = (entry: Entry) => {
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      if (left === undefined) break;
      const takeRight = right !== undefined && isBefore(right, left);
      const smaller = takeRight ? right : left;
      if (isBefore(entry, smaller)) break;
      heap[index] = smaller;
      index = 2 * index + (takeRight ? 2 : 1);
    }
    heap[index] = entry;
  };

  return {
    add(at, minedAt, event) {
      const entry = { at, minedAt, order: added++, event };
      let index = heap.length;
      while (index > 0) {
        const parent = (index - 1) >> 1;
        const above = heap[parent];
        if (above === undefined || isBefore(above, entry)) break;
        heap[index] = above;
        index = parent;
      }
      heap[index] = entry;
    },

    nextUntil(time) {
      const earliest = heap[0];
      if (earliest === undefined || earliest.at > time) return undefined;
      const last = heap.pop();
      if (last !== undefined && heap.length > 0) siftDown(last);
      return earliest.event;
    },
  };
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at !== b.at ? a.at < b.at : a.minedAt !== b.minedAt ? a.minedAt < b.minedAt : a.order < b.order;
}
