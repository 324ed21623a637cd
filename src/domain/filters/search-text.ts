/**
 * Reads what people type or paste to find messages, in the explorer's search box and behind `lanescan search`: everything it
 * can mean, the likeliest first.
 *
 * It takes ids, hashes and addresses with or without 0x, shortened as lists show them, or inside the URL of a block explorer;
 * networks, lanes and statuses. Symbols of tokens, labels and shortened values need the store: `GET /v2/lookup` finds those.
 */
import { addressBytes, transactionHashBytes } from '../addresses.ts';
import { type Status, statuses } from '../lifecycle.ts';
import { networkOfText } from '../networks/network-names.ts';
import { knownNetworks, type Network } from '../networks/networks.ts';

/** A network, as far as a search needs it. */
export type NamedNetwork = Pick<Network, 'selector' | 'name' | 'displayName' | 'chainId'>;

export type Meaning =
  /** 32 bytes in hex: a message id, or a transaction on either side. */
  | { readonly kind: 'hash'; readonly text: string }
  | { readonly kind: 'transaction'; readonly text: string }
  | { readonly kind: 'address'; readonly text: string }
  /** A token or pool by its address; also several terms at once. */
  | { readonly kind: 'terms'; readonly text: string }
  /** Part of an id, a hash or an address. */
  | ({ readonly kind: 'shortened' } & ShortenedText)
  | { readonly kind: 'status'; readonly status: Status }
  | { readonly kind: 'lane'; readonly source: NamedNetwork; readonly dest: NamedNetwork }
  /** A network as source or as destination. */
  | { readonly kind: 'network'; readonly network: NamedNetwork }
  | { readonly kind: 'source'; readonly network: NamedNetwork }
  | { readonly kind: 'dest'; readonly network: NamedNetwork };

/** Hexadecimal digits in lower case, without 0x; or digits of base58. */
export interface ShortenedText {
  readonly head: string;
  /** Empty for a prefix. */
  readonly tail: string;
}

export interface ReadingOptions {
  /** The networks with traffic, the busiest first: they come before the others of the table. */
  readonly known?: readonly NamedNetwork[];
  /** What else statuses are called. */
  readonly statusWords?: Readonly<Partial<Record<Status, string>>>;
}

const MAX_NETWORKS = 4;
/** A longer text is not one that a person means; a URL may be long. */
export const MAX_TEXT_CHARACTERS = 2_000;

/** @example meaningsOf('sepolia to fuji') // a lane */
export function meaningsOf(
  typed: string,
  { known = [], statusWords = {} }: ReadingOptions = {},
): readonly Meaning[] {
  const text = searchableText(typed);
  if (text === '') return [];
  if (text.includes(',')) {
    const terms = text
      .split(',')
      .map((term) => withPrefix(term.trim()))
      .filter((term) => term !== '');
    return terms.length > 0 && terms.every(isKey) ? [{ kind: 'terms', text: terms.join(',') }] : [];
  }
  if (/^0x[0-9a-f]{64}$/i.test(text))
    return [
      { kind: 'hash', text },
      { kind: 'address', text },
    ];
  // A short hexadecimal number is an address on Move chains; with fewer digits the input is not complete yet.
  const isAddress = addressBytes(text).length > 0 && (text.length >= 20 || text.includes('::'));
  const shortened = shortenedText(text) ?? shortenedBase58(text);
  // 32 bytes in base58 are an address of Solana more often than a transaction of Sui.
  const keys: Meaning[] = [
    ...(isAddress ? [{ kind: 'address', text } as const] : []),
    ...(transactionHashBytes(text).length > 0 ? [{ kind: 'transaction', text } as const] : []),
    ...(isAddress ? [{ kind: 'terms', text } as const] : []),
    ...(shortened ? [{ kind: 'shortened', ...shortened } as const] : []),
  ];
  if (keys.length > 0 && /^0x|…|\.\.|::|.{32}/i.test(text)) return keys;
  // Digits alone may be a chain id, and letters from a to f a word.
  return [
    ...laneMeanings(text, known),
    ...statusMeanings(text, statusWords),
    ...networkMeanings(text, known),
    ...keys,
  ];
}

