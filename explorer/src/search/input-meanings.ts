/** Parses the input of the search box: everything it can mean, the likeliest first. */
import { addressBytes, transactionHashBytes } from '../../../src/domain/addresses.ts';
import { type Status, statuses } from '../../../src/domain/lifecycle.ts';
import { networks } from '../../../src/domain/networks.ts';
import { statusWords } from '../parts/status-words.ts';

/** A network, as far as the search box and the network filters need it. */
export interface KnownNetwork {
  readonly selector: string;
  readonly name: string;
  readonly displayName: string;
  readonly chainId: string;
}

export type Meaning =
  /** 32 bytes in hex: a message id, or a transaction on either side. Looked up before the app navigates. */
  | { readonly kind: 'hash'; readonly text: string }
  | { readonly kind: 'transaction'; readonly text: string }
  | { readonly kind: 'address'; readonly text: string }
  /** A token or pool by its address; also several terms at once. */
  | { readonly kind: 'terms'; readonly text: string }
  | { readonly kind: 'status'; readonly status: Status }
  | { readonly kind: 'lane'; readonly source: KnownNetwork; readonly dest: KnownNetwork }
  | { readonly kind: 'source'; readonly network: KnownNetwork }
  | { readonly kind: 'dest'; readonly network: KnownNetwork };

const MAX_NETWORKS = 4;

/** @example meaningsOf('sepolia to fuji', known) // a lane */
export function meaningsOf(typed: string, known: readonly KnownNetwork[]): readonly Meaning[] {
  const text = typed.trim();
  if (text === '') return [];
  if (text.includes(',')) {
    const terms = text
      .split(',')
      .map((term) => term.trim())
      .filter((term) => term !== '');
    return terms.length > 0 && terms.every(isKey) ? [{ kind: 'terms', text: terms.join(',') }] : [];
  }
  if (/^0[xX][0-9a-fA-F]{64}$/.test(text))
    return [
      { kind: 'hash', text },
      { kind: 'address', text },
    ];
  // A short hexadecimal number is an address on Move chains; with fewer digits the input is not complete yet.
  const isAddress = addressBytes(text).length > 0 && (text.length >= 20 || text.includes('::'));
  const isTransaction = transactionHashBytes(text).length > 0;
  const keys: Meaning[] = [
    ...(isTransaction ? [{ kind: 'transaction', text } as const] : []),
    ...(isAddress ? [{ kind: 'address', text } as const, { kind: 'terms', text } as const] : []),
  ];
  if (keys.length > 0) return keys;
  return [...laneMeanings(text, known), ...statusMeanings(text), ...networkMeanings(text, known)];
}

function isKey(text: string): boolean {
  return addressBytes(text).length > 0 || transactionHashBytes(text).length > 0;
}

function statusMeanings(text: string): readonly Meaning[] {
  const typedText = text.toLowerCase().replace(/[\s_-]+/g, ' ');
  if (typedText.length < 3) return [];
  return statuses
    .filter((status) =>
      [statusWords[status], status.replace('_', ' ')].some((word) =>
        word.toLowerCase().startsWith(typedText),
      ),
    )
    .map((status) => ({ kind: 'status', status }));
}

const LANE_TEXT = /^(.+?)\s*(?:→|->|=>|>|\sto\s)\s*(.+)$/i;

function laneMeanings(text: string, known: readonly KnownNetwork[]): readonly Meaning[] {
  const [, from = '', to = ''] = LANE_TEXT.exec(text) ?? [];
  const [source] = findNetworks(from, known);
  const [dest] = findNetworks(to, known);
  return source && dest ? [{ kind: 'lane', source, dest }] : [];
}

function networkMeanings(text: string, known: readonly KnownNetwork[]): readonly Meaning[] {
  return findNetworks(text, known)
    .slice(0, MAX_NETWORKS)
    .flatMap((network): Meaning[] => [
      { kind: 'source', network },
      { kind: 'dest', network },
    ]);
}

/** All networks that match, the best match first; among equals those with traffic, which come first in `known`. */
export function findNetworks(typed: string, known: readonly KnownNetwork[]): readonly KnownNetwork[] {
  const typedText = typed.trim().toLowerCase();
  if (typedText === '') return [];
  const words = typedText.split(/[\s_-]+/);
  const scored = allNetworks(known).map((network) => ({
    network,
    score: matchScore(network, typedText, words),
  }));
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ network }) => network);
}

/** The networks of `known` in its order, then all others of the table. */
export function allNetworks(known: readonly KnownNetwork[]): readonly KnownNetwork[] {
  const named = new Set(known.map(({ selector }) => selector));
  return [...known, ...networks.filter(({ selector }) => !named.has(selector))];
}

function matchScore(
  { name, displayName, selector, chainId }: KnownNetwork,
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
