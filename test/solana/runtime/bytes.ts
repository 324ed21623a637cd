/** Byte encodings of Solana's programs: borsh values (little-endian), and the big-endian integers of CCIP's hashes. */
import { sha256 } from '@noble/hashes/sha2.js';
import { decodeBase58 } from '../../../src/ingest/svm/decode/borsh.ts';

export const concat = (...parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));
export const utf8 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'utf8'));
export const fromHex = (hex: string): Uint8Array =>
  new Uint8Array(Buffer.from(hex.replace(/^0x/, ''), 'hex'));
export const toHex = (bytes: Uint8Array): `0x${string}` => `0x${Buffer.from(bytes).toString('hex')}`;
export const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** Digits that a division takes off at once: as many as a number holds exactly. */
const CHUNK_DIGITS = 9;
const CHUNK = 58n ** BigInt(CHUNK_DIGITS);

/** Digits in chunks: a server of a million signatures, or of long data, would spend its time with anything slower. */
export function toBase58(bytes: Uint8Array): string {
  const zeros = bytes.findIndex((byte) => byte !== 0);
  if (zeros < 0) return '1'.repeat(bytes.length);
  let digits = '';
  for (let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`); rest > 0n; rest /= CHUNK) {
    let chunk = Number(rest % CHUNK);
    for (let digit = 0; digit < CHUNK_DIGITS; digit++) {
      digits = ALPHABET[chunk % 58] + digits;
      chunk = Math.floor(chunk / 58);
    }
  }
  return '1'.repeat(zeros) + digits.replace(/^1+/, '');
}

export const fromBase58 = decodeBase58;

function bigEndian(value: bigint | number, size: number): Uint8Array {
  const digits = BigInt(value)
    .toString(16)
    .padStart(size * 2, '0');
  if (BigInt(value) < 0n || digits.length > size * 2)
    throw new RangeError(`${value} needs more than ${size} bytes.`);
  return fromHex(digits);
}
const littleEndian = (value: bigint | number, size: number) => bigEndian(value, size).reverse();

export const u8 = (value: number): Uint8Array => littleEndian(value, 1);
export const u32 = (value: number): Uint8Array => littleEndian(value, 4);
export const u64 = (value: bigint): Uint8Array => littleEndian(value, 8);
export const u128 = (value: bigint): Uint8Array => littleEndian(value, 16);
export const u256 = (value: bigint): Uint8Array => littleEndian(value, 32);
export const i64 = (value: bigint): Uint8Array => u64(BigInt.asUintN(64, value));
export const bool = (value: boolean): Uint8Array => u8(value ? 1 : 0);
/** 32 bytes of a base58 address. */
export const pubkey = (address: string): Uint8Array => sized(fromBase58(address), 32);
/** A byte string with its length. */
export const bytes = (value: Uint8Array): Uint8Array => concat(u32(value.length), value);
export const string = (value: string): Uint8Array => bytes(utf8(value));
export const vec = (items: readonly Uint8Array[]): Uint8Array => concat(u32(items.length), ...items);
export const option = (value: Uint8Array | undefined): Uint8Array => (value ? concat(u8(1), value) : u8(0));
/** Bytes of a fixed length, which have no length in front. */
export function sized(value: Uint8Array, size: number): Uint8Array {
  if (value.length !== size) throw new RangeError(`${value.length} bytes where ${size} belong.`);
  return value;
}

export const u16be = (value: number): Uint8Array => bigEndian(value, 2);
export const u32be = (value: number): Uint8Array => bigEndian(value, 4);
export const u64be = (value: bigint): Uint8Array => bigEndian(value, 8);

/** An address that stands for a key: every number and label has one of its own. */
export const addressOf = (label: string, number: bigint | number = 0): string =>
  toBase58(sha256(utf8(`${label} ${number}`)));
