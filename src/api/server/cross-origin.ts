/**
 * CORS and security headers: web pages of other origins may read everything that is public, and nothing else.
 *
 * Responses are the same for every origin and never depend on credentials, hence `*` and no `Vary: Origin`. Private
 * Network Access is not granted: a page on the internet must not reach an instance in a private network.
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

// Names in lower case: Fastify would convert others for every response.

/** On every response that other origins may read. */
export const crossOriginHeaders: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': exposedHeaders.join(', '),
  'cross-origin-resource-policy': 'cross-origin',
};

/** On every response; a route that returns a page sets its own content security policy. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
};

/**
 * The response to a CORS preflight. All request headers are allowed, because clients send their own (the SDK sends its
 * version). The wildcard does not cover Authorization.
 */
export const preflightHeaders: Readonly<Record<string, string>> = {
  Allow: ALLOWED_METHODS,
  'Access-Control-Allow-Methods': ALLOWED_METHODS,
  'Access-Control-Allow-Headers': '*, Authorization',
  'Access-Control-Max-Age': '86400',
};
