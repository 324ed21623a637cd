/**
 * The fold: from the facts about one message to its record.
 *
 * A record has three parts, each the greatest of its candidates under a total order: what was sent, how far
 * verification is, and the outcome. Greatest-of is idempotent, commutative and associative, hence so is the
 * fold: facts may come in any order, any number of times, and in any grouping.
 */
import type { Executed, Fact, Observation, OutcomeField, SentMessage, VerifierCompleted } from './facts.ts';
import { type Evidence, lifecycle, type Status, statusRank, usesVerifiers } from './lifecycle.ts';
import type { Message, Verifiers } from './message.ts';

type Outcome = Pick<Message, OutcomeField>;

/**
 * The record that the facts about one message amount to, or undefined while nobody has told of its sending
 * (the destination may speak first).
 *
 * Range facts given here must cover the message.
 */
export function foldFacts(facts: readonly Fact[]): Message | undefined {
  const only = facts[0];
  if (facts.length === 1 && only?.kind === 'Snapshot') return only.message;

  const sent = greatest(
    facts.flatMap((fact) => (fact.kind === 'Sent' || fact.kind === 'Snapshot' ? [sendClaim(fact)] : [])),
    compareSendClaims,
  );
  if (!sent) return undefined;

  const verifiers = foldVerifiers(facts);
  const { verifiers: _, ...message } = sent.message;
  return { ...message, verifiers, ...foldOutcome(facts, sent.message, verifiers) };
}

/** Two snapshots of one message amount to this one; the store keeps just the join. */
export function joinSnapshots(one: Message, other: Message): Message {
  return (
    foldFacts([
      { kind: 'Snapshot', message: one },
      { kind: 'Snapshot', message: other },
    ]) ?? one
  );
}

/** What a status rests on: when it came about, and where a chain said so. */
export interface StatusCause {
  readonly at: string;
  readonly network: string;
  readonly blockNumber: number | null;
  readonly transactionHash: string | null;
}

/** The observation behind the status of a folded message; null where only a snapshot knows of it. */
export function statusCause(message: Message, facts: readonly Fact[]): StatusCause | null {
  const witness = greatest(
    facts.filter((fact) => fact.kind !== 'Snapshot').filter((fact) => reaches(fact, message)),
    isLatestWitness(message.status) ? compareTimes : (a, b) => compareTimes(b, a),
  );
  if (witness) {
    const { network, blockNumber, transactionHash, at } = witness.seen;
    return { at, network, blockNumber, transactionHash };
  }
  if (message.receiptTimestamp !== null && statusRank(message.status) >= statusRank('FAILED')) {
    return {
      at: message.receiptTimestamp,
      network: message.destNetworkInfo.chainSelector,
      blockNumber: null,
      transactionHash: message.receiptTransactionHash,
    };
  }
  if (message.status === 'SENT') {
    return {
      at: message.sendTimestamp,
      network: message.sourceNetworkInfo.chainSelector,
      blockNumber: message.sendBlockNumber,
      transactionHash: message.sendTransactionHash,
    };
  }
  return null;
}

function reaches(fact: SeenFact, message: Message): boolean {
  if (fact.kind === 'ManualExecutionOpened') return false;
  if (fact.kind === 'VerifierCompleted' && message.status === 'VERIFIED') return true;
  return lifecycle.SENT[evidenceOf(fact, message.version)] === message.status;
}

/** A status that is reached again (a retry), or by the last of several, is as old as the last of them. */
function isLatestWitness(status: Status): boolean {
  return status === 'FAILED' || status === 'VERIFIED';
}

function compareTimes(a: SeenFact, b: SeenFact): number {
  return compareText(a.seen.at, b.seen.at) || compareObservations(a.seen, b.seen);
}

type SeenFact = Exclude<Fact, { kind: 'Snapshot' }>;

interface SendClaim {
  readonly message: SentMessage;
  /** A chain's own word outranks a snapshot; among a chain's, the later block does (the earlier is an orphan). */
  readonly blockNumber: number;
  readonly knownFields: number;
  readonly text: string;
}

function sendClaim(fact: Extract<Fact, { kind: 'Sent' | 'Snapshot' }>): SendClaim {
  const message = fact.kind === 'Sent' ? fact.message : withoutOutcome(fact.message);
  const { verifiers: _, ...immutable } = message;
  return {
    message,
    blockNumber: fact.kind === 'Sent' ? fact.seen.blockNumber : -1,
    knownFields: Object.values(immutable).filter((value) => value !== null).length,
    text: JSON.stringify(Object.entries(immutable).sort(([a], [b]) => compareText(a, b))),
  };
}

function compareSendClaims(a: SendClaim, b: SendClaim): number {
  return a.blockNumber - b.blockNumber || a.knownFields - b.knownFields || compareText(a.text, b.text);
}

function withoutOutcome(message: Message): SentMessage {
  const { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution, ...sent } =
    message;
  return sent;
}

