/**
 * The fold: from the facts about one message to its record.
 *
 * A record has three parts, each the greatest of its candidates under a total order: the sent message, the state of
 * verification (for each verifier), and the outcome. The maximum is idempotent, commutative and associative, hence so is
 * the fold: facts may arrive in any order, any number of times, and in any grouping.
 */
import { zeroAddresses } from './addresses.ts';
import type {
  Executed,
  Fact,
  Observation,
  OutcomeField,
  SentMessage,
  VerifierCompleted,
  VerifierPolicy,
} from './facts.ts';
import {
  type Evidence,
  nextStatus,
  type Status,
  shownStatus,
  statusRank,
  usesVerifiers,
} from './lifecycle.ts';
import type { Message, Verifier, Verifiers } from './message.ts';

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

  const sent = greatest(
    facts.flatMap((fact) => (fact.kind === 'Sent' || fact.kind === 'Snapshot' ? [sendClaim(fact)] : [])),
    compareSendClaims,
  );
  if (!sent) return undefined;

  const { verifiers, wasVerified } = foldVerifiers(facts, sent.message);
  const { verifiers: _, ...message } = sent.message;
  return { ...message, verifiers, ...foldOutcome(facts, sent.message, wasVerified) };
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

/** The cause of a status: when it was reached, and where a chain reported it. */
export interface StatusCause {
  readonly at: string;
  readonly network: string;
  readonly blockNumber: number | null;
  readonly transactionHash: string | null;
}

