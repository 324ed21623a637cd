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

// Names in lower case: others would be turned into it for every answer.

/** On every answer that other origins may read. */
export const crossOriginHeaders: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': exposedHeaders.join(', '),
  'cross-origin-resource-policy': 'cross-origin',
};

/** On every answer; a route that shows a page brings a policy of its own. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
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
