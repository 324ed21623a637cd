/** Workloads over HTTP beside the limits of HTTP and of the database. */
import { searchSql } from '../../src/store/query/search.ts';
import { renderSql } from '../../src/store/sql.ts';
import { startCpuClock } from '../cpu.ts';
import type { BenchDatabase } from '../data/database.ts';
import { interleave, ratioOf, type Standing, type Subject, type Turn } from '../interleave.ts';
import type { LoadOrder, LoadReport } from '../load/client.ts';
import { hasPgbench, runPgbench } from '../references/pgbench.ts';
import {
  createRequestSource,
  drawRequests,
  type Goal,
  plainRequest,
  type SearchRequest,
  type Workload,
} from '../requests.ts';
import type { Listening, Rig, RunSettings } from '../rig.ts';
import type { RunningServer } from '../server.ts';
import { checkAnswer, compareWithOracle } from './answers.ts';

/** Requests drawn for a second of the first turn. Where they are answered sooner, the turn ends, and the next ones have more. */
const DISTINCT_A_SECOND = 6_000;
const CLOSE_LOOKS = 40;
const ORACLE_LOOKS = 8;
/** pgbench counts whole scripts: few statements, so that one ends well within a turn. */
const PGBENCH_SCRIPT = 20;

export interface SearchResult {
  readonly workload: string;
  readonly size: number;
  readonly goals: readonly Goal[];
  readonly standings: readonly Standing[];
  readonly answerBytes: number;
  /** Ours beside the others, round by round. */
  readonly ratios: Readonly<Record<string, number>>;
  readonly looks: { readonly close: number; readonly oracle: number };
}

const requestsOfTurn = ({ seconds }: RunSettings) => Math.ceil(DISTINCT_A_SECOND * seconds);

/** About how many requests a workload takes: all turns, and one to get warm. */
export const requestsOf = (settings: RunSettings) => requestsOfTurn(settings) * (settings.rounds + 1);

