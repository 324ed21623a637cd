/** Who asks: the address of a client, and the part of it that one client holds. */
import { isIP, type Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';

/**
 * Which proxies are believed when they say for whom they ask (X-Forwarded-For): none, the nearest so many, or those
 * with these addresses or networks (CIDR).
 */
export type TrustProxy = false | number | readonly string[];

/** What is in front of us when even the socket does not tell: a client on this machine, through a Unix socket. */
const LOCAL = '127.0.0.1';

/** In the one spelling of its family; what a trusted proxy says and is no address does not count. */
export function clientAddress(request: FastifyRequest): string {
  const claimed = plainAddress(request.ip ?? '');
  return claimed ?? socketAddress(request.raw.socket);
}

/** The address at the other end of a connection, which may be a proxy's. */
export function socketAddress({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string {
  return plainAddress(remoteAddress) ?? LOCAL;
}

function plainAddress(text: string): string | undefined {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1];
  const address = (mapped ?? text).replace(/%.*$/, '').toLowerCase();
  return isIP(address) === 0 ? undefined : address;
}

export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1';
}

/** IPv6 clients have a whole /64 to send from: it counts as one. */
export function addressGroup(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  if (tail !== undefined) {
    const behind = tail.split(':').filter((group) => group !== '');
    // A trailing dotted quad stands for two groups.
    const width = groups.length + behind.length + (tail.includes('.') ? 1 : 0);
    groups.push(...Array<string>(Math.max(0, 8 - width)).fill('0'), ...behind);
  }
  const prefix = groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''));
  return `${prefix.join(':')}::/64`;
}
