/**
 * The entries of `networks` in lanescan.yaml. The keys that every family has are read here; the rest by the family.
 *
 * Every mistake is an OperatorError that names the place in the file and what to do about it.
 */
import {
  type Refuse,
  refusalsAt,
  refuseUnknownName,
  type Variables,
  withVariables,
} from '../../base/config-entries.ts';
import { parseTime } from '../../base/iso-time.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { similarNetworks } from '../../domain/networks/network-names.ts';
import { findNetwork, type Network } from '../../domain/networks/networks.ts';
import type { NetworkSource } from './family.ts';

/** How a family reads the keys that only it has. */
export interface FamilySettings {
  readonly keys: readonly string[];
  /** Adds what `given` says to the settings that all families have. */
  parse(common: NetworkSource, given: Given, context: ParseContext): NetworkSource;
}

/** The value of each key of an entry. */
export type Given = Readonly<Record<string, unknown>>;

export interface ParseContext {
  /** The environment, from which `${NAME}` takes its value. */
  readonly variables: Variables;
  readonly refuse: Refuse;
}

/** The families that can be indexed, by the name that the table of networks has for them. */
export type FamilyTable = Readonly<Partial<Record<Network['family'], FamilySettings>>>;

const COMMON_KEYS = ['network', 'rpc', 'start', 'requestsPerSecond', 'batchSize', 'pollSeconds'];
/** Each has a worker of its own. */
const MAX_NETWORKS = 100;
const MAX_ENDPOINTS = 10;

/** Reads the value of `networks`. */
export function parseNetworkEntries(
  value: unknown,
  file: string,
  variables: Variables,
  families: FamilyTable,
): readonly NetworkSource[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_NETWORKS) {
    throw new OperatorError(
      `networks in ${file} is not a list of at most ${MAX_NETWORKS} networks.`,
      'Begin each with `- network: …`.',
    );
  }
  const sources = value.map((entry, index) =>
    parseEntry(entry, { variables, refuse: refusalsAt(`networks[${index}]`, file) }, families),
  );
  for (const [index, { network }] of sources.entries()) {
    const first = sources.findIndex((other) => other.network === network);
    if (first !== index) {
      throw new OperatorError(
        `networks[${first}] and networks[${index}] in ${file} are both ${network.name}.`,
        'Put all endpoints and routers of a network into one entry.',
      );
    }
  }
  return sources;
}

function parseEntry(entry: unknown, context: ParseContext, families: FamilyTable): NetworkSource {
  const { variables, refuse } = context;
  const everyKey = Object.values(families).flatMap((family) => family?.keys ?? []);
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    return refuse(
      '',
      'does not hold keys and values',
      `It takes ${[...COMMON_KEYS, ...everyKey].join(', ')}.`,
    );
  }
  const given = entry as Given;
  const isKnown = (key: string) => COMMON_KEYS.includes(key) || everyKey.includes(key);
  // A misspelt key is reported before anything that may follow from it.
  for (const key of Object.keys(given)) {
    if (!isKnown(key)) refuseUnknownName(key, [...COMMON_KEYS, ...everyKey], refuse);
  }
  const network = parseNetwork(given.network, refuse, families);
  const family = families[network.family];
  if (!family) {
    return refuse(
      'network',
      `is ${network.name}, which is of the family ${network.family}`,
      `Only ${Object.keys(families).join(' and ')} networks can be indexed.`,
    );
  }
  for (const key of Object.keys(given)) refuseUnknownName(key, [...COMMON_KEYS, ...family.keys], refuse);
  const common: NetworkSource = {
    network,
    rpc: parseEndpoints(given.rpc, variables, refuse),
    start: parseStart(given.start, refuse),
    requestsPerSecond: parseNumber(given.requestsPerSecond, 'requestsPerSecond', requestsPerSecond, refuse),
    batchSize: parseNumber(given.batchSize, 'batchSize', batchSize, refuse),
    pollEvery: Math.round(parseNumber(given.pollSeconds, 'pollSeconds', pollSeconds, refuse) * 1000),
  };
  return family.parse(common, given, context);
}

