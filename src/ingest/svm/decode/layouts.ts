/**
 * The layouts of CCIP 1.6 on Solana that records are made of: events, instructions and extra arguments.
 *
 * Logs may be cut, instructions never are. The programs ignore bytes behind the arguments of an instruction and behind a
 * report, which anybody may add, so these are ignored here too.
 */
import { hex } from '@scure/base';
import type { Message } from '../../../domain/message.ts';
import { UnreadableDataError } from '../../engine/json-rpc/answer-reader.ts';
import { BorshReader, DISCRIMINATOR_BYTES, discriminatorIn, discriminatorOf, readBorsh } from './borsh.ts';

// ---- Parts

function readMessageHeader(reader: BorshReader) {
  return {
    messageId: reader.hash(),
    sourceChainSelector: reader.u64(),
    destChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
    nonce: reader.u64(),
  };
}

/** `SVM2AnyRampMessage`. */
function readSentMessage(reader: BorshReader) {
  return {
    header: readMessageHeader(reader),
    sender: reader.publicKey(),
    data: reader.bytes(),
    receiver: reader.bytes(),
    extraArgs: reader.bytes(),
    feeToken: reader.publicKey(),
    tokenAmounts: reader.list((item) => ({
      /** The pool's configuration account, not its program. */
      sourcePoolAddress: item.publicKey(),
      destTokenAddress: item.bytes(),
      extraData: item.bytes(),
      amount: item.u256(),
      /** Gas as a big-endian number. */
      destExecData: item.bytes(),
    })),
    feeTokenAmount: reader.u256(),
    feeValueJuels: reader.u256(),
  };
}

export type SentRampMessage = Readonly<ReturnType<typeof readSentMessage>>;

/** `Any2SVMRampMessage`. */
function readReceivedMessage(reader: BorshReader) {
  return {
    header: readMessageHeader(reader),
    sender: reader.bytes(),
    data: reader.bytes(),
    tokenReceiver: reader.publicKey(),
    tokenAmounts: reader.list((item) => ({
      sourcePoolAddress: item.bytes(),
      destTokenAddress: item.publicKey(),
      destGasAmount: item.u32(),
      extraData: item.bytes(),
      amount: item.u256(),
    })),
    computeUnits: reader.u32(),
    isWritableBitmap: reader.u64(),
  };
}

/** `ExecutionReportSingleChain`; undefined where the report is in a separate account (buffered). */
function readReport(bytes: Uint8Array) {
  if (bytes.length === 0) return undefined;
  const reader = new BorshReader(bytes);
  const sourceChainSelector = reader.u64();
  const message = readReceivedMessage(reader);
  reader.list((item) => item.bytes()); // off-chain data of tokens
  return { sourceChainSelector, message, proofs: reader.list((item) => item.hash()) };
}

function readMerkleRoot(reader: BorshReader) {
  return {
    sourceChainSelector: reader.u64(),
    onRampAddress: reader.bytes(),
    minSeqNr: reader.u64(),
    maxSeqNr: reader.u64(),
    merkleRoot: reader.hash(),
  };
}

export type MerkleRoot = Readonly<ReturnType<typeof readMerkleRoot>>;

const PRICE_BYTES = 28;

function skipPriceUpdates(reader: BorshReader): void {
  reader.list((item) => item.fixed(32 + PRICE_BYTES));
  reader.list((item) => item.fixed(8 + PRICE_BYTES));
}

type Layouts = Readonly<Record<string, (reader: BorshReader) => { readonly name: string }>>;

/** Finds the name that the first bytes stand for; undefined for one that records are not made of. */
function nameFinder<Name extends string>(kind: 'event' | 'global', names: readonly Name[]) {
  const byDiscriminator = new Map(names.map((name) => [discriminatorOf(kind, name), name]));
  return (data: Uint8Array): Name | undefined => byDiscriminator.get(discriminatorIn(data));
}

// ---- Events

const offRampListing = (reader: BorshReader) => ({
  sourceChainSelector: reader.u64(),
  offramp: reader.publicKey(),
});

const renumbering = (reader: BorshReader) => ({
  destChainSelector: reader.u64(),
  previousSequenceNumber: reader.u64(),
  newSequenceNumber: reader.u64(),
});

const events = {
  CCIPMessageSent: (reader) => ({
    name: 'CCIPMessageSent' as const,
    destChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
    message: readSentMessage(reader),
  }),
  OfframpAdded: (reader) => ({ name: 'OfframpAdded' as const, ...offRampListing(reader) }),
  OfframpRemoved: (reader) => ({ name: 'OfframpRemoved' as const, ...offRampListing(reader) }),
  CcipVersionForDestChainVersionBumped: (reader) => ({
    name: 'CcipVersionForDestChainVersionBumped' as const,
    ...renumbering(reader),
  }),
  CcipVersionForDestChainVersionRolledBack: (reader) => ({
    name: 'CcipVersionForDestChainVersionRolledBack' as const,
    ...renumbering(reader),
  }),
  /** Without a root it updates prices only. */
  CommitReportAccepted: (reader) => {
    const root = reader.option(readMerkleRoot);
    skipPriceUpdates(reader);
    return { name: 'CommitReportAccepted' as const, root };
  },
  ExecutionStateChanged: (reader) => ({
    name: 'ExecutionStateChanged' as const,
    sourceChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
    messageId: reader.hash(),
    /** The leaf of the merkle tree. */
    messageHash: reader.hash(),
    state: reader.u8(),
  }),
  SkippedAlreadyExecutedMessage: (reader) => ({
    name: 'SkippedAlreadyExecutedMessage' as const,
    sourceChainSelector: reader.u64(),
    sequenceNumber: reader.u64(),
  }),
} satisfies Layouts;

