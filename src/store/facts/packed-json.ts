/**
 * Packed JSON: a binary form of JSON values, a fifth to a half as long as their text, and exact: a value that is read back has
 * the same text, with the order of its members.
 *
 * It is self-contained: reading needs the static dictionary (`packed-dictionary.ts`) and the `context`, scalar values that
 * writer and reader both know, such as what columns of the same row hold. A text that is in the context, in the dictionary
 * or earlier in the same value is a reference of one or two bytes. Other texts that spell bytes, numbers or times are
 * stored in binary form where that is exact, and as UTF-8 otherwise.
 *
 * The first byte is the version of the format. Stored values stay in the version that they were written in.
 */
import { groupBy } from '../group-by.ts';
import { dictionaryMembers, dictionaryTexts } from './packed-dictionary.ts';

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined };

/** What writer and reader both know. An entry that is undefined keeps the places of the others. */
export type PackingContext = readonly (string | number | undefined)[];

const VERSION = 1;

/** The first byte of a value. Bytes from `FIRST_SMALL_INTEGER` on are values by themselves. */
const tags = {
  null: 0,
  false: 1,
  true: 2,
  integer: 3,
  negativeInteger: 4,
  double: 5,
  utf8: 6,
  utf16: 7,
  hex: 8,
  /** Behind the bytes, one bit for each letter: whether it is upper case. */
  mixedHex: 9,
  /** Literal bytes and runs of zeros in turn. */
  sparseHex: 10,
  decimal: 11,
  longDecimal: 12,
  seconds: 13,
  milliseconds: 14,
  base58: 15,
  array: 16,
  object: 17,
  knownObject: 18,
  text: 19,
  reference: 20,
  dictionary: 21,
} as const;
const FIRST_SMALL_INTEGER = 0x20;
const FIRST_REFERENCE = 0x40;
const FIRST_DICTIONARY = 0x80;

/** Values that are nested more deeply are stored as JSON text. Records have at most half as many levels. */
const MAX_DEPTH = 32;
/** Longer numbers are text: converting them takes time that grows with the square of their length. */
const MAX_DECIMAL_DIGITS = 80;
const MAX_SAFE_DIGITS = 15;

const dictionary = new Map<string, number>(dictionaryTexts.map((text, index) => [text, index]));
const memberLists: readonly (readonly string[])[] = dictionaryMembers.map((names) => names.split(','));
/** The places of the lists that begin with a name. Comparing names is faster than joining them to one key. */
const listsByFirst = groupBy(memberLists.keys(), (index) => memberLists[index]?.[0]);

const DECIMAL = /^[1-9][0-9]*$/;
const ISO_TIME = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/;
const BASE58 = /^[1-9A-HJ-NP-Za-km-z]{32,88}$/;
const LOWER_CASE_HEX = /^0x[0-9a-f]*$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Packs a value as `JSON.stringify` sees it, so that members that are undefined are left out. */
export function packJson(value: JsonValue, context: PackingContext = []): Buffer {
  return new Writer(context).pack(value);
}

/** Throws an Error for bytes that `packJson` has not made. */
export function unpackJson(bytes: Buffer, context: PackingContext = []): JsonValue {
  return new Reader(bytes, context).unpack();
}

/** Where values are written before their length is known. It grows to the longest one. */
let scratch = Buffer.allocUnsafe(16 * 1024);

class Writer {
  #size = 0;
  readonly #references = new Map<string | number, number>();
  #referenceCount: number;

