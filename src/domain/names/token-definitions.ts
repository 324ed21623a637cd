/** Reads the `tokens` of lanescan.yaml: what the operator knows better than, or before, the contracts. */
import { type Refuse, refusalsAt, refuseUnknownName } from '../../base/config-entries.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { parseAddress } from '../addresses.ts';
import { networkOfText } from '../networks/network-names.ts';
import { cleanClaim } from './claimed-text.ts';
import {
  MAX_DECIMALS,
  MAX_NAME_CHARACTERS,
  MAX_SYMBOL_CHARACTERS,
  type TokenDefinition,
  tokenKey,
} from './tokens.ts';

const KEYS = ['network', 'address', 'symbol', 'name', 'decimals'];
const MAX_TOKENS = 1_000;

export function parseTokenDefinitions(value: unknown, file: string): readonly TokenDefinition[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_TOKENS) {
    throw new OperatorError(
      `tokens in ${file} is not a list of at most ${MAX_TOKENS} tokens.`,
      'Begin each with `- network: …`.',
    );
  }
  const known = new Set<string>();
  return value.map((entry, index) => {
    const refuse = refusalsAt(`tokens[${index}]`, file);
    const token = parseDefinition(entry, refuse);
    if (known.has(tokenKey(token)))
      refuse('address', `is ${token.address}, which is defined above`, 'Define each token once.');
    known.add(tokenKey(token));
    return token;
  });
}

function parseDefinition(entry: unknown, refuse: Refuse): TokenDefinition {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    return refuse('', 'does not hold keys and values', `It takes ${KEYS.join(', ')}.`);
  const given = entry as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(given)) refuseUnknownName(key, KEYS, refuse);
  const network = networkOfText(String(given.network ?? ''));
  if (!network)
    return refuse(
      'network',
      given.network === undefined ? 'is missing' : `is ${JSON.stringify(given.network)}`,
      'It takes the name, chain id or chain selector of a network, in quotes where it is a number.',
    );
  const address =
    typeof given.address === 'string' ? parseAddress(given.address.trim(), network.family) : undefined;
  if (!address)
    return refuse(
      'address',
      given.address === undefined ? 'is missing' : `is ${JSON.stringify(given.address)}`,
      `It takes the token's address on ${network.name}, in quotes.`,
    );
  const symbol = textOf(given.symbol, 'symbol', MAX_SYMBOL_CHARACTERS, refuse);
  const name = textOf(given.name, 'name', MAX_NAME_CHARACTERS, refuse);
  const decimals = decimalsOf(given.decimals, refuse);
  return {
    network: network.selector,
    bytes: address.bytes,
    address: address.text,
    ...(symbol !== undefined && { symbol }),
    ...(name !== undefined && { name }),
    ...(decimals !== undefined && { decimals }),
  };
}

function textOf(value: unknown, key: string, maxCharacters: number, refuse: Refuse): string | undefined {
  if (value === undefined || value === null) return undefined;
  const isClean = typeof value === 'string' && cleanClaim(value, maxCharacters) === value.trim();
  return isClean
    ? value.trim()
    : refuse(key, `is ${JSON.stringify(value)}`, `It takes 1 to ${maxCharacters} printable characters.`);
}

function decimalsOf(value: unknown, refuse: Refuse): number | undefined {
  if (value === undefined || value === null) return undefined;
  const isValid = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_DECIMALS;
  return isValid
    ? value
    : refuse('decimals', `is ${JSON.stringify(value)}`, `It takes a whole number from 0 to ${MAX_DECIMALS}.`);
}
