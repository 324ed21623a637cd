import type { FastifyReply } from 'fastify';

/**
 * Signals for answers that take their time: aborted when the connection closes, or when the server stops. Not made
 * with AbortSignal.any, of which the signal of a server that runs for months would keep a trace each.
 */
export function createEndings() {
  const unfinished = new Set<AbortController>();
  let isStopping = false;

  const closing = (reply: FastifyReply, onClose?: () => void): AbortController => {
    const ending = new AbortController();
    reply.raw.once('close', () => {
      onClose?.();
      ending.abort();
    });
    if (reply.raw.destroyed) ending.abort();
    return ending;
  };

  return {
    /** Aborted when the connection closes or the server stops. */
    signalFor(reply: FastifyReply): AbortSignal {
      const ending = closing(reply, () => unfinished.delete(ending));
      unfinished.add(ending);
      if (isStopping) ending.abort();
      return ending.signal;
    },
    /** Aborted when the connection closes; a server that stops gives the answer time to finish. */
    goneSignalFor: (reply: FastifyReply): AbortSignal => closing(reply).signal,
    stop(): void {
      isStopping = true;
      for (const ending of unfinished) ending.abort();
    },
  };
}
