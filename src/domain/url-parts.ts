/** Reading the parts of a URL, and keeping to ourselves those that may be secret. */

/** A part without its percent-encoding; as it is where that is broken. */
export function decodedOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The URL without a user and a password: fetch refuses those, and whoever is shown it need not know them. */
export function withoutCredentials(url: URL): URL {
  const bare = new URL(url);
  bare.username = '';
  bare.password = '';
  return bare;
}

/**
 * Whether a password was written into the URL as it is: a `/`, `?` or `#` in it ends the host too early, and what
 * follows, `@` and all, is then no path or query.
 */
export function hasBareSeparator({ pathname, search, hash }: URL): boolean {
  return pathname.includes('@') || search.split('=', 1)[0]?.includes('@') === true || hash !== '';
}

/** Shorter parts are words, and hiding them would make every message unreadable. */
const SHORTEST_SECRET = 6;

/**
 * Takes out of a text what it repeats of a URL. Keys stand in a path, in a query or before the host, and those we talk
 * to repeat them: many a server names the path in its 404. What they say goes through here before anybody sees it.
 *
 * @example concealing(new URL('https://rpc.example/v3/0123456789'))('no project 0123456789') // 'no project …'
 */
export function concealing({
  username,
  password,
  pathname,
  search,
  searchParams,
}: URL): (text: string) => string {
  const parts = [
    `${pathname}${search}`,
    username,
    password,
    ...pathname.split('/'),
    ...search.slice(1).split(/[&=]/),
    ...searchParams.values(),
  ];
  const secrets = [...new Set(parts.flatMap((part) => [part, decodedOr(part)]))]
    .filter((part) => part.length >= SHORTEST_SECRET)
    // The whole before its parts.
    .sort((one, other) => other.length - one.length);
  return (text) => secrets.reduce((told, secret) => told.replaceAll(secret, '…'), text);
}
