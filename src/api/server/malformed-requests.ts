/** Malformed requests: the HTTP parser gave up, so there is no reply object, and the answer is written to the socket. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import { errorResponse } from './error-responses.ts';

/** Larger than the longest accepted URL, so that a URL that is too long is rejected by us and not by the parser. */
export const MAX_HEADER_BYTES = 64 * 1024;
/** How long a rejected client may take to read the answer. */
const LINGER_MS = 2_000;

/** Answers in the format of every other error, and closes the connection. */
export function answerMalformedRequest(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  headers: Readonly<Record<string, string>>,
  log: FastifyBaseLogger,
): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  // Further data on a connection that was rejected already.
  if (!socket.writable) return;
  const rejection =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new ApiError('URI_TOO_LONG', `The request line and headers exceed ${MAX_HEADER_BYTES} bytes.`)
      : new ApiError('BAD_REQUEST', 'The request is not well-formed HTTP, or did not arrive in time.');
  answerOnSocket(socket, rejection, headers, log);
}

export function answerOnSocket(
  socket: Duplex,
  rejection: ApiError,
  headers: Readonly<Record<string, string>>,
  log: FastifyBaseLogger,
): void {
  const requestId = randomUUID();
  const { status, body } = errorResponse(rejection, requestId);
  log.info({ reqId: requestId, status, problem: rejection.message }, 'request');
  const lines = Object.entries({
    ...headers,
    'X-Request-ID': requestId,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  // Closing at once would reset the connection (unread data remains), and the client would lose the answer.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
