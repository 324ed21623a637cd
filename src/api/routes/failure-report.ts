/**
 * The reasons of failed messages, in groups: a cache of one pass over the newest failed messages. Return data is decoded here
 * and not when it is stored, so that better tables of errors and new ABIs of the operator apply to every message. One pass
 * serves every window and every lane; it is repeated when the store has changed, but not more often than every `maxAgeMs`.
 */
import { setImmediate } from 'node:timers/promises';
import { type ExecutionTerms, reasonOfDetails } from '../../domain/attempts.ts';
import { type GroupedReason, type ReasonGroup, reasonGroup } from '../../domain/failures/failure-reason.ts';
import type { FailedMessage, LaneNetworks } from '../../store/query/failed-messages.ts';
import { createSharedRun } from '../../store/reads/reads.ts';
import type { Store } from '../../store/store.ts';

export interface GroupedFailure extends Omit<FailedMessage, 'details'> {
  readonly group: ReasonGroup;
}

export interface FailureReport {
  /** Newest first. */
  readonly failures: readonly GroupedFailure[];
  /** Whether there are older failed messages that were not read. */
  readonly isTruncated: boolean;
  readonly lanes: ReadonlyMap<string, LaneNetworks>;
  /** Milliseconds since 1970. */
  readonly madeAt: number;
}

export type FailureReports = ReturnType<typeof createFailureReports>;

/** The newest failed messages that a pass reads. */
export const MAX_FAILURES = 5_000;
const DEFAULT_MAX_AGE_MS = 15_000;
const unknownTerms: ExecutionTerms = { gasLimit: undefined, version: null };
/** So that decoding, some microseconds a message, does not hold up other requests. */
const MESSAGES_PER_TURN = 250;

export function createFailureReports(
  store: Pick<Store, 'failedMessages' | 'executionTerms' | 'laneNetworks' | 'version'>,
  maxAgeMs = DEFAULT_MAX_AGE_MS,
) {
  let latest: { readonly report: FailureReport; readonly version: string | undefined } | undefined;

  /** Concurrent callers share one pass. */
  const make = createSharedRun(async (): Promise<FailureReport> => {
    const madeAt = Date.now();
    // Read before the messages: a write in between makes the next call read again.
    const version = await store.version();
    const found = await store.failedMessages(MAX_FAILURES + 1);
    const report = {
      failures: await groupFailures(found.slice(0, MAX_FAILURES), store),
      isTruncated: found.length > MAX_FAILURES,
      lanes: await store.laneNetworks(),
      madeAt,
    };
    latest = { report, version };
    return report;
  });

  const isCurrent = async (): Promise<boolean> => {
    if (!latest) return false;
    if (Date.now() - latest.report.madeAt < maxAgeMs) return true;
    return latest.version !== undefined && (await store.version()) === latest.version;
  };

  return {
    get: async (): Promise<FailureReport> => (latest && (await isCurrent()) ? latest.report : make()),
  };
}

async function groupFailures(messages: readonly FailedMessage[], store: Pick<Store, 'executionTerms'>) {
  const reasons = new Map<FailedMessage, GroupedReason | null>();
  for (const [index, message] of messages.entries()) {
    if (message.details) reasons.set(message, reasonOfDetails(message.details, unknownTerms));
    if (index % MESSAGES_PER_TURN === 0) await setImmediate();
  }
  // Whether it ran out of gas depends on the limit, and who speaks on the version. Only the record has them.
  const undecided = [...reasons].flatMap(([message, reason]) => {
    const isUndecided =
      (reason?.code === 'out-of-gas' && message.details?.gasUsed !== null) || reason?.saidBy === 'unknown';
    return isUndecided && message.details ? [{ message, details: message.details }] : [];
  });
  if (undecided.length > 0) {
    const terms = await store.executionTerms(undecided.map(({ message }) => message.messageId));
    for (const { message, details } of undecided)
      reasons.set(message, reasonOfDetails(details, terms.get(message.messageId) ?? unknownTerms));
  }
  // Messages share the object of their group, so that thousands of them cost little memory.
  const groups = new Map<string, ReasonGroup>();
  return messages.map((message) => {
    const { details: _, ...failure } = message;
    const group = reasonGroup(reasons.get(message) ?? null);
    const shared = groups.get(group.key) ?? group;
    groups.set(group.key, shared);
    return { ...failure, group: shared };
  });
}
