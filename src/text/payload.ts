/**
 * Decodes the data of a message without knowing its receiver: as text, or as plain ABI.
 *
 * ABI carries no types. The types here are guesses from the values, and the page must say so.
 */
import { parseAddress } from '../domain/addresses.ts';

export interface AbiValue {
  readonly type: 'address' | 'uint256' | 'int256' | 'bytes32' | 'string' | 'bytes';
  readonly text: string;
}

const WORD_DIGITS = 64;
/** Data with more words is a larger structure, which a table does not make readable. */
const MAX_WORDS = 64;

export function byteLength(hex: string): number {
  return (hex.length - 2) / 2;
}

/** The bytes as UTF-8 text; null where they are not valid UTF-8. */
export function textOf(hex: string): string | null {
  const text = utf8(hex.slice(2));
  return text === '' ? null : text;
}

function utf8(digits: string): string | null {
  const bytes = Uint8Array.from({ length: digits.length / 2 }, (_, i) =>
    Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16),
  );
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return /[^\P{Cc}\n\r\t]/u.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** The values that the words of the data seem to be; null where it is not plain ABI. */
export function abiValues(hex: string): readonly AbiValue[] | null {
  const digits = hex.slice(2);
  const count = digits.length / WORD_DIGITS;
  if (count === 0 || !Number.isInteger(count)) return null;
  const words = Array.from({ length: count }, (_, i) => digits.slice(i * WORD_DIGITS, (i + 1) * WORD_DIGITS));

  const values: AbiValue[] = [];
  // Values of fixed size come first, with offsets in place of the others, whose content follows.
  let headWords = count;
  for (let index = 0; index < headWords; index++) {
    const word = words[index] ?? '';
    const content = contentAt(word, index, words, digits);
    if (content) {
      headWords = Math.min(headWords, content.atWord);
      values.push(content.value);
    } else {
      values.push(fixedValue(word));
    }
  }
  return values.length > MAX_WORDS ? null : values;
}

/** The value at an offset; undefined where the word is not an offset. */
function contentAt(word: string, index: number, words: readonly string[], digits: string) {
  const offset = BigInt(`0x${word}`);
  const atWord = Number(offset / 32n);
  if (offset % 32n !== 0n || offset <= BigInt(index * 32) || atWord >= words.length) return undefined;
  const length = BigInt(`0x${words[atWord]}`);
  const room = BigInt(words.length - atWord - 1) * 32n;
  if (length > room || (length === 0n && atWord !== words.length - 1)) return undefined;
  const start = (atWord + 1) * WORD_DIGITS;
  const end = start + Number(length) * 2;
  const padding = digits.slice(end, start + Math.ceil(Number(length) / 32) * WORD_DIGITS);
  if (/[^0]/.test(padding)) return undefined;
  const content = digits.slice(start, end);
  const text = utf8(content);
  return {
    atWord,
    value:
      text === null
        ? ({ type: 'bytes', text: `0x${content}` } as const)
        : ({ type: 'string', text } as const),
  };
}

const TWO_TO = { 64: 2n ** 64n, 96: 2n ** 96n, 128: 2n ** 128n, 160: 2n ** 160n, 256: 2n ** 256n };

function fixedValue(word: string): AbiValue {
  const number = BigInt(`0x${word}`);
  if (number >= TWO_TO[96] && number < TWO_TO[160]) {
    const digits = `0x${word.slice(-40)}`;
    return { type: 'address', text: parseAddress(digits, 'EVM')?.text ?? digits };
  }
  if (number < TWO_TO[128]) return { type: 'uint256', text: number.toString() };
  const negative = number - TWO_TO[256];
  if (negative > -TWO_TO[64]) return { type: 'int256', text: negative.toString() };
  return { type: 'bytes32', text: `0x${word}` };
}
