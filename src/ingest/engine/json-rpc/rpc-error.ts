/** A JSON-RPC error in an answer, and the kinds of RPC error that clients of an endpoint tell apart. */

export type RpcErrorKind =
  /** The contract that was called reverted. */
  | 'reverted'
  /** The node gave up the call of a contract: it took too long. */
  | 'aborted'
  /** Fewer calls in one request. */
  | 'batch'
  /** Fewer blocks or results in one answer. */
  | 'range'
  /** A query for logs must name addresses. */
  | 'address'
  /** Fewer topics or addresses in one query. */
  | 'filter'
  /** The answer would be too large. */
  | 'size'
  /** The node gave up computing. */
  | 'slow'
  /** Rate limit. */
  | 'rate'
  /** It has no such method, or not for us. */
  | 'unsupported'
  /** It knows no such block. */
  | 'unknown'
  /** It no longer has the state or the history. */
  | 'pruned'
  /** It is behind the part of the chain that it is asked for. */
  | 'behind'
  /** It would answer to a client that knows a newer version of the data. */
  | 'version'
  /** It denies access. */
  | 'denied'
  /** It does not understand the request. */
  | 'invalid'
  | 'other';

export interface RpcError {
  readonly kind: RpcErrorKind;
  readonly code: number | undefined;
  /** In the node's words. */
  readonly message: string;
  /** How many blocks (`range`) or calls (`batch`) it would accept, where it says so. */
  readonly accepts?: number;
  /** How long to wait (`rate`), where it says so in words. */
  readonly waitMs?: number;
  /** What the contract that was called returned, in hexadecimal, where the node says so. */
  readonly revertData?: string;
}

export interface RawRpcError {
  readonly code: number | undefined;
  readonly message: string;
  readonly revertData?: string;
}

/**
 * Tells what kind of RPC error an error is. Codes and wordings differ by family and provider.
 *
 * @param inBatch whether the call went out together with others
 */
export type ClassifyRpcError = (error: RawRpcError, method: string, inBatch?: boolean) => RpcError;

/** The error in an answer, in any of the shapes that nodes and the proxies in front of them use. */
export function errorIn(answer: unknown): RawRpcError | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { error, code, message } = answer as Record<string, unknown>;
  if (typeof error === 'string') return { code: undefined, message: error };
  if (typeof error === 'object' && error !== null) {
    const inner = error as Record<string, unknown>;
    const detail = typeof inner.data === 'string' && !inner.data.startsWith('0x') ? `: ${inner.data}` : '';
    const revertData = revertDataIn(inner.data);
    return {
      code: codeOf(inner.code),
      message: `${typeof inner.message === 'string' ? inner.message : 'no message'}${detail}`,
      ...(revertData !== undefined && { revertData }),
    };
  }
  // Without an id it is not an answer to a call: a proxy speaks for itself.
  if (typeof message === 'string' && !('result' in answer)) return { code: codeOf(code), message };
  return undefined;
}

const REVERT_DATA = /^(?:Reverted )?(0x(?:[0-9a-fA-F]{2})*)$/;
/** Longer data is cut off: errors have some hundred bytes. */
const MAX_REVERT_DIGITS = 2 + 2 * 4_096;

/** Bare, behind a word, or in an object: nodes differ. */
function revertDataIn(data: unknown): string | undefined {
  const inner = typeof data === 'object' && data !== null ? (data as { data?: unknown }).data : data;
  const [, found] = (typeof inner === 'string' && REVERT_DATA.exec(inner)) || [];
  return found?.slice(0, MAX_REVERT_DIGITS).toLowerCase();
}

function codeOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
