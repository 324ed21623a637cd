/**
 * Endpoint profiles at the endpoints of chaos: the same limits, wordings and lies, on recorded chains.
 *
 * Recorded chains are shorter than virtual ones, so limits in blocks are smaller here. Traits of a chain (finality, old
 * state, the numbers of logs) are left out: all endpoints of a recorded chain have the same.
 */
import type { Randomness } from '../../src/ingest/demo/randomness.ts';
import type { Delivery, Misbehaviour, Misfortune, RpcAnswer, RpcCall } from '../chain/replay-node.ts';
import type { ChainView } from '../chain/replay-recording.ts';
import { errorOf, isOneIn, RpcError } from '../json-rpc-server.ts';
import type { EndpointProfile, Limit, LogTraits } from '../virtual-chain/endpoint-profile.ts';
import { profiles } from '../virtual-chain/endpoint-profiles.ts';
import { checkFilter, checkRange, checkResults, type Filter, queryOf } from '../virtual-chain/log-limits.ts';

const SHORTER = 10;

/** Answers that lack logs, without a word. At most one endpoint of a network has such a profile. */
export function isLiar({ logs = {} }: EndpointProfile): boolean {
  const { kept, isBlindToAddresses, leavesOutEvery, truncatedAt } = logs;
  return (
    kept?.answer === 'empty' ||
    isBlindToAddresses === true ||
    leavesOutEvery !== undefined ||
    truncatedAt !== undefined
  );
}

/** Whether any of its traits means something on a recorded chain. */
function isFelt({
  logs = {},
  batch,
  rate,
  cap,
  resetsEvery,
  fails,
  receipts,
  bloom,
}: EndpointProfile): boolean {
  const { hasIndexPerTransaction, ...others } = logs;
  return (
    Object.keys(others).length > 0 ||
    [batch, rate, cap, resetsEvery, fails, receipts, bloom].some((trait) => trait !== undefined)
  );
}

export interface ProfileChoice {
  /** Whether it may leave out logs. Those who do have whole receipts. */
  readonly mayLie: boolean;
  /** Whether its blooms may be wrong: without them nobody notices lies. */
  readonly mayHaveOddBlooms: boolean;
}

/** Undefined: one without a profile. */
export function chooseProfile(
  randomness: Randomness,
  { mayLie, mayHaveOddBlooms }: ProfileChoice,
): EndpointProfile | undefined {
  if (randomness.chance(0.3)) return undefined;
  const possible = profiles.filter(
    (profile) =>
      isFelt(profile) && (mayLie || !isLiar(profile)) && (mayHaveOddBlooms || profile.bloom === undefined),
  );
  return shortened(randomness.pick(possible));
}

function shortened(profile: EndpointProfile): EndpointProfile {
  const { logs = {} } = profile;
  const less = (limit: Limit) => ({ ...limit, max: Math.max(1, Math.ceil(limit.max / SHORTER)) });
  return {
    ...profile,
    logs: {
      ...logs,
      ...(logs.blocks && { blocks: less(logs.blocks) }),
      ...(logs.blocksWithoutAddress && { blocksWithoutAddress: less(logs.blocksWithoutAddress) }),
      ...(logs.kept && { kept: { ...logs.kept, blocks: logs.kept.blocks / SHORTER } }),
    },
  };
}

