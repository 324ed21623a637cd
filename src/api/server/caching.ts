/** Responses of routes, and their HTTP caching: validators (ETag) and lifetimes (Cache-Control). */
import type { Readable } from 'node:stream';
import type { Coding } from './compression.ts';

const cacheControls = {
  /** May change at any moment. One second: people do not notice it, and a shared cache in front absorbs a crowd. */
  moving: 'public, max-age=1',
  /** Changes with the version of the service. */
  document: 'public, max-age=300',
  /** Like `moving`, but must be revalidated each time (it names files that a new version no longer has). */
  checked: 'no-cache',
  /** Its URL changes with the content. */
  immutable: 'public, max-age=31536000, immutable',
  /** Valid only for this request. */
  never: 'no-store',
};

/**
 * How long a response stays valid. Settled: a message that succeeded at this time (ms since 1970). Only a reorganisation of
 * its destination chain can change it, which becomes less likely with time: so it may be cached for a tenth of its age, the
 * heuristic that HTTP suggests.
 */
export type Freshness = keyof typeof cacheControls | { readonly settledAt: number };

export interface RouteResponse {
  /** The whole body, or a stream. */
  readonly body: string | Buffer | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
  /** How long caches may keep it. Default: `moving`; for a stream `never`. */
  readonly freshness?: Freshness;
  /** Changes exactly when the body does. Default: a hash of the body. */
  readonly validator?: string;
  /** Compressed bodies that are cached. */
  readonly compressed?: Readonly<Partial<Record<Coding, Buffer>>>;
  /** Receives a newly compressed body, to cache it. */
  readonly onCompressed?: (coding: Coding, coded: Buffer) => void;
}

/** @example json<Stats>({ … }) // the type says which response it is */
export function json<Body>(body: Body, freshness: Freshness = 'moving'): RouteResponse {
  return { body: JSON.stringify(body), freshness };
}

/** What is known of a response before it is made. */
export type ResponseValidator = Required<Pick<RouteResponse, 'validator' | 'freshness'>>;

const MINUTE_SECONDS = 60;
const DAY_SECONDS = 86_400;

export function cacheControl(freshness: Freshness, now = Date.now()): string {
  if (typeof freshness === 'string') return cacheControls[freshness];
  const tenthOfAge = Math.floor((now - freshness.settledAt) / 10_000);
  const wholeMinutes = Math.floor(tenthOfAge / MINUTE_SECONDS) * MINUTE_SECONDS;
  const seconds = Math.min(Math.max(wholeMinutes, MINUTE_SECONDS), DAY_SECONDS);
  return `public, max-age=${seconds}, stale-while-revalidate=${seconds}`;
}

/** The ETag. It is strong, so each coding of a body has its own. */
export function entityTag(validator: string, coding: Coding | undefined): string {
  return coding === undefined ? `"${validator}"` : `"${validator}-${coding}"`;
}

const TAG_PATTERN = /(?:W\/)?"([^"]*)"/g;

/**
 * The tag of `If-None-Match` that names the current state; undefined where none does. A tag of any coding matches, also of
 * one that this request would not get: the state is the same, and the 304 repeats that tag.
 */
export function matchingTag(ifNoneMatch: string | undefined, validator: string): string | undefined {
  if (ifNoneMatch === undefined) return undefined;
  if (ifNoneMatch.trim() === '*') return entityTag(validator, undefined);
  const current = [undefined, 'br', 'gzip'] as const;
  for (const [, opaque = ''] of ifNoneMatch.matchAll(TAG_PATTERN)) {
    const tag = `"${opaque}"`;
    if (current.some((coding) => entityTag(validator, coding) === tag)) return tag;
  }
  return undefined;
}
