/** Addresses that programs derive (PDAs): the hash of seeds and program, with a bump that keeps it off the ed25519 curve. */
import { sha256 } from '@noble/hashes/sha2.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { base58, hex } from '@scure/base';
import { type Hex, littleEndian } from './decode/borsh.ts';

const P = 2n ** 255n - 19n;
/** -121665/121666 of the curve's equation -x² + y² = 1 + d·x²·y². */
const D = mod(-121665n * power(121666n, P - 2n));
const MARKER = new TextEncoder().encode('ProgramDerivedAddress');
const MAX_BUMP = 255;

/** A program address takes about a millisecond. They never change and are few: every one is kept. */
const derived = new Map<string, string>();
const MAX_DERIVED = 50_000;

/** A seed: text, 8 bytes of a number, 32 bytes of an address or hash. */
type Seed = string | { readonly u64: bigint } | { readonly address: string } | { readonly hash: Hex };

function deriveAddress(program: string, seeds: readonly Seed[]): string {
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
  /** Of the router, of the off-ramp, of rmn_remote. */
  config: (program: string) => deriveAddress(program, ['config']),
  destChainState: (router: string, dest: bigint) =>
    deriveAddress(router, ['dest_chain_state', { u64: dest }]),
  allowedOffRamp: (router: string, source: bigint, offRamp: string) =>
    deriveAddress(router, ['allowed_offramp', { u64: source }, { address: offRamp }]),
  referenceAddresses: (offRamp: string) => deriveAddress(offRamp, ['reference_addresses']),
  sourceChainState: (offRamp: string, source: bigint) =>
    deriveAddress(offRamp, ['source_chain_state', { u64: source }]),
  commitReport: (offRamp: string, source: bigint, root: Hex) =>
    deriveAddress(offRamp, ['commit_report', { u64: source }, { hash: root }]),
  feeBillingSigner: (program: string) => deriveAddress(program, ['fee_billing_signer']),
  externalExecutionConfig: (offRamp: string, receiver: string) =>
    deriveAddress(offRamp, ['external_execution_config', { address: receiver }]),
  /** Of a mint's name and symbol. */
  metadata: (mint: string) =>
    deriveAddress(METADATA_PROGRAM, ['metadata', { address: METADATA_PROGRAM }, { address: mint }]),
};

function seedBytes(seed: Seed): Uint8Array {
  if (typeof seed === 'string') return new TextEncoder().encode(seed);
  if ('u64' in seed) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, seed.u64, true);
    return bytes;
  }
  return 'address' in seed ? base58.decode(seed.address) : hex.decode(seed.hash.slice(2));
}

function findAddress(seeds: Uint8Array, program: Uint8Array): string {
  for (let bump = MAX_BUMP; bump >= 0; bump--) {
    const hash = sha256(concatBytes(seeds, Uint8Array.of(bump), program, MARKER));
    if (!isOnCurve(hash)) return base58.encode(hash);
  }
  throw new Error('These seeds have no address');
}

/** Whether 32 bytes are a point of ed25519: an y for which the curve's equation has an x. */
export function isOnCurve(bytes: Uint8Array): boolean {
  // The highest bit is the sign of x.
  const y = mod(BigInt.asUintN(255, littleEndian(bytes)));
  const square = mod(y * y);
  // x² = (y² - 1) / (d·y² + 1). A quotient is a square where the product is one.
  return isSquare(mod((square - 1n) * (D * square + 1n)));
}

/** By Euler's criterion: value^((P - 1) / 2), which is value^(2^254 - 10), by a short addition chain. */
function isSquare(value: bigint): boolean {
  const raise = (base: bigint, times: number, factor: bigint) => (squared(base, times) * factor) % P;
  const e2 = raise(value, 1, value); // 2^2 - 1
  const e5 = raise(raise(e2, 2, e2), 1, value);
  const e10 = raise(e5, 5, e5);
  const e20 = raise(e10, 10, e10);
  const e50 = raise(raise(e20, 20, e20), 10, e10);
  const e100 = raise(e50, 50, e50);
  const e250 = raise(raise(e100, 100, e100), 50, e50);
  const sixth = raise(e2, 1, 1n);
  return value === 0n || raise(e250, 4, sixth) === 1n;
}

function squared(base: bigint, times: number): bigint {
  let result = base;
  for (let left = times; left > 0; left--) result = (result * result) % P;
  return result;
}

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

/** Once, for a constant of the curve. */
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let [factor, left] = [mod(base), exponent]; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * factor) % P;
    factor = (factor * factor) % P;
  }
  return result;
}
