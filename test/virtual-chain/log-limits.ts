/** Limits of a profile on `eth_getLogs`, checked before and after the chain answers. */
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import { RpcError } from '../json-rpc-server.ts';
import type { LogTraits } from './endpoint-profile.ts';

export interface Filter {
  readonly fromBlock?: unknown;
  readonly toBlock?: unknown;
  readonly blockHash?: Hex;
  readonly address?: Hex | readonly Hex[];
  readonly topics?: readonly (Hex | readonly Hex[] | null)[];
}

/** The filter with its lists; undefined is any. */
export interface Query {
  readonly topics: readonly Hex[] | undefined;
  readonly addresses: readonly Hex[] | undefined;
}

export function queryOf({ address, topics = [] }: Filter): Query {
  const list = (value: Hex | readonly Hex[] | null | undefined) => {
    const values = value === null || value === undefined ? [] : [value].flat();
    return values.length === 0 ? undefined : (values as Hex[]).map((entry) => entry.toLowerCase() as Hex);
  };
  return { topics: list(topics[0]), addresses: list(address) };
}

export function checkFilter({ topics, addresses }: Query, traits: LogTraits): void {
  if (traits.rejected) throw new RpcError(traits.rejected);
  if (traits.addressRequired && !addresses) throw new RpcError(traits.addressRequired);
  for (const [limit, list] of [
    [traits.topics, topics],
    [traits.addresses, addresses],
  ] as const) {
    const count = list?.length ?? 0;
    if (limit && count > limit.max) throw new RpcError(limit.error, { max: limit.max, count });
  }
}

/** Both ends included. */
interface Span {
  readonly from: number;
  readonly to: number;
}

export function checkRange({ addresses }: Query, { from, to }: Span, traits: LogTraits): void {
  const count = to - from + 1;
  for (const limit of [traits.blocks, addresses ? undefined : traits.blocksWithoutAddress]) {
    if (!limit || count <= limit.max) continue;
    throw new RpcError(limit.error, {
      count,
      from,
      to,
      fromHex: hexOf(from),
      max: limit.max,
      acceptedToHex: hexOf(from + limit.max - 1),
    });
  }
}

/** @param count how many logs there are in the span */
export function checkResults(count: number, { from, to }: Span, { results }: LogTraits): void {
  if (!results || count <= results.max) return;
  const middle = from + Math.max(0, Math.floor((to - from) / 2) - 1);
  throw new RpcError(results.error, {
    max: results.max,
    count,
    from,
    to,
    fromHex: hexOf(from),
    acceptedToHex: hexOf(middle),
  });
}

function hexOf(number: number): Hex {
  return `0x${number.toString(16)}`;
}
