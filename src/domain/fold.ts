/**
 * The fold: from the facts about one message to its record.
 *
 * A record has four parts, each the greatest of its candidates under a total order: the sent message, the state of
 * verification (for each verifier), the outcome, and the members behind the contract (each by itself). The maximum is
 * idempotent, commutative and associative, hence so is the fold: facts may arrive in any order, any number of times, and
 * in any grouping.
 */

import { familyTraits } from './chain-families.ts';
import { type Executed, type Fact, type OutcomeField, outcomeFields, type SentMessage } from './facts.ts';
import {
  type Evidence,
  nextStatus,
  type Status,
  shownStatus,
  statusRank,
  usesVerifiers,
} from './lifecycle.ts';
import { contractKeys, type ExtensionFields, type Message, type Verifiers } from './message.ts';
import { completeSent, foldExtensionFields } from './records/completion.ts';
import { sentStage, snapshotStage } from './timeline.ts';
import { compareObservations, compareText, greatest } from './total-order.ts';
import { foldVerifiers, settleVerifiers } from './verification.ts';

type Outcome = Pick<Message, OutcomeField>;

/**
 * Folds the facts about one message into its record; undefined while its sending is unknown (the destination may be
 * indexed first).
 *
 * Range facts given here must cover the message.
 */
export function foldFacts(facts: readonly Fact[]): Message | undefined {
  const only = facts[0];
  if (facts.length === 1 && only?.kind === 'Snapshot') return only.message;

  const claims = facts.flatMap((fact) =>
    fact.kind === 'Sent' || fact.kind === 'Snapshot' ? [sendClaim(fact)] : [],
  );
  const claim = greatest(claims, compareSendClaims);
  if (!claim) return undefined;
  const snapshot = greatest(
    claims.filter(({ blockNumber }) => blockNumber === SNAPSHOT_BLOCK),
    compareSendClaims,
  );
  const sent =
    snapshot && claim !== snapshot
      ? completeSent(sentFields(claim.message), snapshot.message)
      : claim.message;

  const { verifiers, wasVerified } = foldVerifiers(facts, sent);
  return inWireOrder(
    sent,
    verifiers && settledBy(facts, verifiers, sent),
    foldOutcome(facts, sent, wasVerified),
    foldExtensionFields(facts),
  );
}

/** The fields one by one, in wire order: the record is stored without being copied once more. */
function inWireOrder(
  sent: SentMessage,
  verifiers: Verifiers | null,
  { reportedStatus, ...outcome }: Outcome,
  extension: ExtensionFields,
): Message {
  return {
    messageId: sent.messageId,
    origin: sent.origin,
    sender: sent.sender,
    receiver: sent.receiver,
    status: outcome.status,
    sourceNetworkInfo: sent.sourceNetworkInfo,
    destNetworkInfo: sent.destNetworkInfo,
    sendTransactionHash: sent.sendTransactionHash,
    sendTimestamp: sent.sendTimestamp,
    nonce: sent.nonce,
    sequenceNumber: sent.sequenceNumber,
    onramp: sent.onramp,
    routerAddress: sent.routerAddress,
    sendBlockNumber: sent.sendBlockNumber,
    sendLogIndex: sent.sendLogIndex,
    receiptTransactionHash: outcome.receiptTransactionHash,
    receiptTimestamp: outcome.receiptTimestamp,
    deliveryTime: outcome.deliveryTime,
    data: sent.data,
    tokenAmounts: sent.tokenAmounts,
    extraArgs: sent.extraArgs,
    readyForManualExecution: outcome.readyForManualExecution,
    version: sent.version,
    finality: sent.finality,
    verifiers,
    executor: sent.executor,
    fees: sent.fees,
    ...extension,
    ...(reportedStatus !== undefined && { reportedStatus }),
  };
}

/** The verifiers, which do not contradict an execution that a chain has reported. */
function settledBy(facts: readonly Fact[], verifiers: Verifiers, sent: SentMessage): Verifiers {
  const success = greatest(
    facts.filter((fact) => fact.kind === 'Executed').filter(({ success }) => success),
    compareExecutions,
  );
  return success ? settleVerifiers(verifiers, success.seen.at, sent) : verifiers;
}

/** Joins two snapshots of one message; the store keeps only the join. */
export function joinSnapshots(one: Message, other: Message): Message {
  return (
    foldFacts([
      { kind: 'Snapshot', message: one },
      { kind: 'Snapshot', message: other },
    ]) ?? one
  );
}

/** The observation that caused the status of a folded message; null where it is known only from a snapshot. */
export function statusCause(message: Message, facts: readonly Fact[]) {
  const { status } = message;
  const compareTimes = (a: SeenFact, b: SeenFact) =>
    compareText(a.seen.at, b.seen.at) || compareObservations(a.seen, b.seen);
  // A status that is reached repeatedly (a retry), or by the last of several facts, has the time of the last one.
  const isLatest = status === 'FAILED' || status === 'VERIFIED';
  const cause = greatest(
    facts.filter((fact) => fact.kind !== 'Snapshot').filter((fact) => reaches(fact, message)),
    isLatest ? compareTimes : (a, b) => compareTimes(b, a),
  );
  const stage = cause?.seen ?? (status === 'SENT' ? sentStage(message) : snapshotStage(message));
  const { network, blockNumber, transactionHash, at } = stage;
  return at === null || network === null ? null : { at, network, blockNumber, transactionHash };
}

function reaches(fact: SeenFact, message: Message): boolean {
  if (fact.kind === 'VerifierCompleted' && message.status === 'VERIFIED') return true;
  const evidence = evidenceOf(fact, message.version);
  return evidence !== undefined && shownStatus[evidence] === message.status;
}

