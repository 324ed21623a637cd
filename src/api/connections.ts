/**
 * The server's connections: how many may be open, which requests are being answered on each, and how they end when the
 * server stops.
 *
 * Node's own `closeIdleConnections` takes a connection for idle as soon as the last bytes of its answer are buffered. It
 * is replaced here: a connection is idle when all of its answers have been handed to the operating system.
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
  /** How long a server that stops waits for answers that are being sent, before it cuts them off. */
  readonly finishMs: number;
}

export const defaultConnectionLimits: ConnectionLimits = {
  connections: 20_000,
  connectionsPerAddress: 1_000,
  pipelined: 32,
  finishMs: 10_000,
};

/** Why the server closed a connection before its answer was sent whole. */
export const cutReasons = ['stalled', 'memory', 'stopping', 'pipelining'] as const;
export type CutReason = (typeof cutReasons)[number];

export class Connection {
  readonly socket: Socket;
  /** Ends the bookkeeping of each request that is being answered. */
  readonly answers = new Set<() => void>();
  /** Bytes of answers that are held in memory for this connection (`outgoing.ts`). */
  heldBytes = 0;
  /** Bytes that the operating system had accepted at the latest look, and when that last changed (monotonic ms). */
  acceptedBytes = 0;
  progressAt = performance.now();
  /** Undefined while the server has not cut it off. */
  cutReason: CutReason | undefined;
  /** `socket.bytesRead` at the latest request: more than that is the beginning of another one. */
  #readBytes = 0;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  begin(end: () => void): void {
    this.#readBytes = this.socket.bytesRead;
    this.answers.add(end);
  }

  get isIdle(): boolean {
    return this.answers.size === 0 && this.socket.bytesRead === this.#readBytes;
  }

  get isUnused(): boolean {
    return this.socket.bytesRead === 0;
  }

  /** Bytes that were written and that the operating system has accepted. */
  get sentBytes(): number {
    return this.socket.bytesWritten - this.socket.writableLength;
  }

  cut(reason: CutReason): void {
    this.cutReason ??= reason;
    this.socket.destroy();
  }
}

export interface Connections {
  readonly open: ReadonlyMap<Socket, Connection>;
  of(socket: Socket): Connection;
  /** Notes that an answer has ended; a connection that has become idle is closed where the server stops. */
  settle(connection: Connection, end: () => void): void;
}

export interface ConnectionsOptions {
  readonly limits: ConnectionLimits;
  /** Which client a connection counts for; undefined where it counts for none (a proxy, this machine). */
  readonly clientOf: (socket: Socket) => string | undefined;
  readonly onRefused: () => void;
}

/** Connections that have not sent anything when the server stops may have a request on its way. */
const UNUSED_GRACE_MS = 1_000;

export function createConnections(
  server: Server,
  { limits, clientOf, onRefused }: ConnectionsOptions,
): Connections {
  const open = new Map<Socket, Connection>();
  const byClient = new Map<string, number>();
  let isStopping = false;

  server.maxConnections = limits.connections;
  server.on('drop', onRefused);
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket);
    const own = client === undefined ? 0 : (byClient.get(client) ?? 0);
    if (own >= limits.connectionsPerAddress) {
      onRefused();
      socket.destroy();
      return;
    }
    if (client !== undefined) byClient.set(client, own + 1);
    const connection = new Connection(socket);
    open.set(socket, connection);
    socket.once('close', () => {
      open.delete(socket);
      // Node does not tell a pipelined answer, which waits for those before it, that its connection is gone.
      for (const end of [...connection.answers]) end();
      if (client === undefined) return;
      const left = (byClient.get(client) ?? 1) - 1;
      if (left === 0) byClient.delete(client);
      else byClient.set(client, left);
    });
  });

  // Called by Node and by the framework when the server closes.
  server.closeIdleConnections = () => {
    isStopping = true;
    for (const { socket, isIdle, isUnused } of open.values()) if (isIdle && !isUnused) socket.destroy();
    setTimeout(() => {
      for (const { socket, isUnused } of open.values()) if (isUnused) socket.destroy();
    }, UNUSED_GRACE_MS).unref();
  };

  return {
    open,
    of(socket) {
      // Tests may inject requests without a connection.
      return open.get(socket) ?? new Connection(socket);
    },
    settle(connection, end) {
      connection.answers.delete(end);
      if (isStopping && connection.isIdle) connection.socket.end();
    },
  };
}
