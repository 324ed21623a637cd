/**
 * Graceful shutdown: new connections are rejected, streams and waiting requests end, responses in flight are finished, and
 * clients that do not read theirs in time are disconnected.
 */
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Connections } from './connections.ts';

export interface GracefulShutdownOptions {
  readonly connections: Connections;
  /** How long responses may take to be sent. */
  readonly finishMs: number;
  readonly log: FastifyBaseLogger;
  /** Run when the shutdown begins, in this order. */
  readonly stop: readonly (() => void | Promise<void>)[];
  /** Run when all connections are closed. */
  readonly close: readonly (() => void)[];
}

export function registerGracefulShutdown(
  app: FastifyInstance,
  { connections, finishMs, log, stop, close }: GracefulShutdownOptions,
): void {
  let finishing: NodeJS.Timeout | undefined;

  const cutUnfinished = () => {
    const open = [...connections.open.values()];
    const unfinished = open.filter(({ pendingResponses }) => pendingResponses.size > 0);
    if (unfinished.length > 0) {
      log.warn(
        `Stopping: ${unfinished.length} connections had not taken their responses after ${finishMs / 1000} s ` +
          'and are cut off. Their request lines have "aborted".',
      );
    }
    for (const connection of open) connection.cut('stopping');
  };

  app.addHook('preClose', async () => {
    finishing = setTimeout(cutUnfinished, finishMs);
    for (const step of stop) await step();
  });
  app.addHook('onClose', async () => {
    clearTimeout(finishing);
    for (const step of close) step();
  });
}
