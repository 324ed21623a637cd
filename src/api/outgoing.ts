/**
 * Backpressure on answers: bounds on the bytes that wait in memory until clients read them.
 *
 * - Progress: a connection on which bytes wait and whose client accepts none of them for `stalledMs` is cut off. Long
 *   bodies are written in slices, so a client must accept about one slice (64 kB) in that time.
 * - Each client: an answer that would exceed `bytesPerAddress` is refused until the client has read what it was sent.
 * - All clients: where an answer would exceed `bytes`, the connections that have made no progress for the longest time
 *   are cut off first. If all of them keep up, the answer is refused. Short answers are never refused.
 *
 * A long body counts from the moment it is in memory (it may have to be compressed first) until it has been sent. Short
 * ones count only while they wait in the buffer of their socket, which a look every second finds.
 */
import { Readable } from 'node:stream';
import { ApiError } from '../domain/errors.ts';
import type { Connection, Connections } from './connections.ts';

export interface OutgoingLimits {
  /** Bytes that wait in all, in this process. */
  readonly bytes: number;
  /** Bytes of long answers that wait for one client (IPv6: a /64). A first one is always sent. */
  readonly bytesPerAddress: number;
  readonly stalledMs: number;
}

export const defaultOutgoingLimits: OutgoingLimits = {
  bytes: 256 * 1024 * 1024,
  bytesPerAddress: 64 * 1024 * 1024,
  stalledMs: 30_000,
};

/** The length of a slice; a body that is no longer is short. */
export const SLICE_BYTES = 64 * 1024;
const LOOK_EVERY_MS = 1_000;
/** A connection without progress for less than this keeps up. */
const KEEPS_UP_MS = 1_000;

export interface Hold {
  /** The body has become another one, such as a compressed one. */
  resize(bytes: number): void;
  /** Once; again does nothing. */
  release(): void;
}

export interface Outgoing {
  /** Bytes that wait now. */
  readonly bytes: number;
  /**
   * Counts the body of an answer. Throws an ApiError where there is no room for it. Without a client it counts among all
   * answers only.
   */
  hold(connection: Connection, client: string | undefined, bytes: number): Hold;
  close(): void;
}

export function createOutgoing({ open }: Connections, limits: OutgoingLimits): Outgoing {
  const byClient = new Map<string, number>();
  let heldBytes = 0;
  /** In the buffers of sockets, by the latest look. */
  let bufferedBytes = 0;

  const look = () => {
    const now = performance.now();
    bufferedBytes = 0;
    for (const connection of open.values()) {
      const waiting = connection.socket.writableLength;
      if (connection.heldBytes === 0) bufferedBytes += waiting;
      const { sentBytes } = connection;
      if (waiting === 0 || sentBytes !== connection.acceptedBytes) {
        connection.acceptedBytes = sentBytes;
        connection.progressAt = now;
      } else if (now - connection.progressAt >= limits.stalledMs) {
        connection.cut('stalled');
      }
    }
    if (heldBytes + bufferedBytes > limits.bytes) makeRoom(0);
  };
  const looking = setInterval(look, Math.min(LOOK_EVERY_MS, limits.stalledMs / 4)).unref();

  /** Cuts off those that do not keep up, the slowest first; whether there is room then. */
  const makeRoom = (bytes: number): boolean => {
    let excess = heldBytes + bufferedBytes + bytes - limits.bytes;
    if (excess <= 0) return true;
    const now = performance.now();
    const slow = [...open.values()].filter(
      ({ socket, sentBytes, acceptedBytes, progressAt }) =>
        socket.writableLength > 0 && sentBytes === acceptedBytes && now - progressAt >= KEEPS_UP_MS,
    );
    slow.sort((one, other) => one.progressAt - other.progressAt);
    for (const connection of slow) {
      if (excess <= 0) break;
      excess -= connection.heldBytes || connection.socket.writableLength;
      connection.cut('memory');
    }
    return excess <= 0;
  };

  const add = (connection: Connection, client: string | undefined, bytes: number) => {
    heldBytes += bytes;
    connection.heldBytes += bytes;
    if (client === undefined) return;
    const own = (byClient.get(client) ?? 0) + bytes;
    if (own === 0) byClient.delete(client);
    else byClient.set(client, own);
  };

  return {
    get bytes() {
      return heldBytes + bufferedBytes;
    },

    hold(connection, client, bytes) {
      const own = client === undefined ? 0 : (byClient.get(client) ?? 0);
      if (own > 0 && own + bytes > limits.bytesPerAddress) {
        throw new ApiError(
          'TOO_MANY_CONNECTIONS',
          `${Math.ceil(own / 1_000_000)} MB of answers to your address have not been read yet, and this one would ` +
            'be too much. Read them, or close their connections, and try again.',
        );
      }
      if (!makeRoom(bytes)) {
        throw new ApiError(
          'SERVICE_UNAVAILABLE',
          'Too many long answers are being sent at the moment. Try again shortly, or with a smaller limit.',
        );
      }
      let held = bytes;
      let isReleased = false;
      add(connection, client, held);
      const resize = (to: number) => {
        if (isReleased) return;
        add(connection, client, to - held);
        held = to;
      };
      return {
        resize,
        release() {
          resize(0);
          isReleased = true;
        },
      };
    },

    close: () => clearInterval(looking),
  };
}

/** A body in slices of its memory, each written when the socket has room for it. */
export function slicesOf(body: Buffer): Readable {
  let at = 0;
  return new Readable({
    highWaterMark: SLICE_BYTES,
    read() {
      this.push(at < body.length ? body.subarray(at, at + SLICE_BYTES) : null);
      at += SLICE_BYTES;
    },
  });
}
