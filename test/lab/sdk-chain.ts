/**
 * The parts of the official client that read a chain and execute by hand.
 *
 * As in `sdk.ts`, the types are our own, of just what is used, so that the sources type-check without the lab's
 * packages.
 */
import { loadSdk, type SdkContext, type SdkExecutionInput, type SdkLane, type SdkRequest } from './sdk.ts';

export type SdkMessage = SdkRequest['message'];

interface SdkLog {
  readonly topics: readonly string[];
  readonly data: string;
  readonly address: string;
  readonly index: number;
  readonly transactionHash: string;
}

type Topics = Pick<SdkLog, 'topics' | 'data'>;

interface SdkCommit {
  readonly report: {
    readonly sourceChainSelector: bigint;
    readonly onRampAddress: string;
    readonly minSeqNr: bigint;
    readonly maxSeqNr: bigint;
    readonly merkleRoot: string;
  };
  readonly log: { readonly transactionHash: string };
}

interface SdkExecution {
  readonly receipt: {
    readonly messageId: string;
    /** Up to 1.6. */
    readonly sequenceNumber?: bigint;
    /** 1 in progress, 2 success, 3 failed. */
    readonly state: number;
    readonly returnData?: unknown;
  };
  readonly log: { readonly transactionHash: string; readonly blockNumber: number; readonly index: number };
  readonly timestamp: number;
}

/** What the client signs with; opaque here. */
type SdkWallet = { readonly getAddress: () => Promise<string> };

/** What it can do on chains of every family. */
interface SdkChain {
  getMessagesInTx(transactionHash: string): Promise<readonly SdkRequest[]>;
  /** The commit of a message; up to 1.6 only. The options are changed by the client. */
  getVerifications(options: {
    offRamp: string;
    request: Pick<SdkRequest, 'lane' | 'message'> & { readonly tx: { readonly timestamp: number } };
    startBlock?: number;
  }): Promise<SdkCommit>;
  getExecutionReceipts(options: {
    offRamp: string;
    messageId: string;
    sourceChainSelector: bigint;
    startBlock?: number;
    startTime?: number;
  }): AsyncIterable<SdkExecution>;
  getTokenForTokenPool(pool: string): Promise<string>;
  destroy(): void;
}

export interface SdkEvmChain extends SdkChain {
  readonly provider: { getSigner(address: string): Promise<SdkWallet> };
  execute(
    options: { readonly wallet: SdkWallet } & (
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
  getRouterForOnRamp(onRamp: string, destChainSelector: bigint): Promise<string>;
}

export interface SdkSolanaChain extends SdkChain {
  getTransaction(signature: string): Promise<{ readonly error: unknown; readonly logs: readonly SdkLog[] }>;
}

/** With an API client of null it reads chains only. */
type SdkChainContext = SdkContext & { readonly apiClient: object | null };

interface SdkParts {
  readonly EVMChain: {
    fromUrl(url: string, context: SdkChainContext): Promise<SdkEvmChain>;
    /** Undefined for a log that is no message. */
    decodeMessage(log: Topics): SdkMessage | undefined;
  };
  readonly SolanaChain: {
    fromUrl(url: string, context: SdkChainContext): Promise<SdkSolanaChain>;
    /** Undefined for a log that is no message. */
    decodeMessage(log: Pick<SdkLog, 'data'>): SdkMessage | undefined;
    decodeCommits(log: SdkLog, lane?: SdkLane): readonly SdkCommit['report'][] | undefined;
    /** Leaves of messages to this chain. */
    getDestLeafHasher(lane: SdkLane, context: SdkContext): (message: object) => string;
  };
  encodeExtraArgs(args: Readonly<Record<string, unknown>>): `0x${string}`;
  /** What the client makes of an element of `messageBatch`. */
  decodeMessage(json: string): SdkMessage;
  calculateManualExecProof(
    messagesInBatch: readonly SdkMessage[],
    lane: SdkLane,
    messageId: string,
    merkleRoot?: string,
    context?: SdkContext,
  ): {
    readonly merkleRoot: `0x${string}`;
    readonly proofs: readonly `0x${string}`[];
    readonly proofFlagBits: bigint;
  };
}

export const { EVMChain, SolanaChain, encodeExtraArgs, decodeMessage, calculateManualExecProof } =
  await loadSdk<SdkParts>();

/** Without a logger the client writes what it does to the console. */
export const silent = { debug() {}, info() {}, warn() {}, error() {} };
