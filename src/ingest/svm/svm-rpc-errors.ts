/** The JSON-RPC errors of Solana nodes and of the providers in front of them, by code and by wording. */
import type { ClassifyRpcError, RpcError, RpcErrorKind } from '../engine/json-rpc/rpc-error.ts';

/** Codes of Agave's RPC. */
const kindsByCode: ReadonlyMap<number, RpcErrorKind> = new Map([
  [-32001, 'pruned'], // the block was cleaned up
  [-32004, 'unknown'], // the block is not available
  [-32005, 'behind'], // the node is unhealthy
  [-32007, 'unknown'], // the slot was skipped, or is missing
  [-32009, 'unknown'], // the same in long-term storage
  [-32010, 'denied'], // the account is excluded from indexes
  [-32011, 'pruned'], // no transaction history
  [-32014, 'unknown'], // the block's status is not yet available
  [-32015, 'version'], // a transaction version that was not asked for
  [-32016, 'behind'], // minContextSlot has not been reached
  [-32019, 'pruned'], // long-term storage cannot be reached
  [-32020, 'pruned'], // it does not know the transaction to continue from
  [-32600, 'invalid'],
  [-32601, 'unsupported'],
  [-32602, 'invalid'],
  [429, 'rate'],
  [-32429, 'rate'],
]);

/** The first that matches decides; wordings come before codes, which providers use as they like. */
const wordings: readonly { readonly kind: RpcErrorKind; readonly says: RegExp }[] = [
  {
    kind: 'rate',
    says: /too many requests|rate.?limit|requests? per (?:second|minute)|exceeded .{0,40}(?:capacity|credits|limit)|throttl/i,
  },
  { kind: 'batch', says: /\bbatch/i },
  { kind: 'denied', says: /unauthorized|forbidden|api.?key|access denied|not allowed to access/i },
  { kind: 'behind', says: /minimum context slot|node is (?:unhealthy|behind)/i },
  { kind: 'pruned', says: /first available block|cleaned up|transaction history is not available/i },
  { kind: 'size', says: /response (?:is )?too (?:large|big)|content too large/i },
  { kind: 'unsupported', says: /method not found|not supported|unsupported method|is disabled/i },
];

const LOOKED_AT = 1_000;

export const classifySvmRpcError: ClassifyRpcError = ({ code, message }, _method, inBatch = false) => {
  const text = message.slice(0, LOOKED_AT);
  const byCode = code === undefined ? undefined : kindsByCode.get(code);
  const byWords = wordings.find(({ kind, says }) => (kind !== 'batch' || inBatch) && says.test(text))?.kind;
  // A code of Agave's own range is exact.
  const isOwn = code !== undefined && code <= -32001 && code >= -32020;
  return { kind: (isOwn ? (byCode ?? byWords) : (byWords ?? byCode)) ?? 'other', code, message };
};

/** A node that is unhealthy, or whose storage did not answer; minContextSlot that was not reached. */
const passingCodes: ReadonlySet<number | undefined> = new Set([-32005, -32014, -32016, -32019]);

/** Whether the same call may well be answered in a moment, as by another node of a balancer. */
export function isPassing({ code }: RpcError): boolean {
  return passingCodes.has(code);
}
