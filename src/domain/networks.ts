/** The known networks: all those of the official SDK. */
import type { ChainFamily } from './addresses.ts';
import { networksTable } from './networks-table.ts';

export interface Network {
  /** CCIP's number for the network: a uint64 in decimal. */
  readonly selector: string;
  /** CCIP's name for it, such as `ethereum-testnet-sepolia`. Three chains have only their chain id. */
  readonly name: string;
  /** The chain's own id: EIP-155 number, SVM genesis hash, `aptos:1`, TON global id `-239`. */
  readonly chainId: string;
  readonly family: ChainFamily;
  /** Display name, such as `Ethereum Sepolia`. */
  readonly displayName: string;
}

/** All known networks, ordered by name. */
export const networks: readonly Network[] = networksTable.map(
  ([selector, name, chainId, family, displayName]) => ({ selector, name, chainId, family, displayName }),
);

const bySelector = new Map(networks.map((network) => [network.selector, network]));
const byName = new Map(networks.map((network) => [network.name, network]));
const byChainId = new Map(networks.map((network) => [network.chainId, network]));

/** The network of a selector in decimal; leading zeros are ignored. */
export function networkBySelector(selector: string): Network | undefined {
  return bySelector.get(selector.replace(/^0+(?=.)/, ''));
}

/**
 * Finds a network by its name (in any letter case), selector or chain id.
 *
 * @example findNetwork('solana-devnet'), findNetwork('16015286601757825753'), findNetwork('11155111')
 */
export function findNetwork(text: string): Network | undefined {
  return byName.get(text.toLowerCase()) ?? networkBySelector(text) ?? byChainId.get(text);
}