/** The observation that caused the status of a folded message; null where it is known only from a snapshot. */
export function statusCause(message: Message, facts: readonly Fact[]): StatusCause | null {
  const cause = greatest(
    facts.filter((fact) => fact.kind !== 'Snapshot').filter((fact) => reaches(fact, message)),
    hasLatestCause(message.status) ? compareTimes : (a, b) => compareTimes(b, a),
  );
  if (cause) {
    const { network, blockNumber, transactionHash, at } = cause.seen;
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
  if (fact.kind === 'VerifierCompleted' && message.status === 'VERIFIED') return true;
  const evidence = evidenceOf(fact, message.version);
  return evidence !== undefined && shownStatus[evidence] === message.status;
}

/** A status that is reached repeatedly (a retry), or by the last of several facts, has the time of the last one. */
function hasLatestCause(status: Status): boolean {
  return status === 'FAILED' || status === 'VERIFIED';
}

function compareTimes(a: SeenFact, b: SeenFact): number {
  return compareText(a.seen.at, b.seen.at) || compareObservations(a.seen, b.seen);
}

type SeenFact = Exclude<Fact, { kind: 'Snapshot' }>;

/** A claim of a source about what was sent. */
interface SendClaim {
  readonly message: SentMessage;
  /** A chain outranks a snapshot; of a chain's facts, the later block does (the earlier is an orphan). */
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

/** The verifiers, their state, and whether they ever sufficed for the destination. */
function foldVerifiers(
  facts: readonly Fact[],
  sent: SentMessage,
): { readonly verifiers: Verifiers | null; readonly wasVerified: boolean } {
  const listed = joinLists(
    facts.flatMap((fact) =>
      (fact.kind === 'Sent' || fact.kind === 'Snapshot') && fact.message.verifiers
        ? [fact.message.verifiers]
        : [],
    ),
  );
  if (!listed) return { verifiers: null, wasVerified: false };

  const unknownAddresses: readonly string[] = [
    zeroAddresses[sent.sourceNetworkInfo.chainFamily],
    zeroAddresses[sent.destNetworkInfo.chainFamily],
  ];
  const completions = facts
    .filter((fact) => fact.kind === 'VerifierCompleted')
    .filter(({ verifier }) => !unknownAddresses.includes(verifier));
  const policies = facts.filter((fact) => fact.kind === 'VerifierPolicy');
  const listUnder = (policy: VerifierPolicy | undefined) =>
    completed(policy ? withPolicy(listed, policy, sent) : listed, completions);
  return {
    verifiers: listUnder(greatest(policies, comparePolicies)),
    // A destination that requires other verifiers later does not revoke an earlier verification.
    wasVerified: [undefined, ...policies].some((policy) => isVerified(listUnder(policy), sent)),
  };
}

/**
 * Joins lists of the same verifiers: the requirements are those of the greatest list, and a verifier is completed as soon
 * as any source says so. Of lists with different verifiers, only the greatest counts.
 */
function joinLists(lists: readonly Verifiers[]): Verifiers | undefined {
  const base = greatest(lists, compareLists);
  if (!base) return undefined;
  const agreeing = lists.filter((list) => sourcesText(list) === sourcesText(base));
  return {
    ...base,
    items: base.items.map((listed, index) => {
      const known = agreeing.flatMap(({ items }) => items[index]?.verification ?? []);
      const verification = greatest(known, compareVerifications);
      return verification ? { ...listed, status: 'COMPLETED', verification } : listed;
    }),
  };
}

function sourcesText({ items }: Verifiers): string {
  return JSON.stringify(items.map(({ sourceAddress }) => sourceAddress));
}

/** By the verifiers, then by the requirements; never by their state. */
function compareLists(a: Verifiers, b: Verifiers): number {
  const requirements = ({ items, optionalThreshold }: Verifiers) =>
    JSON.stringify([
      optionalThreshold,
      items.map(({ isRequired, destAddress, metadata: { name, logoUrl } }) => [
        isRequired,
        destAddress,
        name,
        logoUrl,
      ]),
    ]);
  return (
    a.items.length - b.items.length ||
    compareText(sourcesText(a), sourcesText(b)) ||
    compareText(requirements(a), requirements(b))
  );
}

/** The earliest counts: a repeated verification does not change the time. */
function compareVerifications(a: Verification, b: Verification): number {
  return compareText(b.timestamp, a.timestamp) || compareText(b.data, a.data);
}

type Verification = NonNullable<Verifier['verification']>;

/** The latest policy of the destination counts. */
function comparePolicies(a: VerifierPolicy, b: VerifierPolicy): number {
  const text = ({ required, optional, optionalThreshold }: VerifierPolicy) =>
    JSON.stringify([optionalThreshold, required, optional]);
  return compareObservations(a.seen, b.seen) || compareText(text(a), text(b));
}

/**
 * The list with the requirements of the destination. The source names verifiers by addresses on the source chain, the
 * destination by addresses on its own chain, and nothing links the two. Verifiers with the same address on both chains are
 * the same, and so are the others, in order, where their number is equal. Otherwise both are listed: those of the source
 * unchanged, those of the destination without a source address, because they show what the execution waits for.
 */
function withPolicy(list: Verifiers, policy: VerifierPolicy, sent: SentMessage): Verifiers {
  const required = new Set(policy.required);
  const unpaired = new Set([...policy.required, ...policy.optional]);
  unpaired.delete(zeroAddresses[sent.destNetworkInfo.chainFamily]);
  const pairs = new Map<Verifier, string>();
  for (const nameOf of [(item: Verifier) => item.destAddress, (item: Verifier) => item.sourceAddress]) {
    for (const item of list.items) {
      if (!pairs.has(item) && unpaired.delete(nameOf(item))) pairs.set(item, nameOf(item));
    }
  }
  const unmatched = list.items.filter((item) => !pairs.has(item));
  if (unmatched.length === unpaired.size) {
    for (const [index, address] of [...unpaired].entries()) {
      const item = unmatched[index];
      if (item) pairs.set(item, address);
    }
    unpaired.clear();
  }
  const unknownAddress = zeroAddresses[sent.sourceNetworkInfo.chainFamily];
  return {
    optionalThreshold: policy.optionalThreshold,
    items: [
      ...list.items.map((item) => {
        const destAddress = pairs.get(item);
        return destAddress === undefined
          ? item
          : { ...item, destAddress, isRequired: required.has(destAddress) };
      }),
      ...[...unpaired].map((destAddress) => ({
        sourceAddress: unknownAddress,
        destAddress,
        metadata: { name: 'Verifier' },
        isRequired: required.has(destAddress),
        status: 'PENDING' as const,
        verification: null,
      })),
    ],
  };
}

function completed(list: Verifiers, completions: readonly VerifierCompleted[]): Verifiers {
  return {
    ...list,
    items: list.items.map((item) => {
      if (item.status === 'COMPLETED') return item;
      const verification = greatest(
        completions
          .filter(({ verifier }) => verifier === item.sourceAddress || verifier === item.destAddress)
          .map(({ data, seen }) => ({ data, timestamp: seen.at })),
        compareVerifications,
      );
      return verification ? { ...item, status: 'COMPLETED', verification } : item;
    }),
  };
}

/**
 * Whether all verifiers that the destination requires, and enough of its optional ones, have completed. Verifiers whose
 * address on the destination is unknown do not count; if that is all of them, the requirements are unknown.
 */
export function isVerified(
  verifiers: Verifiers | null,
  { destNetworkInfo }: Pick<Message, 'destNetworkInfo'>,
): boolean {
  const unknownAddress = zeroAddresses[destNetworkInfo.chainFamily];
  const known = verifiers?.items.filter(({ destAddress }) => destAddress !== unknownAddress) ?? [];
  const missing = known.some((item) => item.isRequired && item.status !== 'COMPLETED');
  const optional = known.filter((item) => !item.isRequired && item.status === 'COMPLETED');
  return known.length > 0 && !missing && optional.length >= (verifiers?.optionalThreshold ?? 0);
}

function foldOutcome(facts: readonly Fact[], sent: SentMessage, wasVerified: boolean): Outcome {
  const imported = facts.flatMap((fact) => (fact.kind === 'Snapshot' ? [outcomeOf(fact.message)] : []));
  const seen = facts.some((fact) => fact.kind !== 'Snapshot') ? [seenOutcome(facts, sent, wasVerified)] : [];
  const outcome = greatest([...imported, ...seen], compareOutcomes) ?? waiting('SENT');
  const opened = facts.some((fact) => fact.kind === 'ManualExecutionOpened');
  return opened && isAwaitingExecution(outcome.status)
    ? { ...outcome, readyForManualExecution: true }
    : outcome;
}

/** On the destination chain and not executed successfully: after the threshold, anybody may execute it. */
function isAwaitingExecution(status: Status): boolean {
  return status === 'COMMITTED' || status === 'BLESSED' || status === 'VERIFIED' || status === 'FAILED';
}

function outcomeOf(message: Message): Outcome {
  const { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution } = message;
  return { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution };
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
    case 'Snapshot':
    case 'VerifierPolicy':
    case 'RootBlessed':
    case 'RootRemoved':
    case 'ManualExecutionOpened':
      return undefined;
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
    // On Solana a failed attempt leaves no trace on chain: anybody may execute only when the lane's delay has passed.
    readyForManualExecution: !execution.success && sent.destNetworkInfo.chainFamily !== 'SVM',
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

/** Success outranks failure. Of failures the last attempt counts, of successes the first: a message is executed once. */
function compareExecutions(a: Executed, b: Executed): number {
  const order = compareObservations(a.seen, b.seen);
  return Number(a.success) - Number(b.success) || (a.success ? -order : order);
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

/** By UTF-16 unit, independent of the locale. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
