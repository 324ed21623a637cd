/** Decoders of the texts in which nodes send the data of instructions, events and accounts. */
import { base64, hex } from '@scure/base';
import { UnreadableDataError } from './borsh.ts';

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const DIGITS = /^[1-9A-HJ-NP-Za-km-z]*$/;
/** So many digits are a number that is exact. */
const EXACT_DIGITS = 9;

/**
 * Throws an UnreadableDataError where the text is not base58. The decoder of @scure/base rejects more than 4,096
 * characters, and the data of a call has up to 10,240 bytes.
 */
export function decodeBase58(text: string): Uint8Array {
  if (!DIGITS.test(text)) throw new UnreadableDataError('data that is not base58');
  const value = numberOf(text);
  const digits = value === 0n ? '' : value.toString(16);
  const bytes = hex.decode(digits.padStart(digits.length + (digits.length % 2), '0'));
  const zeros = text.search(/[^1]|$/);
  return Uint8Array.from([...new Uint8Array(zeros), ...bytes]);
}

/** By halves: the time grows more slowly than with the square of the length. */
function numberOf(text: string): bigint {
  if (text.length <= EXACT_DIGITS) {
    let value = 0;
    for (const digit of text) value = 58 * value + ALPHABET.indexOf(digit);
    return BigInt(value);
  }
  const half = text.length >> 1;
  return numberOf(text.slice(0, half)) * 58n ** BigInt(text.length - half) + numberOf(text.slice(half));
}

/** Throws an UnreadableDataError where the text is not base64. */
export function decodeBase64(text: string): Uint8Array {
  try {
    return base64.decode(text);
  } catch {
    throw new UnreadableDataError('data that is not base64');
  }
}
