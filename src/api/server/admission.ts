/** Admission: the checks that every request must pass before a route handles it. */
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { ALLOWED_METHODS, preflightHeaders } from './header-fields.ts';
import { MAX_URL_LENGTH } from './http-app.ts';
import type { RateLimiter } from './rate-limit.ts';
import { pathsOf, type ServedPath } from './route.ts';
import { notFoundError, servedPathOf } from './route-registration.ts';

/** @param options `headers`: of every response; `maxPipelined`: requests of one connection at the same time */
export function createAdmission(options: {
  readonly routes: readonly ServedPath[];
  readonly headers: Readonly<Record<string, string>>;
  readonly rateLimiter: RateLimiter;
  /** Of costly routes, beside the other. */
  readonly costlyRateLimiter: RateLimiter;
  readonly metrics: Pick<Metrics, 'observeRejection'>;
  readonly log: FastifyBaseLogger;
  readonly maxPipelined: number;
  readonly isProxyTrusted: boolean;
  readonly basePath: string;
}) {
  const { routes, rateLimiter, costlyRateLimiter, maxPipelined, basePath } = options;
  const patterns = routes.flatMap(pathsOf).map(pathPattern);
  const isKnownPath = (url: string) => patterns.some((pattern) => pattern.test(url));
  let hasWarnedOfProxy = false;

  const warnOfUntrustedProxy = (request: FastifyRequest) => {
    if (options.isProxyTrusted || hasWarnedOfProxy || request.headers['x-forwarded-for'] === undefined)
      return;
    hasWarnedOfProxy = true;
    options.log.warn(
      'X-Forwarded-For is ignored: set trustProxy if a proxy is in front; otherwise all its clients share one limit.',
    );
  };

  const checkRateLimit = (request: FastifyRequest, reply: FastifyReply) => {
    // A preflight costs nothing, and to a web page its rejection would look like a broken service.
    const { isUnlimited, isCostly } = servedPathOf(request) ?? {};
    if (request.method === 'OPTIONS' || isUnlimited) return undefined;
    warnOfUntrustedProxy(request);
    const general = rateLimiter.take(request.client, request.headers);
    const costly =
      isCostly && general?.isAllowed !== false
        ? costlyRateLimiter.take(request.client, request.headers)
        : undefined;
    const verdict = costly ?? general;
    if (!verdict) return undefined;
    reply.headers(verdict.headers);
    if (verdict.isAllowed) return undefined;
    options.metrics.observeRejection('rate_limit');
    reply.header('Retry-After', String(verdict.retryAfterSeconds));
    return new ApiError(
      'RATE_LIMITED',
      `Too many requests: the limit is in RateLimit-Policy. Try again in ${verdict.retryAfterSeconds} s.`,
    );
  };

  const checkMethod = (request: FastifyRequest, reply: FastifyReply) => {
    const { method, url } = request;
    if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return undefined;
    if (!isKnownPath(url)) return notFoundError(request, basePath);
    reply.header('Allow', ALLOWED_METHODS);
    return new ApiError(
      'METHOD_NOT_ALLOWED',
      `${method} is not supported: the service is read-only, with GET.`,
    );
  };

  /** Sets the common headers of the response, and checks the request: the error to send, or undefined. */
  const rejectionOf = (request: FastifyRequest, reply: FastifyReply): ApiError | undefined => {
    const { headers, url, connection } = request;
    // Request smuggling: parsers disagree on where a chunked body ends. No route takes a body, so the connection closes.
    if (headers['transfer-encoding'] !== undefined) reply.header('Connection', 'close');
    reply.header('x-request-id', request.id).headers(options.headers);
    if (headers.host === undefined && request.raw.httpVersion === '1.1')
      return new ApiError('BAD_REQUEST', 'The request has no Host header, which HTTP/1.1 requires.');
    if (connection.pendingResponses.size > maxPipelined) {
      connection.cut('pipelining');
      const problem = `A connection may have ${maxPipelined} requests at once. Wait for their responses.`;
      return new ApiError('TOO_MANY_CONNECTIONS', problem);
    }
    if (url.length > MAX_URL_LENGTH) {
      const problem = `The URL has ${url.length} characters; the maximum is ${MAX_URL_LENGTH}.`;
      return new ApiError('URI_TOO_LONG', problem);
    }
    return checkRateLimit(request, reply) ?? checkMethod(request, reply);
  };

  return {
    rejectionOf,
    /** Checks requests in the `onRequest` hook. Register it after the request tracker. */
    register(app: FastifyInstance): void {
      // A callback, not a promise: it runs for every request, and a resolved promise would be most of its cost.
      app.addHook('onRequest', (request, reply, done) => {
        const rejection = rejectionOf(request, reply);
        if (rejection) return done(rejection);
        if (request.method !== 'OPTIONS') return done();
        if (!isKnownPath(request.url)) return done(notFoundError(request, basePath));
        reply.code(204).headers(preflightHeaders).send();
      });
    },
  };
}

/** Matches the URLs of a path as the router does: doubled and trailing slashes are ignored. */
function pathPattern(path: string): RegExp {
  const segments = path.split('/').filter((segment) => segment !== '');
  const pattern = segments.map(
    (segment) => `/+${/^\{/.test(segment) ? '[^/?]+' : segment.replace(/[.]/g, '\\.')}`,
  );
  return new RegExp(`^${pattern.join('')}/*(?:\\?|$)`);
}
