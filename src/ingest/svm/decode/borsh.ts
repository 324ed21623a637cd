/** A reader of borsh, the encoding of Solana programs: little-endian numbers, lengths in front, no padding. */

import { base58, hex } from '@scure/base';
import type { Hex } from '../../../base/hex.ts';

/** Bytes, text or an answer that cannot be what it should be; the message says why. */
export class UnreadableDataError extends Error {
  override readonly name = 'UnreadableDataError';
}

/** `0x` and lower-case hexadecimal digits. */
export type { Hex };

const PUBLIC_KEY_BYTES = 32;

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

  /** Little-endian. */
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

  i64(): bigint {
    return BigInt.asIntN(64, this.u64());
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
    return base58.encode(this.fixed(PUBLIC_KEY_BYTES));
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
