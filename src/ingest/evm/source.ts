/** A network to index, as lanescan.yaml declares it. */
import { parseAddress } from '../../domain/addresses.ts';
import {
  type Refuse,
  refusalsAt,
  refuseUnknownName,
  type Variables,
  withVariables,
} from '../../domain/declarations.ts';
import { OperatorError } from '../../domain/errors.ts';
import { nearestName } from '../../domain/nearest-name.ts';
import { findNetwork, type Network, networks } from '../../domain/networks.ts';
import { parseTime } from '../../domain/time.ts';
import type { Hex } from './chain.ts';

export interface NetworkSource {
  readonly network: Network;
  /** JSON-RPC over HTTP, in order of preference. They may hold credentials: never shown. */
  readonly rpc: readonly URL[];
  /** The root of trust: only contracts that these name are believed. */
  readonly routers: readonly Hex[];
  /** Where to begin, `time` in milliseconds since 1970; null: as far back as the routers go. */
  readonly start: { readonly block: number } | { readonly time: number } | null;
  /** The node's own word, or a depth in blocks. */
  readonly finality: 'finalized' | 'safe' | number;
  /** Of each endpoint. */
  readonly requestsPerSecond: number;
  /** Calls in one HTTP request, at most. */
  readonly batchSize: number;
  /** Blocks in one request for logs, at most. */
  readonly maxRange: number;
  /** Milliseconds between looks at the head. */
  readonly pollEvery: number;
  /** Whether the bloom filters of history are checked too, or those of new blocks only. */
  readonly verify: 'head' | 'all';
  /** A service that tells of verifications before they are on chain; null: none. */
  readonly verifierResults: URL | null;
}

const KEYS = [
  'network',
  'rpc',
  'routers',
  'start',
  'finality',
  'requestsPerSecond',
  'batchSize',
  'maxRange',
  'pollSeconds',
  'verify',
  'verifierResults',
] as const;
/** Each has a worker of its own. */
const MAX_NETWORKS = 100;
const MAX_ENDPOINTS = 10;
const MAX_ROUTERS = 20;
const MAX_DEPTH = 10_000;

/**
 * Reads the value of `networks`. Throws an OperatorError that names the place in the file.
 *
 * @param variables the environment, from which `${NAME}` takes its value
 */
export function parseNetworkSources(
  value: unknown,
  file: string,
  variables: Variables,
): readonly NetworkSource[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_NETWORKS) {
    throw new OperatorError(
      `networks in ${file} is not a list of at most ${MAX_NETWORKS} networks.`,
      'Begin each with `- network: …`.',
    );
  }
  const sources = value.map((entry, index) =>
    parseNetworkSource(entry, variables, refusalsAt(`networks[${index}]`, file)),
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

function parseNetworkSource(entry: unknown, variables: Variables, refuse: Refuse): NetworkSource {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    return refuse('', 'does not hold keys and values', `It takes ${KEYS.join(', ')}.`);
  }
  for (const key of Object.keys(entry)) refuseUnknownName(key, KEYS, refuse);
  const given = entry as Partial<Record<(typeof KEYS)[number], unknown>>;
  const number = (key: NumberKey) => parseNumber(given[key], key, refuse);
  return {
    network: parseNetwork(given.network, refuse),
    rpc: parseEndpoints(given.rpc, variables, refuse),
    routers: parseRouters(given.routers, refuse),
    start: parseStart(given.start, refuse),
    finality: parseFinality(given.finality, refuse),
    requestsPerSecond: number('requestsPerSecond'),
    batchSize: number('batchSize'),
    maxRange: number('maxRange'),
    pollEvery: Math.round(number('pollSeconds') * 1000),
    verify: parseVerify(given.verify, refuse),
    verifierResults: parseVerifierResults(given.verifierResults, variables, refuse),
  };
}

