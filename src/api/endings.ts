import type { FastifyReply } from 'fastify';

/**
 * Signals for answers that take their time: aborted when the connection closes, or when the server stops. Not made
 * with AbortSignal.any, of which the signal of a server that runs for months would keep a trace each.
 */
export function createEndings() {
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
