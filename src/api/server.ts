/**
 * The HTTP server: routes in, one answer shape for everything that goes wrong, one log line a request.
 */
import { randomUUID } from 'node:crypto';
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
import { DatabaseBusyError } from '../store/reads/reads.ts';
import type { Store } from '../store/store.ts';
import { answerMilliseconds, type HoldBody, sendAnswer, sendError, sendNotModified } from './answers.ts';
import { answerBrokenRequest, answerOnSocket, MAX_HEADER_BYTES } from './broken-requests.ts';
import { tagInHand } from './caching.ts';
import { createChangeFeed, createLive, type LiveLimits } from './change-feed.ts';
import { addressGroup, clientAddress, isLoopback, socketAddress, type TrustProxy } from './client-address.ts';
import {
  type Connection,
  type ConnectionLimits,
  createConnections,
  defaultConnectionLimits,
} from './connections.ts';
import { ALLOWED_METHODS, crossOriginHeaders, preflightHeaders, securityHeaders } from './cross-origin.ts';
import { createEndings } from './endings.ts';
import { builtExplorer, explorerPaths } from './explorer.ts';
import { createHotAnswers } from './hot-answers.ts';
import { createMetrics, type GaugeSource } from './metrics.ts';
import { createOutgoing, defaultOutgoingLimits, type Hold, type OutgoingLimits } from './outgoing.ts';
import { createRateLimiter, defaultRateLimit, type RateLimitOptions } from './rate-limit.ts';
import type { RouteContext, RouteRequest, ServedPath } from './route.ts';
import { createRoutes } from './routes.ts';
import { createTakingsTeller, type Siblings } from './siblings.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Address of the client. */
    client: string;
    peer: Connection;
    /** What is counted of the body of its answer; none where that is short. */
    hold: Hold | undefined;
  }
}

export interface ServerOptions extends Partial<RateLimitOptions> {
  readonly store: Store;
  readonly version: string;
  readonly log: FastifyBaseLogger;
  /** Whether each request gets a line in the log; warnings and errors are logged in any case. */
  readonly accessLog?: boolean;
  readonly trustProxy?: TrustProxy;
  /** Figures for /metrics of what runs beside the server. */
  readonly gauges?: readonly GaugeSource[];
  /** Bounds of streams and waiting requests, where others than the defaults are wanted. */
  readonly live?: Partial<LiveLimits>;
  /** Bounds of connections, where others than the defaults are wanted. */
  readonly connections?: Partial<ConnectionLimits>;
  /** Bounds of bytes that wait to be sent, where others than the defaults are wanted. */
  readonly outgoing?: Partial<OutgoingLimits>;
  /** How long a client may take to send a request; one that takes longer is cut off. */
  readonly requestTimeoutMs?: number;
  /** Other processes that answer on the same port. */
  readonly siblings?: Siblings | undefined;
  /** Folder of the built explorer, where it is another than that of this package. */
  readonly explorerFolder?: string;
}

/** The longest cursor fits, with room for what goes with it: what we issue we also take back. */
const MAX_URL_LENGTH = MAX_CURSOR_LENGTH + 4_000;
const DEFAULT_REQUEST_TIMEOUT_MS = 30_000;
/** How often in that time somebody looks; Node's own 30 s would double it. */
const LOOKS_PER_TIMEOUT = 6;
/**
 * How long an idle connection stays open. A proxy must close first (60 s in docs/operations/nginx.conf): otherwise it sends
 * a request into a connection that is being closed.
 */
const KEEP_ALIVE_MS = 72_000;
/** In the log and the metrics, as nginx has it: the client went away before its answer began. */
const GONE_STATUS = 499;

/**
 * A server that is ready to listen.
 *
 * @example const app = createServer({ store, version, log }); await app.listen({ port: 8080 });
 */
