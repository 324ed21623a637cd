/** The block explorers of networks: of the built-in table, or as lanescan.yaml has them. */
import { type ChainFamily, familyTraits } from '../chain-families.ts';
import { blockExplorersTable } from './block-explorers-table.ts';
import type { ExplorerUrls } from './explorer-links.ts';
import { networkBySelector } from './networks.ts';

const builtIn: ReadonlyMap<string, string> = new Map(blockExplorersTable);

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
  const network = networkBySelector(selector);
  return network?.blockExplorer ?? builtIn.get(selector) ?? websites[network?.name ?? ''] ?? null;
}

/** The pages of a network's block explorer; null where none is known. */
export function explorerUrlsOf(selector: string): ExplorerUrls | null {
  const website = blockExplorerOf(selector);
  const network = networkBySelector(selector);
  return website === null || network === undefined ? null : pagesOf(website, network.family, network.name);
}

const websites: Readonly<Record<string, string>> = {
  'solana-mainnet': 'https://explorer.solana.com',
  'solana-devnet': 'https://explorer.solana.com',
  'solana-testnet': 'https://explorer.solana.com',
  'aptos-mainnet': 'https://explorer.aptoslabs.com',
  'aptos-testnet': 'https://explorer.aptoslabs.com',
  'sui-mainnet': 'https://suiscan.xyz/mainnet',
  'sui-testnet': 'https://suiscan.xyz/testnet',
  'ton-mainnet': 'https://tonviewer.com',
  'ton-testnet': 'https://testnet.tonviewer.com',
};

/** The networks of these websites are told apart by a parameter. */
const parameters: Readonly<Record<string, string>> = {
  'solana-devnet': '?cluster=devnet',
  'solana-testnet': '?cluster=testnet',
  'aptos-mainnet': '?network=mainnet',
  'aptos-testnet': '?network=testnet',
};

function pagesOf(website: string, family: ChainFamily, name: string): ExplorerUrls | null {
  const paths = familyTraits(family).explorerPaths;
  if (paths === null) return null;
  const parameter = website === websites[name] ? (parameters[name] ?? '') : '';
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
