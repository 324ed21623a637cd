/** Which numbers of a counter the records lack. */
import type { NumberRun } from '../../../store/ledger/index-ledger.ts';

export interface MissingNumbers {
  readonly count: bigint;
  readonly lowest: bigint;
  readonly highest: bigint;
}

/**
 * Undefined where none is missing. Without `isWhole` (indexing starts at a configured block) nothing is expected below
 * the first number that is there; where there is none at all, nothing is expected.
 *
 * @param runs the numbers that are there, the lowest first, without overlaps
 */
export function missingNumbers(
  runs: readonly NumberRun[],
  { lastNumber, isWhole }: { readonly lastNumber: string; readonly isWhole: boolean },
): MissingNumbers | undefined {
  const last = BigInt(lastNumber);
  let next = isWhole ? 1n : BigInt(runs[0]?.from ?? last + 1n);
  let missing: MissingNumbers | undefined;
  const add = (from: bigint, to: bigint) => {
    if (from > to) return;
    missing = {
      count: (missing?.count ?? 0n) + to - from + 1n,
      lowest: missing?.lowest ?? from,
      highest: to,
    };
  };
  for (const { from, to } of runs) {
    const end = BigInt(from) - 1n;
    add(next, end < last ? end : last);
    const after = BigInt(to) + 1n;
    if (after > next) next = after;
  }
  add(next, last);
  return missing;
}

/** @example rangeWords(1n, 160n) // '1…160' */
export function rangeWords({ lowest, highest }: Pick<MissingNumbers, 'lowest' | 'highest'>): string {
  return lowest === highest ? String(lowest) : `${lowest}…${highest}`;
}
