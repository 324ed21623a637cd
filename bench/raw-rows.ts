/**
 * Are raw rows worth the patches of the driver?
 *
 * Two processes search the same pages of the same database through the store: one with raw rows, one with the rows of the
 * driver alone. They take turns in one run, so that whatever else the machine does falls on both. What counts is
 * the ratio of CPU time, which hardly depends on other load. HTTP is not part of it.
 *
 *     npm run bench:raw-rows              # 10,000 messages; a minute or two
 *
 * A result is kept for each architecture: bench/results/raw-rows-arm64.json, raw-rows-x64.json.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { startWorker } from './child.ts';
import { shareInUse } from './cpu.ts';
import { clusterOf, openDatabase } from './data/database.ts';
import { median } from './interleave.ts';
import type { RawRowsOrder, RawRowsReport } from './raw-rows-worker.ts';
import { machineFacts, measuredOn, writeResults } from './results-file.ts';

const MESSAGES = 10_000;
const ROUNDS = 14;
/** They do not count. */
const WARM_UP_ROUNDS = 2;
const IN_FLIGHT = 16;
/** Pages of so many rows, and how many of them make a turn of about a second. */
const TURNS = [
  { rows: 1, searches: 4_000 },
  { rows: 20, searches: 2_000 },
  { rows: 100, searches: 500 },
] as const;
/** Raw rows stay while they save more than this share of the CPU time of a search of `DECIDING_ROWS`. */
const WORTH_IT = 0.1;
const DECIDING_ROWS = 20;
/** As `bin/lanescan` and `serve` start Node. */
const NODE_ARGS = ['--min-semi-space-size=32', '--max-semi-space-size=32', '--heap-growing-percent=200'];

interface Standing {
  readonly rows: number;
  readonly raw: Figures;
  readonly driver: Figures;
  /** Raw rows beside rows of the driver, round by round, and of these the median. */
  readonly cpuRatio: number;
  readonly wallRatio: number;
}

/** Medians over all rounds. */
interface Figures {
  readonly cpuUs: number;
  readonly wallUs: number;
}

const usedByOthers = await shareInUse();
const dataFolder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'));
const embedded = await openEmbedded({ dataFolder });
const start = (rawRows: boolean) => ({
  rawRows,
  worker: startWorker<RawRowsOrder, RawRowsReport>('./raw-rows-worker.ts', { nodeArgs: NODE_ARGS }),
});
type Subject = ReturnType<typeof start>;
const [raw, driver] = [start(true), start(false)];
try {
  const { url } = await openDatabase(clusterOf(embedded), MESSAGES);
  /** Who begins alternates. */
  const turn = async (
    round: number,
    order: Pick<RawRowsOrder, 'rows' | 'searches' | 'seed' | 'isCheck'>,
  ): Promise<readonly [raw: RawRowsReport, driver: RawRowsReport]> => {
    const ask = ({ worker, rawRows }: Subject) =>
      worker.run({ url, rawRows, messages: MESSAGES, inFlight: IN_FLIGHT, ...order });
    if (round % 2 === 0) {
      const first = await ask(raw);
      return [first, await ask(driver)];
    }
    const first = await ask(driver);
    return [await ask(raw), first];
  };
  for (const { rows } of TURNS) {
    const [one, other] = await turn(0, { rows, searches: 100, seed: 1, isCheck: true });
    if (one.hash !== other.hash) throw new Error(`Pages of ${rows} rows differ`);
  }
  const standings: Standing[] = [];
  let rssMb: readonly number[] = [];
  for (const { rows, searches } of TURNS) {
    const rounds: (readonly [raw: RawRowsReport, driver: RawRowsReport])[] = [];
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
      const seed = (round + WARM_UP_ROUNDS) * searches;
      const [one, other] = await turn(round, { rows, searches, seed, isCheck: false });
      if (one.bytes !== other.bytes) throw new Error(`Pages of ${rows} rows differ`);
      if (round >= 0) rounds.push([one, other]);
      rssMb = [one.rssMb, other.rssMb].map(Math.round);
    }
    standings.push(standingOf(rows, rounds));
  }
  report(standings, rssMb);
} finally {
  for (const { worker } of [raw, driver]) await worker.stop();
  await embedded.leave();
  await rm(dataFolder, { recursive: true, force: true });
}

function standingOf(
  rows: number,
  rounds: readonly (readonly [raw: RawRowsReport, driver: RawRowsReport])[],
): Standing {
  const figuresOf = (reports: readonly RawRowsReport[]): Figures => ({
    cpuUs: Math.round(median(reports.map(({ cpuUs }) => cpuUs))),
    wallUs: Math.round(median(reports.map(({ wallUs }) => wallUs))),
  });
  const ratioOf = (figure: keyof Figures) =>
    Number(median(rounds.map(([raw, driver]) => raw[figure] / driver[figure])).toFixed(3));
  return {
    rows,
    raw: figuresOf(rounds.map(([raw]) => raw)),
    driver: figuresOf(rounds.map(([, driver]) => driver)),
    cpuRatio: ratioOf('cpuUs'),
    wallRatio: ratioOf('wallUs'),
  };
}

function report(standings: readonly Standing[], rssMb: readonly number[]): void {
  const cells = (...texts: readonly string[]) => console.log(texts.map((text) => text.padStart(14)).join(''));
  cells('rows', 'µs CPU: raw', 'driver', 'ratio', 'µs wall: raw', 'driver', 'ratio');
  for (const { rows, raw, driver, cpuRatio, wallRatio } of standings) {
    const figures = [rows, raw.cpuUs, driver.cpuUs, cpuRatio, raw.wallUs, driver.wallUs, wallRatio];
    cells(...figures.map(String));
  }
  console.log(`Memory of the process at the end: ${rssMb[0]} MB with raw rows, ${rssMb[1]} MB without`);
  const saved = 1 - (standings.find(({ rows }) => rows === DECIDING_ROWS)?.cpuRatio ?? Number.NaN);
  const isWorthIt = saved > WORTH_IT;
  console.log(
    `Raw rows save ${(100 * saved).toFixed(0)} % of the CPU time of a search of ${DECIDING_ROWS} rows: ` +
      `${isWorthIt ? 'worth it' : 'NOT worth it'} (more than ${100 * WORTH_IT} %)`,
  );
  const result = {
    date: measuredOn(),
    machine: { ...machineFacts(), usedByOthers: Number(usedByOthers.toFixed(2)) },
    messages: MESSAGES,
    rounds: ROUNDS,
    inFlight: IN_FLIGHT,
    standings,
    rssMb: { raw: rssMb[0], driver: rssMb[1] },
    savedCpu: Number(saved.toFixed(3)),
    isWorthIt,
  };
  writeResults(`raw-rows-${os.arch()}`, result);
}
