/** HTTP headers that several clients read or write. */
import { base64 } from '@scure/base';
import { decodePercent } from './url-parts.ts';

/**
 * Milliseconds that a `Retry-After` header asks for (it holds seconds or a date); null without a valid header.
 *
 * @param now milliseconds since 1970
 */
export function parseRetryAfterMs(header: string | null | undefined, now: number): number | null {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

/** The `Authorization` header (Basic) for the credentials in a URL; null where it has none. */
export function basicAuthorization({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  const credentials = `${decodePercent(username)}:${decodePercent(password)}`;
  return `Basic ${base64.encode(new TextEncoder().encode(credentials))}`;
}
