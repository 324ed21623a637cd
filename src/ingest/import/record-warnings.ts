/** Counts what records of a source had beyond the contract, or lacked of it. */
import type { Snapshot } from '../../domain/facts.ts';
import type { Message } from '../../domain/message.ts';
import type { ParserRemarks } from '../../domain/records/message-parser.ts';

/** Remarks of one kind that are counted. A bound, because an input could have a new name on each line. */
const MAX_REMARKS = 100;

export interface RecordWarnings {
  /** Members that the contract does not define, with how often they were kept. */
  readonly kept: ReadonlyMap<string, number>;
  /** Members that could not be kept. */
  readonly ignored: ReadonlyMap<string, number>;
  /** Values that are unknown here, each with what is shown instead. */
  readonly unknown: ReadonlyMap<string, number>;
  /** Records of which members had to be derived. */
  readonly incomplete: number;
}

/** @param onUnknown called once for each unknown value */
export function createWarningCounter(onUnknown?: (value: string) => void) {
  const kept = new Map<string, number>();
  const ignored = new Map<string, number>();
  const unknown = new Map<string, number>();
  const warnings = { kept, ignored, unknown, incomplete: 0 };
  const count = (counts: Map<string, number>, names: readonly string[], onNew?: (name: string) => void) => {
    for (const name of names) {
      const times = counts.get(name);
      if (times === undefined && counts.size >= MAX_REMARKS) continue;
      if (times === undefined) onNew?.(name);
      counts.set(name, (times ?? 0) + 1);
    }
  };
  return {
    warnings,
    add(found: ParserRemarks): void {
      count(kept, found.kept);
      count(ignored, found.ignored);
      count(unknown, found.unknown, onUnknown);
      if (found.derived.length > 0) warnings.incomplete++;
    },
  };
}

export function snapshotOf(parsed: { readonly message: Message } & ParserRemarks): Snapshot {
  const { message, derived } = parsed;
  return { kind: 'Snapshot', message, ...(derived.length > 0 && { derived }) };
}
