/**
 * The pagination token: the filters, the view and the last key of a page, versioned and checksummed.
 *
 * Layout before base64url: one version byte, four bytes of CRC-32 over the payload, the payload (JSON, all of it ASCII).
 * The checksum finds damage, not malice: a forged cursor can ask for nothing that filters could not. Every page makes
 * one, so it has to be cheap.
 */
import { ApiError } from './errors.ts';
import { statuses } from './lifecycle.ts';
import { type Filters, MAX_MESSAGE_IDS, MAX_Q_TERMS, type PageKey, type QTerm, type View } from './query.ts';
import { LATEST_TIME } from './time.ts';

const VERSION = 2;
const CHECKSUM_BYTES = 4;
/** A hundred message ids, ten terms and every other filter fit, each at its longest: we issue nothing longer. */
export const MAX_CURSOR_LENGTH = 28_000;

export interface Cursor {
  readonly filters: Filters;
  readonly view: View;
  readonly after: PageKey;
}

/** What stands in a cursor: filters, view, and the key of the last message on the page. */
interface Payload {
  readonly f: Filters;
  readonly v: View;
  readonly k: readonly [sentAt: number, messageId: string];
}

const isText = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value);
const isListOf = (isElement: (value: unknown) => boolean, min: number, max: number) => (value: unknown) =>
  Array.isArray(value) && value.length >= min && value.length <= max && value.every(isElement);

const isBytes = isText(/^([0-9a-f]{2}){1,400}$/);
const isMessageId = isText(/^[0-9a-f]{64}$/);
/** A text can have one meaning in each of the six families at most. */
const isMeanings = isListOf(isBytes, 1, 6);
const isSelector = isText(/^[0-9]{1,20}$/);
const isTime = (value: unknown) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= LATEST_TIME;
const termChecks: Record<keyof QTerm, (value: unknown) => boolean> = {
  addresses: isListOf(isBytes, 0, 6),
  hashes: isListOf(isBytes, 0, 6),
  messageId: (id) => id === null || isMessageId(id),
};
const isTerm = (value: unknown) => hasMembers(value, termChecks);

/** What each filter may be. The type makes the table complete: a new filter does not compile without its check. */
const filterChecks: Record<keyof Filters, (value: unknown) => boolean> = {
  sender: isMeanings,
  receiver: isMeanings,
  sourceChainSelector: isSelector,
  destChainSelector: isSelector,
  readyForManualExecOnly: (value) => value === true,
  sourceTransactionHash: isMeanings,
  status: isListOf((value) => statuses.some((status) => status === value), 1, statuses.length),
  sentAfter: isTime,
  sentBefore: isTime,
  address: isMeanings,
  sourceTokenAddress: isMeanings,
  destTransactionHash: isMeanings,
  messageId: isListOf(isMessageId, 1, MAX_MESSAGE_IDS),
  q: isListOf(isTerm, 1, MAX_Q_TERMS),
};

const payloadChecks: Record<keyof Payload, (value: unknown) => boolean> = {
  f: (filters) => isObject(filters) && Object.keys(filters).every((name) => isFilter(name, filters[name])),
  v: (view) => view === 'full' || view === 'summary',
  k: (key) => Array.isArray(key) && key.length === 2 && isTime(key[0]) && isMessageId(key[1]),
};

function isPayload(value: unknown): value is Payload {
  return hasMembers(value, payloadChecks);
}

function isFilter(name: string, value: unknown): boolean {
  return Object.hasOwn(filterChecks, name) && filterChecks[name as keyof Filters](value);
}

/** Exactly these members, each as it must be. */
function hasMembers(value: unknown, checks: Readonly<Record<string, (value: unknown) => boolean>>): boolean {
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

export function encodeCursor({ filters, view, after }: Cursor): string {
  const payload = JSON.stringify({ f: filters, v: view, k: [after.sentAt, after.messageId] });
  return toBase64url(String.fromCharCode(VERSION) + checksum(payload) + payload);
}

/** The platform's own base64, here and below, is several times as fast as any in JavaScript. */
function toBase64url(binary: string): string {
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

export function decodeCursor(text: string): Cursor {
  if (text.length > MAX_CURSOR_LENGTH)
    throw invalid(`is longer than any cursor of this service (${MAX_CURSOR_LENGTH} characters)`);
  const binary = fromBase64url(text);
  if (binary === undefined || binary.length <= 1 + CHECKSUM_BYTES)
    throw invalid('is damaged or was not issued by this service');
  if (binary.charCodeAt(0) !== VERSION)
    throw invalid('was issued by another version of this service, or is damaged');

  const payload = binary.slice(1 + CHECKSUM_BYTES);
  if (binary.slice(1, 1 + CHECKSUM_BYTES) !== checksum(payload))
    throw invalid('is damaged: its checksum does not match');

  const value = fromJson(payload);
  if (!isPayload(value)) throw invalid('does not hold a search of this service');
  return { filters: value.f, view: value.v, after: { sentAt: value.k[0], messageId: value.k[1] } };
}

/** A character for each byte; undefined for anything that `toBase64url` would not have written. */
function fromBase64url(text: string): string | undefined {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return toBase64url(binary) === text ? binary : undefined;
  } catch {
    return undefined;
  }
}

function fromJson(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    return undefined;
  }
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  return crc;
});

/** CRC-32 as zip and PNG have it, most significant byte first; a character for each byte, here and there. */
function checksum(payload: string): string {
  let crc = 0xffffffff;
  for (let i = 0; i < payload.length; i++) {
    crc = (crcTable[(crc ^ payload.charCodeAt(i)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  crc = ~crc;
  return String.fromCharCode((crc >>> 24) & 0xff, (crc >>> 16) & 0xff, (crc >>> 8) & 0xff, crc & 0xff);
}

function invalid(problem: string): ApiError {
  return new ApiError(
    'INVALID_CURSOR',
    `cursor ${problem}. Use pagination.cursor of a response as it is, or search again from the first page.`,
    [{ parameter: 'cursor', problem }],
  );
}
