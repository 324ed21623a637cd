/** Types and signatures of Solidity's ABI: `TokenHandlingError(address target,bytes err)`, names of arguments being optional. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { hex } from '@scure/base';

/** Tuples are `(…)` with their members. */
export type AbiType =
  | { readonly kind: 'word'; readonly name: string }
  | { readonly kind: 'bytes' | 'string' }
  | { readonly kind: 'array'; readonly of: AbiType; readonly length: number | undefined }
  | { readonly kind: 'tuple'; readonly members: readonly AbiMember[] };

export interface AbiMember {
  readonly name: string | undefined;
  readonly type: AbiType;
}

export interface AbiSignature {
  readonly name: string;
  readonly parameters: readonly AbiMember[];
}

export const WORD_BYTES = 32;
const WORD_TYPE =
  /^(address|bool|u?int(8|16|24|32|40|48|56|64|72|80|88|96|104|112|120|128|136|144|152|160|168|176|184|192|200|208|216|224|232|240|248|256)?|bytes([1-9]|[12]\d|3[0-2]))$/;
const MAX_ARRAY_DEPTH = 4;

export function parseSignature(text: string): AbiSignature | undefined {
  const [, name = '', inner] = /^\s*([A-Za-z_$][\w$]{0,99})\((.*)\)\s*$/s.exec(text) ?? [];
  const parameters = inner === undefined ? undefined : parseMembers(inner);
  return parameters && { name, parameters };
}

/** The members of a tuple, or a list of parameters; undefined where the text is neither. */
export function parseMembers(text: string): readonly AbiMember[] | undefined {
  const members = splitList(text)?.map(parseMember);
  return members?.every((member) => member !== undefined) ? members : undefined;
}

/** Name and types, from which the selector is made. */
export function canonicalSignature({ name, parameters }: AbiSignature): string {
  return `${name}(${typeNames(parameters)})`;
}

/** The first four bytes of the hash of its name and types, in hexadecimal without `0x`. */
export function selectorOf(signature: AbiSignature): string {
  return hex.encode(keccak_256(utf8ToBytes(canonicalSignature(signature))).subarray(0, 4));
}

/** Whether its head is an offset to the value. */
export function isDynamic(type: AbiType): boolean {
  switch (type.kind) {
    case 'word':
      return false;
    case 'bytes':
    case 'string':
      return true;
    case 'array':
      return type.length === undefined || isDynamic(type.of);
    case 'tuple':
      return type.members.some((member) => isDynamic(member.type));
  }
}

export function headBytes(type: AbiType): number {
  if (isDynamic(type)) return WORD_BYTES;
  if (type.kind === 'array') return (type.length ?? 0) * headBytes(type.of);
  if (type.kind === 'tuple') return type.members.reduce((sum, member) => sum + headBytes(member.type), 0);
  return WORD_BYTES;
}

function parseMember(text: string): AbiMember | undefined {
  const [, typeText = '', name] = /^\s*(\(.*\)(?:\[\d*\])*|[^\s()]+)(?:\s+([\w$]+))?\s*$/s.exec(text) ?? [];
  const type = parseType(typeText, 0);
  return type && { name, type };
}

function parseType(text: string, depth: number): AbiType | undefined {
  if (depth > MAX_ARRAY_DEPTH) return undefined;
  const [, inner, length] = /^(.+)\[(\d*)\]$/s.exec(text) ?? [];
  if (inner !== undefined) {
    const of = parseType(inner, depth + 1);
    return of && { kind: 'array', of, length: length === '' ? undefined : Number(length) };
  }
  if (text.startsWith('(') && text.endsWith(')')) {
    const members = parseMembers(text.slice(1, -1));
    return members && { kind: 'tuple', members };
  }
  if (text === 'bytes' || text === 'string') return { kind: text };
  return WORD_TYPE.test(text) ? { kind: 'word', name: text } : undefined;
}

/** At the commas that are not inside parentheses. */
function splitList(text: string): readonly string[] | undefined {
  if (text.trim() === '') return [];
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === '(') depth++;
    if (character === ')') depth--;
    if (depth < 0) return undefined;
    if (character === ',' && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return depth === 0 ? [...parts, text.slice(start)] : undefined;
}

function typeNames(members: readonly AbiMember[]): string {
  return members.map(({ type }) => typeName(type)).join(',');
}

function typeName(type: AbiType): string {
  switch (type.kind) {
    case 'word':
      return type.name === 'uint' || type.name === 'int' ? `${type.name}256` : type.name;
    case 'array':
      return `${typeName(type.of)}[${type.length ?? ''}]`;
    case 'tuple':
      return `(${typeNames(type.members)})`;
    default:
      return type.kind;
  }
}
