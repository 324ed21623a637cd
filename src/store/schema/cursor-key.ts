/** The cursors' MAC, with the secret key that all servers on one database share. The key never leaves this module. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import {
  type CursorCodec,
  type CursorMac,
  createCursorCodec,
  MAC_BYTES,
} from '../../domain/filters/cursor.ts';

/** Of SHA-256. */
const BLOCK_BYTES = 64;

/** The codec of the cursors that servers on this database issue and accept. */
export async function readCursorCodec(client: ClientBase): Promise<CursorCodec> {
  const { rows } = await client.query('select key from cursor_key');
  const key: unknown = rows[0]?.key;
  if (!Buffer.isBuffer(key)) {
    throw new OperatorError(
      'The table cursor_key is empty. Without its key no cursor can be issued or checked.',
      'Restore the row from a backup, or make a new key with `insert into cursor_key default values`. With a new key, clients have to begin their walks through pages again.',
    );
  }
  return createCursorCodec(createCursorMac(key));
}

/**
 * HMAC-SHA-256, truncated to 16 bytes; a character for each byte. Every page has a cursor: two one-shot hashes take about half
 * the time of `createHmac`, which sets up a stream for each call.
 */
export function createCursorMac(key: Buffer): CursorMac {
  if (key.length > BLOCK_BYTES) throw new RangeError(`The key has ${key.length} bytes; ${BLOCK_BYTES} fit`);
  const padded = (pad: number) =>
    Buffer.alloc(BLOCK_BYTES)
      .fill(key, 0, key.length)
      .map((byte) => byte ^ pad);
  const [inner, outer] = [padded(0x36), padded(0x5c)];
  const sign = (data: string) => sha256(outer, sha256(inner, data)).slice(0, MAC_BYTES);
  return {
    sign,
    verify: (data, given) =>
      given.length === MAC_BYTES &&
      timingSafeEqual(Buffer.from(sign(data), 'latin1'), Buffer.from(given, 'latin1')),
  };
}

function sha256(prefix: Uint8Array, data: string): string {
  const bytes = Buffer.allocUnsafe(prefix.length + data.length);
  bytes.set(prefix);
  bytes.write(data, prefix.length, 'latin1');
  return hash('sha256', bytes, 'binary');
}
