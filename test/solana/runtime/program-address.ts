/** Program-derived addresses: the tests' own derivation, held against web3.js in kit.test.ts. */
import { sha256 } from '@noble/hashes/sha2.js';
import { concat, fromBase58, toBase58, u8, utf8 } from './bytes.ts';

const FIELD = 2n ** 255n - 19n;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base % FIELD;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % FIELD;
    square = (square * square) % FIELD;
  }
  return result;
}

/** -121665/121666, the constant of the curve -x² + y² = 1 + d·x²·y². */
const EDWARDS_D = ((FIELD - 121665n) * power(121666n, FIELD - 2n)) % FIELD;

/** Whether 32 bytes are the compressed form of a point of ed25519. */
export function isOnCurve(compressed: Uint8Array): boolean {
  const text = Buffer.from(compressed).reverse().toString('hex');
  const hasSign = ((compressed[31] ?? 0) & 0x80) !== 0;
  const y = BigInt(`0x${text}`) & (2n ** 255n - 1n);
  const ySquare = (y * y) % FIELD;
  const numerator = (ySquare - 1n + FIELD) % FIELD;
  const denominator = (EDWARDS_D * ySquare + 1n) % FIELD;
  const xSquare = (numerator * power(denominator, FIELD - 2n)) % FIELD;
  if (xSquare === 0n) return !hasSign;
  return power(xSquare, (FIELD - 1n) / 2n) === 1n;
}

const derived = new Map<string, string>();

/** The address of the highest bump seed that gives no point of the curve. Texts are seeds as UTF-8. */
export function programAddress(program: string, ...seeds: readonly (string | Uint8Array)[]): string {
  const parts = seeds.map((seed) => (typeof seed === 'string' ? utf8(seed) : seed));
  const key = [program, ...parts.map((part) => Buffer.from(part).toString('hex'))].join();
  const known = derived.get(key);
  if (known !== undefined) return known;
  for (let bump = 255; bump >= 0; bump--) {
    const hash = sha256(concat(...parts, u8(bump), fromBase58(program), utf8('ProgramDerivedAddress')));
    if (isOnCurve(hash)) continue;
    const address = toBase58(hash);
    derived.set(key, address);
    return address;
  }
  throw new RangeError('No bump seed gives an address.');
}

/** An address that stands for a key: every number and label has one of its own. */
export function addressOf(label: string, number: bigint | number = 0): string {
  return toBase58(sha256(utf8(`${label} ${number}`)));
}
