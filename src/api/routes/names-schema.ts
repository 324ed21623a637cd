/** Schemas of tokens, labels, and what a typed text can mean. */
import Type from 'typebox';
import { MAX_DECIMALS, MAX_NAME_CHARACTERS, MAX_SYMBOL_CHARACTERS } from '../../domain/names/tokens.ts';
import { count, dateTime, decimal, list, oneOf, orNull, type ResponseBody, text } from './response-schema.ts';

export const Token = Type.Object({
  chainSelector: decimal('Chain selector of the token’s network.'),
  networkName: orNull(text('Name of that network; null where it is not known here.')),
  address: text('Token contract, or mint.'),
  symbol: orNull(
    Type.String({
      maxLength: 2 * MAX_SYMBOL_CHARACTERS,
      description:
        'What the contract calls itself, cut and without control characters. Anybody can claim any symbol.',
    }),
  ),
  name: orNull(
    Type.String({
      maxLength: 2 * MAX_NAME_CHARACTERS,
      description: 'The contract’s longer name for itself, in the same way.',
    }),
  ),
  decimals: orNull(
    Type.Integer({ minimum: 0, maximum: MAX_DECIMALS, description: 'Decimals of amounts in this token.' }),
  ),
  source: oneOf(
    ['chain', 'operator'],
    '`chain`: the contract’s own claims. `operator`: defined or changed in this server’s lanescan.yaml.',
  ),
  readAt: orNull(dateTime('When the contract was read; null while it has not been read.')),
});

export const TokenList = Type.Object({
  data: Type.Array(Token),
  total: count('How many tokens match.'),
  pending: count('Tokens of the network, or of all networks, whose contract has not been read yet.'),
});

export type Token = ResponseBody<typeof Token>;
export type TokenList = ResponseBody<typeof TokenList>;

export const Label = Type.Object({
  name: text('The operator’s name for the address. Plain text.'),
  address: Type.String(),
  chainSelector: orNull(decimal('The network that it is for; null: every network.')),
});

export const LabelList = Type.Object({
  data: Type.Array(Label),
  total: count('How many labels match.'),
});

export const lookupKinds = [
  'message',
  'transaction',
  'address',
  'label',
  'token',
  'router',
  'onRamp',
  'offRamp',
] as const;

export const LookupMatch = Type.Object({
  kind: oneOf(lookupKinds, 'What was found.'),
  value: text('The whole id, hash or address.'),
  name: orNull(text('Label, or symbol of a token: what its contract, or the operator, calls it.')),
  chainSelector: orNull(decimal('Its network, where that is known.')),
  remoteChainSelector: orNull(decimal('The chain at the other end of a ramp.')),
});

export const Lookup = Type.Object({
  text: text('The text as it was understood: a URL is reduced to the value in it.'),
  data: list(LookupMatch, 'The likeliest first; empty where nothing is known.'),
});

export type Label = ResponseBody<typeof Label>;
export type LabelList = ResponseBody<typeof LabelList>;
export type LookupMatch = ResponseBody<typeof LookupMatch>;
export type Lookup = ResponseBody<typeof Lookup>;
