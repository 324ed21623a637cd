/**
 * The decoder of ABI encodings: compiles parameters once, and cuts the values out of the hexadecimal text.
 *
 * The library's decoder turns every log into bytes and back, and looks at the types again for each value: a third of the time
 * of reading a dense history. Values are those of the library, which tests compare: numbers of up to 48 bits, wider ones as
 * bigint, addresses with their checksum, structures as objects.
 */
import type { AbiParameter, DecodeAbiParametersReturnType } from 'viem';
import { parseAddress } from '../../../domain/addresses.ts';
import type { Hex } from '../rpc/chain.ts';

export type Params = readonly AbiParameter[];
export type Values<P extends Params> = DecodeAbiParametersReturnType<P>;

/** Throws where the data has not the shape of the parameters. */
export type Decode<P extends Params> = (data: Hex) => Values<P>;

export function compileDecoder<const P extends Params>(params: P): Decode<P> {
  const { readMembers } = membersOf(params);
  // What is read follows from the parameters, which the compiler cannot see.
  return (data) => readMembers(new Words(data), 0) as unknown as Values<P>;
}

const WORD_BYTES = 32;
/** The widest integers that are numbers, in bits. */
const MAX_NUMBER_BITS = 48;
const ADDRESS_DIGITS = 40;
/**
 * An encoding has each word once. Offsets that point to the same words again could make a short text mean a huge value:
 * no more is read than this many times its length, and this many words more.
 */
const MAX_READINGS = 4;
const SPARE_WORDS = 8_192;

/** An encoding, read at positions in bytes. */
class Words {
  readonly #digits: Hex;
  readonly #bytes: number;
  #wordsLeft: number;

  constructor(digits: Hex) {
    this.#digits = digits;
    this.#bytes = (digits.length - 2) / 2;
    this.#wordsLeft = SPARE_WORDS + (MAX_READINGS * this.#bytes) / WORD_BYTES;
  }

  /** Hexadecimal digits without prefix. */
  digits(at: number, bytes: number): string {
    if (at + bytes > this.#bytes) throw new Error(`${this.#bytes} bytes end before the values do`);
    this.#wordsLeft -= bytes / WORD_BYTES;
    if (this.#wordsLeft < 0) throw new Error('The values repeat the same bytes too often');
    return this.#digits.slice(2 + 2 * at, 2 + 2 * (at + bytes));
  }

  integer(at: number): bigint {
    return BigInt(`0x${this.digits(at, WORD_BYTES)}`);
  }

  number(at: number): number {
    const number = Number(`0x${this.digits(at, WORD_BYTES)}`);
    if (!Number.isSafeInteger(number)) throw new Error(`${number} is too large`);
    return number;
  }

  /** The bytes behind their length. */
  lengthPrefixed(at: number): string {
    return this.digits(at + WORD_BYTES, this.number(at));
  }
}

/** How a type is read. */
interface Type {
  /** Where its value begins, in bytes; behind an offset where it is dynamic. */
  readonly read: (words: Words, at: number) => unknown;
  readonly isDynamic: boolean;
  /** What it takes among the values beside it, in bytes: an offset where it is dynamic. */
  readonly headBytes: number;
}

const staticType = (read: Type['read']): Type => ({ read, isDynamic: false, headBytes: WORD_BYTES });
const dynamicType = (read: Type['read']): Type => ({ read, isDynamic: true, headBytes: WORD_BYTES });

function typeOf(param: AbiParameter): Type {
  const { type } = param;
  if (type.endsWith('[]')) return arrayOf(typeOf({ ...param, type: type.slice(0, -2) }));
  if (type === 'tuple') return structureOf(param);
  if (type === 'bytes') return dynamicType((words, at) => `0x${words.lengthPrefixed(at)}`);
  if (type === 'string')
    return dynamicType((words, at) => Buffer.from(words.lengthPrefixed(at), 'hex').toString('utf8'));
  if (type === 'address') return staticType(readAddress);
  if (type === 'bool') return staticType(readFlag);
  const [, name, size = ''] = /^(uint|bytes)(\d+)$/.exec(type) ?? [];
  if (name === 'bytes') return staticType((words, at) => `0x${words.digits(at, Number(size))}`);
  if (name === 'uint')
    return staticType((words, at) => (Number(size) > MAX_NUMBER_BITS ? words.integer(at) : words.number(at)));
  throw new Error(`There is no decoder for the type ${type}`);
}

/** Any bits above an address are ignored. */
function readAddress(words: Words, at: number): string | undefined {
  return parseAddress(`0x${words.digits(at, WORD_BYTES).slice(-ADDRESS_DIGITS)}`, 'EVM')?.text;
}

function readFlag(words: Words, at: number): boolean {
  const number = words.number(at);
  if (number > 1) throw new Error(`${number} is neither true nor false`);
  return number === 1;
}

function arrayOf(element: Type): Type {
  return dynamicType((words, at) => {
    const length = words.number(at);
    const values: unknown[] = [];
    for (let index = 0; index < length; index++)
      values.push(readIn(element, words, at + WORD_BYTES, index * element.headBytes));
    return values;
  });
}

/** Structures without the names of their members are lists. */
function structureOf(param: AbiParameter): Type {
  const components = 'components' in param ? param.components : [];
  const { readMembers, isDynamic, headBytes } = membersOf(components);
  const type = { isDynamic, headBytes: isDynamic ? WORD_BYTES : headBytes };
  const names = components.flatMap(({ name }) => name || []);
  if (names.length < components.length) return { ...type, read: readMembers };
  const read = (words: Words, at: number) => {
    const values = readMembers(words, at);
    const structure: Record<string, unknown> = {};
    names.forEach((name, index) => {
      structure[name] = values[index];
    });
    return structure;
  };
  return { ...type, read };
}

/** Values in a row: the parameters of an event or a function, the members of a structure. */
function membersOf(params: Params) {
  const members: { readonly type: Type; readonly head: number }[] = [];
  let headBytes = 0;
  for (const param of params) {
    const type = typeOf(param);
    members.push({ type, head: headBytes });
    headBytes += type.headBytes;
  }
  return {
    readMembers: (words: Words, base: number) =>
      members.map(({ type, head }) => readIn(type, words, base, head)),
    isDynamic: members.some(({ type }) => type.isDynamic),
    headBytes,
  };
}

/** The value whose head is `head` bytes behind `base`. Offsets count from there. */
function readIn({ read, isDynamic }: Type, words: Words, base: number, head: number): unknown {
  return read(words, isDynamic ? base + words.number(base + head) : base + head);
}
