/** Tracks each request from its arrival to the end of its response: in-flight count, log line, metrics, memory. */
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import { DatabaseBusyError } from '../../store/reads/reads.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Backpressure, Reservation } from './backpressure.ts';
import { clientAddress } from './client-address.ts';
import type { Connection, Connections } from './connections.ts';
import { responseMs } from './responses.ts';
import { servedPathOf } from './route-registration.ts';

declare module 'fastify' {
  interface FastifyRequest {
    client: string;
    connection: Connection;
    /** Memory that is counted for the body of the response; undefined where the body is short. */
    reservation: Reservation | undefined;
  }
}

/** Status in the log and the metrics, as in nginx: the client disconnected before the response began. */
const CLIENT_CLOSED_STATUS = 499;

export function createRequestTracker(options: {
  readonly connections: Connections;
  readonly backpressure: Backpressure;
  readonly metrics: Metrics;
  readonly log: FastifyBaseLogger;
  readonly accessLog: boolean;
  /** The client group that the memory of a response counts for; undefined where it is not limited. */
  readonly groupOf: (address: string) => string | undefined;
}) {
  const { connections, backpressure, metrics, log, accessLog, groupOf } = options;
  const inFlight = new Set<FastifyRequest>();

  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    inFlight.add(request);
    request.client = clientAddress(request);
    const connection = connections.of(request.raw.socket);
    request.connection = connection;
    const sentBefore = connection.sentBytes;
    const end = () => {
      if (!inFlight.delete(request)) return;
      request.reservation?.release();
      report(request, reply, connection.sentBytes - sentBefore);
      connections.settle(connection, abandon);
    };
    const abandon = () => {
      // Node emits no `close` for a pipelined response that waits for those before it, and has no socket yet: without it,
      // an export would hold its slot, its connection and its snapshot for ever.
      if (reply.raw.socket === null) reply.raw.destroy().emit('close');
      end();
    };
    connection.begin(abandon);
    reply.raw.once('close', end);
  };

  /** Reports a request that has ended, also one whose client did not wait for the response. */
  const report = (request: FastifyRequest, reply: FastifyReply, sentBytes: number) => {
    const { headersSent, writableFinished } = reply.raw;
    const status = headersSent ? reply.statusCode : CLIENT_CLOSED_STATUS;
    // An event stream has no natural end, so it does not count as cut.
    const isStream = String(reply.getHeader('content-type')).startsWith('text/event-stream');
    const isCut = headersSent && !writableFinished && !isStream;
    const aborted = request.connection.cutReason ?? 'client';
    if (isCut) metrics.observeCut(aborted);
    const seconds = responseMs(request, reply) / 1000;
    metrics.observeRequest(routeLabel(request), request.method, status, seconds);
    if (!accessLog) return;
    log.info(
      {
        reqId: request.id,
        method: request.method,
        url: request.url,
        status,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        client: request.client,
        // Incomplete response: why, and how many of its bytes the operating system accepted.
        ...(isCut && { aborted, sentBytes }),
      },
      'request',
    );
  };

  return {
    /** Number of requests that are being answered. */
    get inFlight() {
      return inFlight.size;
    },
    begin,
    /** Counts the memory of a long body until the request has ended; throws an ApiError when a limit is exceeded. */
    reserveBody(request: FastifyRequest, bytes: number): Pick<Reservation, 'resize'> {
      // The reservation of a request that has ended meanwhile would never be released.
      if (!inFlight.has(request)) return { resize: () => undefined };
      request.reservation = backpressure.reserve(request.connection, groupOf(request.client), bytes);
      return request.reservation;
    },
    /** Tracks every request. Register it before all other hooks. */
    register(app: FastifyInstance): void {
      app.decorateRequest('client', '');
      app.decorateRequest('connection');
      app.decorateRequest('reservation');
      app.addHook('onRequest', (request, reply, done) => {
        begin(request, reply);
        done();
      });
      app.addHook('onError', async (_request, _reply, error) => {
        if ((error as unknown) instanceof DatabaseBusyError) metrics.observeRejection('overload');
      });
    },
  };
}

/** Long polls have a separate label, because they would distort the durations of other requests. */
function routeLabel(request: FastifyRequest): string {
  const query = Array.isArray(request.query) ? (request.query as unknown as RawParameters) : [];
  const isWaiting = query.some(([name]) => name === 'waitFor');
  const { path = 'none' } = servedPathOf(request) ?? {};
  return isWaiting ? `${path} waiting` : path;
}
