/** A request as routes see it, and the signals that end long ones. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import type { CutReason } from './connections.ts';

export type RouteRequest = ReturnType<typeof routeRequest>;

export function routeRequest(request: FastifyRequest, reply: FastifyReply, signals: RequestSignals) {
  const { method, url, headers, client } = request;
  return {
    /** For HEAD, a route can skip the work for the body. */
    method,
    path: request.params as Readonly<Record<string, string>>,
    /** Path and query as they were sent. */
    url,
    query: request.query as RawParameters,
    headers,
    client,
    /** Aborted when the client disconnects or the server stops: for long responses. */
    signal: () => signals.signalFor(reply),
    /** Aborted only when the client disconnects: for responses that may finish during a graceful shutdown. */
    disconnected: () => signals.disconnectSignalFor(reply),
    /** Closes the connection before the response is complete. */
    disconnect: (reason: CutReason): void => request.connection.cut(reason),
  };
}

export type RequestSignals = ReturnType<typeof createRequestSignals>;

/** Not made with `AbortSignal.any`: the signal of a server that runs for months would keep a trace of every request. */
export function createRequestSignals() {
  const open = new Set<AbortController>();
  let isStopping = false;

  const abortOnClose = (reply: FastifyReply, onClose?: () => void): AbortController => {
    const controller = new AbortController();
    reply.raw.once('close', () => {
      onClose?.();
      controller.abort();
    });
    if (reply.raw.destroyed) controller.abort();
    return controller;
  };

  return {
    signalFor(reply: FastifyReply): AbortSignal {
      const controller = abortOnClose(reply, () => open.delete(controller));
      open.add(controller);
      if (isStopping) controller.abort();
      return controller.signal;
    },
    disconnectSignalFor: (reply: FastifyReply): AbortSignal => abortOnClose(reply).signal,
    /** Aborts the signals of all open requests, and of later ones. */
    stop(): void {
      isStopping = true;
      for (const controller of open) controller.abort();
    },
  };
}
