/**
 * The profile of an RPC endpoint as data: its limits, its wordings, what it leaves out and how it lies. `endpoint.ts`
 * behaves accordingly. Whatever is left out is as on an archive node without limits.
 */
import type { EndpointTraits } from '../json-rpc-server.ts';

/** An error as the endpoint words it. */
export interface RpcErrorReply {
  /** Of the JSON-RPC error; the error has none where it is left out. */
  readonly code?: number;
  /**
   * Placeholders: `{max}` the limit, `{count}` what was asked for, `{from}` and `{to}` the range that was asked for,
   * `{fromHex}` and `{acceptedToHex}` one that would be accepted.
   */
  readonly message: string;
  /** Of the HTTP answer; 200 where it is left out. */
  readonly status?: number;
  /** The HTTP body is this text, and no JSON-RPC at all. */
  readonly isPlainText?: boolean;
  /** Instead of any answer the connection is reset. */
  readonly isReset?: boolean;
}

export interface Limit {
  readonly max: number;
  readonly error: RpcErrorReply;
}

export interface LogTraits {
  /** Blocks in one request. */
  readonly blocks?: Limit;
  /** Blocks in one request whose filter has no address. */
  readonly blocksWithoutAddress?: Limit;
  /** Logs in one answer. */
  readonly results?: Limit;
  /** Alternatives for one topic. */
  readonly topics?: Limit;
  readonly addresses?: Limit;
  /** Filters without an address are rejected. */
  readonly addressRequired?: RpcErrorReply;
  /** The method is rejected. */
  readonly rejected?: RpcErrorReply;
  /** Logs further below the head than so many blocks are gone: an empty list, or an error. Receipts are too, unless kept. */
  readonly kept?: {
    readonly blocks: number;
    readonly answer: 'empty' | RpcErrorReply;
    readonly keepsReceipts?: boolean;
  };
  /** Filters with addresses over a range find nothing. */
  readonly isBlindToAddresses?: boolean;
  /** One in so many answers that have logs lacks the last of them. */
  readonly leavesOutEvery?: number;
  /** Answers with more than so many logs are cut off there, without a word. */
  readonly truncatedAt?: number;
  /** The order in which logs are answered. */
  readonly order?: 'reversed' | 'by address';
  /** `logIndex` counts from 0 in every transaction. */
  readonly hasIndexPerTransaction?: boolean;
  /** Each log has the time of its block. */
  readonly hasBlockTimestamp?: boolean;
}

/** What profiles of all chain families have. */
export interface CommonProfile extends EndpointTraits {
  /** Kebab-case; tests and failures name it. */
  readonly name: string;
  /** A public page where the behaviour or the wording was seen; 'invented' for what stands for many. */
  readonly seen: 'invented' | `https://${string}`;
  /**
   * What an indexer with this endpoint alone comes to, unless it is everything: less, and it says so when it ends; or it
   * cannot go on, and says why for as long as it runs.
   */
  readonly alone?: 'incomplete' | 'stuck';
}

export interface EndpointProfile extends CommonProfile {
  readonly logs?: LogTraits;
  /** How many blocks it is behind the chain, at one in so many HTTP requests where `every` is given. */
  readonly lag?: { readonly blocks: number; readonly every?: number };
  /** How far the `finalized` block is behind its head, or what it says instead. 8 blocks where it is left out. */
  readonly finalized?:
    | { readonly lagBlocks: number }
    | { readonly error: RpcErrorReply }
    | 'null'
    | 'genesis';
  /** `eth_getCode`, `eth_call` and `eth_getBalance` at older blocks. */
  readonly state?: { readonly keptBlocks: number; readonly answer: 'current' | 'empty' | RpcErrorReply };
  readonly bloom?: 'zero' | 'absent' | 'full';
  /** `eth_getBlockReceipts` is rejected. */
  readonly receipts?: RpcErrorReply;
}

/** An archive node without limits. */
export const archiveNode: EndpointProfile = {
  name: 'archive-node',
  seen: 'https://ethereum.org/en/developers/docs/apis/json-rpc/',
};

// ---- Tables of profiles

export const reply = (code: number, message: string, status?: number): RpcErrorReply => ({
  code,
  message,
  ...(status !== undefined && { status }),
});
export const httpReply = (status: number, message: string): RpcErrorReply => ({
  message,
  status,
  isPlainText: true,
});
export const limit = (max: number, ...error: Parameters<typeof reply>): Limit => ({
  max,
  error: reply(...error),
});

/** By name: where it was seen, and what is different from an archive node. */
export type ProfileTable<Profile extends CommonProfile> = Readonly<
  Record<string, readonly [seen: Profile['seen'], traits: Omit<Profile, 'name' | 'seen'>]>
>;

/** Finds profiles by their names. */
export function finderOf<Profile extends CommonProfile>(profiles: readonly Profile[]) {
  return (name: string): Profile => {
    const found = profiles.find((profile) => profile.name === name);
    if (!found) throw new RangeError(`There is no profile ${name}.`);
    return found;
  };
}
