/**
 * The table of RPC error wordings of EVM nodes and providers, read from top to bottom: the first row that matches decides.
 *
 * The codes of JSON-RPC errors say little, because every provider has its own. Their wordings say more.
 */

import type { ClassifyRpcError, RpcErrorKind } from '../../engine/json-rpc/rpc-error.ts';

/** The node writes this text: no more of it is looked at than a sentence or two. */
const LOOKED_AT = 1_000;

const N = '([\\d,_]*\\d\\s?k?)';
const words = (pattern: string) => new RegExp(pattern, 'i');

interface Row {
  readonly kind: RpcErrorKind;
  readonly says?: RegExp;
  /** Only for answers to these. */
  readonly to?: 'eth_call' | 'eth_getLogs' | 'batch';
  readonly codes?: readonly number[];
}

/** What it would take: one group is a number, two are the ends of a range. */
const accepted: Partial<Record<RpcErrorKind, readonly RegExp[]>> = {
  range: [
    words('range[^[]{0,40}\\[\\s*(0x[0-9a-f]+)\\s*,\\s*(0x[0-9a-f]+)\\s*\\]'),
    words('retry with the range (\\d+)\\s*-\\s*(\\d+)'),
    words(`limited to (?:an? )?(?:0\\s*-\\s*)?${N}[ -]?(?:blocks?|range)`),
    words(`range (?:is )?limited to ${N}`),
    words(
      `(?:up to|at most|more than|over|within|exceed|exceeds|greater than|less than) (?:an? )?${N}[ -]block`,
    ),
    words(`max(?:imum)?(?: allowed)?(?: block)?[ -]?range(?: is| of|:| =)? ?${N}`),
    words(`maximum(?: allowed)?(?: number of requested blocks)?(?: is)?(?: set to)?:? ${N}`),
    // Of logs, not of blocks: "logs matched by query exceeds limit of 10000".
    words(`^(?!.*logs matched).*exceeds? (?:the )?limit(?: of)? ${N}`),
    words(`greater than ${N} max`),
    words(`\\(\\s*\\d+ ?> ?${N}\\s*\\)`),
    words(`(?:range limit|max_gap:?) ${N}`),
  ],
  batch: [
    words(`(?:more than|limit(?:ed)?(?: to| of)?|max(?:imum)?(?: of| is| size)?|at most)[: ]+${N}`),
    words(`(?:>|exceeds) ?${N}`),
  ],
};

