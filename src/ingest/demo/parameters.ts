/**
 * Parameters of the simulation: networks, tokens, lanes, and the behaviour of senders.
 *
 * Networks have the names of real testnets; every address, hash and message is made up. Stages are shorter than in reality
 * (Sepolia takes a quarter of an hour to finalize), so that a visitor sees messages complete within a minute or two.
 */

/**
 * @param height block number at `HEIGHTS_AT`
 * @param epochSeconds the blocks of an epoch finalize together, `finalityLagSeconds` after it has ended
 */
const network = (
  name: string,
  blockMs: number,
  height: number,
  epochSeconds: number,
  finalityLagSeconds: number,
) => ({ name, blockMs, height, epochSeconds, finalityLagSeconds });

export type NetworkProfile = Readonly<ReturnType<typeof network>>;

export const HEIGHTS_AT = Date.UTC(2025, 0, 1);

export const networkProfiles = {
  sepolia: network('ethereum-testnet-sepolia', 12_000, 7_390_000, 24, 12),
  base: network('ethereum-testnet-sepolia-base-1', 2_000, 19_970_000, 10, 6),
  arbitrum: network('ethereum-testnet-sepolia-arbitrum-1', 250, 108_600_000, 8, 4),
  optimism: network('ethereum-testnet-sepolia-optimism-1', 2_000, 21_950_000, 10, 6),
  fuji: network('avalanche-testnet-fuji', 2_000, 37_200_000, 2, 2),
  amoy: network('polygon-testnet-amoy', 2_000, 16_250_000, 4, 6),
  bsc: network('binance_smart_chain-testnet', 750, 46_900_000, 3, 3),
  linea: network('ethereum-testnet-sepolia-linea-1', 3_000, 8_120_000, 90, 60),
  scroll: network('ethereum-testnet-sepolia-scroll-1', 3_000, 7_640_000, 60, 45),
  ronin: network('ronin-testnet-saigon', 3_000, 33_700_000, 9, 6),
  chiado: network('gnosis_chain-testnet-chiado', 5_000, 13_480_000, 20, 10),
  solana: network('solana-devnet', 400, 351_000_000, 6, 7),
};

export type NetworkKey = keyof typeof networkProfiles;

// ---- Tokens

/** Decimals differ by family: amounts of SVM tokens have 64 bits. `called` is its name; one says nothing, as some do. */
const token = (called: string | null, EVM: number, SVM: number, destGas: string) => ({
  called,
  decimals: { EVM, SVM },
  destGas,
});

export const tokens = {
  LINK: token('ChainLink Token', 18, 9, '90000'),
  USDC: token('USD Coin', 6, 6, '150000'),
  'CCIP-BnM': token('CCIP-BnM', 18, 9, '90000'),
  'CCIP-LnM': token(null, 18, 9, '90000'),
  WNAT: token('Wrapped native token', 18, 9, '90000'),
};

export type TokenName = keyof typeof tokens;

// ---- Timing of lanes

/** @param permissionlessAfterMinutes from the commit until anybody may execute the message */
const laneTiming = (
  commitIntervalSeconds: number,
  blessSeconds: readonly [number, number],
  verifySeconds: readonly [number, number],
  executeSeconds: readonly [number, number],
  permissionlessAfterMinutes: number,
) => ({ commitIntervalSeconds, blessSeconds, verifySeconds, executeSeconds, permissionlessAfterMinutes });

export const laneTimings = {
  brisk: laneTiming(12, [5, 12], [4, 18], [5, 24], 10),
  steady: laneTiming(20, [8, 20], [8, 35], [8, 45], 20),
  slow: laneTiming(75, [30, 60], [40, 120], [60, 200], 45),
};

/** @param optional one of these is enough; there are two or none, so that the last may be silent */
const verifiers = (required: readonly string[], optional: readonly string[] = []) => ({ required, optional });

export type VerifierSet = ReturnType<typeof verifiers>;

