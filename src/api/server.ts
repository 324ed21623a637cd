/**
 * The HTTP server: routes in, one answer shape for everything that goes wrong, one log line a request.
 */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { MAX_CURSOR_LENGTH } from '../domain/cursor.ts';
import { ApiError } from '../domain/errors.ts';
import type { RawParameters } from '../domain/search-parameters.ts';
import { DatabaseBusyError } from '../store/read-guard.ts';
import type { Store } from '../store/store.ts';
import { cacheControl, entityTag, tagInHand, validatorOf } from './caching.ts';
import { createChangeFeed, createLive, type LiveLimits } from './change-feed.ts';
import { clientAddress, type TrustProxy } from './client-address.ts';
import { chooseCoding, compress, gzipStream, takesGzipStream } from './compression.ts';
import { ALLOWED_METHODS, crossOriginHeaders, preflightHeaders, securityHeaders } from './cross-origin.ts';
import { documentationRoutes } from './documentation.ts';
import { errorAnswer } from './errors.ts';
import { exportRoutes } from './export.ts';
import { historyRoutes } from './history.ts';
import { laneRoutes } from './lanes.ts';
import { messageRoutes } from './messages.ts';
import { createMetrics, type GaugeSource, metricsRoutes } from './metrics.ts';
import { networkRoutes } from './networks.ts';
import { type OpenApiDocument, openApiDocument } from './openapi.ts';
import { operationRoutes } from './operations.ts';
import { createRateLimiter, defaultRateLimit, type RateLimitOptions } from './rate-limit.ts';
import type { AnswerValidator, Route, RouteAnswer, RouteContext, RouteRequest } from './route.ts';
import { statsRoutes } from './stats.ts';
import { streamRoutes } from './stream.ts';

export interface ServerOptions extends Partial<RateLimitOptions> {
  readonly store: Store;
  readonly version: string;
  readonly log: FastifyBaseLogger;
  readonly trustProxy?: TrustProxy;
  /** Figures for /metrics of what runs beside the server. */
  readonly gauges?: readonly GaugeSource[];
  /** Bounds of streams and waiting requests, where others than the defaults are wanted. */
  readonly live?: Partial<LiveLimits>;
}

/** The longest cursor fits, with room for what goes with it: what we issue we also take back. */
const MAX_URL_LENGTH = MAX_CURSOR_LENGTH + 4_000;
/** Above MAX_URL_LENGTH, so that a long URL gets its answer from us and not from the parser. */
const MAX_HEADER_BYTES = 64 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
/** How long a refused connection may take to read its answer. */
const LINGER_MS = 2_000;
/** Asked by the machinery around the service, from addresses that it may share with clients. */
const unlimitedPaths = new Set(['/healthz', '/readyz']);
/** For those who run the service: pages of other origins may not read it. */
const privatePaths = new Set(['/metrics']);

/** Every route of the service, those that describe the others included. */
export function createRoutes(version: string): readonly Route[] {
  let document: OpenApiDocument | undefined;
  const routes: Route[] = [
    ...messageRoutes,
    ...historyRoutes,
    ...streamRoutes,
    ...exportRoutes,
    ...laneRoutes,
    ...networkRoutes,
    ...statsRoutes,
    ...operationRoutes,
    ...metricsRoutes,
  ];
  routes.push(
    ...documentationRoutes(() => {
      document ??= openApiDocument(routes, version);
      return document;
    }),
  );
  return routes;
}

/**
 * A server that is ready to listen.
 *
 * @example const app = createServer({ store, version, log }); await app.listen({ port: 8080 });
 */