  constructor(context: PackingContext) {
    context.forEach((known, index) => {
      if (known !== undefined && !this.#references.has(known)) this.#references.set(known, index);
    });
    this.#referenceCount = context.length;
  }

  pack(value: JsonValue): Buffer {
    this.#byte(VERSION);
    this.#value(value, 0);
    return Buffer.from(scratch.subarray(0, this.#size));
  }

  #value(value: JsonValue, depth: number): void {
    if (typeof value === 'string') this.#text(value);
    else if (typeof value === 'number') this.#number(value);
    else if (value === null) this.#byte(tags.null);
    else if (typeof value === 'boolean') this.#byte(value ? tags.true : tags.false);
    else if (depth === MAX_DEPTH) this.#jsonText(value);
    else if (isArray(value)) this.#array(value, depth);
    else this.#object(value, depth);
  }

  #array(items: readonly JsonValue[], depth: number): void {
    this.#byte(tags.array);
    this.#varint(items.length);
    for (const item of items) this.#value(item ?? null, depth + 1);
  }

  #object(object: Readonly<Record<string, JsonValue | undefined>>, depth: number): void {
    let names = Object.keys(object);
    if (names.some((name) => object[name] === undefined))
      names = names.filter((name) => object[name] !== undefined);
    const list = listsByFirst.get(names[0])?.find((index) => isSameList(memberLists[index], names));
    if (list !== undefined) {
      this.#byte(tags.knownObject);
      this.#varint(list);
    } else {
      this.#byte(tags.object);
      this.#varint(names.length);
    }
    for (const name of names) {
      if (list === undefined) this.#text(name);
      this.#value(object[name] ?? null, depth + 1);
    }
  }

