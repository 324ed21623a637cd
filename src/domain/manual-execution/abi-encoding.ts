/**
 * An ABI encoder for calls of contracts, from signatures with names.
 *
 * @example
 * const call = parseFunction('transfer(address to,uint256 amount)');
 * encodeCall(call, { to: '0x5aae…', amount: 1n }) // '0xa9059cbb…'
 */

import { concatBytes } from '@noble/hashes/utils.js';
import { hex } from '@scure/base';
import type { Hex } from '../../base/hex.ts';
import {
  type AbiMember,
  type AbiSignature,
  type AbiType,
  canonicalSignature,
  headBytes,
  isDynamic,
  parseMembers,
  parseSignature,
  selectorOf,
  WORD_BYTES,
} from '../abi-types.ts';

export type { Hex };

export interface AbiFunction extends AbiSignature {
  readonly signature: string;
  /** In hexadecimal without `0x`. */
  readonly selector: string;
}

/** Integers are bigint; addresses and bytes hexadecimal text; tuples objects by the names of their members. */
export type AbiInput =
  | bigint
  | boolean
  | string
  | readonly AbiInput[]
  | { readonly [member: string]: AbiInput };

/** Reads a signature that has a name for each parameter and member. */
export function parseFunction(text: string): AbiFunction {
  const parsed = parseSignature(text);
  if (!parsed) throw new Error(`"${text}" is not the signature of a function.`);
  return { ...parsed, signature: canonicalSignature(parsed), selector: selectorOf(parsed) };
}

export function membersOf(text: string): readonly AbiMember[] {
  const members = parseMembers(text);
  if (!members) throw new Error(`"${text}" is not a list of members.`);
  return members;
}

export function encodeCall(
  { selector, parameters }: AbiFunction,
  values: Readonly<Record<string, AbiInput>>,
): Hex {
  return `0x${selector}${hex.encode(encodeMembers(parameters, values))}`;
}

export function encodeMembers(members: readonly AbiMember[], values: Readonly<Record<string, AbiInput>>) {
  return encodeSequence(
    members.map(({ name = '', type }) => {
      const value = values[name];
      if (value === undefined) throw new Error(`The call has no value for ${name}.`);
      return [type, value] as const;
    }),
  );
}

/** Values in place or as offsets, then what the offsets point to. */
function encodeSequence(items: readonly (readonly [AbiType, AbiInput])[]): Uint8Array {
  const heads: Uint8Array[] = [];
  const tails: Uint8Array[] = [];
  let tailAt = items.reduce((sum, [type]) => sum + headBytes(type), 0);
  for (const [type, value] of items) {
    const encoded = encodeValue(type, value);
    if (!isDynamic(type)) {
      heads.push(encoded);
      continue;
    }
    heads.push(wordOf(BigInt(tailAt)));
    tails.push(encoded);
    tailAt += encoded.length;
  }
  return concatBytes(...heads, ...tails);
}

function encodeValue(type: AbiType, value: AbiInput): Uint8Array {
  switch (type.kind) {
    case 'word':
      return encodeWord(type.name, value);
    case 'bytes': {
      const bytes = bytesOf(String(value));
      const padding = new Uint8Array((WORD_BYTES - (bytes.length % WORD_BYTES)) % WORD_BYTES);
      return concatBytes(wordOf(BigInt(bytes.length)), bytes, padding);
    }
    case 'array': {
      const items = value as readonly AbiInput[];
      const encoded = encodeSequence(items.map((item) => [type.of, item] as const));
      return concatBytes(wordOf(BigInt(items.length)), encoded);
    }
    case 'tuple':
      return encodeMembers(type.members, value as Readonly<Record<string, AbiInput>>);
    default:
      throw new Error(`Values of the type ${type.kind} are not encoded here.`);
  }
}

function encodeWord(type: string, value: AbiInput): Uint8Array {
  if (type === 'bool') return wordOf(value === true ? 1n : 0n);
  const [, family = '', size = ''] = /^(uint|bytes)(\d+)$/.exec(type) ?? [];
  if (family === 'uint') {
    if (typeof value !== 'bigint' || value < 0n || value >> BigInt(size) !== 0n)
      throw new RangeError(`${String(value)} is not a ${type}.`);
    return wordOf(value);
  }
  const bytes = bytesOf(String(value));
  if (bytes.length !== (family === 'bytes' ? Number(size) : 20))
    throw new RangeError(`${String(value)} is not of the type ${type}.`);
  const word = new Uint8Array(WORD_BYTES);
  // Addresses are padded on the left, bytes on the right.
  word.set(bytes, family === 'bytes' ? 0 : WORD_BYTES - bytes.length);
  return word;
}

export function wordOf(value: bigint): Uint8Array {
  return hex.decode(value.toString(16).padStart(2 * WORD_BYTES, '0'));
}

/** Of hexadecimal text with `0x`. */
export function bytesOf(text: string): Uint8Array {
  if (!/^0x(?:[0-9a-fA-F]{2})*$/.test(text)) throw new RangeError('A value is not hexadecimal bytes.');
  return hex.decode(text.slice(2).toLowerCase());
}
