/**
 * Facts: what a source observed. A message is the fold of its facts and of nothing else.
 *
 * Facts of a chain have the block in which they were observed, so that a reorganisation retracts exactly those of orphaned
 * blocks. A Snapshot is a full record that was folded elsewhere (an import); it has no block and is never retracted.
 */
import type { ProgramFailure } from './failures/program-reason.ts';
import type { Message } from './message.ts';

export interface Observation {
  /** Chain selector of the network that was observed. */
  readonly network: string;
  readonly blockNumber: number;
  /** In the notation of the chain; a reorganisation retracts facts by this key. */
  readonly blockHash: string;
  /** Null where there is no transaction (finality is reached without one). */
  readonly transactionHash: string | null;
  readonly logIndex: number | null;
  /** ISO 8601 time of the block. */
  readonly at: string;
}

/** The fields that derive from later facts, and so are not part of the sent message. */
export const outcomeFields = [
  'status',
  'receiptTransactionHash',
  'receiptTimestamp',
  'deliveryTime',
  'readyForManualExecution',
  'reportedStatus',
] as const;
export type OutcomeField = (typeof outcomeFields)[number];

export type SentMessage = Omit<Message, OutcomeField>;

/** A lane: an on-ramp numbers its messages consecutively. */
export interface Lane {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
  readonly onramp: string;
}

/**
 * What a manual execution needs of a message beside the record: up to 1.6 the message in the format of the official SDK,
 * above the encoded message.
 */
export type ExecutionMaterial =
  | { readonly message: Readonly<Record<string, unknown>> }
  | { readonly encodedMessage: string; readonly offramp: string };

export interface Sent {
  readonly kind: 'Sent';
  readonly message: SentMessage;
  readonly execution?: ExecutionMaterial;
  readonly seen: Observation;
}

interface FactOf<Kind extends string> {
  readonly kind: Kind;
  readonly messageId: string;
  readonly seen: Observation;
}

export type SourceFinalized = FactOf<'SourceFinalized'>;

export interface VerifierPolicy extends FactOf<'VerifierPolicy'> {
  /** Addresses on the destination chain. */
  readonly required: readonly string[];
  readonly optional: readonly string[];
  readonly optionalThreshold: number;
}

/** A verifier has verified the message; learnt off chain or from the calldata of the execution. */
export interface VerifierCompleted extends FactOf<'VerifierCompleted'> {
  /** The verifier's `sourceAddress` or `destAddress` in the record. */
  readonly verifier: string;
  readonly data: string;
}

/** The lane's threshold for permissionless execution has passed since the commit. */
export type ManualExecutionOpened = FactOf<'ManualExecutionOpened'>;

export interface Executed extends FactOf<'Executed'> {
  readonly success: boolean;
}

/**
 * What an execution left behind beside its outcome. It changes no record: it is for people who ask why an attempt failed,
 * and belongs to the `Executed` of the same log.
 */
export interface ExecutionDetails extends FactOf<'ExecutionDetails'> {
  /** In hexadecimal; the first part of it where it is long. Null on Solana, where a failure returns nothing. */
  readonly returnData: string | null;
  /** Of the whole execution, in decimal; null where the chain does not say. On Solana: compute units of the transaction. */
  readonly gasUsed: string | null;
  /** The account that sent the transaction; null where it was not asked for. */
  readonly caller: string | null;
  /** Of a failed transaction of Solana. */
  readonly failure?: ProgramFailure;
}

/** A merkle root over a run of sequence numbers (both ends included) was committed or blessed. */
export interface RangeFact {
  readonly kind: 'Committed' | 'Blessed';
  readonly lane: Lane;
  readonly fromSequenceNumber: string;
  readonly toSequenceNumber: string;
  readonly merkleRoot: string;
  /** The off-ramp that executes the root's messages, where it is known. */
  readonly offramp?: string;
  readonly seen: Observation;
}

/**
 * Names a merkle root, whose sequence numbers only its commit tells. A root that was not blessed can be removed; its
 * messages are committed again, as a rule under another root.
 */
export interface RootFact {
  readonly kind: 'RootBlessed' | 'RootRemoved';
  readonly merkleRoot: string;
  readonly seen: Observation;
}

export interface Snapshot {
  readonly kind: 'Snapshot';
  readonly message: Message;
  /** JSON paths of members that the source left out and that were derived; not stored with the fact. */
  readonly derived?: readonly string[];
}

export type ChainFact =
  | Sent
  | SourceFinalized
  | VerifierPolicy
  | VerifierCompleted
  | ManualExecutionOpened
  | Executed
  | ExecutionDetails;
export type MessageFact = ChainFact | Snapshot;
export type Fact = MessageFact | RangeFact | RootFact;

export function isRangeFact(fact: Fact): fact is RangeFact {
  return fact.kind === 'Committed' || fact.kind === 'Blessed';
}

export function isRootFact(fact: Fact): fact is RootFact {
  return fact.kind === 'RootBlessed' || fact.kind === 'RootRemoved';
}

export function isMessageFact(fact: Fact): fact is MessageFact {
  return !isRangeFact(fact) && !isRootFact(fact);
}

/** The message of a fact; range facts are about a run of messages. */
export function factMessageId(fact: MessageFact): string {
  return fact.kind === 'Sent' || fact.kind === 'Snapshot' ? fact.message.messageId : fact.messageId;
}
