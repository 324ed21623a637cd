/**
 * The pagination token: the filters, the view and the last key of a page, versioned and checksummed.
 *
 * Layout before base64url: one version byte, four bytes of CRC-32 over the payload, the payload (JSON, all of it ASCII).
 * The checksum finds damage, not malice: a forged cursor can ask for nothing that filters could not. Every page makes
 * one, so it has to be cheap.
 */
import { ApiError } from './errors.ts';
import { statuses } from './lifecycle.ts';
import { type Filters, MAX_MESSAGE_IDS, MAX_Q_TERMS, type PageKey, type View } from './query.ts';
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
const isTerm = (value: unknown) =>
  hasMembers(value, {
    addresses: isListOf(isBytes, 0, 6),
    hashes: isListOf(isBytes, 0, 6),
    messageId: (id) => id === null || isMessageId(id),
  });

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

function isPayload(value: unknown): value is Payload {
  return hasMembers(value, {
    f: (filters) => isObject(filters) && hasMembers(filters, pickChecks(Object.keys(filters))),
    v: (view) => view === 'full' || view === 'summary',
    k: (key) => Array.isArray(key) && key.length === 2 && isTime(key[0]) && isMessageId(key[1]),
  });
}

/** The checks for these filters; a name that is none has one that always fails. */
function pickChecks(names: readonly string[]): Record<string, (value: unknown) => boolean> {
  return Object.fromEntries(
    names.map((name) => [
      name,
      Object.hasOwn(filterChecks, name) ? filterChecks[name as keyof Filters] : () => false,
    ]),
  );
}

/** Exactly these members, each as it must be. */
function hasMembers(value: unknown, checks: Readonly<Record<string, (value: unknown) => boolean>>): boolean {
  return (
    isObject(value) &&
    Object.keys(value).length === Object.keys(checks).length &&
    Object.entries(checks).every(([name, check]) => Object.hasOwn(value, name) && check(value[name]))
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function encodeCursor({ filters, view, after }: Cursor): string {
  const payload = JSON.stringify({ f: filters, v: view, k: [after.sentAt, after.messageId] });
  const head = String.fromCharCode(VERSION, ...checksum(new TextEncoder().encode(payload)));
  return toBase64url(head + payload);
}

/** The platform's own base64, here and below, is several times as fast as any in JavaScript. */
function toBase64url(binary: string): string {
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

export function decodeCursor(text: string): Cursor {
  if (text.length > MAX_CURSOR_LENGTH)
    throw invalid(`is longer than any cursor of this service (${MAX_CURSOR_LENGTH} characters)`);
  const bytes = fromBase64url(text);
  if (!bytes || bytes.length <= 1 + CHECKSUM_BYTES)
    throw invalid('is damaged or was not issued by this service');
  if (bytes[0] !== VERSION) throw invalid('was issued by another version of this service, or is damaged');

  const payload = bytes.subarray(1 + CHECKSUM_BYTES);
  const expected = checksum(payload);
  if (!expected.every((byte, i) => byte === bytes[1 + i]))
    throw invalid('is damaged: its checksum does not match');

  const value = fromJson(payload);
  if (!isPayload(value)) throw invalid('does not hold a search of this service');
  return { filters: value.f, view: value.v, after: { sentAt: value.k[0], messageId: value.k[1] } };
}

/** Undefined for anything that `toBase64url` would not have written. */
function fromBase64url(text: string): Uint8Array | undefined {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    if (toBase64url(binary) !== text) return undefined;
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch {
    return undefined;
  }
}

function fromJson(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload));
  } catch {
    return undefined;
  }
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  return crc;
});

/** CRC-32 as zip and PNG have it, most significant byte first. */
function checksum(payload: Uint8Array): readonly number[] {
  let crc = 0xffffffff;
  for (const byte of payload) crc = (crcTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  crc = ~crc;
  return [(crc >>> 24) & 0xff, (crc >>> 16) & 0xff, (crc >>> 8) & 0xff, crc & 0xff];
}

function invalid(problem: string): ApiError {
  return new ApiError(
    'INVALID_CURSOR',
    `cursor ${problem}. Use pagination.cursor of a response as it is, or search again from the first page.`,
    [{ parameter: 'cursor', problem }],
  );
}
