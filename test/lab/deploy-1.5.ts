/**
 * CCIP 1.5 and 1.2: an on-ramp, an off-ramp and a commit store for every lane, and an RMN that blesses roots.
 *
 * 1.2 differs in its settings, in pools that its ramps know by themselves, and in that every message has its order.
 */
import {
  concat,
  encodeAbiParameters,
  type Hex,
  keccak256,
  pad,
  parseAbiParameters,
  parseEther,
  zeroAddress,
} from 'viem';
import {
  addressesOf,
  type Commit,
  type Deployment,
  deploySites,
  otherNetwork,
  PERMISSIONLESS_AFTER_SECONDS,
  type Ramps,
  type SentMessage,
} from './deployment.ts';
import { accountAt, type Foundation, type Foundations, pricesOf } from './foundation.ts';
import type { Contract } from './network.ts';
import {
  committed,
  endsOf,
  executionReportType,
  noPrices,
  priceStructs,
  prove,
  proveCommitted,
  signersOf,
  signForOcr,
} from './oracles.ts';
import { encodeExtraArgs } from './sdk-chain.ts';
import { ccipContract } from './solidity.ts';
import { connectPools, deployPools, unlimited } from './token-pools.ts';

type OldVersion = '1.2' | '1.5';

type Site = Awaited<ReturnType<typeof deploySite>>;

const oracles = signersOf('oracle', 4);
const FAULTY_ORACLES = 1;
const EPOCH_AND_ROUND = pad('0x0101');

export const deploy12 = (foundations: Foundations) => deploy('1.2', foundations);
export const deploy15 = (foundations: Foundations) => deploy('1.5', foundations);

async function deploy(version: OldVersion, foundations: Foundations): Promise<Deployment> {
  const deployed = await deploySites(
    foundations,
    (foundation) => deploySite(version, foundation),
    connectSite,
  );
  const { sites } = deployed;
  /** What reports must name, by commit store or off-ramp; not by address, which both networks may have. */
  const digests = new Map<Contract, Hex>();
  const contextOf = (contract: Contract): [Hex, Hex, Hex] => {
    const digest = digests.get(contract);
    if (!digest) throw new Error(`Nobody has configured the contract at ${contract.address}.`);
    return [digest, EPOCH_AND_ROUND, pad('0x')];
  };

  const executionReport = (message: SentMessage, commit: Commit | undefined) => {
    const { proofs, proofFlagBits } = proveCommitted(message, commit, foundations);
    const offchainTokenData = [message.decoded.tokenAmounts.map(() => '0x' as const)];
    return { messages: [message.args.message], offchainTokenData, proofs, proofFlagBits };
  };

  return {
    ...deployed,
    version,
    sentEvent: 'CCIPSendRequested',

    async createRamps(from) {
      const ramps = await deployRamps(sites[from], sites[otherNetwork(from)]);
      for (const contract of [ramps.commitStore, ramps.offRamp]) {
        const [, , digest] = await contract.read<[number, number, Hex]>('latestConfigDetails');
        digests.set(contract, digest);
      }
      return ramps;
    },

    extraArgs: ({ gasLimit, outOfOrder }) =>
      encodeExtraArgs(version === '1.2' ? { gasLimit } : { gasLimit, allowOutOfOrderExecution: outOfOrder }),

    async commit(ramps, messages) {
      const [first, last] = endsOf(messages);
      const dest = sites[otherNetwork(first.from)];
      const commitStore = commitStoreOf(ramps);
      const { merkleRoot } = prove(messages, first, foundations);
      const report = encodeAbiParameters(commitReport, [
        {
          priceUpdates: noPrices,
          interval: { min: first.sequenceNumber, max: last.sequenceNumber },
          merkleRoot,
        },
      ]);
      const context = contextOf(commitStore);
      const hash = keccak256(concat([keccak256(report), ...context]));
      const { rs, ss, rawVs } = await signForOcr(oracles.slice(0, FAULTY_ORACLES + 1), hash);
      const receipt = await commitStore.send('transmit', [context, report, rs, ss, rawVs], {
        from: dest.owner,
      });
      return committed(messages, merkleRoot, receipt, [commitStore, 'ReportAccepted']);
    },

    async bless(ramps, commit) {
      const commitStore = commitStoreOf(ramps);
      const { rmn, foundation } = sites[commitStore.networkKey];
      const root = { commitStore: commitStore.address, root: commit.merkleRoot };
      const receipt = await rmn.send('voteToBless', [[root]], { from: foundation.blessVoter });
      if (rmn.events(receipt, 'TaggedRootBlessed').length === 0)
        throw new Error(`The RMN did not bless the root ${commit.merkleRoot} (again?).`);
      return receipt;
    },

    async execute(message, commit) {
      const { offRamp } = message.ramps;
      const { owner } = sites[otherNetwork(message.from)];
      const encoded = encodeAbiParameters([executionReportType(offRamp)], [executionReport(message, commit)]);
      return offRamp.send('transmit', [contextOf(offRamp), encoded, [], [], pad('0x')], { from: owner });
    },

    async executeByHand(message, commit, from) {
      const report = executionReport(message, commit);
      // Zero keeps what the message says, for the receiver as for each token.
      const tokenGasOverrides = report.offchainTokenData.flat().map(() => 0);
      const override = version === '1.2' ? 0n : { receiverExecutionGasLimit: 0n, tokenGasOverrides };
      return message.ramps.offRamp.send('manuallyExecute', [report, [override]], { from });
    },
  };
}

