/** A connection for reads: it pipelines (several statements are sent before the first is answered) and delivers raw rows. */
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import type pg from 'pg';
import { WatchedClient } from '../server/client.ts';
import { collectRawRows, patchConnection } from './raw-query.ts';
import type { Statement } from './statement.ts';

/** Memory into which a connection receives. Chosen, not measured: it holds four pages of 20 records of 1.6 kB. */
const RECEIVE_BUFFER_BYTES = 128 * 1024;

export class ReadingClient extends WatchedClient {
  readonly #socket: Socket;

  constructor(config: pg.ClientConfig) {
    let socket!: Socket;
    const stream = (({ ssl }: pg.ClientConfig) => {
      // Under TLS the data is decrypted first, which needs a plain socket.
      socket = ssl ? new Socket() : createBufferedSocket();
      return socket;
    }) as () => Socket;
    super({ ...config, stream, pipeline: true });
    this.#socket = socket;
    patchConnection(this);
  }

  /** Runs one statement. The result is what `collect` makes of the rows, or the rows. */
  run<T>(statement: Statement<T>): Promise<T> {
    const { collect } = statement;
    return collect
      ? collectRawRows(this, statement, collect)
      : this.query(statement).then(({ rows }) => rows as T);
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

  /** Sends everything that `send` writes in one piece. Under TLS it still goes out in several. */
  pipelineTogether<T>(send: () => Promise<T>): Promise<T> {
    this.#socket.cork();
    try {
      return send();
    } finally {
      this.#socket.uncork();
    }
  }
}

/**
 * A socket that receives every chunk into the same memory, so that a chunk is valid only while its `data` event lasts. New
 * memory for each chunk would be the largest allocation of a read, and it would be garbage at once.
 */
function createBufferedSocket(): Socket {
  const buffer = Buffer.allocUnsafeSlow(RECEIVE_BUFFER_BYTES);
  const onread: OnReadOpts = {
    buffer,
    callback: (length) => socket.emit('data', buffer.subarray(0, length)),
  };
  // The type declares `onread` only for sockets that connect at once.
  const socket = new Socket({ onread } as SocketConstructorOpts);
  return socket;
}
