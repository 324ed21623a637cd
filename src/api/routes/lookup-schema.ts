/** Schemas of labels, and of what a typed text can mean. */
import Type from 'typebox';
import { count, decimal, list, oneOf, orNull, type ResponseBody, text } from './response-schema.ts';

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
