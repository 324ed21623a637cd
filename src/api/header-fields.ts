/** Header fields of answers, as the OpenAPI document describes them. Routes declare theirs by name. */

export const headerFields = {
  'X-Request-ID': {
    description: 'Fresh for every request; also in the log line of the request.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'X-Lanescan-Simulated': {
    description: 'Only where the data is the demo’s: no chain stands behind it.',
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
    description: 'Send it back as `If-None-Match`: while nothing has changed the answer is an empty 304.',
    schema: { type: 'string' },
  },
  'Cache-Control': {
    description: 'How long the answer may be kept: longer the longer a message has been delivered.',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description: 'The limit that holds for this client: `q` requests at once, restored within `w` seconds.',
    schema: { type: 'string' },
  },
  RateLimit: {
    description: 'What is left of it: `r` requests at once, all of them again in `t` seconds.',
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
    description: 'Only with `waitFor`: why the answer comes now.',
    schema: { type: 'string', enum: ['reached', 'passed', 'timeout', 'stopping'] },
  },
};

export type HeaderName = keyof typeof headerFields;
