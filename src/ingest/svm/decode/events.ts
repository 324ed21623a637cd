/** The events of CCIP 1.6 on Solana that records are made of: their names, discriminators and layouts. */
import { type BorshReader, type Hex, readBorsh } from './borsh.ts';
import {
  DISCRIMINATOR_BYTES,
  type Discriminator,
  discriminatorIn,
  discriminatorOf,
} from './discriminators.ts';

export interface MessageHeader {
  readonly messageId: Hex;
  readonly sourceChainSelector: bigint;
  readonly destChainSelector: bigint;
  readonly sequenceNumber: bigint;
  readonly nonce: bigint;
}

/** A token transfer as the router emits it. */
export interface SentTokenAmount {
  /** The pool's configuration account, not its program. */
  readonly sourcePoolAddress: string;
  readonly destTokenAddress: Uint8Array;
  readonly extraData: Uint8Array;
  readonly amount: bigint;
  /** Gas as a big-endian number. */
  readonly destExecData: Uint8Array;
}

/** `SVM2AnyRampMessage`. */
export interface SentRampMessage {
  readonly header: MessageHeader;
  readonly sender: string;
  readonly data: Uint8Array;
  readonly receiver: Uint8Array;
  readonly extraArgs: Uint8Array;
  readonly feeToken: string;
  readonly tokenAmounts: readonly SentTokenAmount[];
  readonly feeTokenAmount: bigint;
  readonly feeValueJuels: bigint;
}

export interface MerkleRoot {
  readonly sourceChainSelector: bigint;
  readonly onRampAddress: Uint8Array;
  readonly minSeqNr: bigint;
  readonly maxSeqNr: bigint;
  readonly merkleRoot: Hex;
}

export type CcipEvent =
  | {
      readonly name: 'CCIPMessageSent';
      readonly destChainSelector: bigint;
      readonly sequenceNumber: bigint;
      readonly message: SentRampMessage;
    }
  | {
      readonly name: 'OfframpAdded' | 'OfframpRemoved';
      readonly sourceChainSelector: bigint;
      readonly offramp: string;
    }
  | {
      readonly name: 'CcipVersionForDestChainVersionBumped' | 'CcipVersionForDestChainVersionRolledBack';
      readonly destChainSelector: bigint;
      readonly previousSequenceNumber: bigint;
      readonly newSequenceNumber: bigint;
    }
  /** Without a root it updates prices only. */
  | { readonly name: 'CommitReportAccepted'; readonly root: MerkleRoot | undefined }
  | {
      readonly name: 'ExecutionStateChanged';
      readonly sourceChainSelector: bigint;
      readonly sequenceNumber: bigint;
      readonly messageId: Hex;
      /** The leaf of the merkle tree. */
      readonly messageHash: Hex;
      readonly state: number;
    }
  | {
      readonly name: 'SkippedAlreadyExecutedMessage';
      readonly sourceChainSelector: bigint;
      readonly sequenceNumber: bigint;
    };

export type EventName = CcipEvent['name'];

type Layouts = { readonly [Name in EventName]: (reader: BorshReader) => CcipEvent };

const layouts: Layouts = {
  CCIPMessageSent: (reader) => ({
    name: 'CCIPMessageSent',
    destChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
    message: readSentMessage(reader),
  }),
  OfframpAdded: (reader) => ({
    name: 'OfframpAdded',
    sourceChainSelector: reader.u64(),
    offramp: reader.publicKey(),
  }),
  OfframpRemoved: (reader) => ({
    name: 'OfframpRemoved',
    sourceChainSelector: reader.u64(),
    offramp: reader.publicKey(),
  }),
  CcipVersionForDestChainVersionBumped: (reader) => ({
    name: 'CcipVersionForDestChainVersionBumped',
    destChainSelector: reader.u64(),
    previousSequenceNumber: reader.u64(),
    newSequenceNumber: reader.u64(),
  }),
  CcipVersionForDestChainVersionRolledBack: (reader) => ({
    name: 'CcipVersionForDestChainVersionRolledBack',
    destChainSelector: reader.u64(),
    previousSequenceNumber: reader.u64(),
    newSequenceNumber: reader.u64(),
  }),
  CommitReportAccepted: (reader) => {
    const root = reader.option(readMerkleRoot);
    skipPriceUpdates(reader);
    return { name: 'CommitReportAccepted', root };
  },
  ExecutionStateChanged: (reader) => ({
    name: 'ExecutionStateChanged',
    sourceChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
    messageId: reader.hash(),
    messageHash: reader.hash(),
    state: reader.u8(),
  }),
  SkippedAlreadyExecutedMessage: (reader) => ({
    name: 'SkippedAlreadyExecutedMessage',
    sourceChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
  }),
};

const names: ReadonlyMap<Discriminator, EventName> = new Map(
  (Object.keys(layouts) as EventName[]).map((name) => [discriminatorOf('event', name), name]),
);

/** Undefined for an event that records are not made of. */
export function eventNameOf(data: Uint8Array): EventName | undefined {
  return names.get(discriminatorIn(data));
}

/** Throws an UnreadableDataError where the bytes do not have the event's layout. */
export function readEvent(name: EventName, data: Uint8Array): CcipEvent {
  return readBorsh(data.subarray(DISCRIMINATOR_BYTES), layouts[name]);
}

export function readMessageHeader(reader: BorshReader): MessageHeader {
  return {
    messageId: reader.hash(),
    sourceChainSelector: reader.u64(),
    destChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
    nonce: reader.u64(),
  };
}

function readSentMessage(reader: BorshReader): SentRampMessage {
  return {
    header: readMessageHeader(reader),
    sender: reader.publicKey(),
    data: reader.bytes(),
    receiver: reader.bytes(),
    extraArgs: reader.bytes(),
    feeToken: reader.publicKey(),
    tokenAmounts: reader.list((item) => ({
      sourcePoolAddress: item.publicKey(),
      destTokenAddress: item.bytes(),
      extraData: item.bytes(),
      amount: item.u256(),
      destExecData: item.bytes(),
    })),
    feeTokenAmount: reader.u256(),
    feeValueJuels: reader.u256(),
  };
}

export function readMerkleRoot(reader: BorshReader): MerkleRoot {
  return {
    sourceChainSelector: reader.u64(),
    onRampAddress: reader.bytes(),
    minSeqNr: reader.u64(),
    maxSeqNr: reader.u64(),
    merkleRoot: reader.hash(),
  };
}

const PRICE_BYTES = 28;

export function skipPriceUpdates(reader: BorshReader): void {
  reader.list((item) => item.fixed(32 + PRICE_BYTES));
  reader.list((item) => item.fixed(8 + PRICE_BYTES));
}
