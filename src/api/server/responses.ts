/** Sends responses of routes: validators, caching, compression, streams, errors. */
import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Reservation, SLICE_BYTES, slicesOf } from './backpressure.ts';
import { cacheControl, entityTag, type Freshness, matchingTag, type RouteResponse } from './caching.ts';
import { acceptsGzipStream, chooseCoding, compress, gzipStream } from './compression.ts';
import { errorResponse } from './error-responses.ts';
import { crossOriginHeaders } from './header-fields.ts';
import { mediaTypesOf, type ServedPath } from './route.ts';

/** Paths for operators: web pages of other origins may not read them. */
const privatePaths = new Set(['/metrics']);

/** When each stream began, in milliseconds after its request. */
const streamStarts = new WeakMap<FastifyRequest, number>();

/** Duration of a request in milliseconds; for a stream until it began, because its reader decides how long it lasts. */
export function responseMs(request: FastifyRequest, reply: FastifyReply): number {
  return streamStarts.get(request) ?? reply.elapsedTime;
}

/** Counts the memory of a long body until the request has ended; throws an ApiError when a limit is exceeded. */
export type ReserveBody = (request: FastifyRequest, bytes: number) => Pick<Reservation, 'resize'>;

export async function sendResponse(
  request: FastifyRequest,
  reply: FastifyReply,
  route: ServedPath,
  response: RouteResponse,
  reserveBody: ReserveBody,
): Promise<FastifyReply> {
  const { body, headers, status = 200, freshness = 'moving', compressed } = response;
  // The OpenAPI document relies on the declaration.
  if (body instanceof Readable !== (route.isStreamed === true)) {
    throw new Error(`${route.path}: the body does not match the route's isStreamed`);
  }
  if (body instanceof Readable) {
    setHeaders(reply, route, status, headers);
    return sendStream(request, reply, body);
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const { validator = hash('sha1', bytes, 'base64url') } = response;
  const tag = status === 200 ? matchingTag(request.headers['if-none-match'], validator) : undefined;
  const hasBody = tag === undefined && request.method !== 'HEAD';
  // Without a socket, the response waits behind others of its connection. Reserved before any header is set, because the
  // reservation may be rejected.
  const isLong = bytes.length > SLICE_BYTES || reply.raw.socket === null;
  const reservation = hasBody && isLong ? reserveBody(request, bytes.length) : undefined;

  setHeaders(reply, route, status, headers);
  if (tag !== undefined) return sendNotModified(reply, route, tag, freshness);
  const coding = chooseCoding(request.headers['accept-encoding'], bytes.length);
  reply.header('etag', entityTag(validator, coding)).header('vary', varyOf(route));
  if (!reply.hasHeader('cache-control')) reply.header('cache-control', cacheControl(freshness));
  if (coding !== undefined) reply.header('content-encoding', coding);
  if (!hasBody) {
    // The length of a compressed body is unknown without compressing it.
    if (coding === undefined) reply.header('Content-Length', bytes.length);
    return reply.send();
  }
  if (coding === undefined) return sendBytes(reply, bytes);
  let coded = compressed?.[coding];
  if (!coded) {
    coded = await compress(bytes, coding);
    response.onCompressed?.(coding, coded);
  }
  reservation?.resize(coded.length);
  return sendBytes(reply, coded);
}

function setHeaders(
  reply: FastifyReply,
  route: ServedPath,
  status: number,
  headers: RouteResponse['headers'],
): void {
  // Header names in lower case where every response passes: Fastify would convert others each time.
  reply.code(status).header('content-type', `${mediaTypesOf(route)[0]}; charset=utf-8`);
  if (headers) reply.headers(headers);
  if (privatePaths.has(route.path)) {
    for (const name of Object.keys(crossOriginHeaders)) reply.removeHeader(name);
    reply.header('Cross-Origin-Resource-Policy', 'same-origin');
  }
}

/** Sends a long body in slices, so that the progress of the client is known. */
function sendBytes(reply: FastifyReply, bytes: Buffer): FastifyReply {
  if (bytes.length <= SLICE_BYTES) return reply.send(bytes);
  return reply.header('content-length', bytes.length).send(slicesOf(bytes));
}

export function sendNotModified(reply: FastifyReply, route: ServedPath, tag: string, freshness: Freshness) {
  reply.removeHeader('Content-Type');
  if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', cacheControl(freshness));
  return reply
    .code(304)
    .headers({ ETag: tag, Vary: varyOf(route) })
    .send();
}

function varyOf({ variesBy = [] }: ServedPath): string {
  return ['Accept-Encoding', ...variesBy].join(', ');
}

function sendStream(request: FastifyRequest, reply: FastifyReply, body: Readable): FastifyReply {
  streamStarts.set(request, reply.elapsedTime);
  if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', cacheControl('never'));
  // A compressor would hold events back.
  const isPlain =
    String(reply.getHeader('Content-Type')).startsWith('text/event-stream') ||
    reply.hasHeader('Content-Encoding');
  if (!isPlain) reply.header('Vary', 'Accept-Encoding');
  const isGzipped = !isPlain && acceptsGzipStream(request.headers['accept-encoding']);
  if (isGzipped) reply.header('Content-Encoding', 'gzip');
  if (request.method === 'HEAD') {
    body.destroy();
    return reply.send();
  }
  return reply.send(isGzipped ? gzipStream(body) : body);
}

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, headers, body, logged } = errorResponse(error, request.id);
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
