/** Sending what a handler answers: validators, caching, compression, streams, and what went wrong. */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { cacheControl, entityTag, tagInHand, validatorOf } from './caching.ts';
import { chooseCoding, compress, gzipStream, takesGzipStream } from './compression.ts';
import { crossOriginHeaders } from './cross-origin.ts';
import { errorAnswer } from './errors.ts';
import { type Hold, SLICE_BYTES, slicesOf } from './outgoing.ts';
import type { AnswerValidator, RouteAnswer, ServedPath } from './route.ts';

/** For those who run the service: pages of other origins may not read it. */
const privatePaths = new Set(['/metrics']);

/** When streams began, in milliseconds after their request: how long they last is up to their reader. */
const streamStarts = new WeakMap<FastifyRequest, number>();

/** How long a request took to be answered, or until its stream began. */
export function answerMilliseconds(request: FastifyRequest, reply: FastifyReply): number {
  return streamStarts.get(request) ?? reply.elapsedTime;
}

/** Counts the memory of a long body until the request has ended; throws where there is no room for it. */
export type HoldBody = (request: FastifyRequest, bytes: number) => Pick<Hold, 'resize'>;

export async function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  route: ServedPath,
  answer: RouteAnswer,
  holdBody: HoldBody,
): Promise<FastifyReply> {
  const { body, headers, status = 200, freshness = 'moving', compressed } = answer;
  // What the OpenAPI document says of this path rests on it.
  if (body instanceof Readable !== (route.isStreamed === true)) {
    throw new Error(`${route.path} does not answer as it declares: isStreamed`);
  }
  if (body instanceof Readable) {
    setHeaders(reply, route, status, headers);
    return sendStream(request, reply, body);
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const validator = answer.validator ?? validatorOf(bytes);
  const tag = status === 200 ? tagInHand(request.headers['if-none-match'], validator) : undefined;
  const hasBody = tag === undefined && request.method !== 'HEAD';
  // Without a socket it waits behind other answers of its connection. Before any header: it may be refused.
  const isLong = bytes.length > SLICE_BYTES || reply.raw.socket === null;
  const hold = hasBody && isLong ? holdBody(request, bytes.length) : undefined;

  setHeaders(reply, route, status, headers);
  if (tag !== undefined) return sendNotModified(reply, tag, { validator, freshness });
  const coding = chooseCoding(request.headers['accept-encoding'], bytes.length);
  reply.header('etag', entityTag(validator, coding)).header('vary', 'Accept-Encoding');
  if (!reply.hasHeader('cache-control')) reply.header('cache-control', cacheControl(freshness));
  if (coding !== undefined) reply.header('content-encoding', coding);
  if (!hasBody) {
    // The length of a compressed body is known only to who compresses it.
    if (coding === undefined) reply.header('Content-Length', bytes.length);
    return reply.send();
  }
  if (coding === undefined) return sendBytes(reply, bytes);
  let coded = compressed?.[coding];
  if (!coded) {
    coded = await compress(bytes, coding);
    answer.onCompressed?.(coding, coded);
  }
  hold?.resize(coded.length);
  return sendBytes(reply, coded);
}

function setHeaders(
  reply: FastifyReply,
  route: ServedPath,
  status: number,
  headers: RouteAnswer['headers'],
): void {
  // Here and wherever every answer passes, names are in lower case: others would be turned into it each time.
  reply.code(status).header('content-type', `${route.mediaType}; charset=utf-8`);
  if (headers) reply.headers(headers);
  if (privatePaths.has(route.path)) {
    for (const name of Object.keys(crossOriginHeaders)) reply.removeHeader(name);
    reply.header('Cross-Origin-Resource-Policy', 'same-origin');
  }
}

/** A long body goes out slice by slice: how much of it the client has accepted is then known. */
function sendBytes(reply: FastifyReply, bytes: Buffer): FastifyReply {
  if (bytes.length <= SLICE_BYTES) return reply.send(bytes);
  return reply.header('content-length', bytes.length).send(slicesOf(bytes));
}

export function sendNotModified(
  reply: FastifyReply,
  tag: string,
  { freshness }: AnswerValidator,
): FastifyReply {
  reply.removeHeader('Content-Type');
  if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', cacheControl(freshness));
  return reply.code(304).headers({ ETag: tag, Vary: 'Accept-Encoding' }).send();
}

function sendStream(request: FastifyRequest, reply: FastifyReply, body: Readable): FastifyReply {
  streamStarts.set(request, reply.elapsedTime);
  if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', cacheControl('never'));
  // Events must arrive one by one, as they happen.
  const isPlain =
    String(reply.getHeader('Content-Type')).startsWith('text/event-stream') ||
    reply.hasHeader('Content-Encoding');
  if (!isPlain) reply.header('Vary', 'Accept-Encoding');
  const isZipped = !isPlain && takesGzipStream(request.headers['accept-encoding']);
  if (isZipped) reply.header('Content-Encoding', 'gzip');
  if (request.method === 'HEAD') {
    body.destroy();
    return reply.send();
  }
  return reply.send(isZipped ? gzipStream(body) : body);
}

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, headers, body, logged } = errorAnswer(error, request.id);
  if (logged === 'error') request.log.error({ reqId: request.id, err: error }, 'request failed');
  if (logged === 'reason') {
    const { message, cause } = error as Error & { readonly cause?: Error };
    request.log.error({ reqId: request.id, reason: cause?.message ?? message }, 'request failed');
  }
  reply
    .code(status)
    .headers({ 'X-Request-ID': request.id, 'Content-Type': 'application/json; charset=utf-8', ...headers })
    .send(body);
}
