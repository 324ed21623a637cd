/** Fastify with this server's options: timeouts, keep-alive, limits, and one error shape for malformed requests. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import { MAX_CURSOR_LENGTH } from '../../domain/filters/cursor.ts';
import { withoutBasePath } from './base-path.ts';
import type { TrustProxy } from './client-address.ts';
import { ALLOWED_METHODS } from './cross-origin.ts';
import { answerMalformedRequest, answerOnSocket, MAX_HEADER_BYTES } from './malformed-requests.ts';

/** Fits the longest cursor that this service issues, and the other parameters. */
export const MAX_URL_LENGTH = MAX_CURSOR_LENGTH + 4_000;
/** Node checks request timeouts at an interval. Its default of 30 s would double a timeout of 30 s. */
const CHECKS_PER_TIMEOUT = 6;
/**
 * Keep-alive timeout: how long an idle connection stays open. A proxy in front must close first (60 s in
 * docs/operations/nginx.conf): otherwise it sends a request into a connection that is being closed.
 */
const KEEP_ALIVE_MS = 72_000;

export interface HttpAppOptions {
  readonly log: FastifyBaseLogger;
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  readonly trustProxy: TrustProxy;
  readonly basePath: string;
  readonly requestTimeoutMs: number;
  /** Answers a request whose URL the router cannot read. */
  readonly onUnreadableUrl: (error: Error, request: FastifyRequest, reply: FastifyReply) => void;
}

export function createHttpApp({
  log,
  headers,
  trustProxy,
  basePath,
  requestTimeoutMs,
  onUnreadableUrl,
}: HttpAppOptions): FastifyInstance {
  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger for each request costs more than its one log line, which has the request id itself.
    childLoggerFactory: (logger) => logger,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    trustProxy: fastifyTrustProxy(trustProxy),
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
    frameworkErrors: onUnreadableUrl,
    clientErrorHandler: (error, socket) => answerMalformedRequest(error, socket, headers, log),
  });
  overrideNodeResponses(app.server, headers, log);
  return app;
}

function fastifyTrustProxy(trustProxy: TrustProxy) {
  if (trustProxy === false) return false;
  return typeof trustProxy === 'number'
    ? (_address: string, hop: number) => hop < trustProxy
    : [...trustProxy];
}

/** Requests that Node would otherwise answer by itself, in another format. */
function overrideNodeResponses(
  server: Server,
  headers: Readonly<Record<string, string>>,
  log: FastifyBaseLogger,
): void {
  // An expectation other than 100-continue is ignored.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('connect', (_request, socket) => {
    const rejection = new ApiError(
      'METHOD_NOT_ALLOWED',
      'CONNECT is not supported: the service is read-only, with GET.',
    );
    answerOnSocket(socket, rejection, { ...headers, Allow: ALLOWED_METHODS }, log);
  });
}