const table: readonly Row[] = [
  // A contract may put any words behind its RPC error: this comes first, and looks at the beginning only.
  {
    kind: 'reverted',
    to: 'eth_call',
    says: words(
      '^(?:error: |err: |rpc error: )?(?:execution reverted|vm execution error|vm exception|reverted|revert\\b|transaction reverted|' +
        'call reverted|always failing transaction|invalid opcode|bad instruction|bad jump|invalid jump|out of gas|' +
        'stack (?:underflow|overflow|limit)|gas uint64 overflow|max call depth|write protection|return data out of bounds|' +
        'evm error|evm reverted|contract (?:call )?(?:reverted|validation failed))',
    ),
  },
  {
    kind: 'aborted',
    to: 'eth_call',
    says: words('^(?:error: |err: |rpc error: )?execution (?:aborted|timeout)'),
  },
  { kind: 'reverted', to: 'eth_call', codes: [3, -32015] },

  { kind: 'batch', to: 'batch', says: words('\\bbatch') },

  // About the end of the chain, not about the length of the range.
  {
    kind: 'unknown',
    says: words(
      'beyond current head|invalid block range|fromBlock.*cannot be found|after last accepted block',
    ),
  },
  {
    kind: 'address',
    to: 'eth_getLogs',
    says: words(
      'specify an? address|missing field .?address|address (?:filter )?(?:is )?(?:required|missing)|requires? an? address|' +
        'without an? address',
    ),
  },
  {
    kind: 'filter',
    to: 'eth_getLogs',
    says: words(
      'max(?:imum)?(?: number of)? (?:addresses|topics)|(?:too many|less number of) (?:addresse?s?|(?:sub-?)?topics)|' +
        'addresses or topics|contains \\d+ filters|unsupported ?filter',
    ),
  },
  {
    kind: 'range',
    to: 'eth_getLogs',
    says: words(
      'block range|blocks? range|range (?:is )?(?:too|limit|exceed)|range \\d+ exceeds|ranges over|too many blocks|blocks? distance|' +
        'requested blocks|block span|max(?:imum)?(?: allowed)? range|(?:returned|returns|than|many|max|maximum) [\\d,]*\\+? ?(?:results|logs|events)|' +
        'limited to (?:an? )?(?:0\\s*-\\s*)?[\\d,]+k?[ -]?(?:blocks?|range)|(?:more than|at most) [\\d,]+ blocks|' +
        'logs? (?:response|matched|count|limit)|query (?:exceeds|size)|range allowed|range limit|max_gap|block limit exceeded',
    ),
  },
  {
    kind: 'size',
    says: words(
      'response (?:is )?too (?:large|big)|response (?:body )?(?:size|length) (?:is |should |too |exceed|limit|larger)|' +
        'exceed(?:s|ed)? (?:the )?(?:max(?:imum)? )?(?:response|body)|content too large|memory capacity|' +
        'result (?:is )?too (?:large|big)|payload too large|request entity too large',
    ),
  },
  {
    kind: 'rate',
    says: words(
      'rate.?limit|ratelimit|too many requests?|request rate|requests? limit|request count exceeded|per second|per minute|' +
        'throughput|throttl|compute units|capacity (?:limit )?exceeded|exceeded (?:its|the|your) (?:.{0,30})?(?:quota|rps)|quota|' +
        'rps limit|slow down|reduce (?:your )?(?:calls|request)|credits? (?:limit|exhaust)|being rate|\\b429\\b',
    ),
  },
  { kind: 'rate', codes: [429, -32029] },
  // With -32005 BNB Chain and old Erigon reject logs in two words, others mean the rate.
  { kind: 'range', to: 'eth_getLogs', codes: [-32012, -32005] },
  { kind: 'rate', codes: [-32005] },

  {
    kind: 'pruned',
    says: words(
      'missing trie node|historical state|no state available|state (?:is )?(?:not available|unavailable|already|at block)|pruned|archive|' +
        'old data not available|history (?:is )?(?:not available|unavailable)|block is out of range|state histories',
    ),
  },
  {
    kind: 'denied',
    says: words(
      'unauthori[sz]ed|api.?key|project id|forbidden|authenticat|access denied|invalid token|payment required|' +
        'tenant disabled|(?:account|app|endpoint|project) (?:is |has been )?(?:disabled|suspended|inactive|deactivated)|' +
        'personal token|not allowed from|origin (?:is )?not allowed|subscription',
    ),
  },
  {
    kind: 'unsupported',
    says: words(
      'method .{0,60}(?:not found|not supported|not available|not allowed|whitelist|does not exist|unsupported|disabled|not enabled)|' +
        '(?:unsupported|unknown|invalid|no such) method|(?:not supported|not available) (?:on|for|by|in)|' +
        'upgrade (?:your|to)|is not available|not implemented',
    ),
  },
  { kind: 'unsupported', codes: [-32601, -32004] },
  {
    kind: 'unknown',
    says: words(
      'unknown (?:block|header)|(?:block|header|header for hash)(?: with .{0,90})? not found|(?:could not|cannot|can.t) find block|' +
        'block .{0,80}(?:does not exist|not found)|(?:unsupported|invalid|unknown) block ?(?:tag|number|id)',
    ),
  },
  { kind: 'unknown', codes: [-39001] },
  {
    kind: 'slow',
    says: words('time.?out|timed out|deadline exceeded|took too long|context cancell?ed|request aborted'),
  },
  { kind: 'invalid', codes: [-32600, -32602, -32700] },
  { kind: 'invalid', says: words('invalid (?:argument|params|request)|hex string without 0x') },
];

/** Classifies an RPC error of an EVM node, or of the provider in front of it, by its code and its wording. */
export const classifyEvmRpcError: ClassifyRpcError = (
  { code, message, revertData },
  asked,
  inBatch = false,
) => {
  const text = message.slice(0, LOOKED_AT);
  // An estimate is a call too: it reverts in the same words.
  const method = asked === 'eth_estimateGas' ? 'eth_call' : asked;
  const kind =
    table.find(
      (row) =>
        row.codes?.some((known) => known === code) !== false &&
        (row.to === undefined || row.to === method || (row.to === 'batch' && inBatch)) &&
        row.says?.test(text) !== false,
    )?.kind ?? 'other';
  const accepts = acceptedBy(kind, text);
  const waitMs = kind === 'rate' ? waitIn(text) : undefined;
  return {
    kind,
    code,
    message,
    ...(accepts !== undefined && { accepts }),
    ...(waitMs !== undefined && { waitMs }),
    ...(revertData !== undefined && { revertData }),
  };
};

function acceptedBy(kind: RpcErrorKind, text: string): number | undefined {
  for (const pattern of accepted[kind] ?? []) {
    const [found, first, second] = pattern.exec(text) ?? [];
    if (found === undefined || first === undefined) continue;
    const number = second === undefined ? numberIn(first) : Number(second) - Number(first) + 1;
    if (Number.isSafeInteger(number) && number > 0) return number;
  }
  return undefined;
}

/** @example numberIn('10,000') // 10000, numberIn('2K') // 2000 */
function numberIn(text: string): number {
  const number = Number(text.replace(/[^\d]/g, ''));
  return /k$/i.test(text) ? number * 1000 : number;
}

function waitIn(text: string): number | undefined {
  const [, number, unit] = /(?:retry|try again|wait).{0,12}? (\d{1,6}) ?(ms|s)/i.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (unit === 'ms' ? 1 : 1000);
}
