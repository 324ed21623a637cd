/**
 * Abort signals for long requests: aborted when the connection closes, or when the server stops.
 *
 * Not made with `AbortSignal.any`: the signal of a server that runs for months would keep a trace of every request.
 */
import type { FastifyReply } from 'fastify';

export interface RequestSignals {
  /** Aborted when the connection closes or the server stops. */
  signalFor(reply: FastifyReply): AbortSignal;
  /** Aborted when the connection closes; a shutdown gives the response time to finish. */
  disconnectSignalFor(reply: FastifyReply): AbortSignal;
  /** Aborts the signals of all open requests, and of later ones. */
  stop(): void;
}

export function createRequestSignals(): RequestSignals {
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
    signalFor(reply) {
      const controller = abortOnClose(reply, () => open.delete(controller));
      open.add(controller);
      if (isStopping) controller.abort();
      return controller.signal;
    },
    disconnectSignalFor: (reply) => abortOnClose(reply).signal,
    stop() {
      isStopping = true;
      for (const controller of open) controller.abort();
    },
  };
}
