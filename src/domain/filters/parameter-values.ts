/** Parsers of single parameter values, each of which says in its error what it takes; and the kinds of values of filters. */

import { LATEST_TIME, parseTimeUp } from '../../base/iso-time.ts';
import { nearestName } from '../../base/nearest-name.ts';
import {
  addressBytes,
  type BytesHex,
  MAX_ADDRESS_BYTES,
  MAX_ADDRESS_MEANINGS,
  MAX_HASH_BYTES,
  MAX_HASH_MEANINGS,
  transactionHashBytes,
} from '../addresses.ts';
import { type Status, statuses } from '../lifecycle.ts';

export const MAX_MESSAGE_IDS = 100;
const MAX_Q_TERMS = 10;
const MAX_QUOTED_LENGTH = 80;

export class InvalidValueError extends Error {}

/** Reads one value; throws an InvalidValueError. */
export type ParameterParser<T> = (text: string) => T;

/** One term of `q`: every interpretation of the text. */
export interface QTerm {
  readonly addresses: readonly BytesHex[];
  readonly hashes: readonly BytesHex[];
  readonly messageId: BytesHex | null;
}

/** @example parseParameters(raw, { windowDays: wholeNumber(1, 365) }) */
export function wholeNumber(min: number, max: number): ParameterParser<number> {
  return (text) => {
    const number = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidValueError(`takes a whole number from ${min} to ${max}`);
  };
}

export function trueOrFalse(text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new InvalidValueError('takes true or false');
  return text === 'true';
}

export function address(text: string): readonly BytesHex[] {
  const bytes = addressBytes(text);
  if (bytes.length > 0) return bytes;
  throw new InvalidValueError(
    `takes an address (EVM 0x…, SVM base58, Aptos or Sui 0x…, TON raw or friendly, Canton party); ${quoted(text)} is not a valid address`,
  );
}

/** Several addresses, separated by commas. */
export function addressList(max: number): ParameterParser<readonly BytesHex[]> {
  return (text) => {
    const given = text.split(',');
    if (given.length > max)
      throw new InvalidValueError(`takes at most ${max} addresses, separated by commas`);
    return [...new Set(given.flatMap(address))];
  };
}

export function shortText(max: number): ParameterParser<string> {
  return (text) => {
    // PostgreSQL takes no zero byte, and no half of a surrogate pair.
    if (text.length <= max && !/\0|\p{Cs}/u.test(text)) return text;
    throw new InvalidValueError(`takes a text of at most ${max} characters`);
  };
}

export function transactionHash(text: string): readonly BytesHex[] {
  const bytes = transactionHashBytes(text);
  if (bytes.length > 0) return bytes;
  throw new InvalidValueError(
    `takes a transaction hash (0x and 64 hexadecimal digits, or an SVM or Sui base58 one); ${quoted(text)} is not a valid hash`,
  );
}