/** @param currentView what the endpoint takes for the chain */
export function createProfileFaults(profile: EndpointProfile, currentView: () => ChainView): Misbehaviour {
  const { logs: traits = {}, batch, rate, cap, resetsEvery, fails, receipts, bloom } = profile;
  let requests = 0;
  let calls = 0;
  let answersWithLogs = 0;
  let tokens = rate?.max ?? 0;
  let filledAtMs = performance.now();

  const isTooFast = (count: number): boolean => {
    if (!rate) return false;
    const nowMs = performance.now();
    tokens = Math.min(rate.max, tokens + ((nowMs - filledAtMs) / 1000) * rate.max);
    filledAtMs = nowMs;
    if (tokens < count) return true;
    tokens -= count;
    return false;
  };

  /** Refuses a whole HTTP request. */
  const admit = (asked: readonly RpcCall[]): void => {
    calls += asked.length;
    if (cap && calls > cap.max) throw new RpcError(cap.error, { max: cap.max });
    if (isTooFast(asked.length) && rate) throw new RpcError(rate.error, { max: rate.max });
    if (fails && isOneIn(fails.every, requests)) throw new RpcError(fails.error);
    if (batch && asked.length > Math.max(1, batch.max))
      throw new RpcError(batch.error, { max: batch.max, count: asked.length });
    const [only] = asked;
    // Alone, a query is rejected with the HTTP status that the profile has for it.
    if (asked.length === 1 && only?.method === 'eth_getLogs')
      checkLogs(only, traits, currentView().head.number);
  };

  const answerLogs = (call: RpcCall, truth: RpcAnswer, view: ChainView): RpcAnswer => {
    checkLogs(call, traits, view.head.number);
    if (truth.error) return truth;
    const filter = call.params[0] as Filter;
    let logs = truth.result as readonly ReplayedLog[];
    const isRange = filter.blockHash === undefined;
    const spanned = { from: Number(filter.fromBlock ?? 0), to: Number(filter.toBlock ?? 0) };
    checkResults(logs.length, spanned, traits);
    const { kept, leavesOutEvery, truncatedAt, isBlindToAddresses } = traits;
    if (kept) logs = logs.filter((log) => Number(log.blockNumber) >= view.head.number - kept.blocks);
    if (isBlindToAddresses && isRange && filter.address) logs = [];
    if (logs.length > 0 && leavesOutEvery !== undefined && isOneIn(leavesOutEvery, ++answersWithLogs))
      logs = logs.slice(0, -1);
    if (truncatedAt !== undefined) logs = logs.slice(0, truncatedAt);
    return { ...truth, result: shaped(logs, traits, view) };
  };

  const answer = (call: RpcCall, truth: RpcAnswer, view: ChainView): RpcAnswer => {
    try {
      if (call.method === 'eth_getLogs') return answerLogs(call, truth, view);
      if (call.method === 'eth_getBlockReceipts' && receipts) throw new RpcError(receipts);
      if (call.method.startsWith('eth_getBlockBy') && bloom && truth.result)
        return { ...truth, result: withBloom(truth.result, bloom) };
      return truth;
    } catch (error) {
      return { id: truth.id, error: { code: -32000, ...errorOf(error) } };
    }
  };

  return (asked): Misfortune => {
    requests++;
    if (resetsEvery !== undefined && isOneIn(resetsEvery, requests)) return { delivery: { kind: 'reset' } };
    try {
      admit(asked);
    } catch (error) {
      return { delivery: deliveryOf(error, asked.length === 1 ? asked[0]?.id : null, profile) };
    }
    return { answer };
  };
}

interface ReplayedLog {
  readonly address: string;
  readonly blockNumber: string;
  readonly blockHash: string;
}

function checkLogs({ params }: RpcCall, traits: LogTraits, head: number): void {
  const filter = (params[0] ?? {}) as Filter;
  const query = queryOf(filter);
  checkFilter(query, traits);
  if (filter.blockHash !== undefined) return;
  const span = { from: Number(filter.fromBlock), to: Number(filter.toBlock) };
  checkRange(query, span, traits);
  const { kept } = traits;
  if (kept && kept.answer !== 'empty' && span.from < head - kept.blocks)
    throw new RpcError(kept.answer, { count: span.from });
}

function shaped(logs: readonly ReplayedLog[], traits: LogTraits, view: ChainView): readonly unknown[] {
  const ordered =
    traits.order === 'reversed'
      ? logs.toReversed()
      : traits.order === 'by address'
        ? logs.toSorted((a, b) => a.address.localeCompare(b.address))
        : logs;
  if (!traits.hasBlockTimestamp) return ordered;
  return ordered.map((log) => {
    const block = view.at(Number(log.blockNumber));
    return block?.hash === log.blockHash ? { ...log, blockTimestamp: block.header.timestamp } : log;
  });
}

function withBloom(block: unknown, bloom: NonNullable<EndpointProfile['bloom']>): unknown {
  const { logsBloom, ...rest } = block as Record<string, unknown>;
  return bloom === 'absent'
    ? rest
    : { ...rest, logsBloom: `0x${(bloom === 'full' ? 'ff' : '00').repeat(256)}` };
}

function deliveryOf(error: unknown, id: unknown, { rate }: EndpointProfile): Delivery {
  if (!(error instanceof RpcError)) throw error;
  const { message, status = 200, isPlainText, isReset } = error.wording;
  if (isReset) return { kind: 'reset' };
  const retryAfter = status === 429 ? rate?.retryAfterSeconds : undefined;
  return {
    kind: 'status',
    status,
    ...(retryAfter !== undefined && { headers: { 'Retry-After': String(retryAfter) } }),
    body: isPlainText ? message : JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: errorOf(error) }),
  };
}