export function createServer({
  store,
  version,
  log,
  rateLimit = defaultRateLimit,
  apiKeys = [],
  trustProxy = false,
  gauges = [],
  live,
}: ServerOptions): FastifyInstance {
  const headers: Readonly<Record<string, string>> = {
    ...securityHeaders,
    ...crossOriginHeaders,
    ...(store.simulated && { 'X-Lanescan-Simulated': 'true' }),
  };
  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    requestTimeout: REQUEST_TIMEOUT_MS,
    trustProxy:
      typeof trustProxy === 'number'
        ? (_address, hop) => hop < trustProxy
        : trustProxy === false
          ? false
          : [...trustProxy],
    // Without a Host, Node would answer by itself and not in our shape; the first hook refuses it instead.
    http: { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false },
    // Requests on open connections are still answered while the server stops; new connections are refused.
    return503OnClosing: false,
    // HEAD is answered with GET, without the work for a body.
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    routerOptions: {
      ignoreDuplicateSlashes: true,
      ignoreTrailingSlash: true,
      maxParamLength: MAX_URL_LENGTH,
      querystringParser: (text) => [...new URLSearchParams(text)] as unknown as Record<string, unknown>,
    },
    // These come before any hook, so that the headers of every answer are still missing.
    frameworkErrors: (error, request, reply) => sendError(error, request, reply.headers(headers)),
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, headers, log),
  });
  // Node would answer an expectation other than 100-continue by itself; ignoring it is as good.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => {
    const refusal = new ApiError(
      'METHOD_NOT_ALLOWED',
      'CONNECT is not possible here: the service only reads, with GET.',
    );
    answerOnSocket(socket, refusal, { ...headers, Allow: ALLOWED_METHODS }, log);
  });

  const inFlight = new Set<FastifyRequest>();
  const limiter = createRateLimiter({ rateLimit, apiKeys });
  const feed = createChangeFeed(store);
  const metrics = createMetrics({
    store,
    feed,
    version,
    inFlight: () => inFlight.size,
    rateLimitedClients: () => limiter.clients,
  });
  metrics.registerGauges(...gauges);
  const context: RouteContext = { store, feed, live: createLive(live), metrics };
  const endings = createEndings();
  app.addHook('preClose', async () => {
    endings.stop();
    await context.feed.close();
  });
  app.addHook('onClose', async () => metrics.close());

  const routes = createRoutes(version);
  const paths = ['/', ...routes.flatMap((route) => [route.path, ...(route.aliases ?? [])])];
  const known = paths.map(pathPattern);

  let hasWarnedOfProxy = false;
  const limitRate = (request: FastifyRequest, reply: FastifyReply) => {
    if (trustProxy === false && !hasWarnedOfProxy && request.headers['x-forwarded-for'] !== undefined) {
      hasWarnedOfProxy = true;
      log.warn(
        'X-Forwarded-For is ignored: set trustProxy when a proxy stands in front, or clients share one limit.',
      );
    }
    const verdict = limiter.take(clientAddress(request), request.headers);
    if (!verdict) return;
    reply.headers(verdict.headers);
    if (verdict.isAllowed) return;
    metrics.observeRefusal('rate_limit');
    reply.header('Retry-After', String(verdict.retryAfter));
    throw new ApiError(
      'RATE_LIMITED',
      `Too many requests: the limit is in RateLimit-Policy. Try again in ${verdict.retryAfter} s.`,
    );
  };

  app.addHook('onRequest', async (request, reply) => {
    inFlight.add(request);
    reply.headers({ 'X-Request-ID': request.id, ...headers });
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      throw new ApiError('BAD_REQUEST', 'The request has no Host header, which HTTP/1.1 asks for.');
    }
    if (request.url.length > MAX_URL_LENGTH) {
      throw new ApiError(
        'URI_TOO_LONG',
        `The URL has ${request.url.length} characters; ${MAX_URL_LENGTH} is the most.`,
      );
    }
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    // A preflight costs nothing, and its refusal would look to a page like a broken service.
    if (request.method !== 'OPTIONS' && !unlimitedPaths.has(patternOf(request))) limitRate(request, reply);
    if (isRead) return;
    if (!known.some((pattern) => pattern.test(request.url))) throw notFound(request);
    if (request.method === 'OPTIONS') return reply.code(204).headers(preflightHeaders).send();
    reply.header('Allow', ALLOWED_METHODS);
    throw new ApiError(
      'METHOD_NOT_ALLOWED',
      `${request.method} is not possible here: the service only reads, with GET.`,
    );
  });
  app.addHook('onError', async (_request, _reply, error) => {
    if ((error as unknown) instanceof DatabaseBusyError) metrics.observeRefusal('overload');
  });
  app.addHook('onResponse', async (request, reply) => {
    inFlight.delete(request);
    metrics.observeRequest({
      route: routeLabel(request),
      method: request.method,
      status: reply.statusCode,
      seconds: (streamStarts.get(request) ?? reply.elapsedTime) / 1000,
    });
    request.log.info(
      {
        method: request.method,
        url: request.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        client: clientAddress(request),
      },
      'request',
    );
  });
  app.setErrorHandler(sendError);
  app.setNotFoundHandler((request) => {
    throw notFound(request);
  });

  for (const route of routes) {
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      app.route({
        method: ['GET', 'HEAD'],
        url: path.replace(/\{(\w+)\}/g, ':$1'),
        config: { pattern: route.path },
        handler: async (request, reply) => {
          refuseUnacceptable(request, [route.mediaType, ...(route.otherMediaTypes ?? [])]);
          const asked: RouteRequest = {
            method: request.method,
            path: request.params as Record<string, string>,
            query: request.query as RawParameters,
            headers: request.headers,
            client: clientAddress(request),
            // Made when asked for: most answers are there before anybody could lose patience.
            get signal() {
              return endings.signalFor(reply);
            },
            hangUp: () => request.raw.socket.destroy(),
          };
          const ifNoneMatch = request.headers['if-none-match'];
          if (route.validate && ifNoneMatch !== undefined) {
            const current = await route.validate(asked, context);
            const tag = current && tagInHand(ifNoneMatch, current.validator);
            if (current && tag !== undefined) return sendNotModified(reply, tag, current);
          }
          return sendAnswer(request, reply, route, await route.handle(asked, context));
        },
      });
    }
  }
  app.route({
    method: ['GET', 'HEAD'],
    url: '/',
    config: { pattern: '/' },
    handler: async (_request, reply) =>
      reply.headers({ 'Cache-Control': 'no-cache', 'Content-Length': '0' }).redirect('/docs'),
  });
  return app;
}

