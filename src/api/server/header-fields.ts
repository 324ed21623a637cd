/** Response header fields, as the OpenAPI document describes them. Routes declare theirs by name. */

export const headerFields = {
  'X-Request-ID': {
    description: 'Unique for every request; also in the log line of the request.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'X-Lanescan-Simulated': {
    description: 'Only for simulated data (the demo).',
    schema: { type: 'string', enum: ['true'] },
  },
  Allow: { description: 'The methods of this path.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } },
  Link: {
    description:
      'Where there is a next page: its URL, relative to this one, as `rel="next"`. Left out where it would be very ' +
      'long; the cursor in the body never is.',
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Send it back as `If-None-Match`: while nothing has changed, the response is an empty 304.',
    schema: { type: 'string' },
  },
  'Cache-Control': {
    description: 'How long the response may be cached: longer for messages that were delivered longer ago.',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description: 'The rate limit of this client: `q` requests at once, restored within `w` seconds.',
    schema: { type: 'string' },
  },
  RateLimit: {
    description: 'What remains of it: `r` requests at once, restored completely in `t` seconds.',
    schema: { type: 'string' },
  },
  'Content-Disposition': {
    description: 'Offers the body as a file with a name.',
    schema: { type: 'string' },
  },
  'X-Accel-Buffering': {
    description: 'Asks proxies to pass on every event at once.',
    schema: { type: 'string', enum: ['no'] },
  },
  'X-Lanescan-Wait': {
    description: 'Only with `waitFor`: why the request ended.',
    schema: { type: 'string', enum: ['reached', 'passed', 'timeout', 'stopping'] },
  },
};

export type HeaderName = keyof typeof headerFields;
