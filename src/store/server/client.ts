/** Connections to the database: by URL, lent from a pool, and closed when they are broken. */
import type { Socket } from 'node:net';
import pg from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { hasUnescapedPassword } from '../../base/url-parts.ts';

export function connectionOf(url: string, variable: string): pg.ClientConfig {
  if (
    !URL.canParse(url) ||
    !/^postgres(ql)?:$/.test(new URL(url).protocol) ||
    hasUnescapedPassword(new URL(url))
  ) {
    throw new OperatorError(
      `${variable} is not a PostgreSQL URL.`,
      'Write it as postgresql://user:password@host:5432/database, with special characters percent-encoded.',
    );
  }
  // In the driver, `options` of the URL would replace ours, which searches and statistics rely on. Both must apply.
  const withoutOptions = new URL(url);
  const options = withoutOptions.searchParams.get('options') ?? '';
  withoutOptions.searchParams.delete('options');
  return { connectionString: withoutOptions.href, options };
}

export function explainConnectionFailure(error: unknown, url: string, variable: string): unknown {
  if (error instanceof OperatorError) return error;
  const { host, pathname } = new URL(url);
  // An AggregateError, of several addresses that were tried, has no message.
  const { message, code } = error as Error & { code?: string };
  return new OperatorError(
    `Cannot use the database ${pathname.slice(1)} at ${host || 'the local socket'}: ${message || code || String(error)}`,
    `Check ${variable}, that the server runs and lets this user in, and that the database exists.`,
    { cause: error },
  );
}

/** Whether a connection is unusable after this error. */
export function endsConnection(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  // The server closes the connection right after this error. Until then the pool would hand it out.
  if (/^(08|57P)/.test(String(code))) return true;
  // The answer may still come, and would be taken for the answer to the next statement.
  return /Query read timeout/.test(String(message));
}

/**
 * Lends a connection of a pool for some work. A connection that breaks meanwhile does not go back to the pool. While it is
 * lent, its errors have a listener: without one they would end the process.
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

/** Lends a connection for some work. */
export type UseClient = <T>(use: (client: pg.ClientBase) => Promise<T>) => Promise<T>;

/** Runs work in a transaction, whose first statements are `begin`. */
export async function inTransaction<T>(
  client: pg.ClientBase,
  work: () => Promise<T>,
  begin = 'begin',
): Promise<T> {
  await client.query(begin);
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** A dead peer is noticed by the kernel 10 probes, one a second, after this time without traffic. */
const KEEPALIVE_AFTER_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a server may take to close a connection after our Terminate message. */
const END_TIMEOUT_MS = 2_000;

/**
 * A client whose waits for the server are all bounded: connecting and closing by a time limit, statements by
 * `connection-watch.ts`, which reads the members below, or by the client's `query_timeout`.
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
    // Assigned, not overridden, so that it keeps the driver's overloads.
    const query = this.query.bind(this) as (...args: unknown[]) => unknown;
    this.query = ((...args: unknown[]) => {
      this.#isWaiting = true;
      return query(...args);
    }) as pg.Client['query'];
    this.on('drain', () => {
      this.#isWaiting = false;
    });
  }

  /** Whether a statement is unanswered. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Grows with every byte that is received, and with every byte that the kernel takes over. */
  get progress(): number {
    const { bytesRead, bytesWritten, writableLength } = this.socket;
    return bytesRead + bytesWritten - writableLength;
  }

  /** Changes when the connection turns to TLS. */
  get socket(): Socket {
    return (this as unknown as { connection: { stream: Socket } }).connection.stream;
  }

  /** Process id of the server's backend for this connection. */
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
