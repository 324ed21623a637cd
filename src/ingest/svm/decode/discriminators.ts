/** Anchor's discriminators: the first 8 bytes of events, accounts and instruction data, from the hash of a name. */
import { sha256 } from '@noble/hashes/sha2.js';
import { hex } from '@scure/base';

export const DISCRIMINATOR_BYTES = 8;

/** 16 hexadecimal digits. */
export type Discriminator = string;

/** @example discriminatorOf('event', 'CCIPMessageSent') // '174d49b77bb97339' */
export function discriminatorOf(kind: 'event' | 'account' | 'global', name: string): Discriminator {
  const hash = sha256(new TextEncoder().encode(`${kind}:${name}`));
  return hex.encode(hash.subarray(0, DISCRIMINATOR_BYTES));
}

/** Of data that is too short for one, all that is there. */
export function discriminatorIn(data: Uint8Array): Discriminator {
  return hex.encode(data.subarray(0, DISCRIMINATOR_BYTES));
}
