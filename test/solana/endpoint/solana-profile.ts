/**
 * The profile of a Solana RPC endpoint as data: its limits, its wordings, what it leaves out and how it lies.
 * `node.ts` behaves accordingly. Whatever is left out is as on a current Agave node with the whole history.
 */
import type { CommonProfile, RpcErrorReply } from '../../virtual-chain/endpoint-profile.ts';

export interface SignatureTraits {
  /** Pages are silently limited to so many signatures. */
  readonly pageMax?: number;
  /** One page in so many silently ends early. */
  readonly shortEvery?: number;
  /** One page in so many is empty. */
  readonly emptyEvery?: number;
  /** One page in so many lacks a signature in its middle. */
  readonly leavesOutEvery?: number;
  /** One entry in so many is there twice. */
  readonly repeatsEvery?: number;
  /** The order of the signatures of one slot. */
  readonly order?: 'reversed in a slot';
  /** A `before` or `until` that it does not know: as Agave before September 2025. An error where it is left out. */
  readonly unknownSignature?: 'silent';
  /** `blockTime` is null. */
  readonly hasNoTimes?: boolean;
}

export interface TransactionTraits {
  /** One transaction in so many is null, at this request. */
  readonly nullEvery?: number;
  /** One transaction in so many comes without its logs. 1: all. */
  readonly noLogsEvery?: number;
  /** Inner instructions are not recorded. */
  readonly hasNoInnerInstructions?: boolean;
  /** Instructions do not say their stack height, as before Agave 1.14. */
  readonly hasNoStackHeight?: boolean;
  /** One transaction in so many has this version, and is rejected for those who support only lower ones. */
  readonly newVersion?: { readonly version: number; readonly every: number };
  /** The time of every transaction, in seconds since 1970. */
  readonly time?: number;
  /** It rejects higher versions whatever the client supports. */
  readonly maxVersion?: number;
}

export interface SolanaProfile extends CommonProfile {
  readonly signatures?: SignatureTraits;
  readonly transactions?: TransactionTraits;
  /** Another cluster than it should be. */
  readonly genesisHash?: string;
  /** How many slots it is behind the cluster, at one in so many HTTP requests where `every` is given. */
  readonly lag?: {
    readonly slots: number;
    readonly every?: number;
    readonly ignoresMinContextSlot?: boolean;
  };
  /** Slots of history that it keeps below its head. `silent`: older entries are left out of lists, and older transactions are null. */
  readonly kept?: { readonly slots: number; readonly answer: 'silent' | RpcErrorReply };
  /** Calls for anything that is further below its head than so many slots fail at one in so many. */
  readonly longTermStorage?: {
    readonly belowSlots: number;
    readonly failsEvery: number;
    readonly error: RpcErrorReply;
  };
  /** Accounts seem not to exist. */
  readonly hasNoAccounts?: boolean;
}

/** A node with the whole history and without limits. */
export const archiveNode: SolanaProfile = {
  name: 'archive-node',
  seen: 'https://solana.com/docs/rpc',
};
