/**
 * Rate limit: a token bucket for each client, one token a request.
 *
 * A client is an address (IPv6: a /64), or an API key, of which the configuration has the hash. A request with an unknown
 * key is not rejected: it counts for its address. The header fields are those of the IETF's
 * draft-ietf-httpapi-ratelimit-headers.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { addressGroup, isLoopback } from './client-address.ts';

export interface Allowance {
  readonly perSecond: number;
  /** Capacity of the bucket: requests that may come at once after a pause. */
  readonly burst: number;
}

export interface RateLimit extends Allowance {
  /** Whether clients on this machine are limited too. */
  readonly loopback: boolean;
}

export interface ApiKey extends Allowance {
  /** For the operator; it appears in no response. */
  readonly name: string;
  /** SHA-256 of the key, 64 hexadecimal digits. */
  readonly sha256: string;
}

export interface RateLimitOptions {
  /** False: no limit for clients without a key. */
  readonly rateLimit: RateLimit | false;
  readonly apiKeys: readonly ApiKey[];
}

export const defaultRateLimit: RateLimit = { perSecond: 50, burst: 200, loopback: false };

/** Of routes that compute much or ask RPC endpoints, for each address, whatever the general limit is. */
export const costlyAllowance: Allowance = { perSecond: 0.5, burst: 30 };

export type RateLimiter = ReturnType<typeof createRateLimiter>;

export type TokenUse = readonly (readonly [client: string, tokens: number])[];

/** Buckets beyond this are evicted, least recently used first (LRU): those have had most time to refill. */
const MAX_CLIENTS = 50_000;
const MAX_KEY_LENGTH = 512;

interface Bucket {
  tokens: number;
  /** When `tokens` was computed, in milliseconds of the monotonic clock. */
  atMs: number;
}

export function createRateLimiter(
  { rateLimit, apiKeys }: RateLimitOptions,
  now: () => number = () => performance.now(),
  onTake?: (client: string) => void,
) {
  const buckets = new Map<string, Bucket>();
  const keys = apiKeys.map((key) => ({ key, hash: Buffer.from(key.sha256, 'hex') }));

  const findKey = (headers: IncomingHttpHeaders): ApiKey | undefined => {
    const presented = keys.length > 0 ? presentedKey(headers) : undefined;
    if (presented === undefined) return undefined;
    const hash = createHash('sha256').update(presented).digest();
    // Every key is compared, each in constant time: timing reveals nothing about a guess.
    return keys.filter((candidate) => timingSafeEqual(candidate.hash, hash))[0]?.key;
  };

  const tokensOf = (id: string, { perSecond, burst }: Allowance): number => {
    const known = buckets.get(id);
    return known ? Math.min(burst, known.tokens + ((now() - known.atMs) / 1000) * perSecond) : burst;
  };

  const setTokens = (id: string, tokens: number) => {
    // Deleted and inserted again, it becomes the last of the map; the first is the least recently used.
    buckets.delete(id);
    buckets.set(id, { tokens, atMs: now() });
    if (buckets.size > MAX_CLIENTS) buckets.delete(buckets.keys().next().value as string);
  };

  const takeFrom = (id: string, policy: 'address' | 'key', allowance: Allowance) => {
    const { perSecond, burst } = allowance;
    const tokens = tokensOf(id, allowance);
    const isAllowed = tokens >= 1;
    const left = isAllowed ? tokens - 1 : tokens;
    setTokens(id, left);
    if (isAllowed) onTake?.(id);
    return {
      policy,
      isAllowed,
      /** Whole seconds until the next request is allowed; 0: now. */
      retryAfterSeconds: isAllowed ? 0 : Math.max(1, Math.ceil((1 - left) / perSecond)),
      headers: {
        'RateLimit-Policy': `"${policy}";q=${burst};w=${Math.ceil(burst / perSecond)}`,
        RateLimit: `"${policy}";r=${Math.max(0, Math.floor(left))};t=${Math.ceil((burst - left) / perSecond)}`,
      },
    };
  };

  return {
    /** Takes one token; undefined where no limit applies. */
    take(address: string, headers: IncomingHttpHeaders) {
      const key = findKey(headers);
      if (key) return takeFrom(keyId(key), 'key', key);
      if (rateLimit === false || (!rateLimit.loopback && isLoopback(address))) return undefined;
      return takeFrom(addressGroup(address), 'address', rateLimit);
    },
    /** Takes tokens that were used in another process. A bucket may become negative: then requests are rejected until it refills. */
    charge(use: TokenUse): void {
      for (const [id, tokens] of use) {
        const allowance = apiKeys.find((key) => keyId(key) === id) ?? rateLimit;
        if (allowance === false) continue;
        setTokens(id, Math.max(-allowance.burst, tokensOf(id, allowance) - tokens));
      }
    },
    /** Number of buckets. */
    get clients() {
      return buckets.size;
    },
  };
}

/** The group of addresses that a client counts for; undefined for this machine, unless it is rate-limited too. */
export function groupOfClient(address: string, rateLimit: RateLimit | false): string | undefined {
  const isExempt = isLoopback(address) && (rateLimit === false || !rateLimit.loopback);
  return isExempt ? undefined : addressGroup(address);
}

function keyId({ sha256 }: ApiKey): string {
  return `key ${sha256}`;
}

function presentedKey({ authorization, 'x-api-key': apiKey }: IncomingHttpHeaders): string | undefined {
  const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? apiKey;
  return typeof key === 'string' && key !== '' && key.length <= MAX_KEY_LENGTH ? key : undefined;
}
