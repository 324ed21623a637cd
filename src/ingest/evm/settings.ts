/** The settings of an EVM network in lanescan.yaml that other families do not have. */

import type { Refuse } from '../../base/config-entries.ts';
import { parseAddress } from '../../domain/addresses.ts';
import type { NetworkSource } from '../engine/family.ts';
import { type FamilySettings, parseNumber, parseUrl } from '../engine/settings.ts';
import type { Hex } from './rpc/chain.ts';

export interface EvmSource extends NetworkSource {
  /** The root of trust: only contracts that these registered are trusted. */
  readonly routers: readonly Hex[];
  /** The block in which the first router was deployed, where the operator names it; otherwise it is looked for. */
  readonly deployed?: number;
  /** The node's own word, or a depth in blocks. */
  readonly finality: 'finalized' | 'safe' | number;
  /** Whether one endpoint alone may take back blocks that were final: for development chains, which are reset. */
  readonly acceptDeepReorgs?: boolean;
  /** Blocks in one request for logs, at most. */
  readonly maxRange: number;
  /** Which blocks' logs are checked against their bloom filters: new ones, those of history too, or none. */
  readonly verify: 'head' | 'all' | 'off';
  /** A service that reports verifications before they are on chain; null: none. */
  readonly verifierResults: URL | null;
}

const MAX_ROUTERS = 20;
const MAX_DEPTH = 10_000;
const maxRange = { fallback: 10_000, least: 1, most: 10_000_000, unit: 'blocks', isWhole: true };

const deployed = {
  fallback: 0,
  least: 0,
  most: Number.MAX_SAFE_INTEGER,
  unit: 'the number of a block',
  isWhole: true,
};

export const evmSettings: FamilySettings = {
  keys: ['routers', 'deployed', 'finality', 'acceptDeepReorgs', 'maxRange', 'verify', 'verifierResults'],
  parse: (common, given, { variables, refuse }): EvmSource => ({
    ...common,
    routers: parseRouters(given.routers, refuse),
    ...(given.deployed != null && { deployed: parseNumber(given.deployed, 'deployed', deployed, refuse) }),
    finality: parseFinality(given.finality, refuse),
    ...(given.acceptDeepReorgs != null && {
      acceptDeepReorgs: parseAcceptDeepReorgs(given.acceptDeepReorgs, refuse),
    }),
    maxRange: parseNumber(given.maxRange, 'maxRange', maxRange, refuse),
    verify: parseVerify(given.verify, refuse),
    verifierResults:
      given.verifierResults === undefined || given.verifierResults === null
        ? null
        : parseUrl(given.verifierResults, 'verifierResults', variables, refuse),
  }),
};

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

function parseFinality(value: unknown = 'finalized', refuse: Refuse): EvmSource['finality'] {
  if (value === 'finalized' || value === 'safe') return value;
  const isDepth = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_DEPTH;
  if (isDepth) return value;
  return refuse(
    'finality',
    `is ${JSON.stringify(value)}`,
    `It takes finalized, safe, or a depth from 0 to ${MAX_DEPTH} blocks.`,
  );
}

function parseAcceptDeepReorgs(value: unknown, refuse: Refuse): boolean {
  if (typeof value === 'boolean') return value;
  return refuse('acceptDeepReorgs', `is ${JSON.stringify(value)}`, 'It takes true or false.');
}

function parseVerify(value: unknown = 'head', refuse: Refuse): EvmSource['verify'] {
  if (value === 'head' || value === 'all' || value === 'off') return value;
  // Older YAML reads `off` as false.
  if (value === false) return 'off';
  return refuse('verify', `is ${JSON.stringify(value)}`, 'It takes head, all or off.');
}
