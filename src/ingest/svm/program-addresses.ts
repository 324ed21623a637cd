/** Addresses that programs derive (PDAs): the hash of seeds and program, with a bump that keeps it off the ed25519 curve. */
import { ed25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { base58, hex } from '@scure/base';
import type { Hex } from '../../base/hex.ts';

const MARKER = new TextEncoder().encode('ProgramDerivedAddress');
const MAX_BUMP = 255;

/** A program address takes about a millisecond. They never change and are few: every one is kept. */
const derived = new Map<string, string>();
const MAX_DERIVED = 50_000;

/** @param seeds texts, numbers of 8 bytes, and the bytes of addresses and hashes */
export function deriveAddress(program: string, ...seeds: readonly (string | bigint | Uint8Array)[]): string {
  const bytes = concatBytes(...seeds.map(seedBytes));
  const key = `${program} ${hex.encode(bytes)}`;
  const known = derived.get(key);
  if (known !== undefined) return known;
  const address = findAddress(bytes, base58.decode(program));
  if (derived.size >= MAX_DERIVED) derived.clear();
  derived.set(key, address);
  return address;
}

/** Metaplex's program of token metadata. */
export const METADATA_PROGRAM = 'metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s';

export const programAddresses = {
  /** Of the router, and of the off-ramp. */
  config: (program: string) => deriveAddress(program, 'config'),
  destChainState: (router: string, dest: bigint) => deriveAddress(router, 'dest_chain_state', dest),
  allowedOffRamp: (router: string, source: bigint, offRamp: string) =>
    deriveAddress(router, 'allowed_offramp', source, base58.decode(offRamp)),
  referenceAddresses: (offRamp: string) => deriveAddress(offRamp, 'reference_addresses'),
  sourceChainState: (offRamp: string, source: bigint) => deriveAddress(offRamp, 'source_chain_state', source),
  commitReport: (offRamp: string, source: bigint, root: Hex) =>
    deriveAddress(offRamp, 'commit_report', source, hex.decode(root.slice(2))),
  /** Of a mint's name and symbol. */
  metadata: (mint: string) =>
    deriveAddress(METADATA_PROGRAM, 'metadata', base58.decode(METADATA_PROGRAM), base58.decode(mint)),
};

function seedBytes(seed: string | bigint | Uint8Array): Uint8Array {
  if (typeof seed === 'string') return new TextEncoder().encode(seed);
  if (typeof seed === 'bigint') return new Uint8Array(new BigUint64Array([seed]).buffer);
  return seed;
}

function findAddress(seeds: Uint8Array, program: Uint8Array): string {
  for (let bump = MAX_BUMP; bump >= 0; bump--) {
    const hash = sha256(concatBytes(seeds, Uint8Array.of(bump), program, MARKER));
    if (!isOnCurve(hash)) return base58.encode(hash);
  }
  throw new Error('These seeds have no address');
}

/** Whether 32 bytes are a point of ed25519. */
export function isOnCurve(bytes: Uint8Array): boolean {
  try {
    ed25519.ExtendedPoint.fromHex(bytes);
    return true;
  } catch {
    return false;
  }
}
