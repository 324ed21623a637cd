/** The bloom filter of a block's logs, as a node computes it. */
import { keccak256 } from 'viem';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';

interface LogKeys {
  readonly address: Hex;
  readonly topics: readonly Hex[];
}

export const EMPTY_BLOOM: Hex = `0x${'00'.repeat(256)}`;

const MAX_CACHED = 100_000;
const cachedBits = new Map<Hex, readonly number[]>();

export function bloomOf(logs: readonly LogKeys[]): Hex {
  if (logs.length === 0) return EMPTY_BLOOM;
  const bloom = new Uint8Array(256);
  for (const { address, topics } of logs) {
    for (const entry of [address, ...topics]) {
      for (const bit of bitsOf(entry)) {
        const byte = 255 - (bit >> 3);
        bloom[byte] = (bloom[byte] ?? 0) | (1 << (bit & 7));
      }
    }
  }
  return `0x${Buffer.from(bloom).toString('hex')}`;
}

function bitsOf(entry: Hex): readonly number[] {
  const cached = cachedBits.get(entry);
  if (cached) return cached;
  const hash = Buffer.from(keccak256(entry).slice(2), 'hex');
  const bits = [0, 2, 4].map((at) => hash.readUInt16BE(at) & 2047);
  if (cachedBits.size >= MAX_CACHED) cachedBits.clear();
  cachedBits.set(entry, bits);
  return bits;
}