/** An unsigned 64-bit integer in decimal, without leading zeros. */
function isSelector(value: unknown): boolean {
  return typeof value === 'string' && /^(?:0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n;
}

/** A chain selector without leading zeros. */
export function selector(text: string): string {
  const canonical = /^[0-9]{1,20}$/.test(text) ? BigInt(text).toString() : text;
  if (isSelector(canonical)) return canonical;
  throw new InvalidValueError(
    `takes a chain selector, an unsigned 64-bit integer in decimal; ${quoted(text)} is not valid`,
  );
}

/** Milliseconds since 1970. Finer times are rounded up: right for an included and for an excluded bound. */
export function time(text: string): number {
  const parsed = parseTimeUp(text);
  if (!Number.isNaN(parsed)) return parsed;
  throw new InvalidValueError(
    `takes an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z; ${quoted(text)} is not valid`,
  );
}

export function statusList(text: string): readonly Status[] {
  const names = new Set(text.split(','));
  for (const name of names) {
    if ((statuses as readonly string[]).includes(name)) continue;
    const nearest = nearestName(name, statuses);
    throw new InvalidValueError(
      `takes ${statuses.join(', ')}, separated by commas; ${quoted(name)} is not a status${nearest ? `, did you mean ${nearest}?` : ''}`,
    );
  }
  return statuses.filter((status) => names.has(status));
}

export function messageIdList(text: string): readonly BytesHex[] {
  const ids = new Set(text.split(',').map((id) => id.toLowerCase()));
  for (const id of ids) {
    if (!/^0x[0-9a-f]{64}$/.test(id)) {
      throw new InvalidValueError(
        `takes message ids, 0x and 64 hexadecimal digits each, separated by commas; ${quoted(id)} is not a message id`,
      );
    }
  }
  if (ids.size > MAX_MESSAGE_IDS)
    throw new InvalidValueError(`takes at most ${MAX_MESSAGE_IDS} message ids; these are ${ids.size}`);
  return [...ids].map((id) => id.slice(2));
}

export function terms(text: string): readonly QTerm[] {
  const texts = [...new Set(text.split(',').map((term) => term.trim()))];
  if (texts.length > MAX_Q_TERMS)
    throw new InvalidValueError(`takes at most ${MAX_Q_TERMS} terms; these are ${texts.length}`);
  return texts.map((term) => {
    const addresses = addressBytes(term);
    const hashes = transactionHashBytes(term);
    const messageId = /^0[xX][0-9a-fA-F]{64}$/.test(term) ? term.slice(2).toLowerCase() : null;
    if (addresses.length + hashes.length > 0) return { addresses, hashes, messageId };
    throw new InvalidValueError(
      `takes addresses, transaction hashes and message ids, separated by commas; ${quoted(term)} has another form`,
    );
  });
}

/** Input inside an error message: short, on one line, and in quotes. */
function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

export function shortened(text: string): string {
  return text.length > MAX_QUOTED_LENGTH ? `${text.slice(0, MAX_QUOTED_LENGTH - 3)}…` : text;
}

// ---- The kinds of values that filters take. The cost of a search depends on how many alternatives its filters have, so their
// bounds also bound what a client can make the database do. A parser never returns more than `isValue` accepts, which checks
// the values of cursors.

type Check = (value: unknown) => boolean;

export interface FilterKind<T> {
  /** What the value is called in the help of the command line; null for a switch, which has no value there. */
  readonly noun: 'address' | 'network' | 'hash' | 'statuses' | 'time' | 'ids' | 'terms' | null;
  /** Undefined: the filter does not restrict the search. */
  readonly parse: ParameterParser<T | undefined>;
  /** Whether a request could contain this value. */
  readonly isValue: Check;
  readonly schema: Readonly<Record<string, string>>;
}

const isText =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === 'string' && pattern.test(value);
const isListOf =
  (isElement: Check, min: number, max: number): Check =>
  (value) =>
    Array.isArray(value) &&
    value.length >= min &&
    value.length <= max &&
    value.every(isElement) &&
    (value.length === 1 || new Set(value).size === value.length);
const isBytes = (max: number) => isText(new RegExp(`^(?:[0-9a-f]{2}){1,${max}}$`));

/** 64 hexadecimal digits in lower case. */
export const isMessageId: Check = isText(/^[0-9a-f]{64}$/);

/** Milliseconds since 1970, up to the year 9999. */
export const isTime: Check = (value) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= LATEST_TIME;

const isAddress = isBytes(MAX_ADDRESS_BYTES);
const isHash = isBytes(MAX_HASH_BYTES);
const termChecks: Record<keyof QTerm, Check> = {
  addresses: isListOf(isAddress, 0, MAX_ADDRESS_MEANINGS),
  hashes: isListOf(isHash, 0, MAX_HASH_MEANINGS),
  messageId: (id) => id === null || isMessageId(id),
};
const isTerm: Check = (value) => {
  return hasMembers<QTerm>(value, termChecks) && value.addresses.length + value.hashes.length > 0;
};

function kind<T>(
  noun: FilterKind<T>['noun'],
  parse: FilterKind<T>['parse'],
  isValue: Check,
  schema: FilterKind<T>['schema'] = { type: 'string' },
): FilterKind<T> {
  return { noun, parse, isValue, schema };
}

/** A list, because a text without a network is, rarely, ambiguous; so is a hash. */
export const addressKind = kind('address', address, isListOf(isAddress, 1, MAX_ADDRESS_MEANINGS));
export const hashKind = kind('hash', transactionHash, isListOf(isHash, 1, MAX_HASH_MEANINGS));
export const selectorKind = kind('network', selector, isSelector, { type: 'string', pattern: '^[0-9]+$' });
export const switchKind = kind<true>(
  null,
  (given) => trueOrFalse(given) || undefined,
  (value) => value === true,
  { type: 'boolean' },
);
const isStatus: Check = (value) => statuses.some((status) => status === value);
export const statusesKind = kind('statuses', statusList, isListOf(isStatus, 1, statuses.length));
/** Milliseconds since 1970. */
export const timeKind = kind('time', time, isTime, { type: 'string', format: 'date-time' });
export const messageIdsKind = kind('ids', messageIdList, isListOf(isMessageId, 1, MAX_MESSAGE_IDS));
export const termsKind = kind('terms', terms, isListOf(isTerm, 1, MAX_Q_TERMS));

/** Whether an object has exactly these members, each of which passes its check. */
export function hasMembers<T>(value: unknown, checks: Readonly<Record<keyof T & string, Check>>): value is T {
  if (!isObject(value)) return false;
  const names = Object.keys(checks) as (keyof T & string)[];
  return (
    Object.keys(value).length === names.length &&
    names.every((name) => Object.hasOwn(value, name) && checks[name](value[name]))
  );
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
