/** The table of networks, and the network that a text means. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, test } from 'vitest';
import { chainFamilies } from '../../../src/domain/addresses.ts';
import { networkOfText, similarNetworks } from '../../../src/domain/networks/network-names.ts';
import { findNetwork, networkBySelector, networks } from '../../../src/domain/networks/networks.ts';

describe('the table of networks', () => {
  it('is what the generator makes of the official client and the registry’s additions', {
    tags: 'slow',
  }, () => {
    const generator = fileURLToPath(new URL('../../../scripts/generate-networks.mjs', import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [generator, '--check'], { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
  });

  it('has 298 networks of six families', () => {
    expect(networks).toHaveLength(298);
    expect(new Set(networks.map((network) => network.family))).toEqual(new Set(chainFamilies));
  });

  test.each(['selector', 'name', 'chainId', 'displayName'] as const)('no two have the same %s', (key) => {
    expect(new Set(networks.map((network) => network[key].toLowerCase())).size).toBe(networks.length);
  });

  it('no number is the selector of one network and the chain id of another', () => {
    const chainIds = new Set(networks.map((network) => network.chainId));
    expect(networks.filter((network) => chainIds.has(network.selector))).toEqual([]);
  });

  it('selectors are uint64 in canonical decimal', () => {
    for (const { selector } of networks) {
      expect(BigInt.asUintN(64, BigInt(selector)).toString()).toBe(selector);
    }
  });

  it('display names are words for people', () => {
    for (const { displayName } of networks) {
      expect(displayName).toMatch(/^[A-Za-z0-9]+(?: [A-Za-z0-9]+)*(?: \(\d+\))?$/);
      expect(displayName).not.toMatch(/mainnet/i);
    }
  });

  test.each([
    ['5009297550715157269', 'ethereum-mainnet', '1', 'EVM', 'Ethereum'],
    ['16015286601757825753', 'ethereum-testnet-sepolia', '11155111', 'EVM', 'Ethereum Sepolia'],
    ['3478487238524512106', 'ethereum-testnet-sepolia-arbitrum-1', '421614', 'EVM', 'Arbitrum Sepolia'],
    ['14767482510784806043', 'avalanche-testnet-fuji', '43113', 'EVM', 'Avalanche Fuji'],
    [
      '16423721717087811551',
      'solana-devnet',
      'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
      'SVM',
      'Solana Devnet',
    ],
    ['4741433654826277614', 'aptos-mainnet', 'aptos:1', 'APTOS', 'Aptos'],
    ['17529533435026248318', 'sui-mainnet', 'sui:1', 'SUI', 'Sui'],
    ['16448340667252469081', 'ton-mainnet', '-239', 'TON', 'TON'],
    ['2308837218439511688', 'canton-mainnet', 'canton:MainNet', 'CANTON', 'Canton'],
    ['2181150070347029680', '1338', '1338', 'EVM', 'EVM chain 1338'],
  ])('%s is %s', (selector, name, chainId, family, displayName) => {
    const expected = { selector, name, chainId, family, displayName };
    expect(networkBySelector(selector)).toMatchObject(expected);
    for (const text of [selector, name, name.toUpperCase(), chainId])
      expect(findNetwork(text)).toMatchObject(expected);
  });
});

describe('looking for a network', () => {
  it('by selector, leading zeros do not count', () => {
    expect(networkBySelector('0005009297550715157269')).toBe(networkBySelector('5009297550715157269'));
  });

  test.each(['', '0', '1', '-1', 'ethereum-mainnet', '5009297550715157270', '0x5', '5009297550715157269n'])(
    '%j is no selector',
    (text) => {
      expect(networkBySelector(text)).toBeUndefined();
    },
  );

  test.each([
    '',
    '0',
    'Ethereum Sepolia',
    'ethereum',
    '__proto__',
    'etwtrabzayq6imfeykouru166vu2xqa1wcawoxpkrzbg',
  ])('%j means none', (text) => {
    expect(findNetwork(text)).toBeUndefined();
  });
});

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