export type EventName = keyof typeof events;
export type EventOf<Name extends EventName> = Readonly<ReturnType<(typeof events)[Name]>>;

export const eventNameOf = nameFinder('event', Object.keys(events) as EventName[]);

/** Throws an UnreadableDataError where the bytes do not have the event's layout. */
export function readEvent(name: EventName, data: Uint8Array): EventOf<EventName> {
  return readBorsh<EventOf<EventName>>(data.subarray(DISCRIMINATOR_BYTES), events[name]);
}

// ---- Instructions

const instructions = {
  ccip_send: (reader) => {
    const destChainSelector = reader.u64();
    reader.bytes(); // receiver
    reader.bytes(); // data
    const tokens = reader.list((item) => ({ mint: item.publicKey(), amount: item.u64() }));
    reader.publicKey(); // fee token
    reader.bytes(); // extra arguments
    reader.bytes(); // token indexes
    return { name: 'ccip_send' as const, destChainSelector, tokens };
  },
  commit: (reader) => {
    reader.fixed(64); // report context
    const report = new BorshReader(reader.bytes());
    skipPriceUpdates(report);
    const root = report.option(readMerkleRoot);
    report.list((item) => item.fixed(64)); // signatures of the risk management network
    reader.list((item) => item.fixed(32)); // rs
    reader.list((item) => item.fixed(32)); // ss
    reader.fixed(32); // vs
    return { name: 'commit' as const, root };
  },
  execute: (reader) => {
    const report = readReport(reader.bytes());
    reader.fixed(64); // report context
    reader.bytes(); // token indexes
    return { name: 'execute' as const, report };
  },
  manually_execute: (reader) => {
    const report = readReport(reader.bytes());
    reader.bytes(); // token indexes
    return { name: 'manually_execute' as const, report };
  },
} satisfies Layouts;

export type InstructionName = keyof typeof instructions;
export type InstructionOf<Name extends InstructionName> = Readonly<ReturnType<(typeof instructions)[Name]>>;

export const instructionNameOf = nameFinder('global', Object.keys(instructions) as InstructionName[]);

/** Throws an UnreadableDataError where the bytes do not have the instruction's layout. */
export function readInstruction(name: InstructionName, data: Uint8Array): InstructionOf<InstructionName> {
  return instructions[name](new BorshReader(data.subarray(DISCRIMINATOR_BYTES)));
}

const RELAY = discriminatorOf('global', 'cpi_event');

/** The event that the router hands to rmn_remote from version 1.6.1 on; undefined for any other instruction. */
export function relayedEvent(data: Uint8Array): Uint8Array | undefined {
  if (discriminatorIn(data) !== RELAY) return undefined;
  return readBorsh(data.subarray(DISCRIMINATOR_BYTES), (reader) => reader.bytes());
}

/** `emit_cpi!` of Anchor: an instruction of a program to itself. */
const SELF_CALL = 'e445a52e51cb9a1d';

const selfEmittedName = nameFinder('event', ['CCIPMessageSentV2', 'ExecutionStateChangedV2']);

/** The name of an event of CCIP 2.0, for which there is no decoder; undefined for any other instruction. */
export function selfEmittedEventName(data: Uint8Array): string | undefined {
  if (discriminatorIn(data) !== SELF_CALL) return undefined;
  return selfEmittedName(data.subarray(DISCRIMINATOR_BYTES));
}

// ---- Extra arguments: what the sender asked of the execution, as the router emits it

/** EVM, Aptos and TON. */
const GENERIC_V2 = '181dcf10';
const SVM_V1 = '1f3b3aba';
const SUI_V1 = '21ea4ca9';

/** Sui's list of objects has no place in the record, which shows the rest in the shape of EVM's. */
export function readExtraArgs(extraArgs: Uint8Array): Message['extraArgs'] {
  const tag = hex.encode(extraArgs.subarray(0, 4));
  return readBorsh(extraArgs.subarray(4), (reader) => {
    if (tag === SVM_V1)
      return {
        computeUnits: reader.u32(),
        accountIsWritableBitmap: reader.u64().toString(),
        allowOutOfOrderExecution: reader.bool(),
        tokenReceiver: reader.publicKey(),
        accounts: [...reader.list((item) => item.publicKey())],
      };
    if (tag !== GENERIC_V2 && tag !== SUI_V1)
      throw new UnreadableDataError(`the extra arguments have the unknown tag 0x${tag}`);
    const generic = { gasLimit: reader.u128().toString(), allowOutOfOrderExecution: reader.bool() };
    if (tag === SUI_V1) {
      reader.fixed(32); // token receiver
      reader.list((item) => item.fixed(32)); // objects of the receiver
    }
    return generic;
  });
}