/** The text without what surrounds it: spaces, quotes, the rest of a URL; ids and addresses with 0x in front. */
export function searchableText(typed: string): string {
  const text = typed.trim().replace(/^["'`<(]+|["'`>)]+$/g, '');
  if (text.length > MAX_TEXT_CHARACTERS) return '';
  return withPrefix(keyInUrl(text) ?? text);
}

function withPrefix(text: string): string {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/i.test(text) ? `0x${text}` : text.replace(/^0X/, '0x');
}

/**
 * The id, hash or address in a URL of a block explorer, a CCIP explorer or this one; undefined where the text is no URL or
 * has none.
 *
 * @example keyInUrl('https://sepolia.etherscan.io/tx/0x3cbe…#eventlog')
 */
export function keyInUrl(text: string): string | undefined {
  if (!/^(https?:\/\/|www\.)/i.test(text)) return undefined;
  const url = text.startsWith('http') || text.startsWith('HTTP') ? text : `https://${text}`;
  if (!URL.canParse(url)) return undefined;
  const { pathname, hash, search } = new URL(url);
  const parts = `${pathname}/${hash}/${search}`.split(/[/?#&=]/).map(decoded);
  // Shorter ones are numbers and words, such as a block.
  return parts.find((part) => part.length >= 32 && isKey(withPrefix(part)));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function isKey(text: string): boolean {
  return addressBytes(text).length > 0 || transactionHashBytes(text).length > 0;
}

const MIN_PREFIX = 6;
const SHORTENED = /^(?:0x)?([0-9a-f]{4,60})(?:…|\.{2,3})([0-9a-f]{4,60})$/i;
const PREFIX = /^(?:0x)?([0-9a-f]{6,63})$/i;

/** The digits of `0x2f63…aa14`, or of the beginning of an id; undefined where the text is neither. */
export function shortenedText(text: string): ShortenedText | undefined {
  const [, head, tail = ''] = SHORTENED.exec(text) ?? PREFIX.exec(text) ?? [];
  if (head === undefined || (tail === '' && head.length < MIN_PREFIX)) return undefined;
  return { head: head.toLowerCase(), tail: tail.toLowerCase() };
}

const SHORTENED_BASE58 = /^([1-9A-HJ-NP-Za-km-z]{4,43})(?:…|\.{2,3})([1-9A-HJ-NP-Za-km-z]{4,43})$/;

/** The digits of `DXDb…HvK9`, an address or a signature of Solana as lists show it. */
export function shortenedBase58(text: string): ShortenedText | undefined {
  const [, head, tail] = SHORTENED_BASE58.exec(text) ?? [];
  return head === undefined || tail === undefined ? undefined : { head, tail };
}

function statusMeanings(text: string, words: ReadingOptions['statusWords'] = {}): readonly Meaning[] {
  const typedText = text.toLowerCase().replace(/[\s_-]+/g, ' ');
  if (typedText.length < 3) return [];
  return statuses
    .filter((status) =>
      [words[status] ?? '', status.replace('_', ' ')].some((word) =>
        word.toLowerCase().startsWith(typedText),
      ),
    )
    .map((status) => ({ kind: 'status', status }));
}

export const LANE_TEXT = /^(.+?)\s*(?:→|->|=>|>|\sto\s)\s*(.+)$/i;

function laneMeanings(text: string, known: readonly NamedNetwork[]): readonly Meaning[] {
  const [, from = '', to = ''] = LANE_TEXT.exec(text) ?? [];
  const [source] = findNetworks(from, known);
  const [dest] = findNetworks(to, known);
  return source && dest ? [{ kind: 'lane', source, dest }] : [];
}

function networkMeanings(text: string, known: readonly NamedNetwork[]): readonly Meaning[] {
  return findNetworks(text, known)
    .slice(0, MAX_NETWORKS)
    .flatMap((network): Meaning[] => [
      { kind: 'network', network },
      { kind: 'source', network },
      { kind: 'dest', network },
    ]);
}

/** Above all others. */
const BEST_SCORE = 5;

/** All networks that match, the best match first; among equals those with traffic, which come first in `known`. */
export function findNetworks(typed: string, known: readonly NamedNetwork[]): readonly NamedNetwork[] {
  const typedText = typed.trim().toLowerCase();
  if (typedText === '') return [];
  const words = typedText.split(/[\s_-]+/);
  const meant = networkOfText(typed)?.selector;
  const scored = allNetworks(known).map((network) => ({
    network,
    score: network.selector === meant ? BEST_SCORE : matchScore(network, typedText, words),
  }));
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ network }) => network);
}

/** The networks of `known` in its order, then all others of the table. */
export function allNetworks(known: readonly NamedNetwork[]): readonly NamedNetwork[] {
  const named = new Set(known.map(({ selector }) => selector));
  return [...known, ...knownNetworks().filter(({ selector }) => !named.has(selector))];
}

function matchScore(
  { name, displayName, selector, chainId }: NamedNetwork,
  typedText: string,
  words: readonly string[],
): number {
  const display = displayName.toLowerCase();
  if (name === typedText || display === typedText || selector === typedText || chainId === typedText)
    return 4;
  if (display.startsWith(typedText)) return 3;
  const parts = `${display} ${name}`.split(/[\s_-]+/);
  if (words.every((word) => parts.some((part) => part.startsWith(word)))) return 2;
  return typedText.length > 2 && (display.includes(typedText) || name.includes(typedText)) ? 1 : 0;
}
