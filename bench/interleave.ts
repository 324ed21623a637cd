/** Subjects take turns, again and again, so that whatever else the machine does falls on all of them. */

export interface Turn {
  /** Answers a second. */
  readonly rate: number;
  /** The share of requests that the server shed, from 0 to 1. */
  readonly shed?: number;
  readonly p50?: number;
  readonly p99?: number;
  /** Microseconds of processor for one request, by process. */
  readonly cpu?: Readonly<Record<string, number>>;
}

export interface Subject {
  readonly name: string;
  turn(round: number): Promise<Turn>;
}

export interface Standing extends Turn {
  readonly name: string;
  readonly rates: readonly number[];
}

export async function interleave(
  subjects: readonly Subject[],
  rounds: number,
): Promise<Map<string, Standing>> {
  const turns = new Map<string, Turn[]>(subjects.map(({ name }) => [name, []]));
  // The first round is a warm-up and does not count.
  for (let round = 0; round <= rounds; round++) {
    for (const { name, turn } of subjects) {
      const result = await turn(round);
      if (round > 0) turns.get(name)?.push(result);
    }
  }
  return new Map(
    [...turns].map(([name, results]) => [
      name,
      {
        name,
        rate: median(results.map(({ rate }) => rate)),
        shed: median(results.map(({ shed = 0 }) => shed)),
        p50: median(results.map(({ p50 = 0 }) => p50)),
        p99: median(results.map(({ p99 = 0 }) => p99)),
        cpu: medianCpu(results),
        rates: results.map(({ rate }) => rate),
      },
    ]),
  );
}

/** The ratio of two subjects, round by round, and of these the one in the middle. */
export function ratioOf(one: Standing | undefined, other: Standing | undefined): number | undefined {
  if (!one || !other) return undefined;
  return median(one.rates.map((rate, round) => rate / (other.rates[round] ?? Number.NaN)));
}

/** All processor time of a request, on whichever process. */
export function cpuOf({ cpu = {} }: Turn): number {
  return Object.values(cpu).reduce((sum, part) => sum + part, 0);
}

function medianCpu(turns: readonly Turn[]): Readonly<Record<string, number>> {
  const names = Object.keys(turns[0]?.cpu ?? {});
  return Object.fromEntries(names.map((name) => [name, median(turns.map(({ cpu }) => cpu?.[name] ?? 0))]));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
