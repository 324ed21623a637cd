/** Parsers of the settings rateLimit, apiKeys, trustProxy and live of lanescan.yaml. */
import { isIP } from 'node:net';
import type { LiveLimits } from '../../api/live/live.ts';
import type { TrustProxy } from '../../api/server/client-address.ts';
import {
  type Allowance,
  type ApiKey,
  defaultRateLimit,
  type RateLimit,
} from '../../api/server/rate-limit.ts';

export const RATE_LIMIT_FORMAT =
  '`false`, or a mapping such as {perSecond: 50, burst: 200, loopback: false}: perSecond more than 0 and at most ' +
  '1000000, burst a whole number from 1 to 1000000';

export function readRateLimit(value: unknown): RateLimit | false | undefined {
  if (value === false) return false;
  const members = membersOf(value, ['perSecond', 'burst', 'loopback']);
  const { loopback = defaultRateLimit.loopback } = members ?? {};
  const allowance = members && readAllowance({ ...defaultRateLimit, ...members });
  return allowance && typeof loopback === 'boolean' ? { ...allowance, loopback } : undefined;
}

export const API_KEYS_FORMAT =
  'a list of {name, sha256, perSecond, burst}, each name and each hash once: sha256 is the 64 hexadecimal digits ' +
  'that `printf %s KEY | sha256sum` prints, never the key itself';

export function readApiKeys(value: unknown): readonly ApiKey[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const keys: ApiKey[] = [];
  for (const entry of value) {
    const members = membersOf(entry, ['name', 'sha256', 'perSecond', 'burst']);
    const allowance = members && readAllowance(members);
    if (!allowance || typeof members.name !== 'string' || !/^[0-9a-f]{64}$/i.test(String(members.sha256))) {
      return undefined;
    }
    keys.push({ name: members.name, sha256: String(members.sha256).toLowerCase(), ...allowance });
  }
  const isUnique = (part: 'name' | 'sha256') => new Set(keys.map((key) => key[part])).size === keys.length;
  return isUnique('name') && isUnique('sha256') ? keys : undefined;
}

const liveCaps = [
  'streams',
  'streamsPerAddress',
  'waiters',
  'waitersPerAddress',
  'exportsPerAddress',
] as const;

export const LIVE_FORMAT = `a mapping with any of ${liveCaps.join(', ')}, each a whole number from 1 to 1000000`;

export function readLive(value: unknown): Partial<LiveLimits> | undefined {
  const members = membersOf(value, liveCaps);
  const isCap = (cap: unknown) => Number.isInteger(cap) && Number(cap) >= 1 && Number(cap) <= 1_000_000;
  return members && Object.values(members).every(isCap) ? members : undefined;
}

export const TRUST_PROXY_FORMAT =
  '`false`, the number of proxies in front (1 to 10), or a list of their addresses or networks, such as ' +
  '["10.0.0.0/8", "::1"]';

export function readTrustProxy(value: unknown): TrustProxy | undefined {
  if (value === false || value === 'false') return false;
  const hops = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof hops === 'number') return Number.isInteger(hops) && hops >= 1 && hops <= 10 ? hops : undefined;
  const places = typeof value === 'string' ? value.split(',').map((place) => place.trim()) : value;
  return Array.isArray(places) && places.length > 0 && places.every(isNetwork) ? places : undefined;
}

export const BASE_PATH_FORMAT =
  'a path such as /lanescan: a slash and letters, digits, `-`, `_` or `.`, up to 200 characters';
const MAX_BASE_PATH_LENGTH = 200;

/** Without a slash at its end; empty for the root. */
export function readBasePath(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_BASE_PATH_LENGTH) return undefined;
  const path = value.replace(/\/$/, '');
  if (path === '') return path;
  const segments = path.split('/').slice(1);
  // Browsers and proxies resolve segments of dots.
  const isPath = /^(\/[\w.-]+)+$/.test(path) && segments.every((segment) => /[^.]/.test(segment));
  return isPath ? path : undefined;
}

function isNetwork(place: unknown): place is string {
  if (typeof place !== 'string') return false;
  const [address = '', bits, ...rest] = place.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

function readAllowance({ perSecond, burst }: Readonly<Record<string, unknown>>): Allowance | undefined {
  if (typeof perSecond !== 'number' || !(perSecond > 0 && perSecond <= 1_000_000)) return undefined;
  if (typeof burst !== 'number' || !Number.isInteger(burst) || burst < 1 || burst > 1_000_000)
    return undefined;
  return { perSecond, burst };
}

/** The members of a mapping without other members; undefined for anything else. */
function membersOf(value: unknown, names: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.keys(value).every((name) => names.includes(name))
    ? (value as Record<string, unknown>)
    : undefined;
}