type SeenFact = Exclude<Fact, { kind: 'Snapshot' }>;

interface SendClaim {
  /** With members that are not of the sending: the record takes over only those that are. */
  readonly message: SentMessage;
  /** A chain outranks a snapshot; of a chain's facts, the later block does (the earlier is an orphan). */
  readonly blockNumber: number;
}

/** Below any block. */
const SNAPSHOT_BLOCK = -1;

function sendClaim(fact: Extract<Fact, { kind: 'Sent' | 'Snapshot' }>): SendClaim {
  return {
    message: fact.message,
    blockNumber: fact.kind === 'Sent' ? fact.seen.blockNumber : SNAPSHOT_BLOCK,
  };
}

const sentKeys = contractKeys.filter(
  (key): key is Exclude<typeof key, OutcomeField> => !(outcomeFields as readonly string[]).includes(key),
);

function sentFields(message: SentMessage): SentMessage {
  return Object.fromEntries(sentKeys.map((key) => [key, message[key]])) as SentMessage;
}

/** Of snapshots, the one that knows more counts. */
function compareSendClaims(a: SendClaim, b: SendClaim): number {
  return (
    a.blockNumber - b.blockNumber ||
    countKnown(content(a)) - countKnown(content(b)) ||
    compareText(contentText(a), contentText(b))
  );
}

/** What was sent. Verifiers are folded by themselves. */
function content({ message }: SendClaim) {
  const { verifiers: _, ...content } = sentFields(message);
  return content;
}

/** How many values that are not null an object has, at any depth. */
function countKnown(value: unknown): number {
  if (typeof value !== 'object') return 1;
  if (value === null) return 0;
  let count = 1;
  for (const member of Object.values(value)) count += countKnown(member);
  return count;
}

/** The same for the same content, whatever the order of its keys. */
function contentText(claim: SendClaim): string {
  return JSON.stringify(Object.entries(content(claim)).sort(([a], [b]) => compareText(a, b)));
}

function foldOutcome(facts: readonly Fact[], sent: SentMessage, wasVerified: boolean): Outcome {
  const imported = facts.flatMap((fact) => (fact.kind === 'Snapshot' ? [outcomeOf(fact.message)] : []));
  const seen = facts.some((fact) => fact.kind !== 'Snapshot') ? [seenOutcome(facts, sent, wasVerified)] : [];
  const outcome = greatest([...imported, ...seen], compareOutcomes) ?? waiting('SENT');
  const opened = facts.some((fact) => fact.kind === 'ManualExecutionOpened');
  // On the destination chain and not executed successfully: after the threshold, anybody may execute it.
  const isWaiting = ['COMMITTED', 'BLESSED', 'VERIFIED', 'FAILED'].includes(outcome.status);
  return opened && isWaiting ? { ...outcome, readyForManualExecution: true } : outcome;
}

function outcomeOf(message: Message): Outcome {
  const told = outcomeFields.filter((key) => message[key] !== undefined);
  return Object.fromEntries(told.map((key) => [key, message[key]])) as Outcome;
}

function seenOutcome(facts: readonly Fact[], sent: SentMessage, wasVerified: boolean): Outcome {
  let status: Status = 'SENT';
  for (const fact of facts) {
    const evidence = evidenceOf(fact, sent.version);
    if (evidence) status = nextStatus(status, evidence);
  }
  if (usesVerifiers(sent.version) && wasVerified) status = nextStatus(status, 'verified');

  const execution = greatest(
    facts.filter((fact) => fact.kind === 'Executed'),
    compareExecutions,
  );
  return execution ? executedOutcome(execution, sent) : waiting(status);
}

/** The evidence of one fact; undefined for one that proves nothing by itself. */
function evidenceOf(fact: Fact, version: string | null): Evidence | undefined {
  switch (fact.kind) {
    case 'Sent':
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
    case 'Snapshot':
    case 'VerifierPolicy':
    case 'RootBlessed':
    case 'RootRemoved':
    case 'ExecutionDetails':
    case 'ManualExecutionOpened':
      return undefined;
  }
}

function executedOutcome(execution: Executed, sent: SentMessage): Outcome {
  return {
    status: execution.success ? 'SUCCESS' : 'FAILED',
    receiptTransactionHash: execution.seen.transactionHash,
    receiptTimestamp: execution.seen.at,
    deliveryTime: Date.parse(execution.seen.at) - Date.parse(sent.sendTimestamp),
    readyForManualExecution:
      !execution.success && familyTraits(sent.destNetworkInfo.chainFamily).isReadyOnceFailed,
  };
}

function waiting(status: Status): Outcome {
  const unknown = { receiptTransactionHash: null, receiptTimestamp: null, deliveryTime: null };
  return { status, ...unknown, readyForManualExecution: false };
}

function compareOutcomes(a: Outcome, b: Outcome): number {
  return (
    statusRank(a.status) - statusRank(b.status) ||
    compareText(a.receiptTimestamp ?? '', b.receiptTimestamp ?? '') ||
    compareText(a.receiptTransactionHash ?? '', b.receiptTransactionHash ?? '') ||
    (a.deliveryTime ?? -Infinity) - (b.deliveryTime ?? -Infinity) ||
    Number(a.readyForManualExecution) - Number(b.readyForManualExecution) ||
    compareText(a.reportedStatus ?? '', b.reportedStatus ?? '')
  );
}

/** Success outranks failure. Of failures the last attempt counts, of successes the first: a message is executed once. */
function compareExecutions(a: Executed, b: Executed): number {
  const order = compareObservations(a.seen, b.seen);
  return Number(a.success) - Number(b.success) || (a.success ? -order : order);
}
