/**
 * The parts of the official client that read a chain and execute by hand.
 *
 * As in `sdk.ts`, the types are our own, of just what is used, so that the sources type-check without the lab's
 * packages.
 */
import { loadSdk, type SdkExecutionInput, type SdkLane, type SdkRequest } from './sdk.ts';

export type SdkMessage = SdkRequest['message'];

interface Topics {
  readonly topics: readonly string[];
  readonly data: string;
  readonly address?: string;
}

export interface SdkCommit {
  readonly report: {
    readonly sourceChainSelector: bigint;
    readonly onRampAddress: string;
    readonly minSeqNr: bigint;
    readonly maxSeqNr: bigint;
    readonly merkleRoot: string;
  };
  readonly log: { readonly transactionHash: string };
}

export interface SdkExecution {
  readonly receipt: {
    readonly messageId: string;
    /** Up to 1.6. */
    readonly sequenceNumber?: bigint;
    /** The same from 2.0 on. */
    readonly messageNumber?: bigint;
    /** 1 in progress, 2 success, 3 failed. */
    readonly state: number;
    readonly returnData?: unknown;
  };
  readonly log: { readonly transactionHash: string; readonly blockNumber: number; readonly index: number };
  readonly timestamp: number;
}

/** What the client signs with; opaque here. */
export type SdkWallet = { readonly getAddress: () => Promise<string> };

export interface SdkEvmChain {
  readonly provider: { getSigner(address: string): Promise<SdkWallet> };
  getMessagesInTx(transactionHash: string): Promise<readonly SdkRequest[]>;
  getMessagesInBatch(
    request: SdkRequest,
    range: { readonly minSeqNr: bigint; readonly maxSeqNr: bigint },
  ): Promise<readonly SdkMessage[]>;
  /** The commit of a message; up to 1.6 only. The options are changed by the client. */
  getVerifications(options: {
    offRamp: string;
    request: SdkRequest;
    startBlock?: number;
  }): Promise<SdkCommit>;
  getExecutionReceipts(options: {
    offRamp: string;
    messageId: string;
    sourceChainSelector: bigint;
    startBlock?: number;
    startTime?: number;
  }): AsyncIterable<SdkExecution>;
  execute(
    options: { readonly wallet: SdkWallet; readonly gasLimit?: number } & (
      | { readonly offRamp: string; readonly input: SdkExecutionInput }
      | { readonly messageId: string }
    ),
  ): Promise<SdkExecution>;
  /** What `execute` would send. */
  generateUnsignedExecute(options: {
    readonly offRamp: string;
    readonly input: SdkExecutionInput;
    readonly payer: string;
  }): Promise<{ readonly transactions: readonly { readonly data: string }[] }>;
  getTokenForTokenPool(pool: string): Promise<string>;
  getRouterForOnRamp(onRamp: string, destChainSelector: bigint): Promise<string>;
  destroy(): void;
}

export interface SdkChainContext {
  /** Null: reads chains only, never an API. */
  readonly apiClient: object | null;
  readonly logger?: Pick<Console, 'debug' | 'info' | 'warn' | 'error'>;
}

export interface SdkProof {
  readonly merkleRoot: `0x${string}`;
  readonly proofs: readonly `0x${string}`[];
  readonly proofFlagBits: bigint;
}

interface SdkParts {
  readonly EVMChain: {
    fromUrl(url: string, context: SdkChainContext): Promise<SdkEvmChain>;
    /** Undefined for a log that is no message. */
    decodeMessage(log: Topics): SdkMessage | undefined;
    decodeReceipt(log: Topics): SdkExecution['receipt'] | undefined;
    decodeCommits(log: Topics, lane?: SdkLane): readonly SdkCommit['report'][] | undefined;
  };
  encodeExtraArgs(args: Readonly<Record<string, unknown>>): `0x${string}`;
  /** What the client makes of an element of `messageBatch`. */
  decodeMessage(json: string): SdkMessage;
  calculateManualExecProof(
    messagesInBatch: readonly SdkMessage[],
    lane: SdkLane,
    messageId: string,
    merkleRoot?: string,
    context?: Pick<SdkChainContext, 'logger'>,
  ): SdkProof;
  discoverOffRamp(
    source: SdkEvmChain,
    dest: SdkEvmChain,
    onRamp: string,
    context?: Pick<SdkChainContext, 'logger'>,
  ): Promise<string>;
}

export const { EVMChain, encodeExtraArgs, decodeMessage, calculateManualExecProof, discoverOffRamp } =
  await loadSdk<SdkParts>();

/** Without a logger the client writes what it does to the console. */
export const silent = { debug() {}, info() {}, warn() {}, error() {} };
