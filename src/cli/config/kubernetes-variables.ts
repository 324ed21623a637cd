/**
 * Variables that Kubernetes sets in every container for each Service of its namespace. Those of a Service named `lanescan`
 * or `lanescan-…` look like settings of Lanescan (one is LANESCAN_PORT), but no operator has set them.
 */
import { isIP } from 'node:net';

const isAddress = (value: string) => isIP(value) !== 0;
const isPort = (value: string) => /^\d{1,5}$/.test(value);
const isProtocol = (value: string) => /^(tcp|udp|sctp)$/.test(value);
const isUrl = (value: string) => /^(tcp|udp|sctp):\/\/([\d.]+|\[[\da-f:.]+\]):\d{1,5}$/i.test(value);

/** The end of the name, after the name of the Service, and the form of the value. */
const shapes: readonly (readonly [end: RegExp, isValue: (value: string) => boolean])[] = [
  [/^_SERVICE_HOST$/, isAddress],
  [/^_SERVICE_PORT(_[A-Z\d_]+)?$/, isPort],
  [/^_PORT$/, isUrl],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)$/, isUrl],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)_PROTO$/, isProtocol],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)_PORT$/, isPort],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)_ADDR$/, isAddress],
];

/** Both name and value must match, so that a mistyped setting is not ignored. */
export function isKubernetesVariable(name: string, value: string): boolean {
  if (!name.startsWith('LANESCAN_')) return false;
  // Every possible end is tried, because the name of the Service can itself contain _PORT.
  const ends = [...name.matchAll(/_/g)].map(({ index }) => name.slice(index));
  return ends.some((end) => shapes.some(([pattern, isValue]) => pattern.test(end) && isValue(value)));
}
