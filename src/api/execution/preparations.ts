/**
 * Cache of prepared executions: single-flight for each message, valid for seconds and while the record is the same. A large
 * batch takes a second of CPU time to hash, and a visitor asks for the diagnosis, the transaction and several gas limits.
 */
import { type Preparation, prepareExecution } from './execution-preparation.ts';

export interface Preparations {
  /** @param digits of the message id */
  prepare(digits: string): Promise<Preparation>;
}

interface Entry {
  readonly record: string;
  readonly preparation: Promise<Preparation>;
  readonly bytes: number;
  /** On the clock of performance.now(); infinite while it is under way. */
  validUntil: number;
}

/** A reorganisation can replace the root of a message without a change of its record. */
const TTL_MS = 10_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** A preparation for each character of its record, which holds all of the message: parsed, encoded, and the text itself. */
const BYTES_PER_CHARACTER = 6;

export function createPreparations(
  store: Parameters<typeof prepareExecution>[0],
  ttlMs = TTL_MS,
): Preparations {
  const entries = new Map<string, Entry>();
  let bytes = 0;

  const remove = (digits: string, entry: Entry | undefined) => {
    if (entry === undefined || entries.get(digits) !== entry) return;
    entries.delete(digits);
    bytes -= entry.bytes;
  };

  const add = (digits: string, record: string): Entry => {
    const entry: Entry = {
      record,
      preparation: prepareExecution(store, digits),
      bytes: BYTES_PER_CHARACTER * record.length,
      validUntil: Number.POSITIVE_INFINITY,
    };
    remove(digits, entries.get(digits));
    entries.set(digits, entry);
    bytes += entry.bytes;
    for (const [oldest, other] of entries) {
      if (bytes <= MAX_BYTES) break;
      remove(oldest, other);
    }
    entry.preparation.then(
      ({ kind }) => {
        // What prevents an execution may change at any moment, and is quick to find.
        if (kind === 'ready') entry.validUntil = performance.now() + ttlMs;
        else remove(digits, entry);
      },
      () => remove(digits, entry),
    );
    return entry;
  };

  return {
    async prepare(digits) {
      const { record } = (await store.findMessage(digits)) ?? {};
      // It says that the message is not known.
      if (record === undefined) return prepareExecution(store, digits);
      const known = entries.get(digits);
      const isCurrent = known?.record === record && known.validUntil > performance.now();
      return (isCurrent ? known : add(digits, record)).preparation;
    },
  };
}