export function createServer({
  store,
  version,
  log,
  accessLog = true,
  rateLimit = defaultRateLimit,
  apiKeys = [],
  trustProxy = false,
  gauges = [],
  live,
  connections: connectionLimits,
  outgoing: outgoingLimits,
  requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS,
  siblings,
  explorerFolder = builtExplorer,
}: ServerOptions): FastifyInstance {
  const headers: Readonly<Record<string, string>> = {
    ...securityHeaders,
    ...crossOriginHeaders,
    ...(store.simulated && { 'x-lanescan-simulated': 'true' }),
  };
  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger for each request costs more than its one line, which names the request itself.
    childLoggerFactory: (logger) => logger,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    trustProxy:
      typeof trustProxy === 'number'
        ? (_address, hop) => hop < trustProxy
        : trustProxy === false
          ? false
          : [...trustProxy],
    // Without a Host, Node would answer by itself and not in our shape; the first hook refuses it instead.
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      requireHostHeader: false,
      connectionsCheckingInterval: requestTimeoutMs / LOOKS_PER_TIMEOUT,
    },
    // Requests on open connections are still answered while the server stops; new connections are refused.
    return503OnClosing: false,
    // HEAD is answered with GET, without the work for a body.
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    routerOptions: {
      ignoreDuplicateSlashes: true,
      ignoreTrailingSlash: true,
      maxParamLength: MAX_URL_LENGTH,
      querystringParser: (text) =>
        (text === '' ? [] : [...new URLSearchParams(text)]) as unknown as Record<string, unknown>,
    },
    // A URL that cannot be read comes before any hook: it counts and is told of like the others all the same.
    frameworkErrors: (error, request, reply) => {
      begin(request, reply);
      try {
        admit(request, reply);
        sendError(error, request, reply);
      } catch (refusal) {
        sendError(refusal, request, reply);
      }
    },
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
  /** The client whose connections and bytes are counted; undefined for this machine, where it has no rate limit either. */
  const limitedClient = (address: string): string | undefined =>
    isLoopback(address) && (rateLimit === false || !rateLimit.loopback) ? undefined : addressGroup(address);
  const atMost = { ...defaultConnectionLimits, ...connectionLimits };
  const connections = createConnections(app.server, {
    limits: atMost,
    // The connections of a proxy are those of many clients.
    clientOf: (socket) => (trustProxy === false ? limitedClient(socketAddress(socket)) : undefined),
    onRefused: () => metrics.observeRefusal('connections'),
  });
  const outgoing = createOutgoing(connections, { ...defaultOutgoingLimits, ...outgoingLimits });
  const teller = siblings && createTakingsTeller(siblings);
  const limiter = createRateLimiter({ rateLimit, apiKeys }, undefined, teller?.count);
  siblings?.onTakings((takings) => limiter.charge(takings));
  const feed = createChangeFeed(store);
  const metrics = createMetrics({
    store,
    feed,
    version,
    inFlight: () => inFlight.size,
    rateLimitedClients: () => limiter.clients,
    connections: () => connections.open.size,
    waitingBytes: () => outgoing.bytes,
    siblings,
  });
  metrics.registerGauges(...gauges);
  const hotAnswers = createHotAnswers({ version: () => store.version() });
  const context: RouteContext = { store, feed, live: createLive(live), metrics, hotAnswers };
  const endings = createEndings();
  let finishing: NodeJS.Timeout | undefined;
  app.addHook('preClose', async () => {
    finishing = setTimeout(() => {
      const unfinished = [...connections.open.values()].filter(({ answers }) => answers.size > 0);
      if (unfinished.length > 0) {
        log.warn(
          `Stopping: ${unfinished.length} connections had not taken their answers after ${atMost.finishMs / 1000} s ` +
            'and are cut off. Their request lines have "aborted".',
        );
      }
      for (const connection of connections.open.values()) connection.cut('stopping');
    }, atMost.finishMs);
    endings.stop();
    await context.feed.close();
  });
  app.addHook('onClose', async () => {
    clearTimeout(finishing);
    outgoing.close();
    metrics.close();
    teller?.stop();
  });

  const routes: readonly ServedPath[] = [...createRoutes(version), ...explorerPaths(explorerFolder)];
  const unlimitedPaths = new Set(routes.filter(({ isUnlimited }) => isUnlimited).map(({ path }) => path));
  const known = routes.flatMap((route) => [route.path, ...(route.aliases ?? [])]).map(pathPattern);
  const isKnown = (url: string) => known.some((pattern) => pattern.test(url));

  let hasWarnedOfProxy = false;
  const limitRate = (request: FastifyRequest, reply: FastifyReply) => {
    if (trustProxy === false && !hasWarnedOfProxy && request.headers['x-forwarded-for'] !== undefined) {
      hasWarnedOfProxy = true;
      log.warn(
        'X-Forwarded-For is ignored: set trustProxy when a proxy stands in front, or clients share one limit.',
      );
    }
    const verdict = limiter.take(request.client, request.headers);
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

  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    inFlight.add(request);
    request.client = clientAddress(request);
    const connection = connections.of(request.raw.socket);
    request.peer = connection;
    const sentBefore = connection.sentBytes;
    const end = () => {
      if (!inFlight.delete(request)) return;
      request.hold?.release();
      tellOf(request, reply, connection.sentBytes - sentBefore);
      connections.settle(connection, end);
    };
    connection.begin(end);
    reply.raw.once('close', end);
  };

  /** Until the request ends, whether it is answered or not; one that has ended by now is answered into the void. */
  const holdBody: HoldBody = (request, bytes) => {
    if (!inFlight.has(request)) return { resize: () => undefined };
    request.hold = outgoing.hold(request.peer, limitedClient(request.client), bytes);
    return request.hold;
  };

  /** What every request must pass before anything is done for it. */
  const admit = (request: FastifyRequest, reply: FastifyReply) => {
    // Where a chunked body ends is disputed now and then. Nothing here takes one, and nothing behind it is read.
    if (request.headers['transfer-encoding'] !== undefined) reply.header('Connection', 'close');
    reply.header('x-request-id', request.id).headers(headers);
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      throw new ApiError('BAD_REQUEST', 'The request has no Host header, which HTTP/1.1 asks for.');
    }
    if (request.peer.answers.size > atMost.pipelined) {
      request.peer.cut('pipelining');
      throw new ApiError(
        'TOO_MANY_CONNECTIONS',
        `A connection may have ${atMost.pipelined} requests at once. Wait for their answers.`,
      );
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
    if (isRead || request.method === 'OPTIONS') return;
    if (!isKnown(request.url)) throw notFound(request);
    reply.header('Allow', ALLOWED_METHODS);
    throw new ApiError(
      'METHOD_NOT_ALLOWED',
      `${request.method} is not possible here: the service only reads, with GET.`,
    );
  };
  app.decorateRequest('client', '');
  app.decorateRequest('peer');
  app.decorateRequest('hold');
  // With callbacks: promises that are kept at once are most of what a hook costs.
  app.addHook('onRequest', (request, reply, done) => {
    begin(request, reply);
    try {
      admit(request, reply);
      if (request.method !== 'OPTIONS') return done();
      if (!isKnown(request.url)) throw notFound(request);
      reply.code(204).headers(preflightHeaders).send();
    } catch (error) {
      done(error as Error);
    }
  });
  app.addHook('onError', async (_request, _reply, error) => {
    if ((error as unknown) instanceof DatabaseBusyError) metrics.observeRefusal('overload');
  });
  /** Also of a client that did not wait for its answer. */
  const tellOf = (request: FastifyRequest, reply: FastifyReply, sentBytes: number) => {
    const { headersSent, writableFinished } = reply.raw;
    const status = headersSent ? reply.statusCode : GONE_STATUS;
    // A stream of events has no end of its own.
    const isCut = headersSent && !writableFinished && !isEventStream(reply);
    const aborted = request.peer.cutReason ?? 'client';
    if (isCut) metrics.observeCut(aborted);
    metrics.observeRequest({
      route: routeLabel(request),
      method: request.method,
      status,
      seconds: answerMilliseconds(request, reply) / 1000,
    });
    if (!accessLog) return;
    log.info(
      {
        reqId: request.id,
        method: request.method,
        url: request.url,
        status,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        client: request.client,
        // Not sent whole: because of whom, and how many bytes of it the operating system took.
        ...(isCut && { aborted, sentBytes }),
      },
      'request',
    );
  };
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
          const asked = new AskedRequest(request, reply, endings);
          const ifNoneMatch = request.headers['if-none-match'];
          if (route.validate && ifNoneMatch !== undefined) {
            const current = await route.validate(asked, context);
            const tag = current && tagInHand(ifNoneMatch, current.validator);
            if (current && tag !== undefined) return sendNotModified(reply, tag, current);
          }
          return sendAnswer(request, reply, route, await route.handle(asked, context), holdBody);
        },
      });
    }
  }
  return app;
}

/** What routes see of a request. A class, as its signal is made when asked for: most answers are there before. */
class AskedRequest implements RouteRequest {
  readonly method: string;
  readonly path: Readonly<Record<string, string>>;
  readonly url: string;
  readonly query: RawParameters;
  readonly headers: FastifyRequest['headers'];
  readonly client: string;
  readonly hangUp: () => void;
  readonly #reply: FastifyReply;
  readonly #endings: ReturnType<typeof createEndings>;

  constructor(request: FastifyRequest, reply: FastifyReply, endings: ReturnType<typeof createEndings>) {
    this.method = request.method;
    this.path = request.params as Record<string, string>;
    this.url = request.url;
    this.query = request.query as RawParameters;
    this.headers = request.headers;
    this.client = request.client;
    this.hangUp = () => request.raw.socket.destroy();
    this.#reply = reply;
    this.#endings = endings;
  }

  get signal(): AbortSignal {
    return this.#endings.signalFor(this.#reply);
  }

  get gone(): AbortSignal {
    return this.#endings.goneSignalFor(this.#reply);
  }
}

function isEventStream(reply: FastifyReply): boolean {
  return String(reply.getHeader('content-type')).startsWith('text/event-stream');
}

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
