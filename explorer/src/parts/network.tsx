/** A network's name with its mark: initials on a colour whose hue is a hash of the chain selector. */
import type { CSSProperties } from 'react';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { Icon } from './icons.tsx';

export function NetworkMark({ name, seed }: { readonly name: string; readonly seed: string }) {
  const words = name.split(/[\s_-]+/).filter((word) => /^[\p{L}\p{N}]/u.test(word));
  const [first = '?', second] = words;
  const initials = second === undefined ? first.slice(0, 2) : `${first.slice(0, 1)}${second.slice(0, 1)}`;
  return (
    <span className="network-mark" style={{ '--hue': hueOf(seed) } as CSSProperties} aria-hidden="true">
      {initials.toUpperCase()}
    </span>
  );
}

/** With this seed, the most used mainnets and testnets get hues far from each other. */
const HASH_START = 65_145;

function hueOf(seed: string): number {
  let hash = HASH_START;
  for (let i = 0; i < seed.length; i++) hash = Math.imul(hash ^ seed.charCodeAt(i), 16_777_619);
  return (hash >>> 0) % 360;
}

export function NetworkLabel({ network }: { readonly network: NetworkInfo }) {
  const name = networkName(network);
  return (
    <span className="network" title={name}>
      <NetworkMark name={name} seed={network.chainSelector} />
      <bdi className="network-name">{name}</bdi>
    </span>
  );
}

export function LaneLabel({ source, dest }: { readonly source: NetworkInfo; readonly dest: NetworkInfo }) {
  return (
    <span className="lane-label">
      <NetworkLabel network={source} />
      <Icon name="right" />
      <span className="visually-hidden">to</span>
      <NetworkLabel network={dest} />
    </span>
  );
}
