/**
 * Facts: what a source observed. A message is the fold of its facts and nothing else.
 *
 * Facts of a chain say where they were seen, so that a reorganisation can take back exactly those of the
 * orphaned blocks. A Snapshot is a whole record that somebody else folded (an import); it has no place on
 * a chain and is never taken back.
 */
import type { Message } from './message.ts';

/** Where and when a chain said something. */
export interface Observation {
  /** Chain selector of the network that was observed. */
  readonly network: string;
  readonly blockNumber: number;
  /** As the chain spells it; the key by which a reorganisation takes facts back. */
  readonly blockHash: string;
  /** Null where no transaction stands behind it (finality is reached, not sent). */
  readonly transactionHash: string | null;
  readonly logIndex: number | null;
  /** ISO 8601 time of the block. */
  readonly at: string;
}

/** The fields that derive from later facts and so cannot be part of what was sent. */
export type OutcomeField =
  | 'status'
  | 'receiptTransactionHash'
  | 'receiptTimestamp'
  | 'deliveryTime'
  | 'readyForManualExecution';

export type SentMessage = Omit<Message, OutcomeField>;

/** A lane as its on-ramp numbers it. */
export interface Lane {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
  readonly onramp: string;
}

/**
 * What an execution by hand needs of a message and the record does not have: up to 1.6 the message as the official
 * client spells it, above the encoded message.
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

export interface SourceFinalized {
  readonly kind: 'SourceFinalized';
  readonly messageId: string;
  readonly seen: Observation;
}

/** Which verifiers the destination asks for. */
export interface VerifierPolicy {
  readonly kind: 'VerifierPolicy';
  readonly messageId: string;
  /** Addresses on the destination chain. */
  readonly required: readonly string[];
  readonly optional: readonly string[];
  readonly optionalThreshold: number;
  readonly seen: Observation;
}

/** A verifier has verified the message; known off chain or from the execution's calldata. */
export interface VerifierCompleted {
  readonly kind: 'VerifierCompleted';
  readonly messageId: string;
  /** The verifier's `sourceAddress` or `destAddress` in the record. */
  readonly verifier: string;
  readonly data: string;
  readonly seen: Observation;
}

/** The lane's threshold for permissionless execution has passed since the commit. */
export interface ManualExecutionOpened {
  readonly kind: 'ManualExecutionOpened';
  readonly messageId: string;
  readonly seen: Observation;
}

export interface Executed {
  readonly kind: 'Executed';
  readonly messageId: string;
  readonly success: boolean;
  readonly seen: Observation;
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

/** A root was blessed, whose run of sequence numbers only its commit tells. */
export interface RootBlessed {
  readonly kind: 'RootBlessed';
  readonly merkleRoot: string;
  readonly seen: Observation;
}

/** A root that was not blessed was taken back; its messages are committed again, as a rule under another root. */
export interface RootRemoved {
  readonly kind: 'RootRemoved';
  readonly merkleRoot: string;
  readonly seen: Observation;
}

/** Names a root, whose run of sequence numbers only its commit tells. */
export type RootFact = RootBlessed | RootRemoved;

export interface Snapshot {
  readonly kind: 'Snapshot';
  readonly message: Message;
}

/** A fact about one message that a chain told. */
export type ChainFact =
  | Sent
  | SourceFinalized
  | VerifierPolicy
  | VerifierCompleted
  | ManualExecutionOpened
  | Executed;
/** A fact about one message. */
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

/** The message a fact speaks of; range facts speak of a run of them. */
export function factMessageId(fact: MessageFact): string {
  return fact.kind === 'Sent' || fact.kind === 'Snapshot' ? fact.message.messageId : fact.messageId;
}
