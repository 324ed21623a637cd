/**
 * The bloom filter in a block's header: which addresses and topics its logs may have.
 *
 * It never denies what is there, so a block that denies all of ours has none of our logs, and one that does not deny
 * them while a node shows none is worth a second look.
 */
import { keccak256 } from 'viem';
import type { RegistryLog } from './checks/registry-log.ts';
import type { Block, ChainLog, Hex } from './rpc/chain.ts';
import type { EvmSource } from './settings.ts';

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
export function mayHaveLogs(bloom: Hex, emitters: readonly Hex[], topics: readonly Hex[]): boolean {
  const bytes = Buffer.from(bloom.slice(2), 'hex');
  const mayHave = (value: Hex) => bits(value).every(({ byte, mask }) => ((bytes[byte] ?? 0) & mask) !== 0);
  return topics.some(mayHave) && emitters.some(mayHave);
}

export type BloomTrust = ReturnType<typeof createBloomTrust>;

/**
 * Whether the bloom filters of a network are used to check for missing logs. Some chains leave them empty or fill them
 * wrongly: a log that its block's filter denies shows it, and from then on no filter of the network is used.
 */
export function createBloomTrust(verify: EvmSource['verify'], registryLog: RegistryLog) {
  let isTrusted = verify !== 'off';
  let isConfirmed = false;
  return {
    /** Whether a log has agreed with its block's filter since the start, and none has contradicted one. */
    get isConfirmed() {
      return isConfirmed;
    },
    /** Whether the filters of these blocks may be used, as far as their own logs show. */
    async allows(logs: readonly ChainLog[], blocks: ReadonlyMap<Hex, Block>): Promise<boolean> {
      if (!isTrusted) return false;
      const denied = logs.find(({ blockHash, address, topics }) => {
        const block = blocks.get(blockHash);
        return block !== undefined && !mayHaveLogs(block.logsBloom, [address], topics.slice(0, 1));
      });
      isTrusted = denied === undefined;
      isConfirmed = isTrusted && (isConfirmed || logs.some(({ blockHash }) => blocks.has(blockHash)));
      if (denied) await registryLog.noteWrongBloom(denied.blockNumber);
      return isTrusted;
    },
  };
}
