/**
 * The HTTP client for deliveries: one request to a receiver, with limits on the time, the size of the response and the address
 * that it connects to. Redirects are not followed. Against server-side request forgery (SSRF), the target must not be an
 * address that only this machine can reach: loopback, private networks, a cloud's metadata service. Names are checked by the
 * addresses that they resolve to, at the moment of connecting, so DNS rebinding between check and use has no effect.
 */
import { type LookupAddress, lookup } from 'node:dns';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { createRedactor } from '../base/url-parts.ts';

/** An address that the configuration does not allow as a target. */
export class PrivateTargetError extends Error {
  constructor(address: string) {
    super(`${address} is not a public address; allowPrivate permits such targets`);
    this.name = 'PrivateTargetError';
  }
}

// IANA's special-purpose registries: what is not globally reachable, multicast, and reserved.
const specialIPv4 = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  specialIPv4.addSubnet(network, bits, 'ipv4');
}

// Everything global is in 2000::/3; loopback, mapped and translated IPv4, unique-local, link-local and multicast
// are outside. These are inside, and embed an IPv4 address or are reserved:
const globalIPv6 = new BlockList();
globalIPv6.addSubnet('2000::', 3, 'ipv6');
const specialIPv6 = new BlockList();
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  specialIPv6.addSubnet(network, bits, 'ipv6');
}

/** @example isPublicAddress('::ffff:127.0.0.1') // false */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !specialIPv4.check(address, 'ipv4');
  return isIP(address) === 6 && globalIPv6.check(address, 'ipv6') && !specialIPv6.check(address, 'ipv6');
}

/** The host of a URL where it is an address rather than a name: such a host has no DNS lookup to check it. */
export function literalAddress({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[|\]$/g, '');
  return isIP(address) === 0 ? undefined : address;
}

/** The DNS lookup of a connection; fails where any of the addresses is not public. */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    const refused = error ? undefined : addresses.find(({ address }) => !isPublicAddress(address));
    const [first] = addresses ?? [];
    if (error) callback(error, '', 0);
    else if (refused) callback(new PrivateTargetError(`${hostname} (${refused.address})`), '', 0);
    // Without an address Node would throw and end the process.
    else if (!first) callback(new Error(`${hostname} has no address`), '', 0);
    else if (options.all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

export interface ReceiverResponse {
  readonly status: number;
  /** The beginning of the body, with the secret parts of the URL removed. */
  readonly text: string;
  readonly retryAfter: string | undefined;
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
  { url, allowPrivate }: { readonly url: URL; readonly allowPrivate: boolean },
  timings: SenderTimings,
  userAgent: string,
  connections: number,
) {
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
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        reject(isStale ? new StaleConnectionError('the connection was closed') : error);
      });
      // Every attempt ends: this has no effect after any of the above.
      request.on('close', () => reject(new Error('the connection was closed without a response')));
      request.end(body);
    });

  return {
    /** Resolves with the response, whatever its status; rejects where there was none. */
    async send(headers: Readonly<Record<string, string>>, body: string, stop?: AbortSignal) {
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
        throw error;
      }
    },
    close: () => agent.destroy(),
  };
}

class StaleConnectionError extends Error {}

function limitConnecting(request: ClientRequest, connectMs: number): void {
  request.on('socket', (socket) => {
    if (!socket.connecting) return;
    const giveUp = () => request.destroy(new Error(`no connection within ${connectMs / 1000} s`));
    const timer = setTimeout(giveUp, connectMs);
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
async function readResponse(response: IncomingMessage, conceal: (text: string) => string) {
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
