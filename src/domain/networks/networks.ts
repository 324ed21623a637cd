/** The networks that messages go between: the built-in table, and those that the operator defines. */
import type { ChainFamily } from '../addresses.ts';
import { networksTable } from './networks-table.ts';

export interface Network {
  /** CCIP's number for the network: a uint64 in decimal. */
  readonly selector: string;
  /** CCIP's name for it, such as `ethereum-testnet-sepolia`. Three chains have only their chain id. */
  readonly name: string;
  /** The chain's own id: EIP-155 number, SVM genesis hash, `aptos:1`, TON global id `-239`. */
  readonly chainId: string;
  readonly family: ChainFamily;
  readonly displayName: string;
  /** URL of a block explorer, without a slash at its end. */
  readonly blockExplorer?: string;
}

/** The built-in table, ordered by name. */
export const networks: readonly Network[] = networksTable.map(
  ([selector, name, chainId, family, displayName, blockExplorer]) => ({
    selector,
    name,
    chainId,
    family,
    displayName,
    ...(blockExplorer !== undefined && { blockExplorer }),
  }),
);

let registry = createRegistry([]);

function createRegistry(defined: readonly Network[]) {
  const replaced = new Set(defined.map(({ selector }) => selector));
  const all: readonly Network[] = [
    ...networks.filter(({ selector }) => !replaced.has(selector)),
    ...defined,
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
  const by = (key: 'selector' | 'name' | 'chainId') => new Map(all.map((network) => [network[key], network]));
  return { all, bySelector: by('selector'), byName: by('name'), byChainId: by('chainId') };
}

/**
 * Makes networks known beside the built-in table, for the whole process; one with a selector of the table replaces its
 * entry. Each call replaces what an earlier one defined.
 */
export function defineNetworks(defined: readonly Network[]): void {
  registry = createRegistry(defined);
}

export function knownNetworks(): readonly Network[] {
  return registry.all;
}

/** The network of a selector in decimal; leading zeros are ignored. */
export function networkBySelector(selector: string): Network | undefined {
  return registry.bySelector.get(selector.replace(/^0+(?=.)/, ''));
}

/**
 * Finds a network by its name (in any letter case), selector or chain id.
 *
 * @example findNetwork('solana-devnet'), findNetwork('16015286601757825753'), findNetwork('11155111')
 */
export function findNetwork(text: string): Network | undefined {
  return registry.byName.get(text.toLowerCase()) ?? networkBySelector(text) ?? registry.byChainId.get(text);
}
