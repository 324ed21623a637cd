/** Cursors that somebody without the key can make. */
import { crc32 } from 'node:zlib';
import type { QTerm } from '../../src/domain/filters/parameter-values.ts';

/** Version 2, before cursors had a MAC: anybody can compute its checksum. */
export function withPublicChecksum(payload: string): string {
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(payload));
  return Buffer.concat([Buffer.from([2]), checksum, Buffer.from(payload)]).toString('base64url');
}

/** The present version, with 16 bytes where its MAC belongs. */
export function withMac(mac: Buffer, payload: string): string {
  return Buffer.concat([Buffer.from([3]), mac, Buffer.from(payload)]).toString('base64url');
}

/** Terms of `q` with so many addresses and hashes each; a request has at most 10 with 1 and 2. */
export function heavyTerms(terms: number, meanings: number): readonly QTerm[] {
  const bytes = (n: number, length: number) => n.toString(16).padStart(length * 2, '0');
  return Array.from({ length: terms }, (_, term) => {
    const numbers = Array.from({ length: meanings }, (_, n) => 1 + term * meanings + n);
    return {
      addresses: numbers.map((n) => bytes(n, 20)),
      hashes: numbers.map((n) => bytes(n, 32)),
      messageId: null,
    };
  });
}