function foldVerifiers(facts: readonly Fact[]): Verifiers | null {
  const base = greatest(
    facts.flatMap((fact) =>
      (fact.kind === 'Sent' || fact.kind === 'Snapshot') && fact.message.verifiers
        ? [fact.message.verifiers]
        : [],
    ),
    (a, b) =>
      completedCount(a) - completedCount(b) ||
      a.items.length - b.items.length ||
      compareText(JSON.stringify(a), JSON.stringify(b)),
  );
  if (!base) return null;

  const completions = facts.filter((fact) => fact.kind === 'VerifierCompleted');
  if (completions.length === 0) return base;
  return {
    ...base,
    items: base.items.map((item) => {
      if (item.status === 'COMPLETED') return item;
      const completed = greatest(
        completions.filter((fact) => fact.verifier === item.sourceAddress),
        compareCompletions,
      );
      if (!completed) return item;
      return {
        ...item,
        status: 'COMPLETED' as const,
        verification: { data: completed.data, timestamp: completed.seen.at },
      };
    }),
  };
}

function completedCount(verifiers: Verifiers): number {
  return verifiers.items.filter((item) => item.status === 'COMPLETED').length;
}

/** The earliest word counts: a verifier that repeats itself has not verified later. */
function compareCompletions(a: VerifierCompleted, b: VerifierCompleted): number {
  return compareText(b.seen.at, a.seen.at) || compareText(b.data, a.data);
}

/** All required verifiers and enough of the optional ones. */
function isVerified(verifiers: Verifiers | null): boolean {
  if (!verifiers || verifiers.items.length === 0) return false;
  const missing = verifiers.items.some((item) => item.isRequired && item.status !== 'COMPLETED');
  const optional = verifiers.items.filter((item) => !item.isRequired && item.status === 'COMPLETED');
  return !missing && optional.length >= verifiers.optionalThreshold;
}

function foldOutcome(facts: readonly Fact[], sent: SentMessage, verifiers: Verifiers | null): Outcome {
  const told = facts.flatMap((fact) => (fact.kind === 'Snapshot' ? [outcomeOf(fact.message)] : []));
  const seen = facts.some((fact) => fact.kind !== 'Snapshot') ? [seenOutcome(facts, sent, verifiers)] : [];
  return greatest([...told, ...seen], compareOutcomes) ?? waiting('SENT');
}

function outcomeOf(message: Message): Outcome {
  const { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution } = message;
  return { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution };
}

function seenOutcome(facts: readonly Fact[], sent: SentMessage, verifiers: Verifiers | null): Outcome {
  let status: Status = 'SENT';
  for (const fact of facts) status = lifecycle[status][evidenceOf(fact, sent.version)];
  if (usesVerifiers(sent.version) && isVerified(verifiers)) status = lifecycle[status].verified;

  const execution = greatest(
    facts.filter((fact) => fact.kind === 'Executed'),
    compareExecutions,
  );
  if (execution) return executedOutcome(execution, sent);

  const opened = facts.some((fact) => fact.kind === 'ManualExecutionOpened');
  return waiting(status, opened && statusRank(status) >= statusRank('COMMITTED'));
}

function evidenceOf(fact: Fact, version: string | null): Evidence {
  switch (fact.kind) {
    case 'Sent':
    case 'Snapshot':
    case 'ManualExecutionOpened':
      return 'sent';
    case 'SourceFinalized':
      return usesVerifiers(version) ? 'verifying' : 'sourceFinalized';
    case 'Committed':
      return 'committed';
    case 'Blessed':
      return 'blessed';
    case 'VerifierCompleted':
      return 'verifying';
    case 'Executed':
      return fact.success ? 'succeeded' : 'failed';
  }
}

function executedOutcome(execution: Executed, sent: SentMessage): Outcome {
  return {
    status: execution.success ? 'SUCCESS' : 'FAILED',
    receiptTransactionHash: execution.seen.transactionHash,
    receiptTimestamp: execution.seen.at,
    deliveryTime: Date.parse(execution.seen.at) - Date.parse(sent.sendTimestamp),
    readyForManualExecution: !execution.success,
  };
}

function waiting(status: Status, readyForManualExecution = false): Outcome {
  return {
    status,
    receiptTransactionHash: null,
    receiptTimestamp: null,
    deliveryTime: null,
    readyForManualExecution,
  };
}

function compareOutcomes(a: Outcome, b: Outcome): number {
  return (
    statusRank(a.status) - statusRank(b.status) ||
    compareText(a.receiptTimestamp ?? '', b.receiptTimestamp ?? '') ||
    compareText(a.receiptTransactionHash ?? '', b.receiptTransactionHash ?? '') ||
    (a.deliveryTime ?? -Infinity) - (b.deliveryTime ?? -Infinity) ||
    Number(a.readyForManualExecution) - Number(b.readyForManualExecution)
  );
}

/** Success outranks failure; among failures the last attempt counts. */
function compareExecutions(a: Executed, b: Executed): number {
  return Number(a.success) - Number(b.success) || compareObservations(a.seen, b.seen);
}

function compareObservations(a: Observation, b: Observation): number {
  return (
    a.blockNumber - b.blockNumber ||
    (a.logIndex ?? -1) - (b.logIndex ?? -1) ||
    compareText(a.blockHash, b.blockHash) ||
    compareText(a.transactionHash ?? '', b.transactionHash ?? '') ||
    compareText(a.at, b.at)
  );
}

function greatest<T>(candidates: readonly T[], compare: (a: T, b: T) => number): T | undefined {
  let best: T | undefined;
  for (const candidate of candidates) {
    if (best === undefined || compare(candidate, best) > 0) best = candidate;
  }
  return best;
}

/** By UTF-16 unit: the same everywhere, which a locale's order is not. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
