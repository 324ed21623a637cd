/**
 * The HTTP server: routes in, one answer shape for everything that goes wrong, one log line a request.
 */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
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
import type { Store } from '../store/store.ts';
import { createChangeFeed } from './change-feed.ts';
import { documentationRoutes } from './documentation.ts';
import { errorAnswer } from './errors.ts';
import { messageRoutes } from './messages.ts';
import { type OpenApiDocument, openApiDocument } from './openapi.ts';
import { operationRoutes } from './operations.ts';
import type { Route, RouteContext } from './route.ts';

export interface ServerOptions {
  readonly store: Store;
  readonly version: string;
  readonly log: FastifyBaseLogger;
}

/** The longest cursor fits, with room for what goes with it: what we issue we also take back. */
const MAX_URL_LENGTH = MAX_CURSOR_LENGTH + 4_000;
/** Above MAX_URL_LENGTH, so that a long URL gets its answer from us and not from the parser. */
const MAX_HEADER_BYTES = 64 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
/** How long a refused connection may take to read its answer. */
const LINGER_MS = 2_000;
const ALLOWED_METHODS = 'GET, HEAD';

/** Every route of the service, those that describe the others included. */
export function createRoutes(version: string): readonly Route[] {
  let document: OpenApiDocument | undefined;
  const routes: Route[] = [...messageRoutes, ...operationRoutes];
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
export function createServer({ store, version, log }: ServerOptions): FastifyInstance {
  const headers: Readonly<Record<string, string>> = {
    'X-Content-Type-Options': 'nosniff',
    ...(store.simulated && { 'X-Lanescan-Simulated': 'true' }),
  };
  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Without a Host, Node would answer by itself and not in our shape; the first hook refuses it instead.
    http: { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false },
    // Requests on open connections are still answered while the server stops; new connections are refused.
    return503OnClosing: false,
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

  const context: RouteContext = { store, feed: createChangeFeed(store) };
  const stopping = new AbortController();
  app.addHook('preClose', async () => {
    stopping.abort();
    await context.feed.close();
  });

  const routes = createRoutes(version);
  const paths = ['/', ...routes.flatMap((route) => [route.path, ...(route.aliases ?? [])])];
  const known = paths.map(pathPattern);

  app.addHook('onRequest', async (request, reply) => {
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
    if (request.method === 'GET' || request.method === 'HEAD') return;
    if (!known.some((pattern) => pattern.test(request.url))) throw notFound(request);
    reply.header('Allow', ALLOWED_METHODS);
    throw new ApiError(
      'METHOD_NOT_ALLOWED',
      `${request.method} is not possible here: the service only reads, with GET.`,
    );
  });
  app.addHook('onResponse', async (request, reply) => {
    request.log.info(
      {
        method: request.method,
        url: request.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        client: request.ip,
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
      app.get(path.replace(/\{(\w+)\}/g, ':$1'), async (request, reply) => {
        refuseUnacceptable(request, route.mediaType);
        const { body, headers, status } = await route.handle(
          {
            path: request.params as Record<string, string>,
            query: request.query as RawParameters,
            headers: request.headers,
            client: request.ip,
            // Made when asked for: most answers are there before anybody could lose patience.
            get signal() {
              return AbortSignal.any([stopping.signal, goneSignal(reply)]);
            },
          },
          context,
        );
        return reply
          .code(status ?? 200)
          .headers({ 'Content-Type': `${route.mediaType}; charset=utf-8`, ...headers })
          .send(body);
      });
    }
  }
  app.get('/', async (_request, reply) => reply.redirect('/docs'));
  return app;
}

/** Aborted when the connection closes before the answer is complete. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
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

function refuseUnacceptable(request: FastifyRequest, mediaType: string): void {
  const { accept } = request.headers;
  if (accept === undefined || accept.trim() === '') return;
  const [type] = mediaType.split('/');
  const isAcceptable = accept.split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return !isRefused && (name === '*/*' || name === `${type}/*` || name === mediaType);
  });
  if (isAcceptable) return;
  throw new ApiError(
    'NOT_ACCEPTABLE',
    `This path answers in ${mediaType}, which the Accept header excludes.`,
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
