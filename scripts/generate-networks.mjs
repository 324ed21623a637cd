/**
 * Writes src/domain/networks/networks-table.ts from two sources: the networks that the official client in test/lab knows, and
 * those that Chainlink's registry of chain selectors has gained since (network-additions.json, which names its commit). Their
 * block explorers come from the chain definitions of viem, which is a dependency anyway.
 *
 *   npm run networks               after raising the client's version in test/lab, or viem's, or after an addition
 *   npm run networks -- --check    writes nothing, fails when the table differs
 *   npm run networks -- --registry <folder>
 *                                  first rewrites the additions from a checkout of the registry
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import * as chains from 'viem/chains';
import { parse as parseYaml } from 'yaml';

const target = new URL('../src/domain/networks/networks-table.ts', import.meta.url);
const additionsFile = new URL('./network-additions.json', import.meta.url);
/** Files of the registry, the family of each, and what the client puts in front of the chain ids there. */
const registryFiles = [
  ['selectors.yml', 'EVM', ''],
  ['selectors_solana.yml', 'SVM', ''],
  ['selectors_aptos.yml', 'APTOS', 'aptos:'],
  ['selectors_sui.yml', 'SUI', 'sui:'],
  ['selectors_ton.yml', 'TON', ''],
  ['selectors_canton.yml', 'CANTON', 'canton:'],
];

/** Networks whose name does not say, by the rules of `readableName`, what people call them. */
const exceptions = {
  'avalanche-subnet-dexalot-mainnet': 'Dexalot',
  'avalanche-subnet-dexalot-testnet': 'Dexalot Testnet',
  'avalanche-testnet-nexon': 'Nexon Testnet',
  'bitcoin-merlin-mainnet': 'Merlin',
  'cronos-testnet-zkevm-1': 'Cronos zkEVM Testnet',
  'ethereum-mainnet-arbitrum-1': 'Arbitrum One',
  'ethereum-mainnet-arbitrum-1-l3x-1': 'L3X',
  'ethereum-mainnet-arbitrum-1-treasure-1': 'Treasure on Arbitrum',
  'ethereum-testnet-sepolia-arbitrum-1-l3x-1': 'L3X Sepolia',
  'ethereum-testnet-sepolia-arbitrum-1-treasure-1': 'Treasure on Arbitrum Sepolia',
  'gate-chain-mainnet': 'GateChain',
  'gate-chain-testnet-meteora': 'GateChain Meteora',
  'gnosis_chain-testnet-chiado': 'Gnosis Chiado',
  'pharos-atlantic-testnet': 'Pharos Atlantic',
  'polkadot-testnet-astar-shibuya': 'Astar Shibuya',
  'polkadot-testnet-centrifuge-altair': 'Centrifuge Altair',
  'polkadot-testnet-darwinia-pangoro': 'Darwinia Pangoro',
  'polkadot-testnet-moonbeam-moonbase': 'Moonbase Alpha',
  'polygon-mainnet-katana': 'Katana',
  'polygon-testnet-tatara': 'Katana Tatara',
  'private-testnet-andesite': 'Private Testnet Andesite',
  'private-testnet-granite': 'Private Testnet Granite',
  'private-testnet-mica': 'Private Testnet Mica',
  'private-testnet-obsidian': 'Private Testnet Obsidian',
  'private-testnet-opala': 'Private Testnet Opala',
  'private-testnet-pumice': 'Private Testnet Pumice',
  'private-testnet-quartzite': 'Private Testnet Quartzite',
  'private-testnet-rhyolite': 'Private Testnet Rhyolite',
  't-rex-testnet': 'T REX Testnet',
  'tron-devnet-evm': 'TRON Devnet',
  'tron-mainnet-evm': 'TRON',
  'tron-testnet-nile-evm': 'TRON Nile',
  'tron-testnet-shasta-evm': 'TRON Shasta',
  'zero-g-testnet-galileo': '0G Galileo',
};

