/** Headers that several clients of ours read or write. */
import { base64 } from '@scure/base';
import { decodedOr } from './url-parts.ts';

/**
 * Milliseconds that a `Retry-After` asks for, in seconds or as a date; null where it asks for nothing.
 *
 * @param now milliseconds since 1970
 */
export function retryAfterOf(header: string | null | undefined, now: number): number | null {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

/** `Authorization` for the user and password that stand in a URL; null where none do. */
export function authorizationOf({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  const credentials = `${decodedOr(username)}:${decodedOr(password)}`;
  return `Basic ${base64.encode(new TextEncoder().encode(credentials))}`;
}
