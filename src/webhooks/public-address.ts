/**
 * Protection against server-side request forgery (SSRF): which addresses are on the public internet.
 *
 * The target of a webhook must not be an address that only this machine can reach: loopback, private networks, a cloud's
 * metadata service. Names are checked by the addresses that they resolve to, at the moment of connecting, so DNS rebinding
 * between check and use has no effect.
 */
import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

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
  switch (isIP(address)) {
    case 4:
      return !specialIPv4.check(address, 'ipv4');
    case 6:
      return globalIPv6.check(address, 'ipv6') && !specialIPv6.check(address, 'ipv6');
    default:
      return false;
  }
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
