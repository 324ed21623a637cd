/** What is to happen in the simulated world, and when. */
import type { Fact } from '../../domain/facts.ts';

/** Something that happens at its time; at most one fact comes of it, so that any batch size is exact. */
export type Happening = () => Fact | undefined;

interface Entry {
  readonly at: number;
  readonly minedAt: number;
  /** What was planned first happens first. */
  readonly order: number;
  readonly happen: Happening;
}

/** What is to happen, soonest first: a binary heap. */
export class Agenda {
  private readonly heap: Entry[] = [];
  private added = 0;

  add(at: number, minedAt: number, happen: Happening): void {
    const heap = this.heap;
    const entry = { at, minedAt, order: this.added++, happen };
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, entry)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  /** Takes off the soonest, unless it lies after `time`. */
  nextUntil(time: number): Happening | undefined {
    const heap = this.heap;
    const soonest = heap[0];
    if (soonest === undefined || soonest.at > time) return undefined;
    const last = heap.pop();
    if (last !== undefined && heap.length > 0) this.sinkFromTop(last);
    return soonest.happen;
  }

  private sinkFromTop(entry: Entry): void {
    const heap = this.heap;
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
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at !== b.at ? a.at < b.at : a.minedAt !== b.minedAt ? a.minedAt < b.minedAt : a.order < b.order;
}
