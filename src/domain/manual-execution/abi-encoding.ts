/**
 * An ABI encoder for calls of contracts, from signatures with names.
 *
 * @example
 * const call = parseFunction('transfer(address to,uint256 amount)');
 * encodeCall(call, { to: '0x5aae…', amount: 1n }) // '0xa9059cbb…'
 */

import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { hex } from '@scure/base';
import type { Hex } from '../../base/hex.ts';

export type { Hex };

export type AbiShape =
  | { readonly kind: 'word'; readonly type: string }
  | { readonly kind: 'bytes' }
  | { readonly kind: 'array'; readonly of: AbiShape }
  | { readonly kind: 'tuple'; readonly members: readonly AbiMember[] };

export interface AbiMember {
  readonly name: string;
  readonly shape: AbiShape;
}

export interface AbiFunction {
  readonly name: string;
  readonly parameters: readonly AbiMember[];
  /** Name and types, from which the selector is made. */
  readonly signature: string;
}

/** Integers are bigint; addresses and bytes hexadecimal text; tuples objects by the names of their members. */
export type AbiInput =
  | bigint
  | boolean
  | string
  | readonly AbiInput[]
  | { readonly [member: string]: AbiInput };

const WORD_BYTES = 32;
const WORD_TYPE = /^(?:address|bool|uint\d{1,3}|bytes\d{1,2})$/;

/** Reads a signature that has a name for each parameter and member. */
export function parseFunction(text: string): AbiFunction {
  const open = text.indexOf('(');
  const name = text.slice(0, open);
  const parameters = parseMembers(text.slice(open + 1, -1));
  return {
    name,
    parameters,
    signature: `${name}(${parameters.map(({ shape }) => typeOf(shape)).join(',')})`,
  };
}

/** The types of a list of values, without a function. */
export function parseMembers(text: string): readonly AbiMember[] {
  return splitAtCommas(text).map((part) => {
    const at = part.lastIndexOf(' ');
    return { name: part.slice(at + 1), shape: parseShape(part.slice(0, at).trim()) };
  });
}

export function encodeCall(
  { signature, parameters }: AbiFunction,
  values: Readonly<Record<string, AbiInput>>,
): Hex {
  const selector = keccak_256(utf8ToBytes(signature)).subarray(0, 4);
  return `0x${hex.encode(concatBytes(selector, encodeMembers(parameters, values)))}`;
}

export function encodeMembers(
  members: readonly AbiMember[],
  values: Readonly<Record<string, AbiInput>>,
): Uint8Array {
  return encodeSequence(
    members.map(({ name, shape }) => {
      const value = values[name];
      if (value === undefined) throw new Error(`The call has no value for ${name}.`);
      return [shape, value] as const;
    }),
  );
}

/** Values in place or as offsets, then what the offsets point to. */
function encodeSequence(items: readonly (readonly [AbiShape, AbiInput])[]): Uint8Array {
  const headBytes = items.reduce((sum, [shape]) => sum + headBytesOf(shape), 0);
  const heads: Uint8Array[] = [];
  const tails: Uint8Array[] = [];
  let tailAt = headBytes;
  for (const [shape, value] of items) {
    const encoded = encodeValue(shape, value);
    if (!isDynamic(shape)) {
      heads.push(encoded);
      continue;
    }
    heads.push(wordOf(BigInt(tailAt)));
    tails.push(encoded);
    tailAt += encoded.length;
  }
  return concatBytes(...heads, ...tails);
}

function encodeValue(shape: AbiShape, value: AbiInput): Uint8Array {
  switch (shape.kind) {
    case 'word':
      return encodeWord(shape.type, value);
    case 'bytes': {
      const bytes = bytesOf(String(value));
      const padding = new Uint8Array((WORD_BYTES - (bytes.length % WORD_BYTES)) % WORD_BYTES);
      return concatBytes(wordOf(BigInt(bytes.length)), bytes, padding);
    }
    case 'array': {
      const items = value as readonly AbiInput[];
      const encoded = encodeSequence(items.map((item) => [shape.of, item] as const));
      return concatBytes(wordOf(BigInt(items.length)), encoded);
    }
    case 'tuple':
      return encodeMembers(shape.members, value as Readonly<Record<string, AbiInput>>);
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
  // Addresses stand at the end of their word, bytes at its beginning.
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

function isDynamic(shape: AbiShape): boolean {
  if (shape.kind === 'tuple') return shape.members.some((member) => isDynamic(member.shape));
  return shape.kind !== 'word';
}

function headBytesOf(shape: AbiShape): number {
  if (shape.kind !== 'tuple' || isDynamic(shape)) return WORD_BYTES;
  return shape.members.reduce((sum, member) => sum + headBytesOf(member.shape), 0);
}

function parseShape(text: string): AbiShape {
  if (text.endsWith('[]')) return { kind: 'array', of: parseShape(text.slice(0, -2)) };
  if (text.startsWith('(')) return { kind: 'tuple', members: parseMembers(text.slice(1, -1)) };
  if (text === 'bytes') return { kind: 'bytes' };
  if (!WORD_TYPE.test(text)) throw new Error(`"${text}" is not a type that can be encoded.`);
  return { kind: 'word', type: text };
}

function typeOf(shape: AbiShape): string {
  switch (shape.kind) {
    case 'word':
      return shape.type;
    case 'bytes':
      return 'bytes';
    case 'array':
      return `${typeOf(shape.of)}[]`;
    case 'tuple':
      return `(${shape.members.map((member) => typeOf(member.shape)).join(',')})`;
  }
}

/** At the commas outside of parentheses. */
function splitAtCommas(text: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (const [index, character] of [...text].entries()) {
    if (character === '(') depth++;
    if (character === ')') depth--;
    if (character !== ',' || depth > 0) continue;
    parts.push(text.slice(start, index).trim());
    start = index + 1;
  }
  const last = text.slice(start).trim();
  return last === '' ? parts : [...parts, last];
}
