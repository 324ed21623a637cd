/** Ten times the data: one request at a time, the sizes taking turns, and of each the time in the middle. */
import { median } from '../interleave.ts';
import { drawRequests, type Workload } from '../requests.ts';
import type { Rig } from '../rig.ts';
import { type RunningServer, startLanescan } from '../server.ts';
import { warmUp } from './measure-searches.ts';

const TURNS = 5;

export interface GrowthResult {
  readonly workload: string;
  /** Milliseconds by size. */
  readonly medians: Readonly<Record<number, number>>;
  /** From each size to the next. */
  readonly ratios: readonly number[];
}

export async function measureGrowth(
  rig: Rig,
  workloads: readonly Workload[],
  requestsATurn: number,
): Promise<GrowthResult[]> {
  const sizes = [...rig.settings.sizes].sort((a, b) => a - b);
  const servers = new Map<number, RunningServer>();
  try {
    for (const size of sizes) {
      const database = await rig.database(size);
      const server = await startLanescan({
        url: database.url,
        log: rig.logFile(`growth-${size}`),
        processes: rig.settings.processes,
      });
      servers.set(size, server);
      await warmUp(rig, server.port, database);
    }
    const results: GrowthResult[] = [];
    for (const workload of workloads) {
      const times = new Map<number, number[]>(sizes.map((size) => [size, []]));
      // The first turn warms the pages that the others read.
      for (let turn = 0; turn <= TURNS; turn++) {
        for (const [size, { port }] of servers) {
          const database = await rig.database(size);
          const report = await rig.load.run({
            port,
            requests: drawRequests(workload, database, requestsATurn).map(({ path }) => ({ path })),
            from: 0,
            connections: 1,
            count: requestsATurn,
            check: workload.path === 'message' ? 'status' : 'page',
            isRespelled: true,
          });
          if (turn > 0) times.get(size)?.push(report.latency.p50);
        }
      }
      const medians = Object.fromEntries([...times].map(([size, list]) => [size, median(list)]));
      results.push({
        workload: workload.name,
        medians,
        ratios: sizes.slice(1).map((size, index) => {
          const smaller = times.get(sizes[index] ?? 0) ?? [];
          // Turn by turn, so that what else the machine does falls on both.
          return median((times.get(size) ?? []).map((time, turn) => time / (smaller[turn] ?? Number.NaN)));
        }),
      });
    }
    return results;
  } finally {
    await Promise.all([...servers.values()].map((server) => server.stop()));
  }
}