/** When streams began, in milliseconds after their request: how long they last is up to their reader. */
const streamStarts = new WeakMap<FastifyRequest, number>();

/** The pattern of the route that a request has reached; a few fixed words where it has reached none. */
function patternOf(request: FastifyRequest): string {
  return (request.routeOptions.config as { pattern?: string }).pattern ?? 'none';
}

/** Those who wait on purpose must not spoil the durations of those who do not. */
function routeLabel(request: FastifyRequest): string {
  const query = Array.isArray(request.query) ? (request.query as unknown as RawParameters) : [];
  const isWaiting = query.some(([name]) => name === 'waitFor');
  return isWaiting ? `${patternOf(request)} waiting` : patternOf(request);
}

async function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  route: Route,
  { body, headers, status = 200, freshness, validator }: RouteAnswer,
): Promise<FastifyReply> {
  reply.code(status).headers({ 'Content-Type': `${route.mediaType}; charset=utf-8`, ...headers });
  if (privatePaths.has(route.path)) {
    for (const name of Object.keys(crossOriginHeaders)) reply.removeHeader(name);
    reply.header('Cross-Origin-Resource-Policy', 'same-origin');
  }
  if (body instanceof Readable) return sendStream(request, reply, body);

  const bytes = Buffer.from(body);
  const current = { validator: validator ?? validatorOf(bytes), freshness: freshness ?? 'moving' } as const;
  if (status === 200) {
    const tag = tagInHand(request.headers['if-none-match'], current.validator);
    if (tag !== undefined) return sendNotModified(reply, tag, current);
  }
  const coding = chooseCoding(request.headers['accept-encoding'], bytes.length);
  reply.headers({
    ETag: entityTag(current.validator, coding),
    Vary: 'Accept-Encoding',
    ...(!reply.hasHeader('Cache-Control') && { 'Cache-Control': cacheControl(current.freshness) }),
    ...(coding !== undefined && { 'Content-Encoding': coding }),
  });
  if (request.method === 'HEAD') {
    // The length of a compressed body is known only to who compresses it.
    if (coding === undefined) reply.header('Content-Length', bytes.length);
    return reply.send();
  }
  return reply.send(coding === undefined ? bytes : await compress(bytes, coding));
}

function sendNotModified(reply: FastifyReply, tag: string, { freshness }: AnswerValidator): FastifyReply {
  reply.removeHeader('Content-Type');
  if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', cacheControl(freshness));
  return reply.code(304).headers({ ETag: tag, Vary: 'Accept-Encoding' }).send();
}

