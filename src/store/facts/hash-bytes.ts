/**
 * Hashes of blocks and transactions as bytes, and back to exactly the same text, whatever it is.
 *
 * The bytes tell the notation by themselves, because the table of networks, which could tell it too, changes with the settings.
 * The usual notations are the canonical bytes of `addresses.ts`: 32 bytes are `0x` with lower-case digits, 64 bytes a Solana
 * signature. All other texts have an odd number of bytes, the first of which tells the form of the rest.
 */
import { base58, hex } from '@scure/base';
import type { BytesHex } from '../../domain/addresses.ts';

/** Of a hash of 32 bytes. */
const HASH_DIGITS = 64;
const HEX_HASH = /^0x[0-9a-f]{64}$/;
const BASE58_HASH = /^[1-9A-HJ-NP-Za-km-z]{32,88}$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

const forms = {
  utf8: '00',
  /** 32 bytes, such as the hash of a Solana block. */
  base58: '01',
  /** With a zero byte behind the text. */
  paddedUtf8: '02',
  utf16: '03',
} as const;

export function hashBytes(text: string): BytesHex {
  if (HEX_HASH.test(text)) return text.slice(2);
  const bytes = BASE58_HASH.test(text) ? base58.decode(text) : undefined;
  if (bytes?.length === 64) return hex.encode(bytes);
  if (bytes?.length === 32) return forms.base58 + hex.encode(bytes);
  if (LONE_SURROGATE.test(text)) return forms.utf16 + Buffer.from(text, 'utf16le').toString('hex');
  const utf8 = Buffer.from(text, 'utf8').toString('hex');
  return utf8.length % 4 === 0 ? forms.utf8 + utf8 : `${forms.paddedUtf8}${utf8}00`;
}

/** As `hashText`, of bytes in hex. Nearly all hashes are of 32 bytes. */
export function textOfHashBytes(bytes: BytesHex): string | undefined {
  return bytes.length === HASH_DIGITS ? `0x${bytes}` : hashText(Buffer.from(bytes, 'hex'));
}

/** The text of these bytes; undefined for bytes that are of no such text. */
export function hashText(bytes: Buffer): string | undefined {
  if (2 * bytes.length === HASH_DIGITS) return `0x${bytes.toString('hex')}`;
  if (bytes.length === 64) return base58.encode(bytes);
  if (bytes.length % 2 === 0) return undefined;
  switch (bytes.toString('hex', 0, 1)) {
    case forms.utf8:
      return bytes.toString('utf8', 1);
    case forms.base58:
      return base58.encode(bytes.subarray(1));
    case forms.paddedUtf8:
      return bytes.toString('utf8', 1, bytes.length - 1);
    case forms.utf16:
      return bytes.toString('utf16le', 1);
    default:
      return undefined;
  }
}
