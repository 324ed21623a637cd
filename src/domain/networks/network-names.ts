/** Finds networks by what people call them, and suggests names for what they mistyped. */
import { nearestName } from '../../base/nearest-name.ts';
import { findNetwork, knownNetworks, type Network } from './networks.ts';

/** The last word of many names, which identifies none of them. */
const KIND_OF_NETWORK = /^(main|test|dev|local)net$/;

/**
 * The network of a selector, a chain id, a name or display name in any letter case, or the last words of a name where
 * these are clear. Undefined where nothing matches, and where several do: similarNetworks lists those.
 *
 * @example networkOfText('sepolia')?.name // 'ethereum-testnet-sepolia'
 */
export function networkOfText(text: string): Network | undefined {
  const typed = normalized(text);
  const found =
    findNetwork(text.trim()) ?? knownNetworks().find(({ displayName }) => normalized(displayName) === typed);
  if (found || typed === '' || KIND_OF_NETWORK.test(typed)) return found;
  const [best, second] = networksEndingIn(typed);
  // Many testnets end in `sepolia`; that of Ethereum is the one on which others are built.
  return best && (!second || rollupsOf(best) > rollupsOf(second)) ? best : undefined;
}

/** Networks that a text may mean, the likeliest first. `isEligible` restricts them. */
export function similarNetworks(text: string, isEligible: (network: Network) => boolean = () => true) {
  const typed = normalized(text);
  if (typed === '') return [];
  const all = knownNetworks();
  const exact = networkOfText(text);
  const alike = new Set([
    ...(exact ? [exact] : []),
    ...networksEndingIn(typed),
    ...all.filter(({ name, displayName }) =>
      `${normalized(name)}|${normalized(displayName)}`.includes(typed),
    ),
  ]);
  const eligible = [...alike].filter(isEligible);
  if (eligible.length > 0) return eligible;
  const names = all.filter(isEligible).map(({ name }) => name);
  const nearest = nearestName(text.trim(), names);
  return all.filter(({ name }) => name === nearest);
}

/** Networks whose name ends in these words, those with the most rollups first. */
function networksEndingIn(typed: string): readonly Network[] {
  return knownNetworks()
    .filter(({ name }) => normalized(name).endsWith(` ${typed}`))
    .sort((a, b) => rollupsOf(b) - rollupsOf(a));
}

/** How many networks are built on this one: CCIP's names begin with the name of the chain below. */
function rollupsOf({ name }: Network): number {
  return knownNetworks().filter((other) => other.name.startsWith(`${name}-`)).length;
}

/** Lower case, with one space between words. */
function normalized(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, ' ');
}
