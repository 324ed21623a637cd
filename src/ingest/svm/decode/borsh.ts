/**
 * Reads the bytes of Solana programs: borsh (little-endian numbers, lengths in front, no padding), Anchor's discriminators,
 * and the texts in which nodes send bytes.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { base58, base64, hex } from '@scure/base';
import type { Hex } from '../../../base/hex.ts';
import { UnreadableDataError } from '../../engine/json-rpc/answer-reader.ts';

export function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof UnreadableDataError) return undefined;
    throw error;
  }
}

// ---- Borsh

export class BorshReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get remaining(): number {
    return this.#bytes.length - this.#at;
  }

  fixed(length: number): Uint8Array {
    if (length > this.remaining) {
      throw new UnreadableDataError(`${length} bytes are announced where ${this.remaining} are left`);
    }
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  unsigned(length: number): bigint {
    return littleEndian(this.fixed(length));
  }

  u8(): number {
    return Number(this.unsigned(1));
  }

  u32(): number {
    return Number(this.unsigned(4));
  }

  u64(): bigint {
    return this.unsigned(8);
  }

  u128(): bigint {
    return this.unsigned(16);
  }

  u256(): bigint {
    return this.unsigned(32);
  }

  bool(): boolean {
    const value = this.u8();
    if (value > 1) throw new UnreadableDataError(`${value} is not a boolean`);
    return value === 1;
  }

  hash(): Hex {
    return hexOf(this.fixed(32));
  }

  publicKey(): string {
    return base58.encode(this.fixed(32));
  }

  bytes(): Uint8Array {
    return this.fixed(this.u32());
  }

  option<T>(read: (reader: BorshReader) => T): T | undefined {
    return this.bool() ? read(this) : undefined;
  }

  list<T>(read: (reader: BorshReader) => T): readonly T[] {
    const count = this.u32();
    // No item is empty: a length that cannot be true is rejected before memory is taken for it.
    if (count > this.remaining) {
      throw new UnreadableDataError(`${count} items are announced where ${this.remaining} bytes are left`);
    }
    return Array.from({ length: count }, () => read(this));
  }
}

/** Reads all of the bytes; what is left over is rejected. */
export function readBorsh<T>(bytes: Uint8Array, read: (reader: BorshReader) => T): T {
  const reader = new BorshReader(bytes);
  const value = read(reader);
  if (reader.remaining > 0) throw new UnreadableDataError(`${reader.remaining} bytes are left over`);
  return value;
}

export function littleEndian(bytes: Uint8Array): bigint {
  return bytes.length === 0 ? 0n : BigInt(hexOf(bytes.toReversed()));
}

export function hexOf(bytes: Uint8Array): Hex {
  return `0x${hex.encode(bytes)}`;
}

// ---- Discriminators: the first 8 bytes of events, accounts and instruction data, from the hash of a name

export const DISCRIMINATOR_BYTES = 8;

/**
 * 16 hexadecimal digits.
 *
 * @example discriminatorOf('event', 'CCIPMessageSent') // '174d49b77bb97339'
 */
export function discriminatorOf(kind: 'event' | 'account' | 'global', name: string): string {
  const hash = sha256(new TextEncoder().encode(`${kind}:${name}`));
  return hex.encode(hash.subarray(0, DISCRIMINATOR_BYTES));
}

/** Of data that is too short for one, all that is there. */
export function discriminatorIn(data: Uint8Array): string {
  return hex.encode(data.subarray(0, DISCRIMINATOR_BYTES));
}

// ---- Texts of nodes

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
