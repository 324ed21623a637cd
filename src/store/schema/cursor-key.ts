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

const BLOCK_BYTES = 64;

/**
 * HMAC-SHA-256, truncated to 16 bytes. Every page has a cursor: two one-shot hashes are made here because they take
 * about half the time of `createHmac`, which sets up a stream for each call.
 */
export function createCursorMac(key: Buffer): CursorMac {
  if (key.length > BLOCK_BYTES) throw new RangeError(`The key has ${key.length} bytes; ${BLOCK_BYTES} fit`);
  const innerPad = Buffer.alloc(BLOCK_BYTES, 0x36);
  const outerPad = Buffer.alloc(BLOCK_BYTES, 0x5c);
  for (const [at, byte] of key.entries()) {
    innerPad[at] = byte ^ 0x36;
    outerPad[at] = byte ^ 0x5c;
  }

  const mac = (data: string) => sha256(outerPad, sha256(innerPad, data)).slice(0, MAC_BYTES);
  return {
    sign: mac,
    verify: (data, given) =>
      given.length === MAC_BYTES &&
      timingSafeEqual(Buffer.from(mac(data), 'latin1'), Buffer.from(given, 'latin1')),
  };
}

/** Of a pad and data; data and result have a character for each byte. */
function sha256(pad: Buffer, data: string): string {
  const bytes = Buffer.allocUnsafe(pad.length + data.length);
  bytes.set(pad);
  bytes.write(data, pad.length, 'latin1');
  return hash('sha256', bytes, 'binary');
}
