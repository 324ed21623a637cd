/**
 * The bloom filter in a block's header: which addresses and topics its logs may have.
 *
 * It never denies what is there, so a block that denies all of ours has none of our logs, and one that does not deny
 * them while a node shows none is worth a second look.
 */
import { keccak256 } from 'viem';
import type { Hex } from './rpc/chain.ts';

/** Three bits for each value, by its hash. */
type Bits = readonly { readonly byte: number; readonly mask: number }[];

const BLOOM_BYTES = 256;
/** The values that are asked about are few: trusted contracts, and topics. */
const bitsOf = new Map<Hex, Bits>();
const MAX_REMEMBERED = 10_000;

function bits(value: Hex): Bits {
  const known = bitsOf.get(value);
  if (known) return known;
  const hash = keccak256(value);
  const found = [0, 1, 2].map((pair) => {
    const bit = Number.parseInt(hash.slice(2 + pair * 4, 6 + pair * 4), 16) & 2047;
    return { byte: BLOOM_BYTES - 1 - (bit >> 3), mask: 1 << (bit & 7) };
  });
  if (bitsOf.size >= MAX_REMEMBERED) bitsOf.clear();
  bitsOf.set(value, found);
  return found;
}

/** Whether a block with this filter may have a log of one of the emitters with one of the topics. */
export function mayHaveLogs(bloom: Hex, emitters: Iterable<Hex>, topics: Iterable<Hex>): boolean {
  const bytes = Buffer.from(bloom.slice(2), 'hex');
  const mayHave = (value: Hex) => bits(value).every(({ byte, mask }) => ((bytes[byte] ?? 0) & mask) !== 0);
  return some(topics, mayHave) && some(emitters, mayHave);
}

function some<T>(values: Iterable<T>, holds: (value: T) => boolean): boolean {
  for (const value of values) if (holds(value)) return true;
  return false;
}
