/** The cursors' MAC, with the secret key that all servers on one database share. The key never leaves this module. */
import { createHmac, timingSafeEqual } from 'node:crypto';
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

/** HMAC-SHA-256, truncated to 16 bytes; a character for each byte. */
export function createCursorMac(key: Buffer): CursorMac {
  const sign = (data: string) =>
    createHmac('sha256', key).update(data, 'latin1').digest('binary').slice(0, MAC_BYTES);
  return {
    sign,
    verify: (data, given) =>
      given.length === MAC_BYTES &&
      timingSafeEqual(Buffer.from(sign(data), 'latin1'), Buffer.from(given, 'latin1')),
  };
}