export const verifierSets = {
  committee: verifiers(['Chainlink Committee']),
  'committee and sentinel': verifiers(['Chainlink Committee', 'Sentinel Labs']),
  'committee and one of two': verifiers(['Chainlink Committee'], ['Sentinel Labs', 'Open Attesters']),
};

// ---- Senders

/**
 * @param amounts in tokens, from the least to the most
 * @param order how often messages are to be executed in the order of their nonces
 */
const sender = (
  amounts: readonly [number, number],
  chances: { readonly token: number; readonly second: number; readonly data: number; readonly order: number },
) => ({ amounts, chances });

export const senderKinds = {
  /** Users of a bridge's web page: tokens to their own account. */
  bridge: sender([0.5, 400], { token: 1, second: 0.05, data: 0, order: 0.1 }),
  /** Contracts that users call, and which call the router: data, sometimes with a token. */
  app: sender([0.01, 20], { token: 0.25, second: 0, data: 1, order: 0.4 }),
  /** A multi-signature wallet: large amounts to itself. */
  treasury: sender([5_000, 250_000], { token: 1, second: 0.4, data: 0.2, order: 0.9 }),
  /** Users with scripts: any content to any receiver. */
  account: sender([0.001, 10], { token: 0.65, second: 0.15, data: 0.25, order: 0.35 }),
};

/** @param shares of bridge, app, treasury and account */
const mix = (shares: readonly [number, number, number, number], ...tokens: readonly TokenName[]) => {
  const kinds = ['bridge', 'app', 'treasury', 'account'] as const;
  return { senders: kinds.map((kind, index) => [kind, shares[index] ?? 0] as const), tokens };
};

export const trafficMixes = {
  retail: mix([6, 1, 0, 3], 'CCIP-BnM', 'LINK'),
  dollars: mix([5, 1, 2, 1], 'USDC'),
  apps: mix([1, 7, 0, 2], 'LINK', 'CCIP-BnM'),
  tests: mix([1, 2, 0, 7], 'CCIP-BnM', 'CCIP-LnM'),
  mixed: mix([3, 3, 1, 3], 'LINK', 'USDC', 'CCIP-BnM'),
};

export const population = {
  people: 200,
  /** Fewer people have an account on the SVM chain too. */
  peopleOnSvm: 24,
  /** On each lane, half of the messages come from this many regular users. */
  regularsPerLane: 12,
  treasuries: ['northwind', 'atlas-dao', 'meridian'],
  signersPerTreasury: 3,
  apps: ['oracle-relay', 'nft-courier', 'vote-mirror', 'lend-sync', 'name-registry', 'rate-feed'],
} as const;

export const phrases = [
  'gm',
  'Hello, world!',
  'proposal 42: passed',
  'test message, please ignore',
  'Grüße über die Brücke ✓',
  'The quick brown fox jumps over the lazy dog, then waits for finality on the other chain.',
] as const;

/** Bursts, so that merkle roots, blocks and transactions contain more than one message. */
export const bursts = {
  /** One transaction that calls the router several times. */
  batchChance: 0.04,
  batchSizes: [2, 3, 4],
  /** Several transactions on one lane within seconds. */
  burstChance: 0.06,
  burstSizes: [3, 4, 5],
  burstSeconds: 15,
} as const;

/** Probabilities of failures and of manual executions. */
export const failureModes = {
  /** Committed, or partly verified, and then not executed. */
  stuckChance: 0.004,
  stuckExecutionChance: 0.4,
  failedExecutionChance: 0.5,
  /** A manual execution may fail and be repeated once. */
  secondAttemptChance: 0.25,
  manualExecutionMinutes: [2, 180],
  optionalVerifierSilence: 0.1,
} as const;

// ---- Lanes

export type LaneVersion = '1.5.0' | '1.6.0' | '2.0.0';
export type Assurance = 'blessed later' | 'blessed at once' | 'unblessed' | keyof typeof verifierSets;

export type LaneProfile = Readonly<ReturnType<typeof lane>>;

