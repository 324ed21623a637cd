/** The settings `tokens`, `labels` and `explorers`: what the operator knows better than, or before, the contracts. */
import Type from 'typebox';
import { custom, distinct, refined } from '../../base/settings.ts';
import { addressBytes, parseAddress } from '../addresses.ts';
import { networkOfText } from '../networks/network-names.ts';
import { cleanClaim } from './claimed-text.ts';
import { type Label, MAX_LABEL_CHARACTERS } from './labels.ts';
import {
  MAX_DECIMALS,
  MAX_NAME_CHARACTERS,
  MAX_SYMBOL_CHARACTERS,
  type TokenDefinition,
  tokenKey,
} from './tokens.ts';

const MAX_DEFINITIONS = 1_000;

const network = refined(
  Type.Union([Type.String(), Type.Integer()], {
    description: 'The name, chain id or chain selector of a network.',
    takes: 'the name, chain id or chain selector of a network (selectors in quotes)',
  }),
  (text) => networkOfText(String(text)),
);

const text = (maxCharacters: number, description: string) =>
  refined(Type.String({ description, takes: `1 to ${maxCharacters} printable characters` }), (given) =>
    cleanClaim(given, maxCharacters) === given ? given : undefined,
  );

const address = Type.String({ description: 'Its address, in quotes.', takes: 'an address, in quotes' });

const token = refined(
  Type.Object(
    {
      network,
      address,
      symbol: Type.Optional(text(MAX_SYMBOL_CHARACTERS, 'Its symbol.')),
      name: Type.Optional(text(MAX_NAME_CHARACTERS, 'Its name.')),
      decimals: Type.Optional(
        Type.Integer({ minimum: 0, maximum: MAX_DECIMALS, description: 'Decimals of its amounts.' }),
      ),
    },
    { additionalProperties: false },
  ),
  ({ network, address, ...claims }, { reject }): TokenDefinition => {
    const { bytes, text } =
      parseAddress(address, network.family) ??
      reject(
        `is ${JSON.stringify(address)}`,
        `It takes the token's address on ${network.name}, in quotes.`,
        'address',
      );
    return { network: network.selector, bytes, address: text, ...claims };
  },
);

export const tokensSetting = distinct(
  Type.Array(token, {
    maxItems: MAX_DEFINITIONS,
    default: [],
    description: 'Symbols, names and decimals of tokens, instead of what their contracts claim.',
    see: 'docs/operations.md#names-and-links',
  }),
  tokenKey,
);

const label = refined(
  Type.Object(
    {
      address,
      name: text(MAX_LABEL_CHARACTERS, 'What the address is called.'),
      network: Type.Optional(network),
    },
    { additionalProperties: false },
  ),
  ({ address, name, network }, { reject }): Label => {
    const [bytes] = addressBytes(address);
    const spelling = network
      ? parseAddress(address, network.family)
      : bytes && (parseAddress(address, 'EVM') ?? { bytes, text: address });
    if (!spelling)
      return reject(
        `is ${JSON.stringify(address)}`,
        `It takes an address${network ? ` on ${network.name}` : ''}, in quotes.`,
        'address',
      );
    return { name, bytes: spelling.bytes, address: spelling.text, network: network?.selector ?? null };
  },
);

export const labelsSetting = Type.Array(label, {
  maxItems: MAX_DEFINITIONS,
  default: [],
  description: 'Names of addresses, for display and search.',
  see: 'docs/operations.md#names-and-links',
});

/** Without a slash at its end. */
export const website = refined(
  Type.String({ takes: 'the address of a website, such as https://explorer.example' }),
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !['https:', 'http:'].includes(url.protocol) || url.username !== '' || url.search !== '')
      return undefined;
    return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
  },
);

const websiteOrNone = custom(website, (value, { read }) => (value === 'none' ? null : read(website, value)));

/** Websites by chain selector; null for `none`. */
export const explorersSetting = refined(
  Type.Unsafe<Record<string, string | null>>({
    type: 'object',
    additionalProperties: websiteOrNone,
    default: {},
    description: 'Block explorers by network, or `none`, instead of the built-in ones.',
    takes: 'a line for each network: `avalanche-testnet-fuji: https://explorer.example`',
    see: 'docs/operations.md#names-and-links',
  }),
  (websites, { reject }): ReadonlyMap<string, string | null> =>
    new Map(
      Object.entries(websites).map(([name, website]) => {
        const known = networkOfText(name) ?? reject('is not a network', 'It takes names of networks.', name);
        return [known.selector, website];
      }),
    ),
);
