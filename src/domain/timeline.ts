/**
 * The way a message has come: every status it reached, when and where, and how long it stayed.
 *
 * Derived from the facts like the record itself, so that a message whose facts came all at once, or in the
 * wrong order, has the same timeline as one that was watched live.
 */
import type { Fact, Observation } from './facts.ts';
import { type Status, statusRank, usesVerifiers } from './lifecycle.ts';
import type { Message } from './message.ts';

export interface Stage {
  readonly status: Status;
  /** ISO 8601; null where only a snapshot knows of the stage and none says when it began. */
  readonly at: string | null;
  /** Chain selector; null where nobody told. */
  readonly network: string | null;
  readonly blockNumber: number | null;
  readonly transactionHash: string | null;
  /**
   * Milliseconds until the next stage began; null for the last one and where a time is not known. 0 where the
   * clocks of two chains disagree about what came first.
   */
  readonly dwellMs: number | null;
}

type Reached = Omit<Stage, 'dwellMs'>;

/** The stages of a folded message, in their order. Failed attempts are stages of their own. */
export function timeline(message: Message, facts: readonly Fact[]): readonly Stage[] {
  const reached = [sentStage(message), ...facts.flatMap((fact) => stageOf(fact, message))];
  const verified = verifiedStage(message, facts);
  if (verified) reached.push(verified);
  if (!reached.some(({ status }) => status === message.status)) reached.push(toldStage(message));

  const ordered = earliestOfEach(reached).sort(compareStages);
  return ordered.map((stage, index) => ({ ...stage, dwellMs: dwell(stage, ordered[index + 1]) }));
}

function sentStage(message: Message): Reached {
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
      return usesVerifiers(version)
        ? [seenStage('SOURCE_FINALIZED', fact.seen), seenStage('VERIFYING', fact.seen)]
        : [seenStage('SOURCE_FINALIZED', fact.seen)];
    case 'Committed':
      return [seenStage('COMMITTED', fact.seen)];
    case 'Blessed':
      return [seenStage('BLESSED', fact.seen)];
    case 'VerifierCompleted':
      return [seenStage('VERIFYING', fact.seen)];
    case 'Executed':
      return [seenStage(fact.success ? 'SUCCESS' : 'FAILED', fact.seen)];
    case 'Sent':
    case 'Snapshot':
    case 'ManualExecutionOpened':
      return [];
  }
}

/** Verified is the moment of the last completion that was needed, whoever told of it. */
function verifiedStage({ version, verifiers }: Message, facts: readonly Fact[]): Reached | undefined {
  if (!usesVerifiers(version) || !verifiers) return undefined;
  const completions = verifiers.items
    .flatMap(({ sourceAddress, verification }) =>
      verification ? [{ verifier: sourceAddress, at: verification.timestamp }] : [],
    )
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const done = new Set<string>();
  for (const { verifier, at } of completions) {
    done.add(verifier);
    const missing = verifiers.items.some((item) => item.isRequired && !done.has(item.sourceAddress));
    const optional = verifiers.items.filter((item) => !item.isRequired && done.has(item.sourceAddress));
    if (missing || optional.length < verifiers.optionalThreshold) continue;
    const fact = facts.find(
      (told) => told.kind === 'VerifierCompleted' && told.verifier === verifier && told.seen.at === at,
    );
    if (fact?.kind === 'VerifierCompleted') return seenStage('VERIFIED', fact.seen);
    return { status: 'VERIFIED', at, network: null, blockNumber: null, transactionHash: null };
  }
  return undefined;
}

/** A status that only a snapshot knows of; executions carry their time in the record. */
function toldStage(message: Message): Reached {
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

/** A stage is entered once, however often it is told; only failing can happen again. */
function earliestOfEach(stages: readonly Reached[]): Reached[] {
  const kept = new Map<string, Reached>();
  for (const stage of stages) {
    const key = stage.status === 'FAILED' ? `FAILED ${stage.transactionHash}` : stage.status;
    const before = kept.get(key);
    if (!before || timeOf(stage) < timeOf(before)) kept.set(key, stage);
  }
  return [...kept.values()];
}

/**
 * By how far along they are, which is the order of cause and effect whatever the chains' clocks say; attempts that
 * failed, by time.
 */
function compareStages(a: Reached, b: Reached): number {
  return statusRank(a.status) - statusRank(b.status) || timeOf(a) - timeOf(b);
}

function timeOf({ at }: Reached): number {
  return at === null ? Number.POSITIVE_INFINITY : Date.parse(at);
}

function dwell(stage: Reached, next: Reached | undefined): number | null {
  if (stage.at === null || !next || next.at === null) return null;
  return Math.max(0, timeOf(next) - timeOf(stage));
}