/** @param share of all traffic, relative to the other lanes */
function lane(
  source: NetworkKey,
  dest: NetworkKey,
  version: LaneVersion,
  share: number,
  timing: keyof typeof laneTimings,
  trafficMix: keyof typeof trafficMixes,
  failureRate: number,
  assurance: Assurance,
) {
  return { source, dest, version, share, timing, trafficMix, failureRate, assurance };
}

export const lanes: readonly LaneProfile[] = [
  lane('sepolia', 'base', '1.6.0', 160, 'brisk', 'retail', 0.02, 'blessed at once'),
  lane('base', 'sepolia', '1.6.0', 110, 'brisk', 'dollars', 0.02, 'unblessed'),
  lane('sepolia', 'arbitrum', '2.0.0', 130, 'steady', 'mixed', 0.03, 'committee and one of two'),
  lane('arbitrum', 'sepolia', '2.0.0', 80, 'brisk', 'dollars', 0.02, 'committee and sentinel'),
  lane('fuji', 'sepolia', '1.5.0', 90, 'steady', 'tests', 0.04, 'blessed later'),
  lane('sepolia', 'fuji', '1.5.0', 85, 'brisk', 'tests', 0.04, 'blessed later'),
  lane('arbitrum', 'base', '2.0.0', 70, 'brisk', 'dollars', 0.01, 'committee'),
  lane('base', 'arbitrum', '2.0.0', 55, 'brisk', 'apps', 0.02, 'committee and one of two'),
  lane('sepolia', 'solana', '1.6.0', 50, 'steady', 'mixed', 0.05, 'unblessed'),
  lane('solana', 'sepolia', '1.6.0', 40, 'brisk', 'retail', 0.02, 'blessed at once'),
  lane('optimism', 'base', '1.6.0', 40, 'brisk', 'apps', 0.02, 'blessed at once'),
  lane('base', 'optimism', '1.6.0', 35, 'brisk', 'apps', 0.02, 'unblessed'),
  lane('amoy', 'sepolia', '1.5.0', 32, 'steady', 'apps', 0.03, 'blessed later'),
  lane('sepolia', 'amoy', '1.5.0', 30, 'steady', 'retail', 0.03, 'blessed later'),
  lane('bsc', 'sepolia', '1.6.0', 28, 'brisk', 'tests', 0.05, 'blessed at once'),
  lane('sepolia', 'bsc', '1.6.0', 24, 'steady', 'dollars', 0.03, 'unblessed'),
  lane('bsc', 'fuji', '1.5.0', 20, 'brisk', 'retail', 0.03, 'blessed later'),
  lane('optimism', 'arbitrum', '2.0.0', 20, 'brisk', 'mixed', 0.02, 'committee'),
  lane('fuji', 'arbitrum', '2.0.0', 18, 'brisk', 'apps', 0.03, 'committee and sentinel'),
  lane('sepolia', 'linea', '1.5.0', 26, 'slow', 'retail', 0.04, 'blessed later'),
  lane('linea', 'sepolia', '1.5.0', 20, 'slow', 'tests', 0.06, 'blessed later'),
  lane('scroll', 'sepolia', '1.6.0', 12, 'steady', 'apps', 0.03, 'unblessed'),
  lane('sepolia', 'scroll', '2.0.0', 22, 'slow', 'mixed', 0.03, 'committee and one of two'),
  lane('ronin', 'base', '1.6.0', 10, 'brisk', 'apps', 0.02, 'blessed at once'),
  lane('base', 'ronin', '1.6.0', 9, 'steady', 'apps', 0.02, 'unblessed'),
  lane('solana', 'base', '1.6.0', 9, 'brisk', 'dollars', 0.02, 'unblessed'),
  lane('arbitrum', 'solana', '1.6.0', 8, 'steady', 'apps', 0.06, 'unblessed'),
  lane('chiado', 'sepolia', '1.5.0', 8, 'slow', 'tests', 0.08, 'blessed later'),
  lane('chiado', 'arbitrum', '2.0.0', 5, 'steady', 'apps', 0.05, 'committee'),
];