function parseNetwork(value: unknown, refuse: Refuse, families: FamilyTable): Network {
  const isSpoilt = typeof value === 'number' && !Number.isSafeInteger(value);
  // Unquoted, YAML reads a chain selector as a number and rounds it.
  if (isSpoilt) return refuse('network', 'is not text', 'Put the chain selector in quotes.');
  if (typeof value !== 'string' && typeof value !== 'number') {
    return refuse(
      'network',
      value === undefined ? 'is missing' : 'is not text',
      'It takes a name such as ethereum-testnet-sepolia, a chain id or a chain selector.',
    );
  }
  const text = String(value).trim();
  const network = findNetwork(text);
  if (network === undefined) {
    const [nearest] = similarNetworks(text, ({ family }) => families[family] !== undefined);
    return refuse(
      'network',
      `is ${JSON.stringify(text)}, which is no known network`,
      nearest
        ? `Did you mean ${nearest.name}?`
        : 'It takes a name, a chain id or a chain selector. A chain that is not built in is defined under `chains`.',
    );
  }
  return network;
}

function parseEndpoints(value: unknown, variables: Variables, refuse: Refuse): readonly URL[] {
  const remedy = `It takes a list of 1 to ${MAX_ENDPOINTS} URLs, such as ["https://rpc.example/key"].`;
  if (!Array.isArray(value)) {
    return refuse('rpc', value === undefined ? 'is missing' : 'is not a list', remedy);
  }
  if (value.length === 0 || value.length > MAX_ENDPOINTS) {
    return refuse('rpc', `has ${value.length} entries`, remedy);
  }
  const urls = value.map((text, index) => parseUrl(text, `rpc[${index}]`, variables, refuse));
  for (const [index, { href }] of urls.entries()) {
    const first = urls.findIndex((other) => other.href === href);
    // Twice the same one would be taken for a second opinion.
    if (first !== index)
      refuse(`rpc[${index}]`, `is the same endpoint as rpc[${first}]`, 'Take one of them out.');
  }
  return urls;
}

/** An endpoint's URL often holds a key, so that messages do not repeat it. */
export function parseUrl(value: unknown, key: string, variables: Variables, refuse: Refuse): URL {
  const text = typeof value === 'string' ? withVariables(value, key, variables, refuse).trim() : '';
  if (!URL.canParse(text)) return refuse(key, 'is not a URL', 'Write it as https://rpc.example/key.');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return refuse(key, `begins with ${url.protocol}`, 'It takes https:// or http://.');
  }
  url.hash = '';
  return url;
}

function parseStart(value: unknown, refuse: Refuse): NetworkSource['start'] {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return { block: value };
  const text = typeof value === 'string' ? value.trim() : '';
  const time = parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (!Number.isNaN(time)) return { time };
  return refuse(
    'start',
    'is neither a block nor a date',
    'It takes a block number, a date such as 2024-01-31, or a time with its zone such as 2024-01-31T12:00:00Z.',
  );
}

/** Bounds of a number, and its default. */
export interface NumberBounds {
  readonly fallback: number;
  readonly least: number;
  readonly most: number;
  readonly unit: string;
  readonly isWhole: boolean;
}

const requestsPerSecond = { fallback: 20, least: 0.1, most: 10_000, unit: 'calls a second', isWhole: false };
const batchSize = { fallback: 50, least: 1, most: 1_000, unit: 'calls in one request', isWhole: true };
const pollSeconds = { fallback: 2, least: 0.05, most: 3_600, unit: 'seconds', isWhole: false };

export function parseNumber(
  value: unknown,
  key: string,
  { fallback, least, most, unit, isWhole }: NumberBounds,
  refuse: Refuse,
): number {
  if (value === undefined || value === null) return fallback;
  const isTaken =
    typeof value === 'number' && value >= least && value <= most && (!isWhole || Number.isInteger(value));
  if (isTaken) return value;
  return refuse(
    key,
    `is ${JSON.stringify(value)}`,
    `It takes a ${isWhole ? 'whole ' : ''}number from ${least} to ${most} (${unit}).`,
  );
}
