/** What ERC-20 tokens say of themselves: `symbol()`, `name()` and `decimals()`, decoded as hostile input. */
import type { BytesHex } from '../../domain/addresses.ts';
import { claimedText } from '../../domain/names/claimed-text.ts';
import { MAX_DECIMALS, MAX_NAME_CHARACTERS, MAX_SYMBOL_CHARACTERS } from '../../domain/names/tokens.ts';
import { callOf, getDecimals, getName, getSymbol } from './contracts/abi.ts';
import type { CallAnswer, ChainNode, Hex } from './rpc/chain.ts';

/** In the order of the tokens. */
export async function readTokenClaims(node: Pick<ChainNode, 'calls'>, tokens: readonly BytesHex[]) {
  const calls = tokens.flatMap((bytes) => {
    const token: Hex = `0x${bytes}`;
    return [callOf(getSymbol, token), callOf(getName, token), callOf(getDecimals, token)];
  });
  const answers = await node.calls(calls);
  return tokens.map((_, index) => ({
    symbol: decodeText(answers[3 * index], MAX_SYMBOL_CHARACTERS),
    name: decodeText(answers[3 * index + 1], MAX_NAME_CHARACTERS),
    decimals: decodeDecimals(answers[3 * index + 2]),
  }));
}

const WORD_DIGITS = 64;
/** More than any text that is kept needs: an answer can have megabytes, of which only the beginning is decoded. */
const MAX_TEXT_BYTES = 1_024;

/** A `string`, or a `bytes32` as the tokens of 2017 have it. Null for anything else. */
export function decodeText(answer: CallAnswer, maxCharacters: number): string | null {
  if (answer === undefined) return null;
  const digits = answer.slice(2, 2 + 2 * WORD_DIGITS + 2 * MAX_TEXT_BYTES);
  if (digits.length === WORD_DIGITS) {
    const text = bytesOf(digits);
    const end = text.indexOf(0);
    return claimedText(end === -1 ? text : text.subarray(0, end), maxCharacters);
  }
  if (digits.length < 2 * WORD_DIGITS || numberOf(digits.slice(0, WORD_DIGITS)) !== 32) return null;
  const length = numberOf(digits.slice(WORD_DIGITS, 2 * WORD_DIGITS));
  // A length beyond the answer is not a valid encoding.
  if (length * 2 > answer.length - 2 - 2 * WORD_DIGITS) return null;
  const text = digits.slice(2 * WORD_DIGITS, 2 * WORD_DIGITS + 2 * Math.min(length, MAX_TEXT_BYTES));
  return claimedText(bytesOf(text), maxCharacters);
}

export function decodeDecimals(answer: CallAnswer): number | null {
  if (answer?.length !== 2 + WORD_DIGITS) return null;
  const decimals = numberOf(answer.slice(2));
  return decimals <= MAX_DECIMALS ? decimals : null;
}

function numberOf(word: string): number {
  return Number(`0x${word}`);
}

function bytesOf(digits: string): Uint8Array {
  return Buffer.from(digits, 'hex');
}
