/** Which byte strings begin with given digits in base58: ranges, because stores order addresses by their bytes. */
import { base58, hex } from '@scure/base';

/** Of byte strings of the same length, both ends included. */
export interface ByteRange {
  readonly kind: 'address' | 'transaction';
  readonly lowest: Uint8Array;
  readonly highest: Uint8Array;
}

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** How many digits there are in the text of so many bytes, whose first byte is not zero. */
const forms = [
  { kind: 'address', bytes: 32, digits: [43, 44] },
  { kind: 'transaction', bytes: 64, digits: [87, 88] },
] as const;

/** Addresses and signatures of Solana that begin with `head`. Those with a leading zero byte are left out. */
export function base58Ranges(head: string): readonly ByteRange[] {
  if (head === '' || head.startsWith('1')) return [];
  let value = 0n;
  for (const digit of head) value = value * 58n + BigInt(ALPHABET.indexOf(digit));
  return forms.flatMap(({ kind, bytes, digits }) =>
    digits.flatMap((count): ByteRange[] => {
      if (head.length > count) return [];
      const scale = 58n ** BigInt(count - head.length);
      const lowest = max(value * scale, 256n ** BigInt(bytes - 1));
      const highest = min((value + 1n) * scale - 1n, 256n ** BigInt(bytes) - 1n);
      if (lowest > highest) return [];
      return [{ kind, lowest: bytesOf(lowest, bytes), highest: bytesOf(highest, bytes) }];
    }),
  );
}

/** @param bytes in hexadecimal */
export function base58OfHex(bytes: string): string {
  return base58.encode(hex.decode(bytes));
}

function bytesOf(value: bigint, length: number): Uint8Array {
  return hex.decode(value.toString(16).padStart(2 * length, '0'));
}

const max = (a: bigint, b: bigint) => (a > b ? a : b);
const min = (a: bigint, b: bigint) => (a < b ? a : b);
