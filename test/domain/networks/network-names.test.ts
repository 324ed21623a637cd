import { describe, expect, test } from 'vitest';
import { networkOfText, similarNetworks } from '../../../src/domain/networks/network-names.ts';
import { networks } from '../../../src/domain/networks/networks.ts';

describe('the network that a text means', () => {
  test.each([
    ['sepolia', 'ethereum-testnet-sepolia'],
    ['Sepolia ', 'ethereum-testnet-sepolia'],
    ['fuji', 'avalanche-testnet-fuji'],
    ['Base', 'ethereum-mainnet-base-1'],
    ['base sepolia', 'ethereum-testnet-sepolia-base-1'],
    ['arbitrum-sepolia', 'ethereum-testnet-sepolia-arbitrum-1'],
    ['solana_devnet', 'solana-devnet'],
    ['11155111', 'ethereum-testnet-sepolia'],
    ['16015286601757825753', 'ethereum-testnet-sepolia'],
  ])('%j is %s', (text, name) => {
    expect(networkOfText(text)?.name).toBe(name);
  });

  test.each(['', ' ', 'mainnet', 'testnet', 'devnet', 'arbitrum', '1e3', 'ethereum-testnet-sepola'])(
    '%j is unclear',
    (text) => expect(networkOfText(text)).toBeUndefined(),
  );

  test('is a network by its own name and display name', () => {
    for (const network of networks) {
      expect(networkOfText(network.name)).toBe(network);
      expect(networkOfText(network.displayName.toUpperCase())).toBe(network);
    }
  });
});

describe('suggestions', () => {
  test.each([
    ['sepolia', 'ethereum-testnet-sepolia'],
    ['ethereum-sepolia', 'ethereum-testnet-sepolia'],
    ['ethereum-testnet-sepola', 'ethereum-testnet-sepolia'],
    ['arbitrum', 'ethereum-mainnet-arbitrum-1'],
    ['polygon', 'polygon-mainnet'],
  ])('for %j begin with %s', (text, name) => {
    expect(similarNetworks(text)[0]?.name).toBe(name);
  });

  test('are restricted to eligible networks', () => {
    const suggested = similarNetworks('devnet', ({ family }) => family === 'SVM');
    expect(suggested.map(({ name }) => name)).toEqual(['solana-devnet']);
  });

  test('are none for what resembles nothing', () => {
    expect(similarNetworks('qqqqqqqqqqqqqqqq')).toEqual([]);
  });
});
