/**
 * Response header fields: CORS and security headers, and all fields as the OpenAPI document describes them.
 *
 * Web pages of other origins may read everything that is public, and nothing else. Responses are the same for every origin and
 * never depend on credentials, hence `*` and no `Vary: Origin`. Private Network Access is not granted: a page on the internet
 * must not reach an instance in a private network.
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

const text = (description: string, values?: readonly string[]) => ({
  description,
  schema: { type: 'string', ...(values && { enum: values }) },
});

/** Routes declare theirs by name. */
export const headerFields = {
  'X-Request-ID': {
    description: 'Unique for every request; also in the log line of the request.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'X-Lanescan-Simulated': text('Only for simulated data (the demo).', ['true']),
  Allow: text('The methods of this path.'),
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } },
  Link: text(
    'Where there is a next page: its URL, relative to this one, as `rel="next"`. Left out where it would be very ' +
      'long; the cursor in the body never is.',
  ),
  ETag: text('Send it back as `If-None-Match`: while nothing has changed, the response is an empty 304.'),
  'Cache-Control': text(
    'How long the response may be cached: longer for messages that were delivered longer ago.',
  ),
  'RateLimit-Policy': text(
    'The rate limit of this client: `q` requests at once, restored within `w` seconds.',
  ),
  RateLimit: text('What remains of it: `r` requests at once, restored completely in `t` seconds.'),
  'Content-Disposition': text('Offers the body as a file with a name.'),
  'X-Accel-Buffering': text('Asks proxies to pass on every event at once.', ['no']),
  'X-Lanescan-Wait': text('Only with `waitFor`: why the request ended.', [
    'reached',
    'passed',
    'timeout',
    'stopping',
  ]),
};

export type HeaderName = keyof typeof headerFields;
