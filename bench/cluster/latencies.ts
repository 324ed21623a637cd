/** How long each kind of search takes on one node and on the cluster: one connection, both in turns in the same run. */
import type { Worker } from '../child.ts';
import { startCpuClock } from '../cpu.ts';
import type { BenchDatabase } from '../data/database.ts';
import { median } from '../interleave.ts';
import type { LoadOrder, LoadReport, PlainRequest } from '../load/client.ts';
import {
  type Combinations,
  createRequestSource,
  drawCombinations,
  plainRequest,
  readWorkloads,
  type Workload,
} from '../requests.ts';
import type { Ports } from './equality.ts';

export interface Latency {
  readonly name: string;
  /** Median over the rounds of the p50 of each, in ms. */
  readonly single: number;
  readonly cluster: number;
  readonly ratio: number;
  /** Processor time of a request in ms, of the server and all nodes. It hardly depends on what else the machine does. */
  readonly cpuSingle: number;
  readonly cpuCluster: number;
  readonly cpuRatio: number;
}

/** A server, and the processes that started the servers and databases behind it. */
export interface Side {
  readonly port: number;
  readonly families: readonly number[];
}

export interface LatencyOptions {
  readonly rounds: number;
  /** Requests of one turn. */
  readonly requests: number;
}

interface Search {
  readonly name: string;
  /** Of one turn; both servers get the same. */
  take(count: number): readonly PlainRequest[];
  /** The same request again and again, respelled so that the response cache does not help. */
  readonly isRespelled: boolean;
}

export function workloadSearches(database: BenchDatabase): readonly Search[] {
  return readWorkloads<Workload[]>('searches').map((workload) => {
    const source = createRequestSource(workload, database);
    return {
      name: workload.name,
      take: (count) => source.take(count).map(plainRequest),
      isRespelled: workload.repeats ?? false,
    };
  });
}

export function combinationSearches({ world }: BenchDatabase): readonly Search[] {
  return drawCombinations(readWorkloads<Combinations>('combinations'), world).map(({ name, cast, raw }) => {
    const query = new URLSearchParams(Object.fromEntries(raw));
    const request = { path: `/v2/messages?${query}` };
    return { name: `${name} (${cast})`, take: () => [request], isRespelled: true };
  });
}

export async function measureLatencies(
  load: Worker<LoadOrder, LoadReport>,
  servers: Readonly<Record<keyof Ports, Side>>,
  searches: readonly Search[],
  { rounds, requests }: LatencyOptions,
): Promise<readonly Latency[]> {
  const latencies: Latency[] = [];
  for (const { name, take, isRespelled } of searches) {
    const p50s = { single: [] as number[], cluster: [] as number[] };
    const cpuMs = { single: 0, cluster: 0 };
    // The first round is a warm-up and does not count.
    for (let round = 0; round <= rounds; round++) {
      const taken = take(requests);
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const { port, families } = servers[side];
        const clock = startCpuClock(
          Object.fromEntries(families.map((family) => [String(family), { family }])),
        );
        const { latency } = await load.run({
          port,
          requests: taken,
          from: 0,
          connections: 1,
          count: requests,
          check: 'status',
          isRespelled,
        });
        if (round === 0) continue;
        p50s[side].push(latency.p50);
        cpuMs[side] += Object.values(clock.stop()).reduce((sum, time) => sum + time / 1_000, 0);
      }
    }
    const [single, cluster] = [median(p50s.single), median(p50s.cluster)];
    const [cpuSingle, cpuCluster] = sides.map((side) => cpuMs[side] / (rounds * requests)) as [
      number,
      number,
    ];
    latencies.push({
      name,
      single,
      cluster,
      ratio: cluster / single,
      cpuSingle,
      cpuCluster,
      cpuRatio: cpuCluster / cpuSingle,
    });
    if (latencies.length % 50 === 0) console.error(`  ${latencies.length} of ${searches.length}`);
  }
  return latencies;
}

const sides = ['single', 'cluster'] as const;
