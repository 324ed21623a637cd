/** Signatures of custom errors: `TokenHandlingError(address target,bytes err)`, names of arguments being optional. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { hex } from '@scure/base';
import type { AbiType } from './abi-values.ts';

export interface ErrorSignature {
  readonly name: string;
  readonly parameters: readonly { readonly name: string | undefined; readonly type: AbiType }[];
}

/** By the first four bytes of the hash of its name and types, in hexadecimal without `0x`. */
export type ErrorTable = ReadonlyMap<string, ErrorSignature>;

const WORD_TYPE =
  /^(address|bool|u?int(8|16|24|32|40|48|56|64|72|80|88|96|104|112|120|128|136|144|152|160|168|176|184|192|200|208|216|224|232|240|248|256)?|bytes([1-9]|[12]\d|3[0-2]))$/;
const MAX_DEPTH = 4;

/** The table of these errors. Of two with the same types the first is taken, and the names only where they agree. */
export function errorTable(signatures: readonly string[]): ErrorTable {
  const table = new Map<string, ErrorSignature>();
  for (const text of signatures) {
    const signature = parseErrorSignature(text);
    if (!signature) throw new Error(`"${text}" is not the signature of an error`);
    const key = selectorOf(signature);
    table.set(key, agreed(table.get(key) ?? signature, signature));
  }
  return table;
}

/** The selector of an error, in hexadecimal without `0x`. */
export function selectorOf({ name, parameters }: ErrorSignature): string {
  const canonical = `${name}(${parameters.map(({ type }) => typeName(type)).join(',')})`;
  return hex.encode(keccak_256(new TextEncoder().encode(canonical)).subarray(0, 4));
}

/** Undefined where it is not a signature. */
export function parseErrorSignature(text: string): ErrorSignature | undefined {
  const [, name = '', inner] = /^\s*([A-Za-z_$][\w$]{0,99})\((.*)\)\s*$/s.exec(text) ?? [];
  if (inner === undefined) return undefined;
  const parameters = splitList(inner)?.map(parseParameter);
  if (!parameters || parameters.includes(undefined)) return undefined;
  return { name, parameters: parameters.filter((parameter) => parameter !== undefined) };
}

function parseParameter(text: string): ErrorSignature['parameters'][number] | undefined {
  const [, typeText = '', name] = /^\s*(\(.*\)(?:\[\d*\])*|[^\s()]+)(?:\s+([\w$]+))?\s*$/s.exec(text) ?? [];
  const type = parseType(typeText, 0);
  return type && { name, type };
}

function parseType(text: string, depth: number): AbiType | undefined {
  if (depth > MAX_DEPTH) return undefined;
  const [, inner, length] = /^(.+)\[(\d*)\]$/s.exec(text) ?? [];
  if (inner !== undefined) {
    const of = parseType(inner, depth + 1);
    return of && { kind: 'array', of, length: length === '' ? undefined : Number(length) };
  }
  if (text.startsWith('(') && text.endsWith(')')) {
    const members = splitList(text.slice(1, -1))?.map((member) => parseParameter(member)?.type);
    if (!members || members.includes(undefined)) return undefined;
    return { kind: 'tuple', members: members.filter((member) => member !== undefined) };
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

function typeName(type: AbiType): string {
  switch (type.kind) {
    case 'word':
      return type.name === 'uint' || type.name === 'int' ? `${type.name}256` : type.name;
    case 'array':
      return `${typeName(type.of)}[${type.length ?? ''}]`;
    case 'tuple':
      return `(${type.members.map(typeName).join(',')})`;
    default:
      return type.kind;
  }
}

function agreed(first: ErrorSignature, second: ErrorSignature): ErrorSignature {
  return {
    name: first.name,
    parameters: first.parameters.map(({ name, type }, index) => ({
      name: second.parameters[index]?.name === name ? name : undefined,
      type,
    })),
  };
}
