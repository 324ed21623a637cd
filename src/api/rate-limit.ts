/**
 * How much one client may ask: a bucket of tokens for each, refilled steadily, a token a request.
 *
 * A client is an address (IPv6: a /64), or an API key that the configuration knows by its hash. A key that nobody
 * knows is no error: whoever sends one is served like everybody without. The header fields are those of the IETF's
 * draft-ietf-httpapi-ratelimit-headers.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { addressGroup, isLoopback } from './client-address.ts';

export interface Allowance {
  readonly perSecond: number;
  /** How many may come at once after a rest. */
  readonly burst: number;
}

export interface RateLimit extends Allowance {
  /** Whether clients on this machine are limited too. */
  readonly loopback: boolean;
}

export interface ApiKey extends Allowance {
  /** For people; it appears in no answer. */
  readonly name: string;
  /** SHA-256 of the key, 64 hexadecimal digits. */
  readonly sha256: string;
}

export interface RateLimitOptions {
  /** False: no limit for those without a key. */
  readonly rateLimit: RateLimit | false;
  readonly apiKeys: readonly ApiKey[];
}

export const defaultRateLimit: RateLimit = { perSecond: 50, burst: 200, loopback: false };

export interface Verdict {
  readonly policy: 'address' | 'key';
  readonly isAllowed: boolean;
  /** Whole seconds until the next request may come; 0 where it may now. */
  readonly retryAfter: number;
  readonly headers: Readonly<Record<'RateLimit' | 'RateLimit-Policy', string>>;
}

export interface RateLimiter {
  /** Takes one token; undefined where no limit holds. */
  take(address: string, headers: IncomingHttpHeaders): Verdict | undefined;
  /** Takes what was taken elsewhere. A bucket may come to owe some: then nothing is left here for a while. */
  charge(takings: Takings): void;
  /** How many clients are remembered. */
  readonly clients: number;
}

/** Tokens by client. */
export type Takings = readonly (readonly [client: string, tokens: number])[];

/** Beyond so many clients the one that has been quiet for longest is forgotten: its bucket has filled up first. */
const MAX_CLIENTS = 50_000;
const MAX_KEY_LENGTH = 512;

interface Bucket {
  tokens: number;
  /** Milliseconds of the monotonic clock at which `tokens` was right. */
  at: number;
}

export function createRateLimiter(
  { rateLimit, apiKeys }: RateLimitOptions,
  now: () => number = () => performance.now(),
  onTake?: (client: string) => void,
): RateLimiter {
  const buckets = new Map<string, Bucket>();
  const keys = apiKeys.map((key) => ({ key, hash: Buffer.from(key.sha256, 'hex') }));

  const findKey = (headers: IncomingHttpHeaders): ApiKey | undefined => {
    const presented = keys.length > 0 ? presentedKey(headers) : undefined;
    if (presented === undefined) return undefined;
    const hash = createHash('sha256').update(presented).digest();
    // All are compared, each in constant time: the time tells nothing about how close a guess came.
    return keys.filter((candidate) => timingSafeEqual(candidate.hash, hash))[0]?.key;
  };

  const tokensOf = (id: string, { perSecond, burst }: Allowance): number => {
    const known = buckets.get(id);
    return known ? Math.min(burst, known.tokens + ((now() - known.at) / 1000) * perSecond) : burst;
  };

  const leave = (id: string, tokens: number) => {
    // Taken out and put back, it becomes the newest: the first of the map is the quietest.
    buckets.delete(id);
    buckets.set(id, { tokens, at: now() });
    if (buckets.size > MAX_CLIENTS) buckets.delete(buckets.keys().next().value as string);
  };

  const takeFrom = (id: string, policy: Verdict['policy'], allowance: Allowance): Verdict => {
    const { perSecond, burst } = allowance;
    const tokens = tokensOf(id, allowance);
    const isAllowed = tokens >= 1;
    const left = isAllowed ? tokens - 1 : tokens;
    leave(id, left);
    if (isAllowed) onTake?.(id);
    return {
      policy,
      isAllowed,
      retryAfter: isAllowed ? 0 : Math.max(1, Math.ceil((1 - left) / perSecond)),
      headers: {
        'RateLimit-Policy': `"${policy}";q=${burst};w=${Math.ceil(burst / perSecond)}`,
        RateLimit: `"${policy}";r=${Math.max(0, Math.floor(left))};t=${Math.ceil((burst - left) / perSecond)}`,
      },
    };
  };

  return {
    take(address, headers) {
      const key = findKey(headers);
      if (key) return takeFrom(keyId(key), 'key', key);
      if (rateLimit === false || (!rateLimit.loopback && isLoopback(address))) return undefined;
      return takeFrom(addressGroup(address), 'address', rateLimit);
    },
    charge(takings) {
      for (const [id, tokens] of takings) {
        const allowance = apiKeys.find((key) => keyId(key) === id) ?? rateLimit;
        if (allowance === false) continue;
        leave(id, Math.max(-allowance.burst, tokensOf(id, allowance) - tokens));
      }
    },
    get clients() {
      return buckets.size;
    },
  };
}

function keyId({ sha256 }: ApiKey): string {
  return `key ${sha256}`;
}

function presentedKey({ authorization, 'x-api-key': apiKey }: IncomingHttpHeaders): string | undefined {
  const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? apiKey;
  return typeof key === 'string' && key !== '' && key.length <= MAX_KEY_LENGTH ? key : undefined;
}
