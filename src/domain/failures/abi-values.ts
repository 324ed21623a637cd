/**
 * A small reader of ABI-encoded values, for the arguments of custom errors.
 *
 * Return data is chosen by untrusted contracts, and off-ramps cut it off after some 132 bytes. So nothing
 * here throws: a value that is not there is undefined, a text or byte string that was cut off is read as far as it goes,
 * and everything is bounded.
 */
import { hex } from '@scure/base';
import { type AbiType, headBytes, isDynamic, WORD_BYTES } from '../abi-types.ts';
import { withoutDisguise } from '../names/claimed-text.ts';

/** A value as text: numbers in decimal, bytes and addresses in hexadecimal. */
export interface AbiValue {
  readonly text: string;
  /** Of `bytes` and `string`. */
  readonly bytes?: Uint8Array;
  /** The data ended before the value did. */
  readonly isCut: boolean;
}

const MAX_DEPTH = 4;
const MAX_ITEMS = 32;
/** Longer texts are cut off: they are shown to people. */
const MAX_TEXT_LENGTH = 1_000;

/**
 * Reads the values of a list of types, as the arguments of an error are encoded; undefined where they do not fit.
 *
 * @param base where they begin, and where the offsets of dynamic values are counted from
 */
export function readValues(types: readonly AbiType[], data: Uint8Array, base = 0, depth = 0) {
  const values: AbiValue[] = [];
  let at = base;
  for (const type of types) {
    const offset = isDynamic(type) ? readLength(data, at) : at - base;
    const value = offset === undefined ? undefined : readValue(type, data, base + offset, depth);
    if (!value) return undefined;
    values.push(value);
    at += headBytes(type);
  }
  return values;
}

function readValue(type: AbiType, data: Uint8Array, at: number, depth: number): AbiValue | undefined {
  if (depth > MAX_DEPTH) return undefined;
  switch (type.kind) {
    case 'word': {
      const word = data.subarray(at, at + WORD_BYTES);
      const text = word.length === WORD_BYTES ? wordText(type.name, word) : undefined;
      return text === undefined ? undefined : { text, isCut: false };
    }
    case 'bytes':
    case 'string': {
      const length = readLength(data, at);
      if (length === undefined) return undefined;
      const start = at + WORD_BYTES;
      const bytes = data.subarray(start, start + length);
      const isCut = bytes.length < length;
      return { text: type.kind === 'string' ? decodedText(bytes) : `0x${shortHex(bytes)}`, bytes, isCut };
    }
    case 'array': {
      const length = type.length ?? readLength(data, at);
      if (length === undefined || length > MAX_ITEMS) return undefined;
      const start = type.length === undefined ? at + WORD_BYTES : at;
      return readMembers(Array(length).fill(type.of), data, start, depth);
    }
    case 'tuple':
      return readMembers(
        type.members.map((member) => member.type),
        data,
        at,
        depth,
      );
  }
}

function readMembers(types: readonly AbiType[], data: Uint8Array, base: number, depth: number) {
  const values = readValues(types, data, base, depth + 1);
  const text = cutText(`[${values?.map((value) => value.text).join(', ')}]`);
  return values && { text, isCut: values.some(({ isCut }) => isCut) };
}

/** An offset or a length; undefined where it cannot be one. */
function readLength(data: Uint8Array, at: number): number | undefined {
  const word = data.subarray(at, at + WORD_BYTES);
  if (word.length < WORD_BYTES || word.subarray(0, 26).some((byte) => byte !== 0)) return undefined;
  return word.subarray(26).reduce((sum, byte) => sum * 256 + byte, 0);
}

/** Undefined where the word cannot be of this type: its other bytes are not what the encoding asks for. */
function wordText(name: string, word: Uint8Array): string | undefined {
  const number = BigInt(`0x${hex.encode(word)}`);
  if (name === 'address') return number >> 160n === 0n ? `0x${hex.encode(word.subarray(12))}` : undefined;
  if (name === 'bool') return number > 1n ? undefined : number === 1n ? 'true' : 'false';
  const [, family = '', size = ''] = /^(uint|int|bytes)(\d*)$/.exec(name) ?? [];
  if (family === 'bytes') {
    const length = Number(size);
    return word.subarray(length).every((byte) => byte === 0)
      ? `0x${hex.encode(word.subarray(0, length))}`
      : undefined;
  }
  const bits = size === '' ? 256 : Number(size);
  if (family === 'uint') return number >> BigInt(bits) === 0n ? number.toString() : undefined;
  const signed = BigInt.asIntN(256, number);
  return BigInt.asIntN(bits, signed) === signed ? signed.toString() : undefined;
}

function decodedText(bytes: Uint8Array): string {
  return cutText(withoutDisguise(new TextDecoder().decode(bytes.subarray(0, 4 * MAX_TEXT_LENGTH))));
}

function shortHex(bytes: Uint8Array): string {
  const shown = bytes.subarray(0, MAX_TEXT_LENGTH / 2);
  return `${hex.encode(shown)}${shown.length < bytes.length ? '…' : ''}`;
}

function cutText(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
}
