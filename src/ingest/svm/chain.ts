/** What the Solana indexer asks of a node, and the shapes of the answers. All of it is of finalized slots. */
import type { Network } from '../../domain/networks/networks.ts';
import type { EndpointPool } from '../engine/json-rpc/endpoint-pool.ts';
import type { Account } from './accounts.ts';
import type { SolanaTransaction } from './transaction.ts';

/** An entry of the list of an address's transactions. */
export interface SignatureInfo {
  readonly signature: string;
  readonly slot: number;
  readonly isFailed: boolean;
}

export interface FinalizedHead {
  readonly slot: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

export interface SignatureQuery {
  readonly address: string;
  /** Only older ones than this signature. */
  readonly before?: string;
  readonly limit: number;
  /** A slot that the node must have reached: one that lags would answer with a shorter list. */
  readonly minContextSlot: number;
}

/** A transaction that the node has and rejects, for its version. */
export interface UnknownVersion {
  readonly signature: string;
  /** Which version, and what to do. */
  readonly problem: string;
}

/** One endpoint for the duration of one piece of work. Every answer has been checked for shape and plausibility. */
export interface ChainNode {
  /** Host of the endpoint, for people; never its path or credentials. */
  readonly name: string;
  /** The newest finalized slot. */
  head(): Promise<FinalizedHead>;
  /** The time of the first slot with a block at or above this one, in seconds since 1970; undefined where it has none. */
  timeAt(slot: number): Promise<number | undefined>;
  /** The lowest slot whose block it has. */
  firstAvailableSlot(): Promise<number>;
  /** Newest first, none twice. A short list, or an empty one, does not prove that there is no more. */
  signatures(query: SignatureQuery): Promise<readonly SignatureInfo[]>;
  /** Whether it knows a transaction. Lists behind an unknown one are empty on older nodes. */
  knows(signature: string): Promise<boolean>;
  /** In the order asked for; a missing transaction is the node's fault. */
  transactions(
    signatures: readonly SignatureInfo[],
  ): Promise<readonly (SolanaTransaction | UnknownVersion)[]>;
  /**
   * In the order asked for: a transaction; `absent` where the node keeps its slot and does not have it there; `unknown`
   * where it cannot tell. Its slot is where another endpoint has it.
   */
  find(
    signatures: readonly Pick<SignatureInfo, 'signature' | 'slot'>[],
  ): Promise<readonly (SolanaTransaction | UnknownVersion | 'absent' | 'unknown')[]>;
  /**
   * In the order asked for; undefined for an account that does not exist.
   *
   * @param maxBytes of each account's data, from its beginning; all of it where it is left out
   */
  accounts(
    addresses: readonly string[],
    minContextSlot: number,
    maxBytes?: number,
  ): Promise<readonly (Account | undefined)[]>;
}

/** A network through the pool of its endpoints. */
export interface Chain extends EndpointPool<ChainNode> {
  readonly network: Network;
}
