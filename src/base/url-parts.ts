/** Parts of URLs: decoding them, and redacting those that may be secret. */

/** Decodes percent-encoding; a text with broken encoding is returned unchanged. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The URL without user and password: `fetch` refuses such URLs, and logs must not show them. */
export function withoutCredentials(url: URL): URL {
  const bare = new URL(url);
  bare.username = '';
  bare.password = '';
  return bare;
}

/**
 * Whether the URL seems to contain a password that was not percent-encoded. A `/`, `?` or `#` in a password ends the host
 * early, so the rest of the password and the `@` end up in the path, query or fragment.
 */
export function hasUnescapedPassword({ pathname, search, hash }: URL): boolean {
  return pathname.includes('@') || search.split('=', 1)[0]?.includes('@') === true || hash !== '';
}

/** Shorter parts are ordinary words; redacting them would make messages unreadable. */
const SHORTEST_SECRET_LENGTH = 6;

/**
 * Creates a function that redacts parts of a URL from a text. A URL can hold an API key in its path, query or credentials,
 * and servers repeat it in their errors (a 404 often names the path). Texts of remote servers pass through here before
 * they are logged or stored.
 *
 * @example createRedactor(new URL('https://rpc.example/v3/0123456789'))('no project 0123456789') // 'no project …'
 */
export function createRedactor(url: URL): (text: string) => string {
  const { username, password, pathname, search, searchParams } = url;
  const parts = [
    `${pathname}${search}`,
    username,
    password,
    ...pathname.split('/'),
    ...search.slice(1).split(/[&=]/),
    ...searchParams.values(),
  ];
  const secrets = [...new Set(parts.flatMap((part) => [part, decodePercent(part)]))]
    .filter((part) => part.length >= SHORTEST_SECRET_LENGTH)
    // Longest first: the whole path before its segments.
    .sort((one, other) => other.length - one.length);
  return (text) => secrets.reduce((redacted, secret) => redacted.replaceAll(secret, '…'), text);
}
