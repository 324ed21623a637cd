/** Distinct searches of all kinds through the store, one after the other, while another loop writes. */
import type { Store } from '../../src/store/store.ts';
import { median } from '../interleave.ts';
import { type DrawnDatabase, drawRequests, readWorkloads, type Workload } from '../requests.ts';

const SEARCHES_PER_KIND = 10;

export interface SearchTimes {
  readonly searches: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The median of each kind. */
  readonly kindsMs: Readonly<Record<string, number>>;
}

/** @param sent how many messages of the world were sent: parameters are drawn from these */
export async function measureSearches(
  store: Store,
  database: DrawnDatabase,
  sent: number,
): Promise<SearchTimes> {
  const reached = { ...database, size: sent, world: { ...database.world, size: sent } };
  const kinds = readWorkloads<Workload[]>('searches').map(({ name, ...workload }) => {
    const requests = drawRequests({ name, ...workload }, reached, SEARCHES_PER_KIND);
    return { name, searches: requests.map(({ search }) => search) };
  });
  const times = new Map<string, number[]>(kinds.map(({ name }) => [name, []]));
  // Kinds take turns, so that what the writer does meanwhile falls on all of them.
  for (let turn = 0; turn < SEARCHES_PER_KIND; turn++)
    for (const { name, searches } of kinds) {
      const search = searches[turn];
      if (!search) continue;
      const began = performance.now();
      await store.search(search);
      times.get(name)?.push(performance.now() - began);
    }
  const all = [...times.values()].flat().sort((one, other) => one - other);
  return {
    searches: all.length,
    p50Ms: rounded(median(all)),
    p99Ms: rounded(all[Math.ceil(0.99 * all.length) - 1] ?? 0),
    kindsMs: Object.fromEntries([...times].map(([name, list]) => [name, rounded(median(list))])),
  };
}

function rounded(ms: number): number {
  return Number(ms.toFixed(2));
}
