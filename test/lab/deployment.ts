/** What the lab asks of a version's contracts: the same for every version, however it is done. */
import type { Hex } from 'viem';
import type { Foundation, Foundations, Version } from './foundation.ts';
import type { Contract, NetworkKey, RawLog, RawReceipt } from './network.ts';
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
  /** What the official client makes of the log. */
  readonly decoded: SdkMessage;
}

/** A root over messages with consecutive sequence numbers. */
export interface Commit {
  readonly messages: readonly SentMessage[];
  readonly merkleRoot: Hex;
  /** 1.6: the root came with signatures of the RMN. */
  readonly isBlessed: boolean;
  readonly transactionHash: Hex;
  readonly blockNumber: number;
}

export interface VerifierResults {
  /** On the destination, in the order of the results. */
  readonly ccvs: readonly Hex[];
  readonly results: readonly Hex[];
}

/** One version on both networks. */
export interface Deployment {
  readonly version: Version;
  readonly routers: Readonly<Record<NetworkKey, Contract>>;
  /** Whatever has an address, by name; ramps excepted. */
  readonly contracts: Readonly<Record<NetworkKey, Readonly<Record<string, Hex>>>>;
  /** Makes and configures new ramps from a network to the other; the routers do not know them yet. */
  createRamps(from: NetworkKey): Promise<Ramps>;
  /** From 2.0 on with a finality, and how many verifiers the sender asks for by name. */
  extraArgs(options: {
    readonly from: NetworkKey;
    readonly gasLimit: bigint;
    readonly outOfOrder: boolean;
    readonly finality: 'finalized' | 'safe' | number;
    readonly verifiers: number;
  }): Hex;
  /** The event that tells of a message, on the on-ramp. */
  readonly sentEvent: string;
  /** Up to 1.6. The messages are consecutive. */
  commit?(
    ramps: Ramps,
    messages: readonly SentMessage[],
    options: { readonly blessed: boolean },
  ): Promise<Commit>;
  /** Up to 1.5. */
  bless?(ramps: Ramps, commit: Commit): Promise<RawReceipt>;
  /** From 2.0 on: of the verifiers that the destination asks for. */
  verifierResults?(message: SentMessage): Promise<VerifierResults>;
  /** As the oracle network does it. `commit` is there up to 1.6. */
  execute(message: SentMessage, commit: Commit | undefined): Promise<RawReceipt>;
  /** As anybody may do it, once it has failed or waited long enough. */
  executeByHand(message: SentMessage, commit: Commit | undefined, from: Hex): Promise<RawReceipt>;
}

/** How long after a commit anybody may execute. Up to 1.6. */
export const PERMISSIONLESS_AFTER_SECONDS = 600;

export function otherNetwork(key: NetworkKey): NetworkKey {
  return key === 'a' ? 'b' : 'a';
}

/** Deploys a version on both networks, and all of its lanes but their ramps. */
export async function deploySites<
  Site extends { readonly router: Contract; readonly addresses: Readonly<Record<string, Hex>> },
>(
  foundations: Foundations,
  deploySite: (foundation: Foundation) => Promise<Site>,
  connectSite: (source: Site, dest: Site) => Promise<void>,
) {
  const [a, b] = await Promise.all([deploySite(foundations.a), deploySite(foundations.b)]);
  await Promise.all([connectSite(a, b), connectSite(b, a)]);
  return {
    sites: { a, b },
    routers: { a: a.router, b: b.router },
    contracts: { a: a.addresses, b: b.addresses },
  };
}

/** The addresses of the contracts that there are. */
export function addressesOf(
  contracts: Readonly<Record<string, Contract | undefined>>,
  [pool, coinPool]: readonly [Contract, Contract],
): Readonly<Record<string, Hex>> {
  return Object.fromEntries(
    Object.entries({ ...contracts, pool, coinPool }).flatMap(([name, contract]) =>
      contract ? [[name, contract.address]] : [],
    ),
  );
}
