/** What the lab asks of a version's contracts: the same for every version, however it is done. */
import type { Hex } from 'viem';
import type { Version } from './foundation.ts';
import type { Contract, ContractEvent, NetworkKey, RawLog, RawReceipt } from './network.ts';
import type { SdkMessage } from './sdk-chain.ts';

/** The contracts of one lane. */
export interface Ramps {
  /** On the source. */
  readonly onRamp: Contract;
  /** On the destination. */
  readonly offRamp: Contract;
  /** On the destination; up to 1.5 only. */
  readonly commitStore?: Contract;
}

/** Addresses and hashes are in lower case. */
export interface SentMessage {
  readonly version: Version;
  readonly from: NetworkKey;
  readonly ramps: Ramps;
  readonly messageId: Hex;
  readonly sequenceNumber: bigint;
  /** Zero: may be executed in any order. Always zero from 2.0 on. */
  readonly nonce: bigint;
  /** The account or contract that called the router. */
  readonly sender: Hex;
  /** The account that signed the transaction. */
  readonly origin: Hex;
  readonly receiver: Hex;
  readonly transactionHash: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly logIndex: number;
  readonly log: RawLog;
  /** The event's arguments. */
  readonly args: Readonly<Record<string, unknown>>;
  /** What the official client makes of the log; decoded when first asked for. */
  readonly decoded: SdkMessage;
}

/** A root over messages with consecutive sequence numbers. */
export interface Commit {
  readonly messages: readonly SentMessage[];
  readonly merkleRoot: Hex;
  readonly minSequenceNumber: bigint;
  readonly maxSequenceNumber: bigint;
  /** 1.6: the root came with signatures of the RMN. */
  readonly isBlessed: boolean;
  readonly transactionHash: Hex;
  readonly blockNumber: number;
  readonly log: RawLog;
}

/** A root that the RMN has voted for. */
export interface Blessing {
  readonly commit: Commit;
  readonly transactionHash: Hex;
  readonly blockNumber: number;
  readonly log: RawLog;
}

export interface VerifierResults {
  /** On the destination, in the order of the results. */
  readonly ccvs: readonly Hex[];
  readonly results: readonly Hex[];
}

export interface ExtraArgsOptions {
  readonly from: NetworkKey;
  readonly gasLimit: bigint;
  readonly outOfOrder: boolean;
  /** From 2.0 on. */
  readonly finality: 'finalized' | 'safe' | number;
  /** From 2.0 on: how many verifiers the sender asks for by name. */
  readonly verifiers: number;
}

/** One version on both networks. */
export interface Deployment {
  readonly version: Version;
  readonly routers: Readonly<Record<NetworkKey, Contract>>;
  /** Whatever has an address, by name; ramps excepted. */
  readonly contracts: Readonly<Record<NetworkKey, Readonly<Record<string, Hex>>>>;
  /** Makes and configures new ramps from a network to the other; the routers do not know them yet. */
  createRamps(from: NetworkKey): Promise<Ramps>;
  extraArgs(options: ExtraArgsOptions): Hex;
  /** The event that tells of a message, on the on-ramp. */
  readonly sentEvent: string;
  readSent(
    event: ContractEvent,
  ): Pick<SentMessage, 'messageId' | 'sequenceNumber' | 'nonce' | 'sender' | 'receiver'>;
  /** Up to 1.6. The messages are consecutive. */
  commit?(
    ramps: Ramps,
    messages: readonly SentMessage[],
    options: { readonly blessed: boolean },
  ): Promise<Commit>;
  /** Up to 1.5. */
  bless?(ramps: Ramps, commit: Commit): Promise<Blessing>;
  /** From 2.0 on: of the verifiers that the destination asks for. */
  verifierResults?(message: SentMessage): Promise<VerifierResults>;
  /** As the oracle network does it. `commit` is there up to 1.6. */
  execute(message: SentMessage, commit: Commit | undefined): Promise<RawReceipt>;
  /** As anybody may do it, once it has failed or waited long enough. A gas limit of 0 leaves the sender's. */
  executeByHand(
    message: SentMessage,
    commit: Commit | undefined,
    options: { readonly from: Hex; readonly gasLimit: bigint },
  ): Promise<RawReceipt>;
}

/** How long after a commit anybody may execute. Up to 1.6. */
export const PERMISSIONLESS_AFTER_SECONDS = 600;

export function otherNetwork(key: NetworkKey): NetworkKey {
  return key === 'a' ? 'b' : 'a';
}
