/** Validators and lifetimes: what a client has already is not sent again. */
import { hash } from 'node:crypto';
import type { Coding } from './compression.ts';

/**
 * How long an answer stays true.
 *
 * - `moving`: may change at any moment.
 * - `document`: changes with the version of the service.
 * - `checked`: like `moving`, but wrong for even a second (it names files that a new version no longer has).
 * - `immutable`: its address changes with it.
 * - `never`: true only for this request.
 * - settled: a message that succeeded at this time (ms since 1970). Only a reorganisation of its destination chain
 *   takes that back, ever less likely with time: so it may be kept for a tenth of the time since, as HTTP advises
 *   where nothing better is known.
 */
export type Freshness =
  | 'moving'
  | 'document'
  | 'checked'
  | 'immutable'
  | 'never'
  | { readonly settledAt: number };

const MINUTE_SECONDS = 60;
const DAY_SECONDS = 86_400;

export function cacheControl(freshness: Freshness, now = Date.now()): string {
  if (freshness === 'never') return 'no-store';
  // A second is short for people and long for a crowd behind a shared cache.
  if (freshness === 'moving') return 'public, max-age=1';
  if (freshness === 'document') return 'public, max-age=300';
  if (freshness === 'checked') return 'no-cache';
  if (freshness === 'immutable') return 'public, max-age=31536000, immutable';
  const tenthOfAge = Math.floor((now - freshness.settledAt) / 10_000);
  const wholeMinutes = Math.floor(tenthOfAge / MINUTE_SECONDS) * MINUTE_SECONDS;
  const seconds = Math.min(Math.max(wholeMinutes, MINUTE_SECONDS), DAY_SECONDS);
  return `public, max-age=${seconds}, stale-while-revalidate=${seconds}`;
}

/** A validator for a body that brings none. */
export function validatorOf(body: Buffer): string {
  return hash('sha1', body, 'base64url');
}

/** Strong, so each coding of a body has its own. */
export function entityTag(validator: string, coding: Coding | undefined): string {
  return coding === undefined ? `"${validator}"` : `"${validator}-${coding}"`;
}

const tagPattern = /(?:W\/)?"([^"]*)"/g;

/**
 * The tag with which the client proves to have the current state; undefined where it has none. Any coding of it will
 * do, also one that this request would not get: the state is the same, and a 304 names the tag that is still good.
 */
export function tagInHand(ifNoneMatch: string | undefined, validator: string): string | undefined {
  if (ifNoneMatch === undefined) return undefined;
  if (ifNoneMatch.trim() === '*') return entityTag(validator, undefined);
  const current = [undefined, 'br', 'gzip'] as const;
  for (const [, opaque = ''] of ifNoneMatch.matchAll(tagPattern)) {
    const tag = `"${opaque}"`;
    if (current.some((coding) => entityTag(validator, coding) === tag)) return tag;
  }
  return undefined;
}
