/**
 * Headers that tell browsers what pages of other origins may do: read everything that is public, and nothing else.
 *
 * The answers are the same for every origin and never depend on credentials, hence `*` and no `Vary: Origin`.
 * Private Network Access is not granted: a page on the internet has no business with an instance behind a router.
 */

export const ALLOWED_METHODS = 'GET, HEAD, OPTIONS';

const exposedHeaders = [
  'X-Request-ID',
  'ETag',
  'Link',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Content-Disposition',
  'X-Lanescan-Simulated',
  'X-Lanescan-Wait',
];

/** On every answer that other origins may read. */
export const crossOriginHeaders: Readonly<Record<string, string>> = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': exposedHeaders.join(', '),
  'Cross-Origin-Resource-Policy': 'cross-origin',
};

/** On every answer; a route that shows a page brings a policy of its own. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
};

/**
 * The answer to a preflight. Any header may come along, as clients send some of their own (the ecosystem's SDK its
 * version); the wildcard does not cover Authorization.
 */
export const preflightHeaders: Readonly<Record<string, string>> = {
  Allow: ALLOWED_METHODS,
  'Access-Control-Allow-Methods': ALLOWED_METHODS,
  'Access-Control-Allow-Headers': '*, Authorization',
  'Access-Control-Max-Age': '86400',
};
