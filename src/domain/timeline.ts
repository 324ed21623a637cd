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
  /** Milliseconds until the next stage began; null for the last one and where a time is not known. */
  readonly dwellMs: number | null;
}

type Reached = Omit<Stage, 'dwellMs'>;

/** The stages of a folded message in order of time. Failed attempts are stages of their own. */
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
    case 'Executed':
      return [seenStage(fact.success ? 'SUCCESS' : 'FAILED', fact.seen)];
    case 'Sent':
    case 'Snapshot':
    case 'VerifierCompleted':
    case 'ManualExecutionOpened':
      return [];
  }
}

/** Verified is the moment of the last completion that was needed. */
function verifiedStage({ version, verifiers }: Message, facts: readonly Fact[]): Reached | undefined {
  if (!usesVerifiers(version) || !verifiers || verifiers.items.length === 0) return undefined;
  const completions = facts
    .filter((fact) => fact.kind === 'VerifierCompleted')
    .sort((a, b) => (a.seen.at < b.seen.at ? -1 : a.seen.at > b.seen.at ? 1 : 0));
  const done = new Set<string>();
  for (const { verifier, seen } of completions) {
    done.add(verifier);
    const missing = verifiers.items.some((item) => item.isRequired && !done.has(item.sourceAddress));
    const optional = verifiers.items.filter((item) => !item.isRequired && done.has(item.sourceAddress));
    if (!missing && optional.length >= verifiers.optionalThreshold) return seenStage('VERIFIED', seen);
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
    if (!before || (stage.at ?? '') < (before.at ?? '')) kept.set(key, stage);
  }
  return [...kept.values()];
}

/** By time; stages of one moment, and those of unknown time, by how far along they are. */
function compareStages(a: Reached, b: Reached): number {
  if (a.at !== null && b.at !== null && a.at !== b.at) return a.at < b.at ? -1 : 1;
  return statusRank(a.status) - statusRank(b.status);
}

function dwell(stage: Reached, next: Reached | undefined): number | null {
  return stage.at === null || !next || next.at === null ? null : Date.parse(next.at) - Date.parse(stage.at);
}
