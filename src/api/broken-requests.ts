/** Requests that never became one: the parser gave up, so there is no reply object to answer with. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { ApiError } from '../domain/errors.ts';
import { errorAnswer } from './errors.ts';

/** Above the longest URL that is taken, so that a long one gets its answer from us and not from the parser. */
export const MAX_HEADER_BYTES = 64 * 1024;
/** How long a refused connection may take to read its answer. */
const LINGER_MS = 2_000;

/** Answers in the shape of every other error, and closes. */
export function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  headers: Readonly<Record<string, string>>,
  log: FastifyBaseLogger,
): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  // More of what has been refused already.
  if (!socket.writable) return;
  const refusal =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new ApiError('URI_TOO_LONG', `The request line and headers exceed ${MAX_HEADER_BYTES} bytes.`)
      : new ApiError('BAD_REQUEST', 'The request is not well-formed HTTP, or did not arrive whole in time.');
  answerOnSocket(socket, refusal, headers, log);
}

export function answerOnSocket(
  socket: Duplex,
  refusal: ApiError,
  headers: Readonly<Record<string, string>>,
  log: FastifyBaseLogger,
): void {
  const requestId = randomUUID();
  const { status, body } = errorAnswer(refusal, requestId);
  log.info({ reqId: requestId, status, problem: refusal.message }, 'request');
  const lines = Object.entries({
    ...headers,
    'X-Request-ID': requestId,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  // Closing at once, with the rest of the request unread, would take the answer from the client again.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