  #jsonText(value: JsonValue): void {
    this.#byte(tags.text);
    this.#utf8(JSON.stringify(value));
  }

  #number(value: number): void {
    const reference = this.#references.get(value);
    if (Number.isInteger(value) && value >= 0 && value < FIRST_REFERENCE - FIRST_SMALL_INTEGER)
      this.#byte(FIRST_SMALL_INTEGER + value);
    else if (reference !== undefined) this.#reference(reference);
    else if (!Number.isFinite(value)) this.#byte(tags.null);
    else if (Number.isSafeInteger(value)) {
      this.#byte(value < 0 ? tags.negativeInteger : tags.integer);
      this.#varint(Math.abs(value));
    } else {
      this.#byte(tags.double);
      this.#makeRoom(8);
      this.#size = scratch.writeDoubleLE(value, this.#size);
    }
  }

  #text(text: string): void {
    const reference = this.#references.get(text);
    const entry = reference === undefined ? dictionary.get(text) : undefined;
    if (reference !== undefined) this.#reference(reference);
    else if (entry !== undefined) this.#place(entry, FIRST_DICTIONARY, 0x100, tags.dictionary);
    else this.#newText(text);
  }

  #newText(text: string): void {
    this.#references.set(text, this.#referenceCount++);
    const before = this.#size;
    if (this.#specialText(text)) return;
    this.#size = before;
    if (LONE_SURROGATE.test(text)) {
      this.#byte(tags.utf16);
      this.#bytes(Buffer.from(text, 'utf16le'));
    } else {
      this.#byte(tags.utf8);
      this.#utf8(text);
    }
  }

  #reference(index: number): void {
    this.#place(index, FIRST_REFERENCE, FIRST_DICTIONARY, tags.reference);
  }

  /** The first places are tags by themselves, from `first` up to `end`. */
  #place(index: number, first: number, end: number, tag: number): void {
    if (index < end - first) {
      this.#byte(first + index);
      return;
    }
    this.#byte(tag);
    this.#varint(index);
  }

  /** False for a text that has no shorter form; what was written then counts for nothing. */
  #specialText(text: string): boolean {
    if (text.startsWith('0x')) return text.length % 2 === 0 && this.#hex(text);
    if (DECIMAL.test(text)) return this.#decimal(text);
    if (ISO_TIME.test(text)) return this.#time(text);
    if (BASE58.test(text)) {
      this.#byte(tags.base58);
      this.#bytes(base58Bytes(text));
      return true;
    }
    return false;
  }

  #hex(text: string): boolean {
    if (text.includes(ZERO_DIGITS) && this.#sparseHex(text)) return true;
    const tagAt = this.#size;
    const length = text.length / 2 - 1;
    this.#byte(tags.hex);
    this.#varint(length);
    this.#makeRoom(length);
    let hasUpperCase = false;
    for (let i = 2; i < text.length; i += 2) {
      const high = hexValues[text.charCodeAt(i)] ?? NOT_HEX;
      const low = hexValues[text.charCodeAt(i + 1)] ?? NOT_HEX;
      if ((high | low) & NOT_HEX) return false;
      hasUpperCase ||= ((high | low) & UPPER_CASE) !== 0;
      scratch[this.#size++] = ((high & 0xf) << 4) | (low & 0xf);
    }
    if (hasUpperCase) {
      scratch[tagAt] = tags.mixedHex;
      this.#letterCase(text);
    }
    return true;
  }

  #letterCase(text: string): void {
    let bits = 0;
    let count = 0;
    for (let i = 2; i < text.length; i++) {
      const value = hexValues[text.charCodeAt(i)] ?? 0;
      if ((value & 0xf) < 10) continue;
      if (value & UPPER_CASE) bits |= 1 << count;
      if (++count < 8) continue;
      this.#byte(bits);
      bits = count = 0;
    }
    if (count > 0) this.#byte(bits);
  }

  /** False for digits that are not all hexadecimal in lower case. */
  #sparseHex(text: string): boolean {
    if (!LOWER_CASE_HEX.test(text)) return false;
    const bytes = Buffer.from(text.slice(2), 'hex');
    this.#byte(tags.sparseHex);
    this.#varint(bytes.length);
    for (let position = 0; position < bytes.length; ) {
      const start = bytes.indexOf(ZERO_RUN, position);
      const zeros = start === -1 ? bytes.length : start;
      let end = zeros;
      while (bytes[end] === 0) end++;
      this.#bytes(bytes.subarray(position, zeros));
      this.#varint(end - zeros);
      position = end;
    }
    return true;
  }

  #decimal(text: string): boolean {
    if (text.length > MAX_DECIMAL_DIGITS) return false;
    if (text.length <= MAX_SAFE_DIGITS) {
      this.#byte(tags.decimal);
      this.#varint(Number(text));
    } else {
      this.#byte(tags.longDecimal);
      this.#bytes(bytesOfNumber(BigInt(text)));
    }
    return true;
  }

  #time(text: string): boolean {
    const time = Date.parse(text);
    // Date.parse takes some days that do not exist.
    if (!(time >= 0) || new Date(time).toISOString() !== text) return false;
    const isWhole = time % 1000 === 0;
    this.#byte(isWhole ? tags.seconds : tags.milliseconds);
    this.#varint(isWhole ? time / 1000 : time);
    return true;
  }

  #utf8(text: string): void {
    const length = Buffer.byteLength(text);
    this.#varint(length);
    this.#makeRoom(length);
    this.#size += scratch.write(text, this.#size, 'utf8');
  }

  #bytes(bytes: Uint8Array): void {
    this.#varint(bytes.length);
    this.#makeRoom(bytes.length);
    scratch.set(bytes, this.#size);
    this.#size += bytes.length;
  }

  /** A whole number from 0 up to 2^53, seven bits a byte, the lowest first. */
  #varint(value: number): void {
    this.#makeRoom(8);
    let rest = value;
    while (rest >= 0x80) {
      scratch[this.#size++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    scratch[this.#size++] = rest;
  }

  #byte(value: number): void {
    this.#makeRoom(1);
    scratch[this.#size++] = value;
  }

  #makeRoom(needed: number): void {
    if (this.#size + needed <= scratch.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#size + needed));
    scratch.copy(larger, 0, 0, this.#size);
    scratch = larger;
  }
}

class Reader {
  #position = 0;
  readonly #bytes: Buffer;
  readonly #references: (string | number | undefined)[];

  constructor(bytes: Buffer, context: PackingContext) {
    this.#bytes = bytes;
    this.#references = [...context];
  }

  unpack(): JsonValue {
    const version = this.#byte();
    if (version !== VERSION) throw new Error(`The version of packed JSON is ${version}, which is not known`);
    const value = this.#value();
    if (this.#position !== this.#bytes.length) throw new Error('Packed JSON has bytes behind its end');
    return value;
  }

  #value(): JsonValue {
    const tag = this.#byte();
    if (tag >= FIRST_DICTIONARY) return known(dictionaryTexts[tag - FIRST_DICTIONARY]);
    if (tag >= FIRST_REFERENCE) return known(this.#references[tag - FIRST_REFERENCE]);
    if (tag >= FIRST_SMALL_INTEGER) return tag - FIRST_SMALL_INTEGER;
    switch (tag) {
      case tags.null:
        return null;
      case tags.false:
        return false;
      case tags.true:
        return true;
      case tags.integer:
        return this.#varint();
      case tags.negativeInteger:
        return -this.#varint();
      case tags.double:
        return this.#bytes.readDoubleLE(this.#skip(8));
      case tags.array:
        return this.#array();
      case tags.object:
        return this.#object();
      case tags.knownObject:
        return this.#knownObject();
      case tags.text:
        return JSON.parse(this.#string('utf8')) as JsonValue;
      case tags.reference:
        return known(this.#references[this.#varint()]);
      case tags.dictionary:
        return known(dictionaryTexts[this.#varint()]);
      default: {
        const text = this.#text(tag);
        this.#references.push(text);
        return text;
      }
    }
  }

  #array(): JsonValue {
    const items: JsonValue[] = [];
    for (let rest = this.#varint(); rest > 0; rest--) items.push(this.#value());
    return items;
  }

  #object(): JsonValue {
    const object: Record<string, JsonValue> = {};
    const count = this.#varint();
    for (let i = 0; i < count; i++) {
      const name = String(this.#value());
      const value = this.#value();
      // An assignment would change the prototype.
      if (name === '__proto__')
        Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
      else object[name] = value;
    }
    return object;
  }

  #knownObject(): JsonValue {
    const object: Record<string, JsonValue> = {};
    for (const name of known(memberLists[this.#varint()])) object[name] = this.#value();
    return object;
  }

  #text(tag: number): string {
    switch (tag) {
      case tags.utf8:
        return this.#string('utf8');
      case tags.utf16:
        return this.#string('utf16le');
      case tags.hex:
        return `0x${this.#string('hex')}`;
      case tags.mixedHex:
        return this.#mixedHex();
      case tags.sparseHex:
        return `0x${this.#sparseHex()}`;
      case tags.decimal:
        return String(this.#varint());
      case tags.longDecimal:
        return numberOf(this.#string('hex')).toString();
      case tags.seconds:
        return new Date(1000 * this.#varint()).toISOString();
      case tags.milliseconds:
        return new Date(this.#varint()).toISOString();
      case tags.base58:
        return base58Text(this.#string('hex'));
      default:
        throw new Error(`Packed JSON has a value of the unknown kind ${tag}`);
    }
  }

  #mixedHex(): string {
    const length = this.#varint();
    const start = this.#skip(length);
    const characters = Buffer.allocUnsafe(2 + 2 * length);
    characters.write('0x', 'latin1');
    let bits = 0;
    let count = 8;
    for (let i = 0; i < 2 * length; i++) {
      const byte = this.#bytes[start + (i >> 1)] ?? 0;
      const value = i & 1 ? byte & 0xf : byte >> 4;
      let character = LOWER_CASE_DIGITS.charCodeAt(value);
      if (value >= 10) {
        if (count === 8) {
          bits = this.#byte();
          count = 0;
        }
        if (bits & (1 << count++)) character -= LETTER_CASE;
      }
      characters[2 + i] = character;
    }
    return characters.toString('latin1');
  }

  #sparseHex(): string {
    const length = this.#varint();
    let text = '';
    while (text.length < 2 * length) text += this.#string('hex') + '00'.repeat(this.#varint());
    return text;
  }

  #string(encoding: 'utf8' | 'utf16le' | 'hex'): string {
    const length = this.#varint();
    const start = this.#skip(length);
    return this.#bytes.toString(encoding, start, start + length);
  }

  /** The position before the skipped bytes. */
  #skip(length: number): number {
    const start = this.#position;
    this.#position += length;
    if (this.#position > this.#bytes.length) throw new Error('Packed JSON is cut off');
    return start;
  }

  #varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }

  #byte(): number {
    const byte = this.#bytes[this.#position++];
    if (byte === undefined) throw new Error('Packed JSON is cut off');
    return byte;
  }
}

const LOWER_CASE_DIGITS = '0123456789abcdef';
const UPPER_CASE = 0x10;
const NOT_HEX = 0x20;
/** The value of each hexadecimal digit, with `UPPER_CASE` for A to F; `NOT_HEX` for other characters. */
const hexValues = new Uint8Array(0x80).fill(NOT_HEX);
for (const [value, digit] of [...LOWER_CASE_DIGITS].entries()) {
  hexValues[digit.toUpperCase().charCodeAt(0)] = value | UPPER_CASE;
  hexValues[digit.charCodeAt(0)] = value;
}
/** Between a lower-case letter and the upper-case one. */
const LETTER_CASE = 0x20;
/** Zeros that are worth a run: it takes two bytes. */
const ZERO_RUN = Buffer.alloc(4);
const ZERO_DIGITS = '00'.repeat(8);

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('Packed JSON refers to something that is not there');
  return value;
}

function isArray(value: object): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function isSameList(one: readonly string[] | undefined, other: readonly string[]): boolean {
  if (one?.length !== other.length) return false;
  for (let i = 0; i < other.length; i++) if (one[i] !== other[i]) return false;
  return true;
}

function bytesOfNumber(value: bigint): Buffer {
  const digits = value.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
}

function numberOf(digits: string): bigint {
  return digits === '' ? 0n : BigInt(`0x${digits}`);
}

// ---- Base58, nine digits at a time: digit by digit it would take most of the time of a Solana fact.

const BASE58_DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const CHUNK_DIGITS = 9;
const CHUNK_BASE = 58n ** BigInt(CHUNK_DIGITS);
const base58Values = new Uint8Array(0x80);
for (const [value, digit] of [...BASE58_DIGITS].entries()) base58Values[digit.charCodeAt(0)] = value;
/** The digit of zero; each one at the beginning is a byte of zero. */
const BASE58_ZERO = 0x31;

function base58Bytes(text: string): Buffer {
  let zeros = 0;
  while (text.charCodeAt(zeros) === BASE58_ZERO) zeros++;
  let number = 0n;
  for (let position = 0; position < text.length; ) {
    // The first chunk is the short one.
    const end = position + ((text.length - position) % CHUNK_DIGITS || CHUNK_DIGITS);
    let chunk = 0;
    for (; position < end; position++) chunk = chunk * 58 + (base58Values[text.charCodeAt(position)] ?? 0);
    number = number * CHUNK_BASE + BigInt(chunk);
  }
  const bytes = number === 0n ? Buffer.alloc(0) : bytesOfNumber(number);
  return zeros === 0 ? bytes : Buffer.concat([Buffer.alloc(zeros), bytes]);
}

/** @param hexDigits of the bytes */
function base58Text(hexDigits: string): string {
  let zeros = 0;
  while (hexDigits.startsWith('00', 2 * zeros)) zeros++;
  let text = '';
  for (let number = numberOf(hexDigits); number > 0n; number /= CHUNK_BASE) {
    let chunk = Number(number % CHUNK_BASE);
    let digits = '';
    for (let i = 0; i < CHUNK_DIGITS && (chunk > 0 || number >= CHUNK_BASE); i++) {
      digits = `${BASE58_DIGITS[chunk % 58]}${digits}`;
      chunk = Math.floor(chunk / 58);
    }
    text = digits + text;
  }
  return '1'.repeat(zeros) + text;
}
