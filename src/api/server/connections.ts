/**
 * The server's client connections: how many may be open, which responses are pending on each, and how they close when the
 * server stops.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';

const defaultLimits = {
  /** Open connections of this process. Beyond it, new ones are closed. */
  connections: 20_000,
  /** Open connections of one client (IPv6: a /64), where clients connect directly. */
  connectionsPerAddress: 1_000,
  /** Requests of one connection that are being answered at the same time (pipelining). */
  pipelined: 32,
  /** Graceful shutdown: how long responses may take to be sent before their connections are cut off. */
  finishMs: 10_000,
};

export type ConnectionLimits = Readonly<typeof defaultLimits>;

/** Why the server closed a connection before its response was complete. */
export const cutReasons = ['stalled', 'memory', 'stopping', 'pipelining', 'deadline', 'failure'] as const;
export type CutReason = (typeof cutReasons)[number];

export class Connection {
  readonly socket: Socket;
  /** For each pending response, the callback that ends it when the connection closes. */
  readonly pendingResponses = new Set<() => void>();
  /** Bytes of responses that are reserved in memory (backpressure.ts). */
  reservedBytes = 0;
  /** `sentBytes` at the latest check of backpressure.ts, and when it last changed (monotonic ms). */
  acceptedBytes = 0;
  progressAt = performance.now();
  /** `socket.bytesRead` at the latest request: more bytes are the beginning of another request. */
  #readBytes = 0;
  /** Why the server cut it off; undefined while it has not. */
  cutReason: CutReason | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /** No response is pending, and no part of a further request has arrived. */
  get isIdle(): boolean {
    return this.pendingResponses.size === 0 && this.socket.bytesRead === this.#readBytes;
  }

  /** No byte of a request has arrived. */
  get isUnused(): boolean {
    return this.socket.bytesRead === 0;
  }

  /** Bytes that were written and that the operating system has accepted. */
  get sentBytes(): number {
    return this.socket.bytesWritten - this.socket.writableLength;
  }

  /** Adds a pending response. */
  begin(end: () => void): void {
    this.#readBytes = this.socket.bytesRead;
    this.pendingResponses.add(end);
  }

  /** Disconnects the client, in a way that shows that the response is incomplete. */
  cut(reason: CutReason): void {
    this.cutReason ??= reason;
    // HTTP/1.0, which nginx speaks to servers by default, ends a response of unknown length by closing the connection:
    // only a reset tells that it is incomplete. A Unix socket has no reset.
    if (this.socket.remoteAddress === undefined) this.socket.destroy();
    else this.socket.resetAndDestroy();
  }
}

export type Connections = ReturnType<typeof createConnections>;

/** At shutdown, the first request of a new connection may still be on its way. */
const UNUSED_GRACE_MS = 1_000;

export function createConnections(
  server: Server,
  given: Partial<ConnectionLimits> | undefined,
  /** The client that a connection counts for; undefined where it is not counted (a proxy, this machine). */
  clientOf: (socket: Socket) => string | undefined,
  onRejected: () => void,
) {
  const limits = { ...defaultLimits, ...given };
  const open = new Map<Socket, Connection>();
  const countByClient = new Map<string, number>();
  let isStopping = false;

  server.maxConnections = limits.connections;
  server.on('drop', onRejected);
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket);
    const ownCount = client === undefined ? 0 : (countByClient.get(client) ?? 0);
    if (ownCount >= limits.connectionsPerAddress) {
      onRejected();
      socket.destroy();
      return;
    }
    if (client !== undefined) countByClient.set(client, ownCount + 1);
    const connection = new Connection(socket);
    open.set(socket, connection);
    socket.once('close', () => {
      open.delete(socket);
      for (const end of [...connection.pendingResponses]) end();
      if (client === undefined) return;
      const remaining = (countByClient.get(client) ?? 1) - 1;
      if (remaining === 0) countByClient.delete(client);
      else countByClient.set(client, remaining);
    });
  });

  // Called by Node and by Fastify when the server closes. Node's own regards a connection as idle as soon as the last bytes of
  // its response are buffered; here it is idle when all of its responses have been handed to the operating system.
  server.closeIdleConnections = () => {
    isStopping = true;
    for (const { socket, isIdle, isUnused } of open.values()) if (isIdle && !isUnused) socket.destroy();
    setTimeout(() => {
      for (const { socket, isUnused } of open.values()) if (isUnused) socket.destroy();
    }, UNUSED_GRACE_MS).unref();
  };

  return {
    limits,
    open: open as ReadonlyMap<Socket, Connection>,
    // Tests may inject requests without a connection.
    of: (socket: Socket): Connection => open.get(socket) ?? new Connection(socket),
    /** Removes a pending response; during shutdown, a connection that becomes idle is closed. */
    settle(connection: Connection, end: () => void): void {
      connection.pendingResponses.delete(end);
      if (isStopping && connection.isIdle) connection.socket.end();
    },
  };
}

/**
 * Graceful shutdown: new connections are rejected, streams and waiting requests end, responses in flight are finished, and
 * clients that do not read theirs in time are disconnected.
 */
export function registerGracefulShutdown(
  app: FastifyInstance,
  options: {
    readonly connections: Connections;
    readonly log: FastifyBaseLogger;
    /** Runs when the shutdown begins. */
    readonly stop: () => Promise<void>;
    /** Runs when all connections are closed. */
    readonly close: () => void;
  },
): void {
  const { connections, log, stop, close } = options;
  const { finishMs } = connections.limits;
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
    await stop();
  });
  app.addHook('onClose', async () => {
    clearTimeout(finishing);
    close();
  });
}