export async function measureSearch(
  rig: Rig,
  server: RunningServer,
  database: BenchDatabase,
  workload: Workload,
): Promise<SearchResult> {
  const { settings } = rig;
  const { seconds, rounds, connections } = settings;
  let perTurn = requestsOfTurn(settings);
  const source = createRequestSource(workload, database);
  const turns: SearchRequest[][] = [];
  /** The same for all subjects of a round; no request is in two rounds. */
  const requestsOfRound = (round: number): readonly SearchRequest[] => {
    turns[round] ??= source.take(perTurn);
    return turns[round];
  };
  const statementsOfRound = (round: number) =>
    requestsOfRound(round).map(({ search }) => renderSql(searchSql(search)));
  const [probe] = requestsOfRound(0);
  if (!probe) throw new Error(`${workload.name} has no requests`);
  const { bytes: answerBytes } = await rig.load.run({
    port: server.port,
    requests: [{ path: probe.path }],
    from: 0,
    connections: 1,
    count: 1,
    check: 'status',
  });
  const looks = { close: 0, oracle: 0 };
  const oracle = await rig.client(database.url);

  const fixedAnswers = (name: string, { port, pid }: Listening): Subject => ({
    name,
    async turn() {
      const report = await loadTurn(
        rig,
        { server: { family: pid } },
        {
          port,
          requests: [{ path: `/fixed?bytes=${answerBytes}` }],
          from: 0,
          connections,
          seconds,
          check: 'same',
        },
      );
      return report.turn;
    },
  });
  const subjects: Subject[] = [
    {
      name: 'lanescan',
      async turn(round) {
        const turnOf = requestsOfRound(round);
        const report = await loadTurn(
          rig,
          { server: { family: server.pid }, database: { family: rig.postmaster } },
          {
            port: server.port,
            requests: turnOf.map(plainRequest),
            from: 0,
            connections,
            seconds,
            // A request that was asked before would be answered from the response cache.
            ...(!workload.repeats && { count: turnOf.length }),
            check: workload.repeats ? 'same' : workload.path === 'message' ? 'status' : 'page',
            keepEvery: 100,
          },
        );
        // For a turn of full length next time.
        if (report.requests >= turnOf.length) perTurn = Math.max(perTurn, 2 * turnOf.length);
        for (const { index, body } of report.kept.slice(0, CLOSE_LOOKS)) {
          const request = turnOf[index];
          if (!request) continue;
          checkAnswer(request, body);
          looks.close++;
          if (looks.oracle >= ORACLE_LOOKS) continue;
          await compareWithOracle(oracle, request, body);
          looks.oracle++;
        }
        return report.turn;
      },
    },
    fixedAnswers('HTTP limit', await rig.serverLimit(database.url)),
    fixedAnswers('framework alone', await rig.httpLimit()),
    ...[false, true].map((isPrepared) => ({
      name: isPrepared ? 'database limit, prepared' : 'database limit',
      async turn(round: number) {
        const clock = startCpuClock({ client: rig.driver.pid, database: { family: rig.postmaster } });
        const report = await rig.driver.run({
          url: database.url,
          statements: statementsOfRound(round),
          from: 0,
          connections,
          seconds,
          isPrepared,
        });
        return { rate: report.requests / report.seconds, cpu: each(clock.stop(), report.requests) };
      },
    })),
  ];
  if (workload.goals?.includes('limit') && (await hasPgbench())) {
    subjects.push({
      name: 'pgbench',
      async turn(round) {
        const rate = await runPgbench({
          cluster: rig.cluster,
          database: database.name,
          statements: statementsOfRound(round).slice(0, PGBENCH_SCRIPT),
          connections,
          seconds: Math.max(1, Math.round(seconds)),
          scriptFile: `${settings.dataFolder}/pgbench.sql`,
        });
        return { rate };
      },
    });
  }
  const standings = await interleave(subjects, rounds);
  const ours = standings.get('lanescan');
  const ratios = Object.fromEntries(
    [...standings.values()].flatMap((other) => {
      const ratio = other.name === 'lanescan' ? undefined : ratioOf(ours, other);
      return ratio === undefined ? [] : [[other.name, ratio]];
    }),
  );
  return {
    workload: workload.name,
    size: database.size,
    goals: workload.goals ?? [],
    standings: [...standings.values()],
    answerBytes,
    ratios,
    looks,
  };
}

/** A turn of the load generator, with the processor time of all that take part. */
export async function loadTurn(
  rig: Rig,
  processes: Parameters<typeof startCpuClock>[0],
  order: LoadOrder,
): Promise<LoadReport & { readonly turn: Turn }> {
  const clock = startCpuClock({ client: rig.load.pid, ...processes });
  const report = await rig.load.run(order);
  const { requests, shed, seconds, latency } = report;
  const turn = {
    rate: requests / seconds,
    shed: shed / (requests + shed),
    p50: latency.p50,
    p99: latency.p99,
    cpu: each(clock.stop(), requests),
  };
  return { ...report, turn };
}

function each(cpu: Readonly<Record<string, number>>, requests: number): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(cpu).map(([name, time]) => [name, time / requests]));
}

export async function warmUp(
  rig: Rig,
  port: number,
  database: BenchDatabase,
  processes = rig.settings.processes,
): Promise<void> {
  const count = rig.settings.warmUp * processes;
  const workloads: readonly Workload[] = [
    { name: 'warm-up, newest', start: 'anywhere' },
    { name: 'warm-up, sender', filters: { sender: 'ordinary' } },
  ];
  const requests = workloads.flatMap((workload) =>
    drawRequests(workload, database, count / workloads.length),
  );
  await rig.load.run({
    port,
    requests: requests.map(({ path }) => ({ path })),
    from: 0,
    connections: rig.settings.connections,
    count,
    check: 'page',
  });
}
