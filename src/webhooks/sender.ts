/**
 * The HTTP client for deliveries: one request to a receiver, with limits on the time, the size of the response and the
 * address that it connects to. Redirects are not followed.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { createRedactor } from '../base/url-parts.ts';
import { isPublicAddress, literalAddress, PrivateTargetError, publicLookup } from './public-address.ts';
import type { Subscription } from './subscription.ts';

export interface ReceiverResponse {
  readonly status: number;
  /** The beginning of the body, with the secret parts of the URL removed. */
  readonly text: string;
  readonly retryAfter: string | undefined;
}

export interface Sender {
  /** Resolves with the response, whatever its status; rejects where there was none. */
  send(
    headers: Readonly<Record<string, string>>,
    body: string,
    signal?: AbortSignal,
  ): Promise<ReceiverResponse>;
  close(): void;
}

export interface SenderTimings {
  readonly connectMs: number;
  /** From the beginning to the end of an attempt. */
  readonly totalMs: number;
}

/** The rest of a longer response is not read. */
const MAX_RESPONSE_BYTES = 4_096;
/** Informational responses (1xx) before the response itself. */
const MAX_INFORMATIONAL = 20;

/** Keeps connections to one receiver, at most `connections`. */
export function createSender(
  subscription: Subscription,
  timings: SenderTimings,
  userAgent: string,
  connections: number,
): Sender {
  const { url, allowPrivate } = subscription;
  const transport = url.protocol === 'https:' ? https : http;
  const agent = new transport.Agent({ keepAlive: true, maxSockets: connections });
  const literal = literalAddress(url);
  const conceal = createRedactor(url);

  const attempt = (headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal) =>
    new Promise<ReceiverResponse>((resolve, reject) => {
      if (!allowPrivate && literal !== undefined && !isPublicAddress(literal)) {
        throw new PrivateTargetError(literal);
      }
      const request = transport.request(url, {
        method: 'POST',
        agent,
        signal,
        headers: {
          ...headers,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'user-agent': userAgent,
        },
        ...(allowPrivate ? {} : { lookup: publicLookup }),
      });
      limitConnecting(request, timings.connectMs);
      limitInformational(request);
      request.on('response', (response) => resolve(readResponse(response, conceal)));
      // Nobody asked for another protocol: 101 is a failure like other statuses. Without this listener Node would close the
      // connection without an error.
      request.on('upgrade', ({ statusCode = 101 }, socket) => {
        socket.destroy();
        resolve({ status: statusCode, text: '', retryAfter: undefined });
      });
      request.on('error', (error) =>
        reject(isStaleConnection(error, request) ? new StaleConnectionError() : error),
      );
      // Every attempt ends: this has no effect after any of the above.
      request.on('close', () => reject(new Error('the connection was closed without a response')));
      request.end(body);
    });

  return {
    async send(headers, body, stop) {
      const timeOut = AbortSignal.timeout(timings.totalMs);
      const signal = stop ? AbortSignal.any([timeOut, stop]) : timeOut;
      try {
        return await attempt(headers, body, signal).catch((error) => {
          // The receiver closed a keep-alive connection while the request was written: retry on a new one.
          if (error instanceof StaleConnectionError) return attempt(headers, body, signal);
          throw error;
        });
      } catch (error) {
        if (timeOut.aborted) throw new Error(`no answer within ${timings.totalMs / 1000} s`);
        if (error instanceof StaleConnectionError) throw new Error('the connection was closed');
        throw error;
      }
    },
    close: () => agent.destroy(),
  };
}

class StaleConnectionError extends Error {}

function isStaleConnection(error: NodeJS.ErrnoException, request: ClientRequest): boolean {
  return request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

function limitConnecting(request: ClientRequest, connectMs: number): void {
  request.on('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(
      () => request.destroy(new Error(`no connection within ${connectMs / 1000} s`)),
      connectMs,
    );
    const done = () => clearTimeout(timer);
    socket.once('connect', done);
    socket.once('close', done);
  });
}

function limitInformational(request: ClientRequest): void {
  let received = 0;
  request.on('information', () => {
    if (++received <= MAX_INFORMATIONAL) return;
    request.destroy(new Error(`more than ${MAX_INFORMATIONAL} informational responses (1xx)`));
  });
}

/** The status decides. A body that breaks off, or is too long, is cut. */
async function readResponse(
  response: IncomingMessage,
  conceal: (text: string) => string,
): Promise<ReceiverResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      // Leaving the loop destroys the connection too.
      if (bytes >= MAX_RESPONSE_BYTES) break;
    }
  } catch {
    // Use what was read so far.
  }
  return {
    status: response.statusCode ?? 0,
    text: conceal(Buffer.concat(chunks).subarray(0, MAX_RESPONSE_BYTES).toString('utf8')),
    retryAfter: response.headers['retry-after'],
  };
}
