/** Tokens: symbol, name and decimals, as their contracts or the operator say. */

import { addressList, selector, shortText, wholeNumber } from '../../domain/filters/parameter-values.ts';
import { parseParameters } from '../../domain/filters/search-parameters.ts';
import { MAX_SYMBOL_CHARACTERS, type Token as StoredToken } from '../../domain/names/tokens.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import type { Route } from '../server/route.ts';
import { type Token, TokenList } from './tokens-schema.ts';

/** A response lists at most this many tokens; `total` is the full number. */
const MAX_TOKENS = 1_000;
export const MAX_TOKEN_ADDRESSES = 100;

export const tokenRoutes: readonly Route[] = [
  {
    path: '/v2/tokens',
    operationId: 'listTokens',
    tag: 'Networks',
    summary: 'Tokens',
    description:
      'Tokens that messages transfer or pay their fees in, by network and address: symbol, name and decimals. ' +
      'Indexers ask each contract once, and again after a month. These are **claims of the contracts**, which anybody can ' +
      'deploy: show them beside the address, not instead of it. ' +
      `At most ${MAX_TOKENS} tokens; \`total\` is how many match.`,
    queryParameters: [
      {
        name: 'chainSelector',
        description: 'Chain selector of the token’s network.',
        schema: { type: 'string', pattern: '^[0-9]+$' },
        example: '16015286601757825753',
      },
      {
        name: 'address',
        description: `One address or several, separated by commas, at most ${MAX_TOKEN_ADDRESSES}.`,
        schema: { type: 'string' },
        example: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
      },
      {
        name: 'symbol',
        description: 'The whole symbol, in any letter case.',
        schema: { type: 'string', maxLength: MAX_SYMBOL_CHARACTERS },
        example: 'LINK',
      },
      {
        name: 'limit',
        description: 'The most tokens to list.',
        schema: { type: 'integer', minimum: 1, maximum: MAX_TOKENS, default: MAX_TOKENS },
      },
    ],
    success: { description: 'The tokens.', schema: TokenList },
    async handle({ query }, { store }) {
      const {
        chainSelector,
        address,
        symbol,
        limit = MAX_TOKENS,
      } = parseParameters(query, {
        chainSelector: selector,
        address: addressList(MAX_TOKEN_ADDRESSES),
        symbol: shortText(MAX_SYMBOL_CHARACTERS),
        limit: wholeNumber(1, MAX_TOKENS),
      });
      const page = await store.tokens({ network: chainSelector, addresses: address, symbol, limit });
      const list: TokenList = { data: page.tokens.map(tokenBody), total: page.total, pending: page.pending };
      return { body: JSON.stringify(list) };
    },
  },
];

export function tokenBody({ network, address, symbol, name, decimals, source, readAt }: StoredToken): Token {
  return {
    chainSelector: network,
    networkName: networkBySelector(network)?.name ?? null,
    address,
    symbol,
    name,
    decimals,
    source,
    readAt: readAt?.toISOString() ?? null,
  };
}