async function deploySite(version: OldVersion, foundation: Foundation) {
  const { network, wrappedNative, link, blessVoter, curseVoter } = foundation;
  const { owner } = foundation.accounts[version];
  const deployOwn = (name: string, args: readonly unknown[] = []) =>
    network.deploy(ccipContract(name), args, { from: owner });
  const voter = { blessVoteAddr: blessVoter, curseVoteAddr: curseVoter, blessWeight: 1, curseWeight: 1 };
  const rmn = await deployOwn('v1_5_0/rmn_contract', [
    { voters: [voter], blessWeightThreshold: 1, curseWeightThreshold: 1 },
  ]);
  const rmnProxy = await deployOwn('v1_0_0/rmn_proxy_contract', [rmn.address]);
  const router = await deployOwn('v1_2_0/router', [wrappedNative.address, rmnProxy.address]);
  const priceRegistry = await deployOwn('v1_2_0/price_registry', [
    [owner],
    [link.address, wrappedNative.address],
    365 * 86_400,
  ]);
  const registry = version === '1.5' ? await deployOwn('v1_5_0/token_admin_registry') : undefined;
  const pools = await deployPools({ foundation, owner, router, rmnProxy, registry });
  const contracts = { rmn, rmnProxy, router, priceRegistry, tokenAdminRegistry: registry };
  const addresses = addressesOf(contracts, pools);
  return { version, foundation, owner, rmn, rmnProxy, router, priceRegistry, registry, pools, addresses };
}

/** Everything of a lane but its ramps. */
async function connectSite(source: Site, dest: Site): Promise<void> {
  const { foundation, owner, priceRegistry, pools } = source;
  const remoteChainSelector = dest.foundation.network.selector;
  const from = { from: owner };
  const prices = pricesOf(foundation, remoteChainSelector, foundation.tokens);
  await priceRegistry.send('updatePrices', [prices], from);
  if (source.version === '1.5') return connectPools(source, dest);
  const limits = { outboundRateLimiterConfig: unlimited, inboundRateLimiterConfig: unlimited };
  for (const pool of pools)
    await pool.send('applyChainUpdates', [[{ remoteChainSelector, allowed: true, ...limits }]], from);
}

async function deployRamps(source: Site, dest: Site): Promise<Required<Ramps>> {
  const onRamp = await deployOnRamp(source, dest);
  const { network } = dest.foundation;
  const lane = {
    chainSelector: network.selector,
    sourceChainSelector: source.foundation.network.selector,
    onRamp: onRamp.address,
    // The same contract, which was called ARM before.
    armProxy: dest.rmnProxy.address,
    rmnProxy: dest.rmnProxy.address,
  };
  const folder = folderOf(dest.version);
  const from = { from: dest.owner };
  const commitStore = await network.deploy(ccipContract(`${folder}/commit_store`), [lane], from);
  const config = {
    ...lane,
    commitStore: commitStore.address,
    prevOffRamp: zeroAddress,
    tokenAdminRegistry: dest.registry?.address ?? zeroAddress,
  };
  const knownPools = [
    source.foundation.tokens.map(({ address }) => address),
    dest.pools.map(({ address }) => address),
  ];
  const offRamp = await network.deploy(
    ccipContract(`${folder}/evm_2_evm_offramp`),
    dest.version === '1.2' ? [config, ...knownPools, unlimited] : [config, unlimited],
    from,
  );
  await configureOracles(dest, commitStore, { priceRegistry: dest.priceRegistry.address });
  await configureOracles(dest, offRamp, {
    permissionLessExecutionThresholdSeconds: PERMISSIONLESS_AFTER_SECONDS,
    maxDataBytes: 30_000,
    maxNumberOfTokensPerMsg: 5,
    maxPoolReleaseOrMintGas: 200_000,
    router: dest.router.address,
    priceRegistry: dest.priceRegistry.address,
  });
  return { onRamp, offRamp, commitStore };
}

