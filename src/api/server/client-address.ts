/** The address of a client, and the group of addresses that counts as one client. */
import { isIP, type Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';

/**
 * Which proxies are trusted to name their client (X-Forwarded-For): none, this many nearest ones, or those with these
 * addresses or networks (CIDR).
 */
export type TrustProxy = false | number | readonly string[];

/** The client of a Unix socket, which has no address: it is on this machine. */
const LOCAL = '127.0.0.1';

/** The canonical address of the client; a trusted proxy's header that is not an address is ignored. */
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

/** Addresses that count as one client: an IPv4 address, or an IPv6 /64, from which one client can choose freely. */
export function addressGroup(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  if (tail !== undefined) {
    const behind = tail.split(':').filter((group) => group !== '');
    // A trailing dotted quad is two groups.
    const width = groups.length + behind.length + (tail.includes('.') ? 1 : 0);
    groups.push(...Array<string>(Math.max(0, 8 - width)).fill('0'), ...behind);
  }
  const prefix = groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''));
  return `${prefix.join(':')}::/64`;
}