/** Words that are not spelled with one capital in front. */
const spellings = {
  '0g': '0G',
  ab: 'AB',
  adi: 'ADI',
  apechain: 'ApeChain',
  binance_smart_chain: 'BNB Chain',
  bittorrent_chain: 'BitTorrent Chain',
  bob: 'BOB',
  bsquared: 'BSquared',
  coinex_smart_chain: 'CoinEx Smart Chain',
  dogeos: 'DogeOS',
  dtcc: 'DTCC',
  evm: 'EVM',
  gnosis_chain: 'Gnosis Chain',
  hashkey: 'HashKey',
  megaeth: 'MegaETH',
  near: 'NEAR',
  neonlink: 'NeonLink',
  neox: 'Neo X',
  opbnb: 'opBNB',
  qa: 'QA',
  tac: 'TAC',
  ton: 'TON',
  wemix: 'WEMIX',
  worldchain: 'World Chain',
  xdc: 'XDC',
  xlayer: 'X Layer',
  zetachain: 'ZetaChain',
  zkevm: 'zkEVM',
  zklink_nova: 'zkLink Nova',
  zksync: 'ZKsync',
};

/** Block explorers of networks that are not EVM chains. */
const otherExplorers = {
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
/** Networks whose chain id another chain has as well, so that viem's definition is of that one. */
const otherChains = [
  'cronos-zkevm-testnet-sepolia',
  'ondo-testnet',
  'polkadot-testnet-astar-shibuya',
  'private-testnet-andesite',
  'ronin-testnet-saigon',
];
/** Explorers whose pages are not at /tx/…, /address/… and /block/…. */
const otherPaths = ['filfox.info', 'hashscan.io', 'subscan.io', 'tronscan.org', 'subnets.avax.network'];

const explorersById = new Map();
for (const { id, blockExplorers } of Object.values(chains)) {
  const url = blockExplorers?.default?.url?.replace(/\/+$/, '');
  if (!url || !URL.canParse(url) || new URL(url).search !== '' || explorersById.has(String(id))) continue;
  explorersById.set(String(id), url);
}

/** Without a slash at its end; undefined where none is known. */
function blockExplorerOf({ name, chainId, family }) {
  if (family !== 'EVM') return otherExplorers[name];
  const url = otherChains.includes(name) ? undefined : explorersById.get(chainId);
  if (url === undefined) return undefined;
  const { hostname, protocol } = new URL(url);
  return protocol === 'https:' && !otherPaths.some((host) => hostname.endsWith(host)) ? url : undefined;
}

const environments = new Set(['mainnet', 'testnet', 'devnet', 'localnet']);
/** Chains under whose name the client lists the chains built on them. */
const hosts = new Set(['ethereum', 'bitcoin', 'binance_smart_chain', 'polkadot', 'kusama']);
const hostTestnets = new Set(['goerli', 'holesky', 'hoodi', 'sepolia']);

/** `host-environment-chain-1`, `chain-environment` or `chain-environment-nickname`, as people say it. */
function readableName(name) {
  if (name in exceptions) return exceptions[name];

  const words = name.replace(/-1$/, '').split('-');
  const at = words.findIndex((word) => environments.has(word));
  if (at === -1) return spelled(words);
  const chain = words.slice(0, at);
  const environment = words[at];
  const rest = words.slice(at + 1);

  const testnet = hostTestnets.has(rest[0]) ? rest.slice(0, 1) : [];
  const built = rest.slice(testnet.length);
  if (hosts.has(chain[0]) && built.length > 0) {
    return spelled([
      ...built,
      ...(testnet.length > 0 || environment === 'mainnet' ? testnet : [environment]),
    ]);
  }
  const isNumbered = /^\d+$/.test(rest[0] ?? '');
  const needsEnvironment = environment !== 'mainnet' && (rest.length === 0 || isNumbered);
  return spelled([...chain, ...(needsEnvironment ? [environment] : []), ...rest]);
}

function spelled(words) {
  return words.map((word) => spellings[word] ?? word[0].toUpperCase() + word.slice(1)).join(' ');
}

function compareText(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function officialClient() {
  const lab = createRequire(new URL('../test/lab/package.json', import.meta.url));
  try {
    return pathToFileURL(lab.resolve('@chainlink/ccip-sdk')).href;
  } catch {
    console.error('The official client is not installed in test/lab. Run: npm run lab:install');
    process.exit(1);
  }
}

async function clientNetworks() {
  const { SELECTORS } = await import(officialClient());
  return Object.entries(SELECTORS).map(([chainId, { selector, name, family }]) => ({
    chainId,
    selector: String(selector),
    // A few chains have no name; their chain id stands for it, as in Chainlink's own registry of selectors.
    name: name || chainId,
    family,
  }));
}

/** What a checkout of the registry has beyond the client. */
function registryAdditions(folder, known) {
  const knownSelectors = new Set(known.map(({ selector }) => selector));
  const networks = registryFiles.flatMap(([file, family, prefix]) => {
    const { selectors } = parseYaml(readFileSync(path.join(folder, file), 'utf8'), { intAsBigInt: true });
    return Object.entries(selectors).map(([id, { selector, name }]) => {
      const chainId = `${prefix}${id}`;
      return { chainId, selector: String(selector), name: name || chainId, family };
    });
  });
  const git = (...args) => execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' }).trim();
  return {
    source: 'https://github.com/smartcontractkit/chain-selectors',
    commit: git('rev-parse', 'HEAD'),
    networks: networks.filter(({ selector }) => !knownSelectors.has(selector)),
  };
}

function tableNetworks(known, additions) {
  const knownSelectors = new Set(known.map(({ selector }) => selector));
  for (const { selector, name } of additions) {
    if (!knownSelectors.has(selector)) continue;
    throw new Error(`The client knows ${name} by now: take it out of scripts/network-additions.json.`);
  }
  const networks = [...known, ...additions].map((network) => ({
    ...network,
    blockExplorer: blockExplorerOf(network),
    displayName:
      network.name === network.chainId
        ? `${network.family} chain ${network.chainId}`
        : readableName(network.name),
  }));
  // Successive generations of one testnet read the same; the chain id tells them apart.
  const readings = networks.map((network) => network.displayName);
  const isShared = (reading) => readings.indexOf(reading) !== readings.lastIndexOf(reading);
  for (const network of networks) {
    if (isShared(network.displayName)) network.displayName += ` (${network.chainId})`;
  }
  for (const key of ['selector', 'name', 'chainId', 'displayName']) {
    const distinct = new Set(networks.map((network) => network[key]));
    if (distinct.size !== networks.length) throw new Error(`Two networks have the same ${key}.`);
  }
  return networks.sort((a, b) => compareText(a.name, b.name));
}

function tableSource(networks) {
  const quoted = (text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const rows = networks.map(
    ({ selector, name, chainId, family, displayName, blockExplorer }) =>
      `  [${[selector, name, chainId, family, displayName, ...(blockExplorer ? [blockExplorer] : [])].map(quoted).join(', ')}],\n`,
  );
  return `// Generated by \`npm run networks\`; scripts/generate-networks.mjs names the sources. Do not edit.
import type { ChainFamily } from '../addresses.ts';

export const networksTable: readonly (readonly [
  selector: string, name: string, chainId: string, family: ChainFamily, displayName: string, blockExplorer?: string,
])[] = [
${rows.join('')}];
`;
}

const known = await clientNetworks();
const registry = process.argv.indexOf('--registry');
if (registry !== -1) {
  const folder = process.argv[registry + 1];
  if (folder === undefined) throw new Error('--registry takes the folder of a checkout of chain-selectors.');
  writeFileSync(additionsFile, `${JSON.stringify(registryAdditions(folder, known), null, 2)}\n`);
}
const { networks: additions } = JSON.parse(readFileSync(additionsFile, 'utf8'));
const source = tableSource(tableNetworks(known, additions));
if (!process.argv.includes('--check')) {
  writeFileSync(target, source);
} else if (readFileSync(target, 'utf8') !== source) {
  console.error('src/domain/networks/networks-table.ts is not what its sources say. Run: npm run networks');
  process.exit(1);
}
