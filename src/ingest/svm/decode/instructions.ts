/**
 * The instructions of router and off-ramp that change what is recorded, from their data. Logs may be cut, instructions
 * never are. The programs ignore bytes behind the arguments and behind a report, which anybody may add, so these are
 * ignored here too.
 */
import { BorshReader, type Hex, readBorsh } from './borsh.ts';
import {
  DISCRIMINATOR_BYTES,
  type Discriminator,
  discriminatorIn,
  discriminatorOf,
} from './discriminators.ts';
import {
  type MerkleRoot,
  type MessageHeader,
  readMerkleRoot,
  readMessageHeader,
  skipPriceUpdates,
} from './events.ts';

/** A token transfer as the off-ramp receives it. */
export interface ReceivedTokenAmount {
  readonly sourcePoolAddress: Uint8Array;
  readonly destTokenAddress: string;
  readonly destGasAmount: number;
  readonly extraData: Uint8Array;
  readonly amount: bigint;
}

/** `Any2SVMRampMessage`. */
export interface ReceivedRampMessage {
  readonly header: MessageHeader;
  readonly sender: Uint8Array;
  readonly data: Uint8Array;
  readonly tokenReceiver: string;
  readonly tokenAmounts: readonly ReceivedTokenAmount[];
  readonly computeUnits: number;
  readonly isWritableBitmap: bigint;
}

/** `ExecutionReportSingleChain`. */
export interface ExecutionReport {
  readonly sourceChainSelector: bigint;
  readonly message: ReceivedRampMessage;
  readonly proofs: readonly Hex[];
}

export type CcipInstruction =
  | {
      readonly name: 'ccip_send';
      readonly destChainSelector: bigint;
      readonly tokens: readonly { readonly mint: string; readonly amount: bigint }[];
    }
  | { readonly name: 'commit'; readonly root: MerkleRoot | undefined }
  | {
      readonly name: 'execute' | 'manually_execute';
      /** Undefined where the report is in an account of its own (buffered). */
      readonly report: ExecutionReport | undefined;
    };

export type InstructionName = CcipInstruction['name'];

type Layouts = { readonly [Name in InstructionName]: (reader: BorshReader) => CcipInstruction };

const layouts: Layouts = {
  ccip_send: (reader) => {
    const destChainSelector = reader.u64();
    reader.bytes(); // receiver
    reader.bytes(); // data
    const tokens = reader.list((item) => ({ mint: item.publicKey(), amount: item.u64() }));
    reader.publicKey(); // fee token
    reader.bytes(); // extra arguments
    reader.bytes(); // token indexes
    return { name: 'ccip_send', destChainSelector, tokens };
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
    return { name: 'commit', root };
  },
  execute: (reader) => {
    const report = readReport(reader.bytes());
    reader.fixed(64); // report context
    reader.bytes(); // token indexes
    return { name: 'execute', report };
  },
  manually_execute: (reader) => {
    const report = readReport(reader.bytes());
    reader.bytes(); // token indexes
    return { name: 'manually_execute', report };
  },
};

const names: ReadonlyMap<Discriminator, InstructionName> = new Map(
  (Object.keys(layouts) as InstructionName[]).map((name) => [discriminatorOf('global', name), name]),
);

/** Undefined for an instruction that changes nothing that is recorded. */
export function instructionNameOf(data: Uint8Array): InstructionName | undefined {
  return names.get(discriminatorIn(data));
}

/** Throws an UnreadableDataError where the bytes do not have the instruction's layout. */
export function readInstruction(name: InstructionName, data: Uint8Array): CcipInstruction {
  return layouts[name](new BorshReader(data.subarray(DISCRIMINATOR_BYTES)));
}

const RELAY = discriminatorOf('global', 'cpi_event');

/** The event that the router hands to rmn_remote from version 1.6.1 on; undefined for any other instruction. */
export function relayedEvent(data: Uint8Array): Uint8Array | undefined {
  if (discriminatorIn(data) !== RELAY) return undefined;
  return readBorsh(data.subarray(DISCRIMINATOR_BYTES), (reader) => reader.bytes());
}

/** `emit_cpi!` of Anchor: an instruction of a program to itself. */
const SELF_CALL = 'e445a52e51cb9a1d';

const selfEmittedNames: ReadonlyMap<Discriminator, string> = new Map(
  ['CCIPMessageSentV2', 'ExecutionStateChangedV2'].map((name) => [discriminatorOf('event', name), name]),
);

/** The name of an event of CCIP 2.0, for which there is no decoder; undefined for any other instruction. */
export function selfEmittedEventName(data: Uint8Array): string | undefined {
  if (discriminatorIn(data) !== SELF_CALL) return undefined;
  return selfEmittedNames.get(discriminatorIn(data.subarray(DISCRIMINATOR_BYTES)));
}

function readReport(bytes: Uint8Array): ExecutionReport | undefined {
  if (bytes.length === 0) return undefined;
  const reader = new BorshReader(bytes);
  const sourceChainSelector = reader.u64();
  const message = readReceivedMessage(reader);
  reader.list((item) => item.bytes()); // off-chain data of tokens
  return { sourceChainSelector, message, proofs: reader.list((item) => item.hash()) };
}

function readReceivedMessage(reader: BorshReader): ReceivedRampMessage {
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
