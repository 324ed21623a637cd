/** Connections to the database, one by one: lent from a pool, and given up when they are no good any more. */
import { Socket } from 'node:net';
import pg from 'pg';

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

/** A client that can send several statements at once, each before the one before it is answered. */
export class CorkableClient extends pg.Client {
  readonly #socket: Socket;

  constructor(config: pg.ClientConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket, pipeline: true });
    this.#socket = socket;
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
