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

/** A dead peer is noticed by the kernel 10 probes, one a second, after this time without traffic. */
const KEEPALIVE_AFTER_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a server may take to close a connection that we have said goodbye to. */
const END_TIMEOUT_MS = 2_000;

/**
 * A client whose every wait for the server has an end: connecting, and closing, by time; statements by what
 * `connection-watch.ts` sees here, or by the client's `query_timeout`.
 */
export class WatchedClient extends pg.Client {
  #isWaiting = false;

  constructor(config: pg.ClientConfig) {
    super({
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      ...config,
    });
    // Assigned, not overridden: so it keeps the many signatures that the driver gives it.
    const query = this.query.bind(this) as (...args: unknown[]) => unknown;
    this.query = ((...args: unknown[]) => {
      this.#isWaiting = true;
      return query(...args);
    }) as pg.Client['query'];
    this.on('drain', () => {
      this.#isWaiting = false;
    });
  }

  /** Whether a statement was sent that is not answered. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Grows with every byte that comes in, and with every byte that the kernel takes. */
  get progress(): number {
    const { bytesRead, bytesWritten, writableLength } = this.socket;
    return bytesRead + bytesWritten - writableLength;
  }

  /** Changes when the connection turns to TLS. */
  get socket(): Socket {
    return (this as unknown as { connection: { stream: Socket } }).connection.stream;
  }

  /** The process of the server that works for this connection. */
  get session(): number {
    return (this as unknown as { processID: number }).processID;
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    // A socket that is still open keeps the process alive by itself.
    const timer = setTimeout(() => this.socket.destroy(), END_TIMEOUT_MS).unref();
    this.once('end', () => clearTimeout(timer));
    return super.end(callback as (error: Error) => void) as Promise<void> | undefined;
  }
}

/**
 * A client for reads: it can send several statements at once, each before the one before it is answered, and leaves rows
 * as they come to those who want them so.
 */
export class ReadingClient extends WatchedClient {
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

  /**
   * Makes the server forget a prepared statement. The message waits for no answer: it takes effect before whatever is
   * sent next, and goes out with it.
   */
  closeStatement(name: string): void {
    const { connection } = this as unknown as {
      connection: { parsedStatements: Record<string, string>; close(message: object): void };
    };
    delete connection.parsedStatements[name];
    connection.close({ type: 'S', name });
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
