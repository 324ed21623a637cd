/** Connections to the database, one by one: lent from a pool, and given up when they are no good any more. */
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import pg from 'pg';
import { leaveRowsRaw } from './raw-rows.ts';

/** Whether a connection is of no more use after this. */
export function endsConnection(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  // The server's last word on it: it hangs up right after, and until then the pool would hand it out.
  if (/^(08|57P)/.test(String(code))) return true;
  // Its answer may still come, and would be taken for the answer to the next question.
  return /Query read timeout/.test(String(message));
}

/**
 * Lends a connection of a pool for some work. One that breaks meanwhile does not go back; and while it is lent somebody
 * hears its errors, which would end the process otherwise.
 */
export async function withClient<T>(pool: pg.Pool, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  const onError = () => {
    broken = true;
  };
  client.on('error', onError);
  try {
    return await use(client);
  } catch (error) {
    if (endsConnection(error)) broken = true;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/** All that has come by the time somebody looks: several pages, mostly. */
const RECEIVED_AT_ONCE_BYTES = 128 * 1024;

/**
 * A client for reads: it can send several statements at once, each before the one before it is answered, and leaves rows
 * as they come to those who want them so.
 */
export class ReadingClient extends pg.Client {
  readonly #socket: Socket;

  constructor(config: pg.ClientConfig) {
    let socket!: Socket;
    const stream = (({ ssl }: pg.ClientConfig) => {
      // Under TLS what comes has to be deciphered first.
      socket = ssl ? new Socket() : socketWithBuffer(RECEIVED_AT_ONCE_BYTES);
      return socket;
    }) as () => Socket;
    super({ ...config, stream, pipeline: true });
    this.#socket = socket;
    leaveRowsRaw(this);
  }

  /** All that `ask` sends at once goes out in one piece (under TLS, which does not ask the socket, in several). */
  together<T>(ask: () => Promise<T>): Promise<T> {
    this.#socket.cork();
    try {
      return ask();
    } finally {
      this.#socket.uncork();
    }
  }
}

/**
 * A socket that receives into the same memory every time, and so tells of data that is there for the moment only. Memory
 * of their own for all chunks would be more than for anything else in an answer, and collected at a price.
 */
function socketWithBuffer(size: number): Socket {
  const buffer = Buffer.allocUnsafeSlow(size);
  const onread: OnReadOpts = {
    buffer,
    callback: (length) => socket.emit('data', buffer.subarray(0, length)),
  };
  // Its type knows it only where a socket is connected at once.
  const socket = new Socket({ onread } as SocketConstructorOpts);
  return socket;
}
