/**
 * Which messages of a lane are missing, by what its router counts.
 *
 * Numbers of a lane are unique between two renumberings only. So the messages of each such period are compared by
 * themselves, with the number at its end: the event of the next renumbering has it, or the router's account.
 */
import { missingNumbers } from '../../../domain/missing-numbers.ts';
import type { CheckLedger } from '../../../store/ledger/index-ledger.ts';
import type { Renumbering } from '../decode/renumbering.ts';
import type { ProgramCounter } from './account-counters.ts';

interface Period {
  readonly from: number;
  readonly to: number;
  /** The number before its first message; undefined where it is not known. */
  readonly base: bigint | undefined;
  readonly last: bigint;
}

export interface SentNumbersOptions {
  readonly ledger: Pick<CheckLedger, 'sentRuns' | 'sentRunsBetween'>;
  /** Of this lane, in the order of the chain. */
  readonly renumberings: readonly Renumbering[];
  /** Whether the lane is expected from its first message on. */
  readonly isWhole: boolean;
  readonly startSlot: number;
  readonly finalSlot: number;
}

/** The slots are those between which it is to be looked for; undefined where the numbers tell better. */
export interface MissingMessages {
  readonly count: bigint;
  readonly lowest: bigint;
  readonly highest: bigint;
  readonly slots: { readonly from: number; readonly to: number } | undefined;
}

/** Undefined where nothing is missing. */
export async function missingMessages(
  counter: ProgramCounter,
  options: SentNumbersOptions,
): Promise<MissingMessages | undefined> {
  const { ledger, renumberings, isWhole } = options;
  const { lastNumber } = counter;
  if (renumberings.length === 0) {
    const missing = missingNumbers(await ledger.sentRuns(counter), { lastNumber, isWhole });
    return missing && { ...missing, slots: undefined };
  }
  for (const { from, to, base, last } of periodsOf(BigInt(lastNumber), options)) {
    const runs = await ledger.sentRunsBetween(counter, { from, to });
    const below = base === undefined || base === 0n ? [] : [{ from: '1', to: base.toString() }];
    const missing = missingNumbers([...below, ...runs], {
      lastNumber: last.toString(),
      isWhole: base !== undefined,
    });
    if (missing) return { ...missing, slots: { from, to } };
  }
  return undefined;
}

/** A slot with a renumbering belongs to both sides: lists do not tell which of its transactions came first. */
function periodsOf(
  lastNumber: bigint,
  { renumberings, isWhole, startSlot, finalSlot }: SentNumbersOptions,
): readonly Period[] {
  const periods: Period[] = [];
  let from = startSlot;
  let base: bigint | undefined = isWhole ? 0n : undefined;
  for (const { slot, previous, next } of renumberings) {
    periods.push({ from, to: slot, base, last: previous });
    from = slot;
    base = next;
  }
  periods.push({ from, to: Math.max(from, finalSlot), base, last: lastNumber });
  return periods;
}

/**
 * Whether the router's account tells of a renumbering that was not found: it holds the number that the latest one left.
 */
export function lacksRenumbering(
  { numberLeft }: ProgramCounter,
  renumberings: readonly Renumbering[],
): boolean {
  return numberLeft !== undefined && renumberings.at(-1)?.previous !== numberLeft;
}
