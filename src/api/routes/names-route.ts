/** Names: tokens (as their contracts or the operator say), the labels of the operator, and what a typed text can mean. */
import { addressBytes, addressFromBytes, parseAddress } from '../../domain/addresses.ts';
import { base58OfHex } from '../../domain/filters/base58-ranges.ts';
import { addressList, shortText } from '../../domain/filters/parameter-values.ts';
import {
  MAX_TEXT_CHARACTERS,
  searchableText,
  shortenedBase58,
  shortenedText,
} from '../../domain/filters/search-text.ts';
import { type Label as DefinedLabel, definedLabels, labelsNamed } from '../../domain/names/labels.ts';
import { MAX_SYMBOL_CHARACTERS, type Token as StoredToken } from '../../domain/names/tokens.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import type { Store } from '../../store/store.ts';
import { json } from '../server/caching.ts';
import type { Route } from '../server/route.ts';
import { LabelList, Lookup, type LookupMatch, type Token, TokenList } from './names-schema.ts';
import { chainSelector, integer, parametersOf } from './query-parameters.ts';

/** A response lists at most this many tokens; `total` is the full number. */
const MAX_TOKENS = 1_000;
export const MAX_TOKEN_ADDRESSES = 100;

const addresses = (max: number, example: string) => ({
  description: `One address or several, separated by commas, at most ${max}.`,
  schema: { type: 'string' },
  example,
  parse: addressList(max),
});

const tokenParameters = parametersOf({
  chainSelector: chainSelector('Chain selector of the token’s network.', '16015286601757825753'),
  address: addresses(MAX_TOKEN_ADDRESSES, '0x779877A7B0D9E8603169DdbD7836e478b4624789'),
  symbol: {
    description: 'The whole symbol, in any letter case.',
    schema: { type: 'string', maxLength: MAX_SYMBOL_CHARACTERS },
    example: 'LINK',
    parse: shortText(MAX_SYMBOL_CHARACTERS),
  },
  limit: integer('The most tokens to list.', 1, MAX_TOKENS, MAX_TOKENS),
});

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
    queryParameters: tokenParameters.declared,
    success: { description: 'The tokens.', schema: TokenList },
    async handle({ query }, { store }) {
      const { chainSelector, address, symbol, limit = MAX_TOKENS } = tokenParameters.parse(query);
      const page = await store.tokens({ network: chainSelector, addresses: address, symbol, limit });
      return json<TokenList>({ data: page.tokens.map(tokenBody), total: page.total, pending: page.pending });
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

const MAX_LABEL_ADDRESSES = 100;
/** Of each kind. */
const MAX_MATCHES = 10;

const lookupParameters = parametersOf({
  text: {
    description: 'The text as it was typed.',
    schema: { type: 'string', maxLength: MAX_TEXT_CHARACTERS },
    example: 'LINK',
    isRequired: true,
    parse: shortText(MAX_TEXT_CHARACTERS),
  },
});
const labelParameters = parametersOf({
  address: addresses(MAX_LABEL_ADDRESSES, '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'),
});

export const lookupRoutes: readonly Route[] = [
  {
    path: '/v2/lookup',
    operationId: 'lookUp',
    tag: 'Messages',
    summary: 'What a text means',
    description:
      'Finds what people type or paste: a part of a message id, transaction hash or address, also shortened as in ' +
      '`0x2f63…aa14` or `DXDb…HvK9`; the URL of a block explorer; the symbol of a token; a label; the address of a router or a ramp. ' +
      `At most ${MAX_MATCHES} of each kind.`,
    queryParameters: lookupParameters.declared,
    success: { description: 'What was found.', schema: Lookup },
    async handle({ query }, { store }) {
      const { text = '' } = lookupParameters.parse(query);
      const understood = searchableText(text);
      return json<Lookup>({ text: understood, data: await lookUp(store, understood) });
    },
  },
  {
    path: '/v2/labels',
    operationId: 'listLabels',
    tag: 'Networks',
    summary: 'Labels',
    description:
      'Names that the operator of this server has given to addresses, in the order of lanescan.yaml.',
    queryParameters: labelParameters.declared,
    success: { description: 'The labels.', schema: LabelList },
    handle({ query }) {
      const { address } = labelParameters.parse(query);
      const labels = definedLabels().filter(({ bytes }) => address === undefined || address.includes(bytes));
      const data = labels.map(({ name, address, network }) => ({ name, address, chainSelector: network }));
      return json<LabelList>({ data, total: labels.length });
    },
  },
];

const match = (kind: LookupMatch['kind'], value: string, more: Partial<LookupMatch> = {}): LookupMatch => ({
  kind,
  value,
  name: null,
  chainSelector: null,
  remoteChainSelector: null,
  ...more,
});
const labelMatch = ({ name, address, network }: DefinedLabel) =>
  match('label', address, { name, chainSelector: network });
const tokenMatch = ({ address, symbol, network }: StoredToken) =>
  match('token', address, { name: symbol, chainSelector: network });

/** @param text as `searchableText` returns it */
export async function lookUp(
  store: Pick<Store, 'tokens' | 'shortened' | 'shortenedBase58' | 'contractRoles'>,
  text: string,
): Promise<readonly LookupMatch[]> {
  if (text.trim() === '') return [];
  const [bytes] = addressBytes(text);
  if (bytes !== undefined && (text.length >= 20 || text.includes('::'))) {
    const spelling = parseAddress(text, 'EVM')?.text ?? text;
    const labels = definedLabels().filter((label) => label.bytes === bytes);
    const [contracts, { tokens }] = await Promise.all([
      store.contractRoles(bytes, spelling),
      store.tokens({ addresses: [bytes], limit: MAX_MATCHES }),
    ]);
    return [
      ...labels.map(labelMatch),
      ...contracts.slice(0, MAX_MATCHES).map(({ role, network: chainSelector, remote }) => {
        return match(role, spelling, { chainSelector, remoteChainSelector: remote });
      }),
      ...tokens.map(tokenMatch),
    ];
  }
  const shortened = shortenedText(text);
  const inBase58 = shortenedBase58(text);
  const [parts, ofSolana, { tokens }] = await Promise.all([
    shortened ? store.shortened(shortened) : undefined,
    inBase58 ? store.shortenedBase58(inBase58) : undefined,
    text.length <= MAX_SYMBOL_CHARACTERS
      ? store.tokens({ symbol: text, limit: MAX_MATCHES })
      : { tokens: [] },
  ]);
  return [
    ...labelsNamed(definedLabels(), text).slice(0, MAX_MATCHES).map(labelMatch),
    ...tokens.map(tokenMatch),
    ...(parts?.messageIds ?? []).map((id) => match('message', `0x${id}`)),
    ...(parts?.transactions ?? [])
      // Signatures of Solana are shown in base58, of which these digits are no part.
      .filter((hash) => hash.length === 64)
      .map((hash) => match('transaction', `0x${hash}`)),
    ...(parts?.addresses ?? []).map((address) =>
      match('address', addressFromBytes(address, 'EVM')?.text ?? `0x${address}`),
    ),
    ...(ofSolana?.transactions ?? []).map((signature) => match('transaction', base58OfHex(signature))),
    ...(ofSolana?.addresses ?? []).map((address) => match('address', base58OfHex(address))),
  ];
}
