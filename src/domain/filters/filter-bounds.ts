/**
 * Bounds on the values of filters, from a request or from a cursor.
 *
 * The cost of a search depends on how many alternatives its filters have, so these bounds also bound what a client can
 * make the database do. The request parser never produces more than `isFilters` accepts.
 */

import { LATEST_TIME } from '../../base/iso-time.ts';
import { MAX_ADDRESS_BYTES, MAX_ADDRESS_MEANINGS, MAX_HASH_BYTES, MAX_HASH_MEANINGS } from '../addresses.ts';
import { statuses } from '../lifecycle.ts';
import { type Filters, MAX_MESSAGE_IDS, MAX_Q_TERMS, type QTerm } from './query.ts';

type Check = (value: unknown) => boolean;

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

/** An unsigned 64-bit integer in decimal, without leading zeros. */
export const isSelector: Check = (value) =>
  typeof value === 'string' && /^(?:0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n;

/** Whether any message can be sent within the range; sentAfter is included, sentBefore is not. */
export function isTimeRange({ sentAfter, sentBefore }: Filters): boolean {
  return sentAfter === undefined || sentBefore === undefined || sentAfter < sentBefore;
}

/** Whether a term has any interpretation. */
export function isMeaningful({ addresses, hashes }: QTerm): boolean {
  return addresses.length + hashes.length > 0;
}

const isAddress = isBytes(MAX_ADDRESS_BYTES);
const isHash = isBytes(MAX_HASH_BYTES);
const isAddressMeanings = isListOf(isAddress, 1, MAX_ADDRESS_MEANINGS);
const isHashMeanings = isListOf(isHash, 1, MAX_HASH_MEANINGS);

const termChecks: Record<keyof QTerm, Check> = {
  addresses: isListOf(isAddress, 0, MAX_ADDRESS_MEANINGS),
  hashes: isListOf(isHash, 0, MAX_HASH_MEANINGS),
  messageId: (id) => id === null || isMessageId(id),
};
const isTerm: Check = (value) => hasMembers(value, termChecks) && isMeaningful(value as QTerm);

/** The check of each filter. The type makes the table complete: a new filter does not compile without its check. */
const filterChecks: Record<keyof Filters, Check> = {
  sender: isAddressMeanings,
  receiver: isAddressMeanings,
  sourceChainSelector: isSelector,
  destChainSelector: isSelector,
  chainSelector: isSelector,
  readyForManualExecOnly: (value) => value === true,
  sourceTransactionHash: isHashMeanings,
  status: isListOf((value) => statuses.some((status) => status === value), 1, statuses.length),
  sentAfter: isTime,
  sentBefore: isTime,
  address: isAddressMeanings,
  sourceTokenAddress: isAddressMeanings,
  destTransactionHash: isHashMeanings,
  messageId: isListOf(isMessageId, 1, MAX_MESSAGE_IDS),
  q: isListOf(isTerm, 1, MAX_Q_TERMS),
};

/** Whether these are filters that a request could contain. */
export function isFilters(value: unknown): value is Filters {
  return (
    isObject(value) &&
    Object.entries(value).every(([name, filter]) => isFilter(name, filter)) &&
    isTimeRange(value as Filters)
  );
}

function isFilter(name: string, value: unknown): boolean {
  return Object.hasOwn(filterChecks, name) && filterChecks[name as keyof Filters](value);
}

/** Whether an object has exactly these members, each of which passes its check. */
export function hasMembers(value: unknown, checks: Readonly<Record<string, Check>>): boolean {
  if (!isObject(value)) return false;
  const names = Object.keys(checks);
  return (
    Object.keys(value).length === names.length &&
    names.every((name) => Object.hasOwn(value, name) && checks[name]?.(value[name]))
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