function sendStream(request: FastifyRequest, reply: FastifyReply, body: Readable): FastifyReply {
  streamStarts.set(request, reply.elapsedTime);
  if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', cacheControl('never'));
  // Events must arrive one by one, as they happen.
  const isPlain =
    String(reply.getHeader('Content-Type')).startsWith('text/event-stream') ||
    reply.hasHeader('Content-Encoding');
  if (!isPlain) reply.header('Vary', 'Accept-Encoding');
  const isZipped = !isPlain && takesGzipStream(request.headers['accept-encoding']);
  if (isZipped) reply.header('Content-Encoding', 'gzip');
  if (request.method === 'HEAD') {
    body.destroy();
    return reply.send();
  }
  return reply.send(isZipped ? gzipStream(body) : body);
}

/**
 * Signals for answers that take their time: aborted when the connection closes, or when the server stops. Not made
 * with AbortSignal.any, of which the signal of a server that runs for months would keep a trace each.
 */
function createEndings() {
  const unfinished = new Set<AbortController>();
  let isStopping = false;
  return {
    signalFor(reply: FastifyReply): AbortSignal {
      const ending = new AbortController();
      unfinished.add(ending);
      reply.raw.once('close', () => {
        unfinished.delete(ending);
        ending.abort();
      });
      if (isStopping || reply.raw.destroyed) ending.abort();
      return ending.signal;
    },
    stop(): void {
      isStopping = true;
      for (const ending of unfinished) ending.abort();
    },
  };
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, headers, body, isFault } = errorAnswer(error, request.id);
  if (isFault) request.log.error({ err: error }, 'request failed');
  reply
    .code(status)
    .headers({ 'X-Request-ID': request.id, 'Content-Type': 'application/json; charset=utf-8', ...headers })
    .send(body);
}

function notFound(request: FastifyRequest): ApiError {
  const [path = ''] = request.url.split('?');
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new ApiError(
    'NOT_FOUND',
    `There is nothing at ${shown}. The paths of this service are listed at /docs.`,
  );
}

/** Matches the URLs of a path as the router does: doubled and trailing slashes are forgiven. */
function pathPattern(path: string): RegExp {
  const segments = path.split('/').filter((segment) => segment !== '');
  const pattern = segments.map(
    (segment) => `/+${/^\{/.test(segment) ? '[^/?]+' : segment.replace(/[.]/g, '\\.')}`,
  );
  return new RegExp(`^${pattern.join('')}/*(?:\\?|$)`);
}

function refuseUnacceptable(request: FastifyRequest, mediaTypes: readonly string[]): void {
  const { accept } = request.headers;
  if (accept === undefined || accept.trim() === '') return;
  const isAcceptable = accept.split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    const includes = (type: string) => name === type || name === `${type.split('/')[0]}/*`;
    return !isRefused && (name === '*/*' || mediaTypes.some(includes));
  });
  if (isAcceptable) return;
  throw new ApiError(
    'NOT_ACCEPTABLE',
    `This path answers in ${mediaTypes.join(' or ')}, which the Accept header excludes.`,
  );
}

/** Requests that never became one: the parser gave up, so there is no reply object to answer with. */
function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  headers: Readonly<Record<string, string>>,
  log: FastifyBaseLogger,
): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  // More of what has been refused already.
  if (!socket.writable) return;
  const refusal =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new ApiError('URI_TOO_LONG', `The request line and headers exceed ${MAX_HEADER_BYTES} bytes.`)
      : new ApiError('BAD_REQUEST', 'The request is not well-formed HTTP, or did not arrive whole in time.');
  answerOnSocket(socket, refusal, headers, log);
}

function answerOnSocket(
  socket: Duplex,
  refusal: ApiError,
  headers: Readonly<Record<string, string>>,
  log: FastifyBaseLogger,
): void {
  const requestId = randomUUID();
  const { status, body } = errorAnswer(refusal, requestId);
  log.info({ reqId: requestId, status, problem: refusal.message }, 'request');
  const lines = Object.entries({
    ...headers,
    'X-Request-ID': requestId,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  // Closing at once, with the rest of the request unread, would take the answer from the client again.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
