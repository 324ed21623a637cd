/**
 * Backpressure on responses: bounds on the bytes that wait in memory until clients read them.
 *
 * A long body counts from the moment it is in memory (it may have to be compressed first) until it has been sent. Short
 * ones count only while they wait in the buffer of their socket, which a check every second measures; they are never rejected.
 */
import { Readable } from 'node:stream';
import { ApiError } from '../../domain/errors.ts';
import type { Connection, Connections } from './connections.ts';

const defaultLimits = {
  /**
   * Waiting bytes in total, in this process. Where a response would exceed it, the connections without progress for the longest
   * time are cut off first. If all of them keep up, the response is rejected (load shedding).
   */
  bytes: 256 * 1024 * 1024,
  /** Waiting bytes of long responses to one client (IPv6: a /64). The first response is always sent. */
  bytesPerAddress: 64 * 1024 * 1024,
  /** A connection with waiting bytes whose client accepts none of them (of a long body: about one slice) is cut off. */
  stalledMs: 30_000,
};

export type BackpressureLimits = Readonly<typeof defaultLimits>;

/** The length of a slice. A body of at most this length is short. */
export const SLICE_BYTES = 64 * 1024;
const CHECK_INTERVAL_MS = 1_000;
/** A connection without progress for this long is slow and may be cut off to free memory. */
const SLOW_AFTER_MS = 1_000;

/** Memory that is counted for the body of a response. */
export interface Reservation {
  /** The body was replaced, for example by a compressed one. */
  resize(bytes: number): void;
  /** Idempotent. */
  release(): void;
}

export type Backpressure = ReturnType<typeof createBackpressure>;

export function createBackpressure({ open }: Connections, given?: Partial<BackpressureLimits>) {
  const limits = { ...defaultLimits, ...given };
  const bytesByClient = new Map<string, number>();
  let reservedBytes = 0;
  /** Bytes of short responses in socket buffers, at the latest check. */
  let bufferedBytes = 0;

  const checkProgress = () => {
    const now = performance.now();
    bufferedBytes = 0;
    for (const connection of open.values()) {
      const waitingBytes = connection.socket.writableLength;
      if (connection.reservedBytes === 0) bufferedBytes += waitingBytes;
      const { sentBytes } = connection;
      if (waitingBytes === 0 || sentBytes !== connection.acceptedBytes) {
        connection.acceptedBytes = sentBytes;
        connection.progressAt = now;
      } else if (now - connection.progressAt >= limits.stalledMs) {
        connection.cut('stalled');
      }
    }
    if (reservedBytes + bufferedBytes > limits.bytes) freeBytes(0);
  };
  const checking = setInterval(checkProgress, Math.min(CHECK_INTERVAL_MS, limits.stalledMs / 4)).unref();

  /** Cuts off slow connections, the slowest first, until `bytes` more fit. Returns whether they do. */
  const freeBytes = (bytes: number): boolean => {
    let excess = reservedBytes + bufferedBytes + bytes - limits.bytes;
    if (excess <= 0) return true;
    const now = performance.now();
    const slow = [...open.values()].filter(
      ({ socket, sentBytes, acceptedBytes, progressAt }) =>
        socket.writableLength > 0 && sentBytes === acceptedBytes && now - progressAt >= SLOW_AFTER_MS,
    );
    slow.sort((one, other) => one.progressAt - other.progressAt);
    for (const connection of slow) {
      if (excess <= 0) break;
      excess -= connection.reservedBytes || connection.socket.writableLength;
      connection.cut('memory');
    }
    return excess <= 0;
  };

  const add = (connection: Connection, client: string | undefined, bytes: number) => {
    reservedBytes += bytes;
    connection.reservedBytes += bytes;
    if (client === undefined) return;
    const ownBytes = (bytesByClient.get(client) ?? 0) + bytes;
    if (ownBytes === 0) bytesByClient.delete(client);
    else bytesByClient.set(client, ownBytes);
  };

  return {
    /** Bytes that wait now. */
    get bytes() {
      return reservedBytes + bufferedBytes;
    },

    /**
     * Counts the body of a response. Throws an ApiError when a limit would be exceeded. Without a client, only the total
     * limit applies.
     */
    reserve(connection: Connection, client: string | undefined, bytes: number): Reservation {
      const ownBytes = client === undefined ? 0 : (bytesByClient.get(client) ?? 0);
      if (ownBytes > 0 && ownBytes + bytes > limits.bytesPerAddress) {
        throw new ApiError(
          'TOO_MANY_CONNECTIONS',
          `${Math.ceil(ownBytes / 1_000_000)} MB of responses to your address have not been read yet, and this one ` +
            'would exceed the limit. Read them, or close their connections, and try again.',
        );
      }
      if (!freeBytes(bytes)) {
        throw new ApiError(
          'SERVICE_UNAVAILABLE',
          'Too many long responses are being sent at the moment. Try again shortly, or with a smaller limit.',
        );
      }
      let ownReservedBytes = bytes;
      let isReleased = false;
      add(connection, client, bytes);
      const resize = (toBytes: number) => {
        if (isReleased) return;
        add(connection, client, toBytes - ownReservedBytes);
        ownReservedBytes = toBytes;
      };
      return {
        resize,
        release() {
          resize(0);
          isReleased = true;
        },
      };
    },

    close: () => clearInterval(checking),
  };
}

/** A stream of slices of a body, each written when the socket has room for it. The memory is not copied. */
export function slicesOf(body: Buffer): Readable {
  let offset = 0;
  return new Readable({
    highWaterMark: SLICE_BYTES,
    read() {
      this.push(offset < body.length ? body.subarray(offset, offset + SLICE_BYTES) : null);
      offset += SLICE_BYTES;
    },
  });
}
