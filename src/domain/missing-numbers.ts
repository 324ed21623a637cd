/** Which numbers of a counter the records lack. */

/** Both ends included, uint64 in decimal. */
export interface NumberRun {
  readonly from: string;
  readonly to: string;
}

export interface MissingNumbers {
  readonly count: bigint;
  readonly lowest: bigint;
  readonly highest: bigint;
  /** All of them, the lowest first. */
  readonly ranges: readonly NumberRun[];
}

/**
 * Undefined where none is missing. Without `isWhole` (indexing starts at a configured block) nothing is expected below
 * the first number that is there; without any number, nothing is expected.
 *
 * @param runs the numbers that are there, the lowest first, without overlaps
 */
export function missingNumbers(
  runs: readonly NumberRun[],
  { lastNumber, isWhole }: { readonly lastNumber: string; readonly isWhole: boolean },
): MissingNumbers | undefined {
  const last = BigInt(lastNumber);
  let next = isWhole ? 1n : BigInt(runs[0]?.from ?? last + 1n);
  const missing: { readonly from: bigint; readonly to: bigint }[] = [];
  for (const { from, to } of runs) {
    const end = BigInt(from) - 1n;
    missing.push({ from: next, to: end < last ? end : last });
    const after = BigInt(to) + 1n;
    if (after > next) next = after;
  }
  missing.push({ from: next, to: last });
  const ranges = missing.filter(({ from, to }) => from <= to);
  const [lowest, highest] = [ranges[0]?.from, ranges.at(-1)?.to];
  if (lowest === undefined || highest === undefined) return undefined;
  return {
    count: ranges.reduce((sum, { from, to }) => sum + to - from + 1n, 0n),
    lowest,
    highest,
    ranges: ranges.map(({ from, to }) => ({ from: from.toString(), to: to.toString() })),
  };
}
