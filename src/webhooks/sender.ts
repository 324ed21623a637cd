/**
 * One HTTP request to a receiver, with a bound on everything that the receiver decides: time, the size of what it
 * answers, and where the request ends up. Redirects are not followed.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { createRedactor } from '../base/url-parts.ts';
import { isPublicAddress, literalAddress, PrivateTargetError, publicLookup } from './public-address.ts';
import type { Subscription } from './subscription.ts';

export interface Answer {
  readonly status: number;
  /** The beginning of the body, without what it repeats of the URL. */
  readonly text: string;
  readonly retryAfter: string | undefined;
}

export interface Sender {
  /** Resolves with the answer, whatever its status; rejects where there was none. */
  send(headers: Readonly<Record<string, string>>, body: string, signal?: AbortSignal): Promise<Answer>;
  close(): void;
}

export interface SenderTimings {
  readonly connectMs: number;
  /** From the beginning to the end of an attempt. */
  readonly totalMs: number;
}

/** More of an answer than this is not read. */
const MAX_ANSWER_BYTES = 4_096;

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
    new Promise<Answer>((resolve, reject) => {
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
      request.on('response', (response) => resolve(readAnswer(response, conceal)));
      request.on('error', (error) =>
        reject(isStaleConnection(error, request) ? new StaleConnection() : error),
      );
      request.end(body);
    });

  return {
    async send(headers, body, stop) {
      const timeOut = AbortSignal.timeout(timings.totalMs);
      const signal = stop ? AbortSignal.any([timeOut, stop]) : timeOut;
      try {
        return await attempt(headers, body, signal).catch((error) => {
          // The receiver closed a kept connection while we wrote to it: that says nothing about its health.
          if (error instanceof StaleConnection) return attempt(headers, body, signal);
          throw error;
        });
      } catch (error) {
        if (timeOut.aborted) throw new Error(`no answer within ${timings.totalMs / 1000} s`);
        if (error instanceof StaleConnection) throw new Error('the connection was closed');
        throw error;
      }
    },
    close: () => agent.destroy(),
  };
}

class StaleConnection extends Error {}

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

/** The status has been said before the body: whatever becomes of that, the attempt has its answer. */
async function readAnswer(response: IncomingMessage, conceal: (text: string) => string): Promise<Answer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      // Leaving the loop ends the connection too.
      if (bytes >= MAX_ANSWER_BYTES) break;
    }
  } catch {
    // What was read has to do.
  }
  return {
    status: response.statusCode ?? 0,
    text: conceal(Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString('utf8')),
    retryAfter: response.headers['retry-after'],
  };
}
