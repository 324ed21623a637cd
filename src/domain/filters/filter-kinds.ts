/**
 * The kinds of values that filters take: how a request writes them, and their bounds.
 *
 * The cost of a search depends on how many alternatives its filters have, so the bounds also bound what a client can make
 * the database do. A parser never returns more than `isValue` accepts, which checks the values of cursors.
 */

import { LATEST_TIME } from '../../base/iso-time.ts';
import { MAX_ADDRESS_BYTES, MAX_ADDRESS_MEANINGS, MAX_HASH_BYTES, MAX_HASH_MEANINGS } from '../addresses.ts';
import { statuses } from '../lifecycle.ts';
import {
  address,
  isSelector,
  MAX_MESSAGE_IDS,
  MAX_Q_TERMS,
  messageIdList,
  type ParameterParser,
  type QTerm,
  selector,
  statusList,
  terms,
  time,
  transactionHash,
  trueOrFalse,
} from './parameter-values.ts';

type Check = (value: unknown) => boolean;

export interface FilterKind<T> {
  /** What the value is called in the help of the command line; null for a switch, which has no value there. */
  readonly noun: 'address' | 'network' | 'hash' | 'statuses' | 'time' | 'ids' | 'terms' | null;
  /** Undefined: the filter does not restrict the search. */
  readonly parse: ParameterParser<T | undefined>;
  /** Whether a request could contain this value. */
  readonly isValue: Check;
  /** The JSON Schema of the parameter. */
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
