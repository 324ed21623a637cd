/** Fastify with this server's options: timeouts, keep-alive, limits, base path, and one error shape for malformed requests. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import { MAX_CURSOR_LENGTH } from '../../domain/filters/cursor.ts';
import type { TrustProxy } from './client-address.ts';
import { errorResponse } from './error-responses.ts';
import { ALLOWED_METHODS } from './header-fields.ts';

/** Fits the longest cursor that this service issues, and the other parameters. */
export const MAX_URL_LENGTH = MAX_CURSOR_LENGTH + 4_000;
/** Node checks request timeouts at an interval. Its default of 30 s would double a timeout of 30 s. */
const CHECKS_PER_TIMEOUT = 6;
/**
 * Keep-alive timeout: how long an idle connection stays open. A proxy in front must close first (60 s in
 * docs/operations/nginx.conf): otherwise it sends a request into a connection that is being closed.
 */
const KEEP_ALIVE_MS = 72_000;

/** Larger than the longest accepted URL, so that a URL that is too long is rejected by us and not by the parser. */
const MAX_HEADER_BYTES = 64 * 1024;
/** How long a rejected client may take to read the answer. */
const LINGER_MS = 2_000;

export function createHttpApp(options: {
  readonly log: FastifyBaseLogger;
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  readonly trustProxy: TrustProxy;
  readonly basePath: string;
  readonly requestTimeoutMs: number;
  /** Answers a request whose URL the router cannot read. */
  readonly onUnreadableUrl: (error: Error, request: FastifyRequest, reply: FastifyReply) => void;
}): FastifyInstance {
  const { log, headers, trustProxy, basePath, requestTimeoutMs } = options;

  /** Answers without a reply object, and closes the connection. */
  const answerOnSocket = (socket: Duplex, rejection: ApiError, more: Record<string, string> = {}) => {
    const requestId = randomUUID();
    const { status, body } = errorResponse(rejection, requestId);
    log.info({ reqId: requestId, status, problem: rejection.message }, 'request');
    const lines = Object.entries({
      ...headers,
      ...more,
      'X-Request-ID': requestId,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
    // Closing at once would reset the connection (unread data remains), and the client would lose the answer.
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };

  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger for each request costs more than its one log line, which has the request id itself.
    childLoggerFactory: (logger) => logger,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    trustProxy:
      typeof trustProxy === 'number' ? (_address, hop) => hop < trustProxy : trustProxy && [...trustProxy],
    ...(basePath !== '' && {
      rewriteUrl: ({ url = '/' }: IncomingMessage) => withoutBasePath(url, basePath),
    }),
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      // Node would reject a request without Host in its own format; admission rejects it in ours.
      requireHostHeader: false,
      connectionsCheckingInterval: requestTimeoutMs / CHECKS_PER_TIMEOUT,
    },
    // During shutdown, requests on open connections are still answered; new connections are rejected.
    return503OnClosing: false,
    // Routes answer HEAD themselves, without the work for a body.
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    routerOptions: {
      ignoreDuplicateSlashes: true,
      ignoreTrailingSlash: true,
      maxParamLength: MAX_URL_LENGTH,
      querystringParser: (text) =>
        (text === '' ? [] : [...new URLSearchParams(text)]) as unknown as Record<string, unknown>,
    },
    frameworkErrors: options.onUnreadableUrl,
    // The HTTP parser gave up.
    clientErrorHandler({ code }, socket) {
      if (code === 'ECONNRESET') return socket.destroy();
      // Further data on a connection that was rejected already.
      if (!socket.writable) return;
      const rejection =
        code === 'HPE_HEADER_OVERFLOW'
          ? new ApiError('URI_TOO_LONG', `The request line and headers exceed ${MAX_HEADER_BYTES} bytes.`)
          : new ApiError('BAD_REQUEST', 'The request is not well-formed HTTP, or did not arrive in time.');
      answerOnSocket(socket, rejection);
    },
  });
  // Requests that Node would otherwise answer by itself, in another format. An expectation other than 100-continue is ignored.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => {
    const problem = 'CONNECT is not supported: the service is read-only, with GET.';
    answerOnSocket(socket, new ApiError('METHOD_NOT_ALLOWED', problem), { Allow: ALLOWED_METHODS });
  });
  return app;
}

/**
 * The URL as routes know it, without the prefix of a server that is hosted below a path, such as `/lanescan`. Requests without
 * it are answered too: a proxy may have removed it, and probes ask the server directly. Pages and documents name the prefix in
 * their links, whatever a request had.
 */
function withoutBasePath(url: string, basePath: string): string {
  if (!url.startsWith(basePath)) return url;
  const rest = url.slice(basePath.length);
  if (rest.startsWith('/')) return rest;
  return rest === '' || rest.startsWith('?') ? `/${rest}` : url;
}

/** Redirects `/lanescan` to `/lanescan/`, so that each page has one address. */
export function registerBasePathRedirect(app: FastifyInstance, basePath: string): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { originalUrl, method } = request;
    const [path = ''] = originalUrl.split('?', 1);
    if (path !== basePath || (method !== 'GET' && method !== 'HEAD')) return done();
    reply.redirect(`${basePath}/${originalUrl.slice(path.length)}`, 308);
  });
}
