/**
 * Imports records in NDJSON as snapshots.
 *
 * Each batch is one transaction, and applying a snapshot is idempotent: an import that was killed can be repeated. An
 * invalid line is rejected; the others are imported.
 */
import type { Snapshot } from '../../domain/facts.ts';
import type { Message } from '../../domain/message.ts';
import { type ParserRemarks, parseMessage, type RecordProblem } from '../../domain/records/message-parser.ts';
import type { Store } from '../../store/store.ts';
import { decompressed, type Line, readLines } from './lines.ts';

/** The longest line that is read; a real record has a few thousand bytes. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024;
const BATCH_RECORDS = 2_000;
const BATCH_BYTES = 16 * 1024 * 1024;
/** One that the database writes, and one that waits for it. */
const MAX_BATCHES_IN_FLIGHT = 2;

export interface RejectedLine {
  readonly line: number;
  readonly problems: readonly RecordProblem[];
  /** The line; null where it was too long or not text. */
  readonly text: string | null;
}

/** `read`: lines that are not empty. */
const newCounts = () => ({ read: 0, created: 0, updated: 0, unchanged: 0, rejected: 0 });

export type ImportCounts = ReturnType<typeof newCounts>;

export interface ImportReport extends Readonly<ImportCounts> {
  readonly warnings: ReturnType<typeof createWarningCounter>['warnings'];
  readonly interrupted: boolean;
}

/**
 * Reads one input to its end. A stream that breaks (truncated gzip) throws after everything before the break was stored.
 */
export async function importRecords(options: {
  readonly input: AsyncIterable<Buffer>;
  readonly store: Pick<Store, 'apply'>;
  readonly reject: (line: RejectedLine) => Promise<void>;
  /** Called after each batch with the counts so far. */
  readonly progress?: (counts: Readonly<ImportCounts>) => void;
  /** Stops after the batch that is being written. */
  readonly signal?: AbortSignal;
}): Promise<ImportReport> {
  const { input, store, reject, progress, signal } = options;
  const counts = newCounts();
  const { warnings, add: addWarnings } = createWarningCounter();
  let batch: Snapshot[] = [];
  let batchBytes = 0;
  const writing: Promise<void>[] = [];

  const write = async (snapshots: readonly Snapshot[]) => {
    const report = await store.apply(snapshots);
    counts.created += report.created;
    counts.updated += report.updated;
    counts.unchanged += snapshots.length - report.created - report.updated;
    progress?.(counts);
  };
  /** Reading continues while batches are being written (backpressure: at most three batches are in memory). */
  const flush = async () => {
    if (writing.length === MAX_BATCHES_IN_FLIGHT) {
      await writing[0];
      writing.shift();
    }
    const written = write(batch);
    // Awaited later; until then a failure must not count as unhandled.
    written.catch(() => undefined);
    writing.push(written);
    batch = [];
    batchBytes = 0;
  };
  const take = async (line: Line) => {
    counts.read++;
    const outcome = readRecord(line);
    if ('problems' in outcome) {
      counts.rejected++;
      await reject(outcome);
      return;
    }
    addWarnings(outcome.warnings);
    batch.push(outcome.snapshot);
    batchBytes += outcome.bytes;
    if (batch.length >= BATCH_RECORDS || batchBytes >= BATCH_BYTES) await flush();
  };

  try {
    reading: for await (const lines of readLines(decompressed(input), MAX_LINE_BYTES)) {
      for (const line of lines) {
        if (signal?.aborted) break reading;
        await take(line);
      }
    }
  } catch (error) {
    // An interrupted input may end anywhere, also in the middle of gzip; that is not damage.
    if (!signal?.aborted) throw error;
  } finally {
    try {
      if (batch.length > 0) await flush();
    } finally {
      // If one failed, the other must end too before the store is closed.
      await Promise.allSettled(writing);
    }
    await Promise.all(writing);
  }
  return { ...counts, warnings, interrupted: signal?.aborted ?? false };
}

const utf8Decoder = new TextDecoder('utf-8', { fatal: true });

function readRecord(line: Line) {
  const { number } = line;
  const rejected = (problem: string, text: string | null = null): RejectedLine => ({
    line: number,
    problems: [{ path: '$', problem }],
    text,
  });
  if ('tooLong' in line) return rejected(`is ${line.tooLong} bytes long; the maximum is ${MAX_LINE_BYTES}`);
  let text: string;
  try {
    text = utf8Decoder.decode(line.bytes);
  } catch {
    return rejected('is not valid UTF-8');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return rejected(`is not valid JSON: ${(error as Error).message}`, text);
  }
  const parsed = parseMessage(value, Date.now());
  if (!parsed.ok) return { line: number, problems: parsed.problems, text };
  return { snapshot: snapshotOf(parsed), warnings: parsed, bytes: line.bytes.length };
}

// ---- Warnings

/** Remarks of one kind that are counted. A bound, because an input could have a new name on each line. */
const MAX_REMARKS = 100;

/**
 * Counts what records of a source had beyond the contract, or lacked of it.
 *
 * @param onUnknown called once for each unknown value
 */
export function createWarningCounter(onUnknown?: (value: string) => void) {
  const warnings = {
    /** Members that the contract does not define, with how often they were kept. */
    kept: new Map<string, number>(),
    /** Members that could not be kept. */
    ignored: new Map<string, number>(),
    /** Values that are unknown here, each with what is shown instead. */
    unknown: new Map<string, number>(),
    /** Records of which members had to be derived. */
    incomplete: 0,
  };
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
      count(warnings.kept, found.kept);
      count(warnings.ignored, found.ignored);
      count(warnings.unknown, found.unknown, onUnknown);
      if (found.derived.length > 0) warnings.incomplete++;
    },
  };
}

export function snapshotOf(parsed: { readonly message: Message } & ParserRemarks): Snapshot {
  const { message, derived } = parsed;
  return { kind: 'Snapshot', message, ...(derived.length > 0 && { derived }) };
}
