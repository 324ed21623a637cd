/** Readers of the values in inputs of an execution. Inputs of a mirrored server are untrusted: every value is checked. */
import { base64, hex } from '@scure/base';
import { type ChainFamily, parseAddress } from '../addresses.ts';
import { bytesOf, type Hex } from './abi-encoding.ts';

/** The inputs do not have the shape that they should have, or do not belong together. The message is for people. */
export class UnusableInputsError extends Error {
  override readonly name = 'UnusableInputsError';
}

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UnusableInputsError(`${what} is not an object`);
  return value as Fields;
}

export function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new UnusableInputsError(`${what} is not a list`);
  return value;
}

/** A number in decimal, as text or as a JSON number. */
export function integerOf(value: unknown, what: string): bigint {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^\d{1,78}$/.test(text))
    throw new UnusableInputsError(`${what} is not a number`);
  return BigInt(text);
}

/** Bytes in hexadecimal, or in base64 as sources on Solana have them. */
export function dataOf(value: unknown, what: string): Hex {
  if (typeof value !== 'string') throw new UnusableInputsError(`${what} is not bytes`);
  try {
    if (!value.startsWith('0x')) return hexOf(base64.decode(value));
    bytesOf(value);
    return value.toLowerCase() as Hex;
  } catch {
    throw new UnusableInputsError(`${what} is not bytes`);
  }
}

export function hashOf(value: unknown, what: string): Hex {
  const data = dataOf(value, what);
  if (data.length !== 66) throw new UnusableInputsError(`${what} does not have 32 bytes`);
  return data;
}

export function evmAddressOf(value: unknown, what: string): Hex {
  const address = typeof value === 'string' ? parseAddress(value, 'EVM') : undefined;
  if (address?.bytes.length !== 40) throw new UnusableInputsError(`${what} is not an EVM address`);
  return `0x${address.bytes}`;
}

/** An address of another chain as 1.6 has it on an EVM chain: padded to 32 bytes, longer ones as they are. */
export function remoteAddressOf(value: unknown, family: ChainFamily, what: string): Hex {
  const address = typeof value === 'string' ? parseAddress(value, family) : undefined;
  if (!address) throw new UnusableInputsError(`${what} is not an address of its chain`);
  return `0x${address.bytes.padStart(64, '0')}`;
}

/** JSON whose large integers are kept as text: as numbers they would be rounded. */
export function parseExactJson(text: string): unknown {
  const quoted = text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
  try {
    return JSON.parse(quoted);
  } catch {
    throw new UnusableInputsError('they are not JSON');
  }
}

export function hexOf(bytes: Uint8Array): Hex {
  return `0x${hex.encode(bytes)}`;
}
