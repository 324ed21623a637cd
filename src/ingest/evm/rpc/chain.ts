/** What the EVM indexer asks of a node, and the shapes of the answers. */
import type { Hex } from '../../../base/hex.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import type { EndpointPool } from '../../engine/json-rpc/endpoint-pool.ts';

export type { Hex };

export interface Block {
  readonly number: number;
  readonly hash: Hex;
  readonly parentHash: Hex;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly logsBloom: Hex;
}

export interface ChainLog {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly transactionHash: Hex;
  readonly logIndex: number;
  /** Seconds since 1970, where the node says so. */
  readonly blockTimestamp?: number;
}

export interface Transaction {
  readonly hash: Hex;
  readonly from: Hex;
  /** Null for a transaction that creates a contract. */
  readonly to: Hex | null;
  readonly input: Hex;
}

export interface LogFilter {
  /** Both ends included. */
  readonly fromBlock: number;
  readonly toBlock: number;
  /** Any of these as the first topic. */
  readonly topics: readonly Hex[];
  /** Any of these as emitter; every contract where it is left out. */
  readonly addresses?: readonly Hex[];
  /** Whether other requests come first where the rate limit lets requests wait. */
  readonly isBulk?: boolean;
}

/** What an endpoint accepts in one filter, as far as is known. */
export interface FilterLimits {
  readonly needsAddress: boolean;
  /** Undefined: no limit was met. */
  readonly maxTopics: number | undefined;
  readonly maxAddresses: number | undefined;
  /** False where it rejects every query for logs. */
  readonly offersLogs: boolean;
}

export interface ContractCall {
  readonly to: Hex;
  readonly data: Hex;
}

export interface AccountQuestion {
  readonly address: Hex;
  readonly has: 'code' | 'balance';
  readonly block: number;
}

/** Undefined: the call reverted, or no contract is at this address. A node that cannot answer throws instead. */
export type CallAnswer = Hex | undefined;

/** Where the chain of one endpoint stands, by one request where the endpoint takes batches. */
export interface ChainTips {
  readonly head: Block;
  /** The newest final block by the network's configuration: the node's own word, or a depth below the head. */
  readonly final: Block;
  /** The block of the number that was asked for; undefined where the node has none. */
  readonly block: Block | undefined;
}

/** One endpoint for the duration of one piece of work. Every answer has been checked for shape and plausibility. */
export interface ChainNode {
  /** Host of the endpoint, for people; never its path or credentials. */
  readonly name: string;
  head(): Promise<Block>;
  /** @param number of a block to read with them */
  tips(number?: number): Promise<ChainTips>;
  /** The newest final block at or below `head`. */
  finalized(head: Block): Promise<Block>;
  /** In the order asked for; a missing block is the node's fault. */
  blocks(numbers: readonly number[]): Promise<readonly Block[]>;
  blockByHash(hash: Hex): Promise<Block | undefined>;
  /** What it accepts in one query for logs, as far as is known. Queries are split accordingly. */
  readonly logLimits: FilterLimits;
  /**
   * In the order of the chain, none twice. Throws a RangeTooLargeError where the node wants a shorter range, and an
   * AddressRequiredError where it does not give the logs of all contracts.
   */
  logs(filter: LogFilter): Promise<readonly ChainLog[]>;
  /**
   * Of single blocks, in the order asked for.
   *
   * @param addresses asked for where the node does not give the logs of all contracts
   */
  logsOfBlocks(
    hashes: readonly Hex[],
    topics: readonly Hex[],
    addresses?: readonly Hex[],
  ): Promise<readonly (readonly ChainLog[])[]>;
  /** The same by the blocks' receipts, another way into the node's data; undefined where it does not offer them. */
  receiptLogs(
    hashes: readonly Hex[],
    topics: readonly Hex[],
  ): Promise<readonly (readonly ChainLog[])[] | undefined>;
  /** Whether it shows any log at all of this block, of whatever contract; undefined where it does not answer. */
  hasLogs(hash: Hex): Promise<boolean | undefined>;
  /** In the order asked for; a missing transaction is the node's fault. */
  transactions(hashes: readonly Hex[]): Promise<readonly Transaction[]>;
  /**
   * Whether accounts had code, or a balance, as of a block, in the order asked for; undefined where the node does
   * not answer for that block. Some answer with nothing where they do not have its state.
   */
  accounts(questions: readonly AccountQuestion[]): Promise<readonly (boolean | undefined)[]>;
  /** In the order asked for, on the newest state. */
  calls(calls: readonly ContractCall[]): Promise<readonly CallAnswer[]>;
}

export interface Chain extends EndpointPool<ChainNode> {
  readonly network: Network;
}
