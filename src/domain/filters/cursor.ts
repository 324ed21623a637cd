/**
 * The pagination cursor: a signed token with the filters, the view and the last key of a page.
 *
 * Layout before base64url: one version byte, a MAC of 16 bytes over version and payload, the payload (JSON, all of it
 * ASCII). The MAC's key is a secret of the store. The content is checked against the bounds of a request all the
 * same (`parameter-values.ts`).
 */
import { ApiError } from '../errors.ts';
import { type FilterName, filterTable } from './filter-table.ts';
import { hasMembers, isMessageId, isObject, isTime } from './parameter-values.ts';
import { type Filters, isTimeRange, type PageKey, type View } from './query.ts';

const VERSION = String.fromCharCode(3);
export const MAC_BYTES = 16;
/** Fits the longest filters: a hundred message ids, ten terms and every other filter. No longer cursor is issued. */
export const MAX_CURSOR_LENGTH = 28_000;

export interface Cursor {
  readonly filters: Filters;
  readonly view: View;
  readonly after: PageKey;
}

/** A message authentication code with a secret key. Data and MAC have a character for each byte. */
export interface CursorMac {
  /** The MAC of `data`, 16 bytes. */
  sign(data: string): string;
  /** Whether `mac` is the MAC of `data`, compared in constant time. */
  verify(data: string, mac: string): boolean;
}

interface Payload {
  readonly f: Filters;
  readonly v: View;
  readonly k: readonly [sentAt: number, messageId: string];
}

const payloadChecks: Record<keyof Payload, (value: unknown) => boolean> = {
  f: isFilters,
  v: (view) => view === 'full' || view === 'summary',
  k: (key) => Array.isArray(key) && key.length === 2 && isTime(key[0]) && isMessageId(key[1]),
};

/** Whether these are filters that a request could contain. */
function isFilters(value: unknown): value is Filters {
  return (
    isObject(value) &&
    Object.entries(value).every(
      ([name, filter]) =>
        Object.hasOwn(filterTable, name) && filterTable[name as FilterName].kind.isValue(filter),
    ) &&
    isTimeRange(value as Filters)
  );
}

export type CursorCodec = ReturnType<typeof createCursorCodec>;

export function createCursorCodec(mac: CursorMac) {
  return {
    encode({ filters, view, after }: Cursor): string {
      const payload = JSON.stringify({ f: filters, v: view, k: [after.sentAt, after.messageId] });
      return toBase64url(VERSION + mac.sign(VERSION + payload) + payload);
    },

    /** Throws an ApiError (INVALID_CURSOR) for any text that `encode` did not make with the same key. */
    decode(text: string): Cursor {
      if (text.length > MAX_CURSOR_LENGTH)
        throw invalid(`is longer than any cursor of this service (${MAX_CURSOR_LENGTH} characters)`);
      const binary = fromBase64url(text);
      if (binary === undefined || binary.length <= 1 + MAC_BYTES)
        throw invalid('is damaged or was not issued by this service');
      if (binary[0] !== VERSION)
        throw invalid('was issued by another version of this service, or is damaged');

      const payload = binary.slice(1 + MAC_BYTES);
      if (!mac.verify(VERSION + payload, binary.slice(1, 1 + MAC_BYTES)))
        throw invalid('was changed or damaged, or was issued by a server with another database');

      const value = fromJson(payload);
      if (!hasMembers<Payload>(value, payloadChecks))
        throw invalid('contains a search that this version of the service does not support');
      return { filters: value.f, view: value.v, after: { sentAt: value.k[0], messageId: value.k[1] } };
    },
  };
}

/** The platform's base64, here and below, is several times as fast as one in JavaScript. */
function toBase64url(binary: string): string {
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** One character for each byte; undefined for text that `toBase64url` would not produce. */
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

function invalid(problem: string): ApiError {
  return new ApiError(
    'INVALID_CURSOR',
    `cursor ${problem}. Use pagination.cursor of a response as it is, or search again from the first page.`,
    [{ parameter: 'cursor', problem }],
  );
}
