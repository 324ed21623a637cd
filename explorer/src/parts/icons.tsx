/** Icons, and what goes with a word: the badge of a status, the mark of a network. All icons are decorative. */
import type { CSSProperties } from 'react';
import type { Status } from '../../../src/domain/lifecycle.ts';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { networkName, statusWords } from '../../../src/text/message-words.ts';

/** On a grid of 16. */
const paths = {
  search: 'M7 12.5a5.5 5.5 0 1 1 0-11 5.5 5.5 0 0 1 0 11Zm4-1.5 3.5 3.5',
  copy: 'M5.5 5.500v-3a1 1 0 0 1 1-1h7a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-3M2.5 5.500h7a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1Z',
  tick: 'm3 8.5 3.2 3.200L13 4.5',
  close: 'm4 4 8 8m0-8-8 8',
  down: 'm4 6.2 4 4 4-4',
  right: 'M2.5 8h10.500M9 4l4 4-4 4',
  left: 'M13.5 8H3M7 4 3 8l4 4',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.300m0 11.400V15M1 8h1.300m11.4 0H15M3 3l1 1m8 8 1 1m0-10-1 1m-8 8-1 1',
  moon: 'M13.5 9.700A6 6 0 0 1 6.3 2.500a6 6 0 1 0 7.2 7.200Z',
  system: 'M2 2.500h12v8.500H2zM5.5 14h5M8 11v3',
  export: 'M8 1.500v8.500m-3.5-3.500L8 10l3.5-3.500M2 11.500v2a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1v-2',
  code: 'm5 4.5-3.5 3.500L5 11.500m6-7L14.5 8 11 11.500M9.3 2.500l-2.6 11',
  hand: 'M8 4.500v4m0 2.600v.1M8 1.200c.5 0 .9.2 1.1.600l6 10.700c.5.9-.1 2-1.1 2H2c-1 0-1.6-1.1-1.1-2l6-10.700c.2-.4.6-.6 1.1-.600Z',
  info: 'M8 14.500a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 7.300v4M8 4.800v.1',
  out: 'M6.5 3H3v10h10V9.500M9.500 2.500h4v4M13.200 2.800 7.500 8.500',
  up: 'M8 13.500V3m-4.5 4.500L8 3l4.5 4.5',
} as const;

export function Icon({ name }: { readonly name: keyof typeof paths }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

// ---- Statuses: colour, icon and word, always together

export const statusTones = {
  SENT: 'waiting',
  SOURCE_FINALIZED: 'moving',
  COMMITTED: 'moving',
  BLESSED: 'verified',
  VERIFYING: 'moving',
  VERIFIED: 'verified',
  FAILED: 'failed',
  SUCCESS: 'done',
} as const satisfies Record<Status, string>;

export const toneOf = (status: Status) => ({ color: `var(--${statusTones[status]})` });

/** The filled part of the disc, for a message in flight: a sector that begins at 12 o'clock, clockwise. */
const sectors: Partial<Record<Status, string>> = {
  SOURCE_FINALIZED: 'M8 8V4A4 4 0 0 1 12 8Z',
  COMMITTED: 'M8 8V4A4 4 0 0 1 8 12Z',
  VERIFYING: 'M8 8V4A4 4 0 0 1 8 12Z',
  BLESSED: 'M8 8V4A4 4 0 1 1 4 8Z',
  VERIFIED: 'M8 8V4A4 4 0 1 1 4 8Z',
};

/** At the end of its way a message has a filled shape with a sign in it. */
const endShapes: Partial<Record<Status, { readonly shape: string; readonly sign: string }>> = {
  SUCCESS: { shape: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z', sign: 'm4.9 8.2 2.2 2.2 4-4.6' },
  FAILED: {
    shape: 'M8 1.2c.5 0 .9.2 1.1.6l6 10.7c.5.9-.1 2-1.1 2H2c-1 0-1.6-1.1-1.1-2l6-10.7c.2-.4.6-.6 1.1-.6Z',
    sign: 'M8 5.6v3.6M8 11.7v.1',
  },
};

export function StatusIcon({ status }: { readonly status: Status }) {
  const end = endShapes[status];
  return (
    <svg className="status-icon" style={toneOf(status)} viewBox="0 0 16 16" aria-hidden="true">
      {!end && <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.6" />}
      <path d={end?.shape ?? sectors[status]} fill="currentColor" />
      <path d={end?.sign} fill="none" stroke="var(--surface)" strokeWidth="1.8" strokeLinecap="round" />
    </svg>
  );
}

export function StatusBadge({ status }: { readonly status: Status }) {
  return (
    <span className="status inline bold nowrap" style={toneOf(status)}>
      <StatusIcon status={status} />
      {statusWords[status]}
    </span>
  );
}

export function NeedsAction() {
  return (
    <span className="needs-action inline gap-4 action small bold nowrap">
      <Icon name="hand" />
      Needs action
    </span>
  );
}

// ---- Networks

/** Initials on a colour whose hue is a hash of the chain selector. */
export function NetworkMark({ name, selector }: { readonly name: string; readonly selector: string }) {
  const words = name.split(/[\s_-]+/).filter((word) => /^[\p{L}\p{N}]/u.test(word));
  const [first = '?', second] = words;
  const initials = second === undefined ? first.slice(0, 2) : `${first.slice(0, 1)}${second.slice(0, 1)}`;
  return (
    <span className="network-mark" style={{ '--hue': hueOf(selector) } as CSSProperties} aria-hidden="true">
      {initials.toUpperCase()}
    </span>
  );
}

/** With this start, the most used mainnets and testnets get hues far from each other. */
const HASH_START = 65_145;

function hueOf(selector: string): number {
  let hash = HASH_START;
  for (let i = 0; i < selector.length; i++) hash = Math.imul(hash ^ selector.charCodeAt(i), 16_777_619);
  return (hash >>> 0) % 360;
}

/** A network's whole name. */
export function NamedNetwork({ name, selector }: { readonly name: string; readonly selector: string }) {
  return (
    <span className="network inline">
      <NetworkMark name={name} selector={selector} />
      <bdi>{name}</bdi>
    </span>
  );
}

/** A network's name, cut where there is no space for it. */
export function NetworkLabel({ network }: { readonly network: NetworkInfo }) {
  const name = networkName(network);
  return (
    <span className="network inline" title={name}>
      <NetworkMark name={name} selector={network.chainSelector} />
      <bdi className="network-name">{name}</bdi>
    </span>
  );
}

export function LaneLabel({ source, dest }: { readonly source: NetworkInfo; readonly dest: NetworkInfo }) {
  return (
    <span className="lane-label inline">
      <NetworkLabel network={source} />
      <Icon name="right" />
      <span className="visually-hidden">to</span>
      <NetworkLabel network={dest} />
    </span>
  );
}