async function deployOnRamp(source: Site, dest: Site): Promise<Contract> {
  const { version, foundation, owner, rmnProxy, router, priceRegistry, registry, pools } = source;
  const { network, link, wrappedNative, tokens } = foundation;
  const staticConfig = {
    linkToken: link.address,
    chainSelector: network.selector,
    destChainSelector: dest.foundation.network.selector,
    defaultTxGasLimit: 200_000n,
    maxNopFeesJuels: parseEther('1000000'),
    prevOnRamp: zeroAddress,
    armProxy: rmnProxy.address,
    rmnProxy: rmnProxy.address,
    tokenAdminRegistry: registry?.address ?? zeroAddress,
  };
  const dynamicConfig = {
    router: router.address,
    maxNumberOfTokensPerMsg: 5,
    destGasOverhead: 300_000,
    destGasPerPayloadByte: 16,
    destDataAvailabilityOverheadGas: 0,
    destGasPerDataAvailabilityByte: 0,
    destDataAvailabilityMultiplierBps: 0,
    priceRegistry: priceRegistry.address,
    maxDataBytes: 30_000,
    maxPerMsgGasLimit: 3_000_000,
    defaultTokenFeeUSDCents: 25,
    defaultTokenDestGasOverhead: 90_000,
    enforceOutOfOrder: false,
  };
  const feeTokens = [wrappedNative, link].map(({ address }) => ({
    token: address,
    networkFeeUSDCents: 10,
    gasMultiplierWeiPerEth: parseEther('1'),
    premiumMultiplierWeiPerEth: parseEther('1'),
    enabled: true,
  }));
  const knownPools = ([0, 1] as const).map((index) => ({
    token: tokens[index].address,
    pool: pools[index].address,
  }));
  const end = [unlimited, feeTokens, [], []];
  return network.deploy(
    ccipContract(`${folderOf(version)}/evm_2_evm_onramp`),
    version === '1.2'
      ? [staticConfig, dynamicConfig, knownPools, ...end]
      : [staticConfig, dynamicConfig, ...end],
    { from: owner },
  );
}

/** The contract's own settings travel encoded in the oracles' configuration. */
async function configureOracles(
  { owner, foundation }: Site,
  contract: Contract,
  settings: Readonly<Record<string, unknown>>,
): Promise<void> {
  const getter = contract.abi.find((item) => item.type === 'function' && item.name === 'getDynamicConfig');
  const type = getter?.type === 'function' ? getter.outputs[0] : undefined;
  if (!type) throw new Error(`The contract at ${contract.address} has no dynamic configuration.`);
  // As many as there are signers; the owner transmits alone.
  const transmitters = [owner, ...[13, 14, 15].map((index) => accountAt(foundation.network, index))];
  const signers = oracles.map(({ address }) => address);
  const encoded = encodeAbiParameters([type], [settings]);
  await contract.send('setOCR2Config', [signers, transmitters, FAULTY_ORACLES, encoded, 1n, '0x'], {
    from: owner,
  });
}

function folderOf(version: OldVersion): string {
  return version === '1.2' ? 'v1_2_0' : 'v1_5_0';
}

function commitStoreOf({ commitStore }: Ramps): Contract {
  if (!commitStore) throw new Error('The lane has no commit store.');
  return commitStore;
}

const commitReport = parseAbiParameters([
  'CommitReport report',
  'struct CommitReport { PriceUpdates priceUpdates; Interval interval; bytes32 merkleRoot; }',
  'struct Interval { uint64 min; uint64 max; }',
  ...priceStructs,
]);
