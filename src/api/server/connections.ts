/**
 * The server's client connections: how many may be open, which responses are pending on each, and how they close when the
 * server stops.
 *
 * Node's own `closeIdleConnections` regards a connection as idle as soon as the last bytes of its response are buffered.
 * It is replaced here: a connection is idle when all of its responses have been handed to the operating system.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  /** Open connections of this process. Beyond it, new ones are closed. */
  readonly connections: number;
  /** Open connections of one client (IPv6: a /64), where clients connect directly. */
  readonly connectionsPerAddress: number;
  /** Requests of one connection that are being answered at the same time (pipelining). */
  readonly pipelined: number;
  /** Graceful shutdown: how long responses may take to be sent before their connections are cut off. */
  readonly finishMs: number;
}

export const defaultConnectionLimits: ConnectionLimits = {
  connections: 20_000,
  connectionsPerAddress: 1_000,
  pipelined: 32,
  finishMs: 10_000,
};

/** Why the server closed a connection before its response was complete. */
export const cutReasons = ['stalled', 'memory', 'stopping', 'pipelining', 'deadline', 'failure'] as const;
export type CutReason = (typeof cutReasons)[number];

export interface Connection {
  readonly socket: Socket;
  /** For each pending response, the callback that ends it when the connection closes. */
  readonly pendingResponses: ReadonlySet<() => void>;
  /** No response is pending, and no part of a further request has arrived. */
  readonly isIdle: boolean;
  /** No byte of a request has arrived. */
  readonly isUnused: boolean;
  /** Bytes that were written and that the operating system has accepted. */
  readonly sentBytes: number;
  /** Why the server cut it off; undefined while it has not. */
  readonly cutReason: CutReason | undefined;
  /** Bytes of responses that are reserved in memory (backpressure.ts). */
  reservedBytes: number;
  /** `sentBytes` at the latest check of backpressure.ts, and when it last changed (monotonic ms). */
  acceptedBytes: number;
  progressAt: number;
  /** Adds a pending response. */
  begin(end: () => void): void;
  /** Removes a pending response. */
  settle(end: () => void): void;
  /** Disconnects the client, in a way that shows that the response is incomplete. */
  cut(reason: CutReason): void;
}

function createConnection(socket: Socket): Connection {
  const pendingResponses = new Set<() => void>();
  /** `socket.bytesRead` at the latest request: more bytes are the beginning of another request. */
  let readBytes = 0;
  let cutReason: CutReason | undefined;
  return {
    socket,
    pendingResponses,
    reservedBytes: 0,
    acceptedBytes: 0,
    progressAt: performance.now(),
    get isIdle() {
      return pendingResponses.size === 0 && socket.bytesRead === readBytes;
    },
    get isUnused() {
      return socket.bytesRead === 0;
    },
    get sentBytes() {
      return socket.bytesWritten - socket.writableLength;
    },
    get cutReason() {
      return cutReason;
    },
    begin(end) {
      readBytes = socket.bytesRead;
      pendingResponses.add(end);
    },
    settle: (end) => void pendingResponses.delete(end),
    cut(reason) {
      cutReason ??= reason;
      // HTTP/1.0, which nginx speaks to servers by default, ends a response of unknown length by closing the connection:
      // only a reset tells that it is incomplete. A Unix socket has no reset.
      if (socket.remoteAddress === undefined) socket.destroy();
      else socket.resetAndDestroy();
    },
  };
}

export interface Connections {
  readonly open: ReadonlyMap<Socket, Connection>;
  of(socket: Socket): Connection;
  /** Removes a pending response; during shutdown, a connection that becomes idle is closed. */
  settle(connection: Connection, end: () => void): void;
}

export interface ConnectionsOptions {
  readonly limits: ConnectionLimits;
  /** The client that a connection counts for; undefined where it is not counted (a proxy, this machine). */
  readonly clientOf: (socket: Socket) => string | undefined;
  readonly onRejected: () => void;
}

/** At shutdown, the first request of a new connection may still be on its way. */
const UNUSED_GRACE_MS = 1_000;

export function createConnections(
  server: Server,
  { limits, clientOf, onRejected }: ConnectionsOptions,
): Connections {
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
    const connection = createConnection(socket);
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

  // Called by Node and by Fastify when the server closes.
  server.closeIdleConnections = () => {
    isStopping = true;
    for (const { socket, isIdle, isUnused } of open.values()) if (isIdle && !isUnused) socket.destroy();
    setTimeout(() => {
      for (const { socket, isUnused } of open.values()) if (isUnused) socket.destroy();
    }, UNUSED_GRACE_MS).unref();
  };

  return {
    open,
    // Tests may inject requests without a connection.
    of: (socket) => open.get(socket) ?? createConnection(socket),
    settle(connection, end) {
      connection.settle(end);
      if (isStopping && connection.isIdle) connection.socket.end();
    },
  };
}
