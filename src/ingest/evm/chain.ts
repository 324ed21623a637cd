/**
 * What the indexer asks of a chain, and the ways in which a node can fail to answer.
 *
 * Work is done node by node: `Chain.run` hands a piece of work to the healthiest endpoint, so that all it reads comes
 * from one view of the chain, and gives the same work to the next endpoint when this one is at fault.
 */
import type { ProblemKind } from '../../domain/indexing-problem.ts';
import type { Network } from '../../domain/networks.ts';

/** `0x` and hexadecimal digits, lower case. */
export type Hex = `0x${string}`;

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
}

export interface ContractCall {
  readonly to: Hex;
  readonly data: Hex;
}

/** Undefined: the contract refused, or there is none at this address. A node that cannot answer throws instead. */
export type CallAnswer = Hex | undefined;

/** One endpoint for the duration of one piece of work. Every answer has been checked for shape and plausibility. */
export interface ChainNode {
  /** Host of the endpoint, for people; never its path or credentials. */
  readonly name: string;
  head(): Promise<Block>;
  /** The newest final block by the network's configuration: the node's own word, or a depth below `head`. */
  finalized(head: Block): Promise<Block>;
  /** In the order asked for; a missing block is the node's fault. */
  blocks(numbers: readonly number[]): Promise<readonly Block[]>;
  /** Undefined where the node knows no block of that hash. */
  blockByHash(hash: Hex): Promise<Block | undefined>;
  /** In the order of the chain, none twice. Throws a RangeTooLarge where the node wants a shorter range. */
  logs(filter: LogFilter): Promise<readonly ChainLog[]>;
  /** Of single blocks, in the order asked for. */
  logsOfBlocks(hashes: readonly Hex[], topics: readonly Hex[]): Promise<readonly (readonly ChainLog[])[]>;
  /** The same by the blocks' receipts, another way into the node's data; undefined where it does not offer them. */
  receiptLogs(
    hashes: readonly Hex[],
    topics: readonly Hex[],
  ): Promise<readonly (readonly ChainLog[])[] | undefined>;
  /** In the order asked for; a missing transaction is the node's fault. */
  transactions(hashes: readonly Hex[]): Promise<readonly Transaction[]>;
  /** In the order asked for, on the newest state. */
  calls(calls: readonly ContractCall[]): Promise<readonly CallAnswer[]>;
}

export interface EndpointHealth {
  readonly name: string;
  readonly healthy: boolean;
  /** Why it is not, for people. */
  readonly problem: string | null;
  readonly headBlock: number | null;
  readonly requests: number;
  readonly failures: number;
}

export interface Chain {
  readonly network: Network;
  /**
   * Runs `work` on an endpoint whose head is at `minimumHead` or above. Where it throws a NodeFault, or the endpoint
   * fails, the endpoint is set back and the next one gets the same work; the last error is thrown when none is left.
   */
  run<T>(work: (node: ChainNode) => Promise<T>, minimumHead?: number): Promise<T>;
  /**
   * Another healthy endpoint whose head is at `minimumHead` or above, where there is one: for a second opinion within
   * a piece of work.
   */
  secondOpinion<T>(
    first: ChainNode,
    work: (node: ChainNode) => Promise<T>,
    minimumHead?: number,
  ): Promise<T | undefined>;
  health(): readonly EndpointHealth[];
  /** Ends what is under way; nothing can be asked afterwards. */
  close(): void;
}

/** An endpoint gave an answer that is wrong, incomplete or contradicts itself; or none. */
export class NodeFault extends Error {
  override readonly name: string = 'NodeFault';
  readonly kind: ProblemKind;
  constructor(message: string, kind: ProblemKind = 'bad-answer') {
    super(message);
    this.kind = kind;
  }
}

/** A node that is there and lets us in refuses this question; it may well answer the next one. */
export class QuestionRefused extends NodeFault {}

/** The node refuses to answer for so many blocks or logs at once; no fault. */
export class RangeTooLarge extends Error {
  override readonly name = 'RangeTooLarge';
  /** How many blocks it would take, where it says so. */
  readonly acceptedBlocks: number | undefined;
  constructor(message: string, acceptedBlocks?: number) {
    super(message);
    this.acceptedBlocks = acceptedBlocks;
  }
}
