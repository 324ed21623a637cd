/**
 * The fold: from the facts about one message to its record.
 *
 * A record has three parts, each the greatest of its candidates under a total order: what was sent, how far
 * verification is (verifier by verifier), and the outcome. Greatest-of is idempotent, commutative and
 * associative, hence so is the fold: facts may come in any order, any number of times, and in any grouping.
 */
import type { Executed, Fact, Observation, OutcomeField, SentMessage, VerifierCompleted } from './facts.ts';
import { type Evidence, lifecycle, type Status, statusRank, usesVerifiers } from './lifecycle.ts';
import type { Message, Verifier, Verifiers } from './message.ts';

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

/** Somebody's word of what was sent. */
interface SendClaim {
  readonly message: SentMessage;
  /** A chain's own word outranks a snapshot; among a chain's, the later block does (the earlier is an orphan). */
  readonly blockNumber: number;
}

function sendClaim(fact: Extract<Fact, { kind: 'Sent' | 'Snapshot' }>): SendClaim {
  return fact.kind === 'Sent'
    ? { message: fact.message, blockNumber: fact.seen.blockNumber }
    : { message: withoutOutcome(fact.message), blockNumber: -1 };
}

function compareSendClaims(a: SendClaim, b: SendClaim): number {
  return (
    a.blockNumber - b.blockNumber ||
    knownFields(a.message) - knownFields(b.message) ||
    compareText(contentText(a.message), contentText(b.message))
  );
}

function knownFields({ verifiers: _, ...content }: SentMessage): number {
  return Object.values(content).filter((value) => value !== null).length;
}

/** The same for the same content, whatever the order of its keys. */
function contentText({ verifiers: _, ...content }: SentMessage): string {
  return JSON.stringify(Object.entries(content).sort(([a], [b]) => compareText(a, b)));
}

function withoutOutcome(message: Message): SentMessage {
  const { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution, ...sent } =
    message;
  return sent;
}

/**
 * Sources that list the same verifiers add up: one is completed as soon as any of them knows it to be. Of
 * lists that differ, the greatest stands alone.
 */
function foldVerifiers(facts: readonly Fact[]): Verifiers | null {
  const told = facts.flatMap((fact) =>
    (fact.kind === 'Sent' || fact.kind === 'Snapshot') && fact.message.verifiers
      ? [fact.message.verifiers]
      : [],
  );
  const base = greatest(told, compareLists);
  if (!base) return null;

  const agreeing = told.filter((verifiers) => compareLists(verifiers, base) === 0);
  const completions = facts.filter((fact) => fact.kind === 'VerifierCompleted');
  return {
    ...base,
    items: base.items.map((listed, index) => {
      const known = agreeing.flatMap((verifiers) => verifiers.items[index] ?? []);
      const item = greatest(known, compareVerifiers) ?? listed;
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

/** By what is asked for, not by how far it is: who verifies, whether they must, and how many of the rest. */
function compareLists(a: Verifiers, b: Verifiers): number {
  const text = ({ items, optionalThreshold }: Verifiers) =>
    JSON.stringify([
      optionalThreshold,
      items.map(({ sourceAddress, isRequired }) => [sourceAddress, isRequired]),
    ]);
  return a.items.length - b.items.length || compareText(text(a), text(b));
}

/** Completed outranks pending, and of two completions the earlier counts. */
function compareVerifiers(a: Verifier, b: Verifier): number {
  return (
    Number(a.verification !== null) - Number(b.verification !== null) ||
    compareText(b.verification?.timestamp ?? '', a.verification?.timestamp ?? '') ||
    compareText(JSON.stringify(a), JSON.stringify(b))
  );
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
  const outcome = greatest([...told, ...seen], compareOutcomes) ?? waiting('SENT');
  const opened = facts.some((fact) => fact.kind === 'ManualExecutionOpened');
  return opened && isAwaitingExecution(outcome.status)
    ? { ...outcome, readyForManualExecution: true }
    : outcome;
}

/** On the destination chain and not executed: what a passed threshold opens to everybody. */
function isAwaitingExecution(status: Status): boolean {
  return status === 'COMMITTED' || status === 'BLESSED' || status === 'VERIFIED';
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
  return execution ? executedOutcome(execution, sent) : waiting(status);
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

function waiting(status: Status): Outcome {
  return {
    status,
    receiptTransactionHash: null,
    receiptTimestamp: null,
    deliveryTime: null,
    readyForManualExecution: false,
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