function parseNetwork(value: unknown, refuse: Refuse): Network {
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
    const nearest = nearestName(
      text,
      networks.filter(({ family }) => family === 'EVM').map(({ name }) => name),
    );
    return refuse(
      'network',
      `is ${JSON.stringify(text)}, which is no known network`,
      nearest ? `Did you mean ${nearest}?` : 'It takes a name, a chain id or a chain selector.',
    );
  }
  if (network.family !== 'EVM') {
    return refuse(
      'network',
      `is ${network.name}, which is of the family ${network.family}`,
      'Only EVM networks can be indexed.',
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
function parseUrl(value: unknown, key: string, variables: Variables, refuse: Refuse): URL {
  const text = typeof value === 'string' ? withVariables(value, key, variables, refuse).trim() : '';
  if (!URL.canParse(text)) return refuse(key, 'is not a URL', 'Write it as https://rpc.example/key.');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return refuse(key, `begins with ${url.protocol}`, 'It takes https:// or http://.');
  }
  url.hash = '';
  return url;
}

function parseRouters(value: unknown, refuse: Refuse): readonly Hex[] {
  const remedy = `It takes a list of 1 to ${MAX_ROUTERS} addresses in quotes; the network's CCIP Router is one.`;
  if (!Array.isArray(value)) {
    return refuse('routers', value === undefined ? 'is missing' : 'is not a list', remedy);
  }
  if (value.length === 0 || value.length > MAX_ROUTERS) {
    return refuse('routers', `has ${value.length} entries`, remedy);
  }
  const routers = value.map((text, index) => parseRouter(text, `routers[${index}]`, refuse));
  for (const [index, router] of routers.entries()) {
    const first = routers.indexOf(router);
    if (first !== index)
      refuse(`routers[${index}]`, `is the same as routers[${first}]`, 'Take one of them out.');
  }
  return routers;
}

/** Everything else is believed because a router says so: a typing error is not let pass. */
function parseRouter(value: unknown, key: string, refuse: Refuse): Hex {
  // Unquoted, YAML reads an address as a number and rounds it.
  if (typeof value === 'number') return refuse(key, 'is a number', 'Put the address in quotes.');
  const text = typeof value === 'string' ? value.trim() : '';
  const address = /^0x[0-9a-fA-F]{40}$/.test(text) ? parseAddress(text, 'EVM') : undefined;
  if (address === undefined) {
    return refuse(key, 'is not an address', 'It takes 0x and 40 hexadecimal digits, in quotes.');
  }
  const isMixed = /[a-f]/.test(text) && /[A-F]/.test(text);
  if (isMixed && text !== address.text) {
    return refuse(
      key,
      `is ${text}, whose upper and lower case do not fit its digits (EIP-55)`,
      'Copy it again from where it was published; a digit may be wrong.',
    );
  }
  if (/^0*$/.test(address.bytes)) return refuse(key, 'is the address zero', 'Nothing is there.');
  return `0x${address.bytes}`;
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

function parseFinality(value: unknown = 'finalized', refuse: Refuse): NetworkSource['finality'] {
  if (value === 'finalized' || value === 'safe') return value;
  const isDepth = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_DEPTH;
  if (isDepth) return value;
  return refuse(
    'finality',
    `is ${JSON.stringify(value)}`,
    `It takes finalized, safe, or a depth from 0 to ${MAX_DEPTH} blocks.`,
  );
}

const numbers = {
  requestsPerSecond: { fallback: 20, least: 0.1, most: 10_000, unit: 'calls a second', isWhole: false },
  batchSize: { fallback: 50, least: 1, most: 1_000, unit: 'calls in one request', isWhole: true },
  maxRange: { fallback: 10_000, least: 1, most: 10_000_000, unit: 'blocks', isWhole: true },
  pollSeconds: { fallback: 2, least: 0.05, most: 3_600, unit: 'seconds', isWhole: false },
} as const;
type NumberKey = keyof typeof numbers;

function parseNumber(value: unknown, key: NumberKey, refuse: Refuse): number {
  const { fallback, least, most, unit, isWhole } = numbers[key];
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

function parseVerify(value: unknown = 'head', refuse: Refuse): NetworkSource['verify'] {
  if (value === 'head' || value === 'all') return value;
  return refuse('verify', `is ${JSON.stringify(value)}`, 'It takes head or all.');
}

function parseVerifierResults(value: unknown, variables: Variables, refuse: Refuse): URL | null {
  if (value === undefined || value === null) return null;
  return parseUrl(value, 'verifierResults', variables, refuse);
}
