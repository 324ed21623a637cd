/**
 * The official client on Solana. As in `../sdk-chain.ts`, the types are our own, of just what is used, so that the sources
 * type-check without the lab's packages.
 */
import { loadSdk, type SdkLane, type SdkRequest } from '../sdk.ts';
import type { SdkChainContext, SdkCommit, SdkExecution, SdkMessage } from '../sdk-chain.ts';

export interface SdkLog {
  readonly topics: readonly string[];
  readonly data: string;
  readonly address: string;
  readonly index: number;
  readonly transactionHash: string;
}

export interface SdkSolanaChain {
  readonly network: { readonly name: string; readonly chainSelector: bigint };
  getTransaction(signature: string): Promise<{ readonly error: unknown; readonly logs: readonly SdkLog[] }>;
  getMessagesInTx(signature: string): Promise<readonly SdkRequest[]>;
  getMessagesInBatch(
    request: SdkRequest,
    range: { readonly minSeqNr: bigint; readonly maxSeqNr: bigint },
  ): Promise<readonly SdkMessage[]>;
  /** The commit of a message: from accounts where they are there, else from the off-ramp's history. */
  getVerifications(options: {
    offRamp: string;
    request: Pick<SdkRequest, 'lane' | 'message'> & { readonly tx: { readonly timestamp: number } };
    startBlock?: number;
  }): Promise<SdkCommit>;
  getExecutionReceipts(options: {
    offRamp: string;
    messageId: string;
    sourceChainSelector: bigint;
    startTime?: number;
  }): AsyncIterable<SdkExecution>;
  getOffRampsForRouter(router: string, sourceChainSelector: bigint): Promise<readonly string[]>;
  getOnRampsForOffRamp(offRamp: string, sourceChainSelector: bigint): Promise<readonly string[]>;
  getRouterForOffRamp(offRamp: string, sourceChainSelector: bigint): Promise<string>;
  getTokenForTokenPool(pool: string): Promise<string>;
  typeAndVersion(program: string): Promise<readonly string[]>;
  destroy?(): void;
}

interface SolanaParts {
  readonly SolanaChain: {
    fromUrl(url: string, context: SdkChainContext): Promise<SdkSolanaChain>;
    /** Undefined for a log that is no message. */
    decodeMessage(log: Pick<SdkLog, 'data'>): SdkMessage | undefined;
    decodeCommits(log: SdkLog, lane?: SdkLane): readonly SdkCommit['report'][] | undefined;
    /** Leaves of messages to this chain. */
    getDestLeafHasher(lane: SdkLane, context: Pick<SdkChainContext, 'logger'>): (message: object) => string;
  };
}

export const { SolanaChain } = await loadSdk<SolanaParts>();
