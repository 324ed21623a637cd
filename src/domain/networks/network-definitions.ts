/**
 * Reads the `chains` of lanescan.yaml: networks that the built-in table does not know, such as private and new ones.
 *
 * A selector, name or chain id must mean one network. A chain that the table has come to know since may stay defined, as
 * long as both agree on what it is.
 */

import { type Refuse, refusalsAt, refuseUnknownName } from '../../base/config-entries.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { type ChainFamily, chainFamilies } from '../addresses.ts';
import { parseWebsite } from '../names/name-definitions.ts';
import { type Network, networks } from './networks.ts';

const KEYS = ['name', 'selector', 'chainId', 'family', 'displayName', 'blockExplorer'];
const MAX_CHAINS = 1_000;
const MAX_SELECTOR = 2n ** 64n - 1n;
const NAME = /^(?=[a-z0-9_-]*[a-z])[a-z0-9][a-z0-9_-]{0,62}$/;
const EVM_CHAIN_ID = /^[1-9]\d{0,77}$/;
const CHAIN_ID = /^[A-Za-z0-9:_-]{1,64}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const DISPLAY_NAME = /^(?! )[^\u0000-\u001f\u007f]{1,64}(?<! )$/;

export function parseNetworkDefinitions(value: unknown, file: string): readonly Network[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_CHAINS) {
    throw new OperatorError(
      `chains in ${file} is not a list of at most ${MAX_CHAINS} chains.`,
      'Begin each with `- name: …`.',
    );
  }
  const defined = value.map((entry, index) => parseDefinition(entry, refusalsAt(`chains[${index}]`, file)));
  const replaced = new Set(defined.map(({ selector }) => selector));
  const others = networks.filter(({ selector }) => !replaced.has(selector));
  for (const [index, network] of defined.entries()) {
    const refuse = refusalsAt(`chains[${index}]`, file);
    refuseContradiction(network, refuse);
    refuseShared(network, [...others, ...defined.slice(0, index)], refuse);
  }
  return defined;
}

function parseDefinition(entry: unknown, refuse: Refuse): Network {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    return refuse('', 'does not hold keys and values', `It takes ${KEYS.join(', ')}.`);
  }
  const given = entry as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(given)) refuseUnknownName(key, KEYS, refuse);
  const family = parseFamily(given.family, refuse);
  const name = parseText(given.name, 'name', NAME, NAME_REMEDY, refuse);
  const { displayName = name, blockExplorer } = given;
  return {
    selector: parseSelector(given.selector, refuse),
    name,
    chainId: parseChainId(given.chainId, family, refuse),
    family,
    displayName: parseText(displayName, 'displayName', DISPLAY_NAME, 'It takes 1 to 64 characters.', refuse),
    ...(blockExplorer !== undefined &&
      blockExplorer !== null && { blockExplorer: parseWebsite(blockExplorer, 'blockExplorer', refuse) }),
  };
}

const NAME_REMEDY =
  'It takes a name such as acme-mainnet: small letters, digits, - and _, at most 63, with a letter among them.';

function parseText(value: unknown, key: string, form: RegExp, remedy: string, refuse: Refuse): string {
  if (value === undefined || value === null) return refuse(key, 'is missing', remedy);
  const text = typeof value === 'string' ? value.trim() : '';
  return form.test(text) ? text : refuse(key, `is ${JSON.stringify(value)}`, remedy);
}

function parseSelector(value: unknown, refuse: Refuse): string {
  const remedy = `It takes CCIP's number for the chain in quotes, from 1 to ${MAX_SELECTOR}.`;
  // Unquoted, YAML reads a selector as a number and rounds it.
  if (typeof value === 'number')
    return refuse('selector', 'is not text', 'Put the chain selector in quotes.');
  if (value === undefined) return refuse('selector', 'is missing', remedy);
  const text = typeof value === 'string' ? value.trim() : '';
  const isSelector = /^[1-9]\d{0,19}$/.test(text) && BigInt(text) <= MAX_SELECTOR;
  return isSelector ? text : refuse('selector', `is ${JSON.stringify(value)}`, remedy);
}

function parseChainId(value: unknown, family: ChainFamily, refuse: Refuse): string {
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
  if (family === 'EVM') {
    return parseText(text, 'chainId', EVM_CHAIN_ID, 'It takes the number that eth_chainId answers.', refuse);
  }
  return parseText(text, 'chainId', CHAIN_ID, `It takes what ${family} chains are told apart by.`, refuse);
}

function parseFamily(value: unknown = 'EVM', refuse: Refuse): ChainFamily {
  const family = chainFamilies.find((known) => known === value);
  return (
    family ?? refuse('family', `is ${JSON.stringify(value)}`, `It takes one of ${chainFamilies.join(', ')}.`)
  );
}

/** A chain of the built-in table cannot be made another one. */
function refuseContradiction({ selector, chainId, family }: Network, refuse: Refuse): void {
  const known = networks.find((network) => network.selector === selector);
  if (!known || (known.chainId === chainId && known.family === family)) return;
  refuse(
    'selector',
    `is ${selector}, which is ${known.name} (${known.family} chain ${known.chainId})`,
    'Check the selector; for that chain no definition is needed.',
  );
}

function refuseShared(network: Network, others: readonly Network[], refuse: Refuse): void {
  for (const key of ['selector', 'name', 'chainId'] as const) {
    // A number must not be the selector of one network and the chain id of another.
    const taken = others.find((other) => [other.selector, other.name, other.chainId].includes(network[key]));
    if (taken) {
      refuse(
        key,
        `is ${network[key]}, which already means ${taken.name}`,
        'Each chain needs a selector, a name and a chain id of its own.',
      );
    }
  }
}
