/**
 * Variables that Kubernetes puts into the environment of every container for each Service of its namespace. Those of a
 * Service named `lanescan` or `lanescan-…` begin like the settings of Lanescan, one of them has the very name of one
 * (LANESCAN_PORT), and nobody has set them on purpose.
 */
import { isIP } from 'node:net';

const isAddress = (value: string) => isIP(value) !== 0;
const isPort = (value: string) => /^\d{1,5}$/.test(value);
const isProtocol = (value: string) => /^(tcp|udp|sctp)$/.test(value);
const isUrl = (value: string) => /^(tcp|udp|sctp):\/\/([\d.]+|\[[\da-f:.]+\]):\d{1,5}$/i.test(value);

/** How a name ends, after the name of the Service, and what its value then looks like. */
const shapes: readonly (readonly [end: RegExp, isValue: (value: string) => boolean])[] = [
  [/^_SERVICE_HOST$/, isAddress],
  [/^_SERVICE_PORT(_[A-Z\d_]+)?$/, isPort],
  [/^_PORT$/, isUrl],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)$/, isUrl],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)_PROTO$/, isProtocol],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)_PORT$/, isPort],
  [/^_PORT_\d{1,5}_(TCP|UDP|SCTP)_ADDR$/, isAddress],
];

/** Name and value have to fit: a setting with a typing mistake is not taken for one of these. */
export function isKubernetesVariable(name: string, value: string): boolean {
  if (!name.startsWith('LANESCAN_')) return false;
  // Every part that may be the end is tried: the name of the Service can itself contain _PORT.
  const ends = [...name.matchAll(/_/g)].map(({ index }) => name.slice(index));
  return ends.some((end) => shapes.some(([pattern, isValue]) => pattern.test(end) && isValue(value)));
}
