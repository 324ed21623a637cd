/** The block explorers of networks: of the built-in table, or as lanescan.yaml has them. */
import { familyTraits } from '../chain-families.ts';
import { networkBySelector, networks } from './networks.ts';

/** URLs with `{}` where the hash, address or number goes; null where the explorer has no such page. */
export type ExplorerUrls = Readonly<Record<ExplorerPage, string | null>>;
export type ExplorerPage = 'transaction' | 'address' | 'block' | 'token';

/** The link to one page; null where the network has none. The value is escaped: it can come from a record. */
export function explorerLink(
  urls: ExplorerUrls | null | undefined,
  page: ExplorerPage,
  value: string | number,
): string | null {
  const url = urls?.[page];
  return url === null || url === undefined ? null : url.replace('{}', () => encodeURIComponent(value));
}

/** Null: the operator wants no links for this network. */
let configured: ReadonlyMap<string, string | null> = new Map();

/** By chain selector. Replaces what an earlier call defined, for the whole process. */
export function defineBlockExplorers(explorers: ReadonlyMap<string, string | null>): void {
  configured = explorers;
}

/** The website of a network's block explorer; null where none is known. */
export function blockExplorerOf(selector: string): string | null {
  const chosen = configured.get(selector);
  if (chosen !== undefined) return chosen;
  // A chain that the operator defines may leave out what the table knows.
  return networkBySelector(selector)?.blockExplorer ?? builtIn(selector)?.blockExplorer ?? null;
}

function builtIn(selector: string) {
  return networks.find((network) => network.selector === selector);
}

/** The networks of these websites are told apart by a parameter. */
const parameters: Readonly<Record<string, string>> = {
  'solana-devnet': '?cluster=devnet',
  'solana-testnet': '?cluster=testnet',
  'aptos-mainnet': '?network=mainnet',
  'aptos-testnet': '?network=testnet',
};

/** The pages of a network's block explorer; null where none is known. */
export function explorerUrlsOf(selector: string): ExplorerUrls | null {
  const website = blockExplorerOf(selector);
  const network = networkBySelector(selector);
  const paths = network ? familyTraits(network.family).explorerPaths : null;
  if (website === null || paths === null) return null;
  const { name = '', blockExplorer } = builtIn(selector) ?? {};
  const parameter = website === blockExplorer ? (parameters[name] ?? '') : '';
  const page = (path: string) => `${website}/${path}${parameter}`;
  // The two common programs have pages of tokens; the others show a token as any contract.
  const hasTokenPages = /scan|blockscout/i.test(new URL(website).hostname);
  return {
    transaction: page(paths.transaction),
    address: page(paths.address),
    block: paths.block === null ? null : page(paths.block),
    token: page(hasTokenPages ? paths.token : paths.address),
  };
}
