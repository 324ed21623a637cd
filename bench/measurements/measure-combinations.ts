/** Every combination of filters: what PostgreSQL reads for it, and how long it takes over HTTP. */
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import type { BenchDatabase } from '../data/database.ts';
import { median } from '../interleave.ts';
import { type Combinations, drawCombinations, readWorkloads } from '../requests.ts';
import type { Rig } from '../rig.ts';
import type { RunningServer } from '../server.ts';
import { checkAnswer, compareWithOracle } from './answers.ts';
import { type Effort, explain } from './explain.ts';

/** A page of 20 needs 21 rows; three scans that are merged need three times as many, and a token a look-up each. */
export const ROWS_BOUND = 2_000;
/** One that takes so long has shown what it is. */
const SLOW_MS = 300;

export interface CombinationResult extends Effort {
  readonly name: string;
  readonly cast: string;
  readonly p50: number;
  readonly p99: number;
}

export interface CombinationsResult {
  readonly size: number;
  readonly combinations: readonly CombinationResult[];
  readonly medianP99: number;
  readonly worstP99: number;
  readonly mostRowsRead: number;
}

export async function measureCombinations(
  rig: Rig,
  database: BenchDatabase,
  server: RunningServer,
  requests: number,
): Promise<CombinationsResult> {
  const client = await rig.client(database.url);
  const combinations: CombinationResult[] = [];
  for (const { name, cast, raw } of drawCombinations(
    readWorkloads<Combinations>('combinations'),
    database.world,
  )) {
    const search = parseSearch(raw);
    // Twice: the first reads from the disk what the second finds in memory.
    let effort = await explain(client, search);
    if (effort.executionMs < 2_000) effort = await explain(client, search);
    const path = `/v2/messages?${new URLSearchParams(raw.map(([key, value]) => [key, value] as [string, string]))}`;
    let [p50, p99] = [effort.executionMs, effort.executionMs];
    if (!effort.isGivenUp) {
      const report = await rig.load.run({
        port: server.port,
        requests: [{ path }],
        from: 0,
        connections: 1,
        count: effort.executionMs > SLOW_MS ? 3 : requests,
        check: 'same',
        isRespelled: true,
        keepEvery: requests,
      });
      ({ p50, p99 } = report.latency);
      for (const { body } of report.kept) {
        checkAnswer({ path, search }, body);
        await compareWithOracle(client, { path, search }, body);
      }
    }
    combinations.push({ name, cast, ...effort, p50, p99 });
    if (combinations.length % 50 === 0) console.error(`  ${combinations.length} combinations`);
  }
  const p99s = combinations.map(({ p99 }) => p99);
  return {
    size: database.size,
    combinations,
    medianP99: median(p99s),
    worstP99: Math.max(...p99s),
    mostRowsRead: Math.max(...combinations.map(({ rowsRead }) => rowsRead)),
  };
}
