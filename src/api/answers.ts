/** Sending what a handler answers: validators, caching, compression, streams, and what went wrong. */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { cacheControl, entityTag, tagInHand, validatorOf } from './caching.ts';
import { chooseCoding, compress, gzipStream, takesGzipStream } from './compression.ts';
import { crossOriginHeaders } from './cross-origin.ts';
import { errorAnswer } from './errors.ts';
import type { AnswerValidator, RouteAnswer, ServedPath } from './route.ts';

/** For those who run the service: pages of other origins may not read it. */
const privatePaths = new Set(['/metrics']);

/** When streams began, in milliseconds after their request: how long they last is up to their reader. */
const streamStarts = new WeakMap<FastifyRequest, number>();

/** How long a request took to be answered, or until its stream began. */
export function answerMilliseconds(request: FastifyRequest, reply: FastifyReply): number {
  return streamStarts.get(request) ?? reply.elapsedTime;
}

export async function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  route: ServedPath,
  { body, headers, status = 200, freshness, validator, compressed }: RouteAnswer,
): Promise<FastifyReply> {
  // Here and wherever every answer passes, names are in lower case: others would be turned into it each time.
  reply.code(status).header('content-type', `${route.mediaType}; charset=utf-8`);
  if (headers) reply.headers(headers);
  if (privatePaths.has(route.path)) {
    for (const name of Object.keys(crossOriginHeaders)) reply.removeHeader(name);
    reply.header('Cross-Origin-Resource-Policy', 'same-origin');
  }
  if (body instanceof Readable) return sendStream(request, reply, body);

  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const current = { validator: validator ?? validatorOf(bytes), freshness: freshness ?? 'moving' } as const;
  if (status === 200) {
    const tag = tagInHand(request.headers['if-none-match'], current.validator);
    if (tag !== undefined) return sendNotModified(reply, tag, current);
  }
  const coding = chooseCoding(request.headers['accept-encoding'], bytes.length);
  reply.header('etag', entityTag(current.validator, coding)).header('vary', 'Accept-Encoding');
  if (!reply.hasHeader('cache-control')) reply.header('cache-control', cacheControl(current.freshness));
  if (coding !== undefined) reply.header('content-encoding', coding);
  if (request.method === 'HEAD') {
    // The length of a compressed body is known only to who compresses it.
    if (coding === undefined) reply.header('Content-Length', bytes.length);
    return reply.send();
  }
  if (coding === undefined) return reply.send(bytes);
  const coded = compressed?.[coding] ?? (await compress(bytes, coding));
  if (compressed) compressed[coding] = coded;
  return reply.send(coded);
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
