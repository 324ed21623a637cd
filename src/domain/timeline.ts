/**
 * The timeline of a message: every status it reached, when and where, and how long it stayed.
 *
 * It derives from the facts like the record itself, so a message whose facts arrived at once, or in the wrong order, has
 * the same timeline as one that was indexed live.
 */
import type { Fact, Observation } from './facts.ts';
import { type Status, statusRank, usesVerifiers } from './lifecycle.ts';
import type { Message, Verifiers } from './message.ts';
import { isVerified } from './verification.ts';

export interface Stage {
  readonly status: Status;
  /**
   * ISO 8601; null where the stage is known only from a snapshot without its time, and for finality that was observed
   * only after the next stage.
   */
  readonly at: string | null;
  /** Chain selector; null where it is unknown. */
  readonly network: string | null;
  readonly blockNumber: number | null;
  readonly transactionHash: string | null;
  /**
   * Milliseconds until the next stage began; null for the last one and where a time is unknown. 0 where the clocks of
   * two chains disagree on the order.
   */
  readonly dwellMs: number | null;
}

interface Reached extends Omit<Stage, 'dwellMs'> {
  /** Finality has no event: its time is when it was observed, which may be much later. */
  readonly isObserved?: boolean;
}

/** The stages of a folded message, in order. Failed attempts are separate stages. */
export function timeline(message: Message, facts: readonly Fact[]): readonly Stage[] {
  const reached = [sentStage(message), ...facts.flatMap((fact) => stageOf(fact, message))];
  const verified = verifiedStage(message, facts);
  if (verified) reached.push(verified);
  if (!reached.some(({ status }) => status === message.status)) reached.push(snapshotStage(message));

  const ordered = earliestOfEach(reached)
    // By rank, which is the order of cause and effect whatever the clocks of the chains say; failed attempts by time.
    .sort((a, b) => statusRank(a.status) - statusRank(b.status) || timeOf(a) - timeOf(b))
    .map((stage, index, all) => {
      const isLate = all.slice(index + 1).some((next) => timeOf(next) < timeOf(stage));
      return stage.isObserved && isLate ? { ...stage, at: null } : stage;
    });
  return ordered.map(({ isObserved: _, ...stage }, index) => {
    const next = ordered[index + 1];
    const isKnown = stage.at !== null && next !== undefined && next.at !== null;
    return { ...stage, dwellMs: isKnown ? Math.max(0, timeOf(next) - timeOf(stage)) : null };
  });
}

export function sentStage(message: Message): Reached {
  return {
    status: 'SENT',
    at: message.sendTimestamp,
    network: message.sourceNetworkInfo.chainSelector,
    blockNumber: message.sendBlockNumber,
    transactionHash: message.sendTransactionHash,
  };
}

function stageOf(fact: Fact, { version }: Message): readonly Reached[] {
  switch (fact.kind) {
    case 'SourceFinalized':
      return [
        { ...seenStage('SOURCE_FINALIZED', fact.seen), isObserved: true },
        ...(usesVerifiers(version) ? [{ ...seenStage('VERIFYING', fact.seen), isObserved: true }] : []),
      ];
    case 'Committed':
      return [seenStage('COMMITTED', fact.seen)];
    case 'Blessed':
      return [seenStage('BLESSED', fact.seen)];
    case 'VerifierCompleted':
      return [seenStage('VERIFYING', fact.seen)];
    case 'Executed':
      return [seenStage(fact.success ? 'SUCCESS' : 'FAILED', fact.seen)];
    default:
      return [];
  }
}

/** The stage VERIFIED begins with the last completion that was needed, from any source. */
function verifiedStage(message: Message, facts: readonly Fact[]): Reached | undefined {
  const { version, verifiers } = message;
  if (!usesVerifiers(version) || !verifiers) return undefined;
  const at = verifiers.items
    .flatMap(({ verification }) => verification?.timestamp ?? [])
    .sort((a, b) => Date.parse(a) - Date.parse(b))
    .find((time) => isVerified(asOf(time, verifiers), message));
  if (at === undefined) return undefined;

  const names = new Set(
    verifiers.items
      .filter(({ verification }) => verification?.timestamp === at)
      .flatMap(({ sourceAddress, destAddress }) => [sourceAddress, destAddress]),
  );
  const [seen] = facts
    .flatMap((fact) =>
      fact.kind === 'VerifierCompleted' && fact.seen.at === at && names.has(fact.verifier) ? [fact.seen] : [],
    )
    .sort((a, b) => a.blockNumber - b.blockNumber);
  if (seen) return seenStage('VERIFIED', seen);
  return { status: 'VERIFIED', at, network: null, blockNumber: null, transactionHash: null };
}

function asOf(time: string, verifiers: Verifiers): Verifiers {
  return {
    ...verifiers,
    items: verifiers.items.map((item) =>
      Date.parse(item.verification?.timestamp ?? time) > Date.parse(time)
        ? { ...item, status: 'PENDING', verification: null }
        : item,
    ),
  };
}

/** A status that is known only from a snapshot; for executions the record has the time. */
export function snapshotStage(message: Message): Reached {
  const isExecuted = statusRank(message.status) >= statusRank('FAILED');
  return {
    status: message.status,
    at: isExecuted ? message.receiptTimestamp : null,
    network: isExecuted ? message.destNetworkInfo.chainSelector : null,
    blockNumber: null,
    transactionHash: isExecuted ? message.receiptTransactionHash : null,
  };
}

function seenStage(status: Status, { at, network, blockNumber, transactionHash }: Observation): Reached {
  return { status, at, network, blockNumber, transactionHash };
}

/** Each stage once, also if it was reported repeatedly; only failed attempts can repeat. */
function earliestOfEach(stages: readonly Reached[]): Reached[] {
  const kept = new Map<string, Reached>();
  for (const stage of stages) {
    const key = stage.status === 'FAILED' ? `FAILED ${stage.transactionHash}` : stage.status;
    const before = kept.get(key);
    const isEarlier = !before || timeOf(stage) < timeOf(before);
    // At the same time, an event takes precedence over an observation.
    if (isEarlier || (before.isObserved && timeOf(stage) === timeOf(before))) kept.set(key, stage);
  }
  return [...kept.values()];
}

function timeOf({ at }: Reached): number {
  return at === null ? Number.POSITIVE_INFINITY : Date.parse(at);
}
