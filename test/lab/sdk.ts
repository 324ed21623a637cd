/**
 * The official CCIP client, for tests that hold the service to it.
 *
 * The types are our own, of just the parts that tests use: the sources type-check without the lab's 200
 * packages, and what the client really does is what the tests are there to find out. Loading takes two seconds.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

export interface SdkNetworkInfo {
  readonly name: string;
  readonly chainSelector: bigint;
  /** A number where the id is one (EVM, TON), else a string. */
  readonly chainId: number | string;
  readonly family: string;
  readonly networkType: 'MAINNET' | 'TESTNET';
}

export interface MessageSearchFilters {
  sender?: string;
  receiver?: string;
  sourceChainSelector?: bigint;
  destChainSelector?: bigint;
  sourceTransactionHash?: string;
  sourceTokenAddress?: string;
  readyForManualExecOnly?: boolean;
}

export interface MessageSearchResult {
  readonly messageId: string;
  readonly origin: string;
  readonly sender: string;
  readonly receiver: string;
  readonly status: string;
  readonly sourceNetworkInfo: SdkNetworkInfo;
  readonly destNetworkInfo: SdkNetworkInfo;
  readonly sendTransactionHash: string;
  readonly sendTimestamp: string;
}

export interface SdkLane {
  readonly sourceChainSelector: bigint;
  readonly destChainSelector: bigint;
  readonly onRamp: string;
  readonly version: string;
}

/** What the client makes of `GET /v2/messages/{id}`. Times are Unix seconds, JSON integers bigint. */
export interface SdkRequest {
  readonly lane: SdkLane;
  /** The decoded message; its fields depend on the lane's version and on the families of both ends. */
  readonly message: Readonly<Record<string, unknown>> & {
    readonly messageId: string;
    readonly sender: string;
    readonly receiver: string;
    readonly sequenceNumber: bigint;
    readonly tokenAmounts: readonly Readonly<Record<string, unknown>>[];
  };
  readonly log: {
    readonly transactionHash: string;
    readonly address: string;
    readonly index: number;
    readonly blockNumber: number;
  };
  readonly tx: {
    readonly hash: string;
    readonly timestamp: number;
    readonly from: string;
    readonly blockNumber: number;
  };
  readonly metadata: {
    readonly status: string;
    readonly readyForManualExecution: boolean;
    readonly receiptTransactionHash?: string;
    readonly receiptTimestamp?: number;
    readonly deliveryTime?: bigint;
    readonly sourceNetworkInfo: SdkNetworkInfo;
    readonly destNetworkInfo: SdkNetworkInfo;
    readonly offRamp?: string;
  };
}

/** Before version 2.0 a message with its Merkle proof, from then on an encoded message with verifications. */
export interface SdkExecutionInput extends SdkLane {
  readonly offRamp: string;
  readonly message?: { readonly messageId: string };
  readonly merkleRoot?: string;
  readonly proofs?: readonly unknown[];
  readonly offchainTokenData?: readonly unknown[];
  readonly encodedMessage?: string;
  readonly verifications?: readonly { readonly ccvData: unknown; readonly destAddress: string }[];
}

export interface CCIPAPIClient {
  readonly baseUrl: string;
  searchMessages(
    filters?: MessageSearchFilters,
    options?: { limit?: number; cursor?: string; signal?: AbortSignal },
  ): Promise<{
    readonly data: readonly MessageSearchResult[];
    readonly hasNextPage: boolean;
    readonly cursor?: string;
  }>;
  searchAllMessages(
    filters?: MessageSearchFilters,
    options?: { limit?: number; signal?: AbortSignal },
  ): AsyncGenerator<MessageSearchResult>;
  getMessageIdsInTx(transactionHash: string): Promise<string[]>;
  /** Remembered for 4 seconds by this client: to see a change, ask with a new client. */
  getMessageById(messageId: string): Promise<SdkRequest>;
  /** Remembered for 4 seconds, like `getMessageById`. */
  getExecutionInput(messageId: string): Promise<SdkExecutionInput>;
  getLaneLatency(
    sourceChainSelector: bigint,
    destChainSelector: bigint,
    numberOfBlocks?: number,
  ): Promise<{ readonly totalMs: number }>;
}

/** Without one the client writes every request to the console. */
export interface SdkContext {
  readonly logger?: Pick<Console, 'debug' | 'info' | 'warn' | 'error'>;
}

export interface SdkError extends Error {
  /** Such as `HTTP_ERROR` or `MESSAGE_ID_NOT_FOUND`. */
  readonly code: string;
  /** `status`, `apiErrorCode` and `apiErrorMessage` where a response was the cause. */
  readonly context: Readonly<Record<string, unknown>>;
  readonly isTransient: boolean;
}

interface Sdk {
  readonly CCIPAPIClient: {
    new (baseUrl?: string, context?: SdkContext): CCIPAPIClient;
    /** The same client for the same URL, whatever its context. */
    fromUrl(baseUrl?: string, context?: SdkContext): CCIPAPIClient;
  };
  readonly CCIPError: { isCCIPError(error: unknown): error is SdkError };
  networkInfo(selectorOrIdOrName: bigint | number | string): SdkNetworkInfo;
}

export const { CCIPAPIClient, CCIPError, networkInfo } = await loadSdk<Sdk>();

/** The client's module; each file declares the parts that it uses. */
export async function loadSdk<Parts>(): Promise<Parts> {
  const entry = createRequire(import.meta.url).resolve('@chainlink/ccip-sdk');
  return await import(pathToFileURL(entry).href);
}
