/** CCIP 1.6: one on-ramp and one off-ramp for all lanes of a network, here one of each for every lane. */
import {
  concat,
  encodeAbiParameters,
  type Hex,
  keccak256,
  pad,
  parseAbiParameters,
  parseEther,
  stringToHex,
  zeroAddress,
} from 'viem';
import {
  type Commit,
  type Deployment,
  otherNetwork,
  PERMISSIONLESS_AFTER_SECONDS,
  type Ramps,
  type SentMessage,
} from './deployment.ts';
import type { Foundation, Foundations } from './foundation.ts';
import type { Contract, NetworkKey } from './network.ts';
import { endsOf, executionReportType, noPrices, priceStructs, prove, proveCommitted } from './reports.ts';
import { encodeExtraArgs } from './sdk-chain.ts';
import { signEven, signersOf, signForOcr } from './signers.ts';
import { ccipContract } from './solidity.ts';
import { connectPools, deployPools, type Pools } from './token-pools.ts';

interface Site {
  readonly foundation: Foundation;
  readonly owner: Hex;
  readonly rmnRemote: Contract;
  readonly rmnProxy: Contract;
  readonly router: Contract;
  readonly registry: Contract;
  readonly nonceManager: Contract;
  readonly feeQuoter: Contract;
  readonly pools: Pools;
}

const commitDigest = keccak256(stringToHex('commit'));
const executionDigest = keccak256(stringToHex('execution'));
const rmnDigest = keccak256(stringToHex('rmn home'));
const oracles = signersOf('oracle', 4);
const rmnNodes = signersOf('rmn', 3);
const FAULTY_ORACLES = 1;
const FAULTY_RMN_NODES = 1;
const COMMIT_PLUGIN = 0;
const EXECUTION_PLUGIN = 1;
const EVM_FAMILY = '0x2812d52c';

export async function deploy16(foundations: Foundations): Promise<Deployment> {
  const [a, b] = await Promise.all([deploySite(foundations.a), deploySite(foundations.b)]);
  const sites = { a, b };
  const networks = { a: foundations.a.network, b: foundations.b.network };
  await Promise.all([connectSite(a, b), connectSite(b, a)]);

  /** An off-ramp takes either signed or unsigned roots of a source. The chain is asked, for forks forget. */
  const useRmn = async (ramps: Ramps, from: NetworkKey, isSigned: boolean) => {
    const source = sites[from];
    const { isRMNVerificationDisabled } = await ramps.offRamp.read<{ isRMNVerificationDisabled: boolean }>(
      'getSourceChainConfig',
      [source.foundation.network.selector],
    );
    if (isRMNVerificationDisabled !== isSigned) return;
    await connectOffRamp(ramps, source, sites[otherNetwork(from)], isSigned);
  };

  const executionReport = (message: SentMessage, commit: Commit | undefined) => {
    const { from } = message;
    const { proofs, proofFlagBits } = proveCommitted(
      message,
      commit,
      networks[from],
      networks[otherNetwork(from)],
    );
    const decoded = message.decoded as unknown as DecodedMessage;
    const { messageId, sourceChainSelector, destChainSelector, sequenceNumber, nonce } = decoded;
    const tokenAmounts = decoded.tokenAmounts.map((token) => ({
      ...token,
      sourcePoolAddress: pad(token.sourcePoolAddress),
    }));
    return {
      sourceChainSelector,
      messages: [
        {
          header: { messageId, sourceChainSelector, destChainSelector, sequenceNumber, nonce },
          sender: pad(decoded.sender),
          data: decoded.data,
          receiver: decoded.receiver,
          gasLimit: decoded.gasLimit,
          tokenAmounts,
        },
      ],
      offchainTokenData: [tokenAmounts.map(() => '0x')],
      proofs,
      proofFlagBits,
    };
  };

  return {
    version: '1.6',
    routers: { a: a.router, b: b.router },
    contracts: { a: addressesOf(a), b: addressesOf(b) },
    sentEvent: 'CCIPMessageSent',

    async createRamps(from) {
      const source = sites[from];
      const dest = sites[otherNetwork(from)];
      const [onRamp, offRamp] = await Promise.all([deployOnRamp(source, dest), deployOffRamp(dest)]);
      const ramps = { onRamp, offRamp };
      await connectOffRamp(ramps, source, dest, false);
      return ramps;
    },

    extraArgs: ({ gasLimit, outOfOrder }) =>
      encodeExtraArgs({ gasLimit, allowOutOfOrderExecution: outOfOrder }),

    readSent({ args }) {
      const { message } = args as unknown as { message: RampMessage };
      const { messageId, sequenceNumber, nonce } = message.header;
      return {
        messageId,
        sequenceNumber,
        nonce,
        sender: message.sender,
        receiver: `0x${message.receiver.slice(-40)}`,
      };
    },

    async commit(ramps, messages, { blessed }) {
      const [first, last] = endsOf(messages);
      const { offRamp } = ramps;
      const dest = sites[otherNetwork(first.from)];
      await useRmn(ramps, first.from, blessed);
      const { merkleRoot } = prove(messages, first, networks[first.from], dest.foundation.network);
      const root = {
        sourceChainSelector: networks[first.from].selector,
        onRampAddress: pad(ramps.onRamp.address),
        minSeqNr: first.sequenceNumber,
        maxSeqNr: last.sequenceNumber,
        merkleRoot,
      };
      const report = encodeAbiParameters(commitReport, [
        {
          priceUpdates: noPrices,
          blessedMerkleRoots: blessed ? [root] : [],
          unblessedMerkleRoots: blessed ? [] : [root],
          rmnSignatures: blessed ? await rmnSignatures(dest, offRamp, [root]) : [],
        },
      ]);
      const context: [Hex, Hex] = [commitDigest, pad('0x01')];
      const hash = keccak256(concat([keccak256(report), ...context]));
      const { rs, ss, rawVs } = await signForOcr(oracles.slice(0, FAULTY_ORACLES + 1), hash);
      const receipt = await offRamp.send('commit', [context, report, rs, ss, rawVs], { from: dest.owner });
      const [accepted] = offRamp.events(receipt, 'CommitReportAccepted');
      if (!accepted) throw new Error('The off-ramp took the report and told of no root.');
      return {
        messages,
        merkleRoot,
        minSequenceNumber: first.sequenceNumber,
        maxSequenceNumber: last.sequenceNumber,
        isBlessed: blessed,
        transactionHash: receipt.transactionHash,
        blockNumber: Number(receipt.blockNumber),
        log: accepted.log,
      };
    },

    async execute(message, commit) {
      const { offRamp } = message.ramps;
      const { owner } = sites[otherNetwork(message.from)];
      const report = encodeAbiParameters(
        [executionReportType(offRamp)],
        [[executionReport(message, commit)]],
      );
      return offRamp.send('execute', [[executionDigest, pad('0x01')], report], { from: owner });
    },

    async executeByHand(message, commit, { from, gasLimit }) {
      const report = executionReport(message, commit);
      // Zero keeps what the message says, for the receiver as for each token.
      const tokenGasOverrides = message.decoded.tokenAmounts.map(() => 0);
      const overrides = [[{ receiverExecutionGasLimit: gasLimit, tokenGasOverrides }]];
      return message.ramps.offRamp.send('manuallyExecute', [[report], overrides], { from });
    },
  };
}

async function deploySite(foundation: Foundation): Promise<Site> {
  const { network, wrappedNative, link } = foundation;
  const { owner } = foundation.accounts['1.6'];
  const from = { from: owner };
  const deploy = (name: string, args: readonly unknown[] = []) =>
    network.deploy(ccipContract(name), args, from);
  const rmnRemote = await deploy('v1_6_0/rmn_remote', [network.selector, zeroAddress]);
  const rmnProxy = await deploy('v1_0_0/rmn_proxy_contract', [rmnRemote.address]);
  const router = await deploy('v1_2_0/router', [wrappedNative.address, rmnProxy.address]);
  const registry = await deploy('v1_5_0/token_admin_registry');
  const nonceManager = await deploy('v1_6_0/nonce_manager', [[]]);
  const feeQuoter = await deploy('v1_6_3/fee_quoter', [
    {
      maxFeeJuelsPerMsg: parseEther('200'),
      linkToken: link.address,
      tokenPriceStalenessThreshold: 365 * 86_400,
    },
    [owner],
    [link.address, wrappedNative.address],
    [],
    [],
    [
      { token: link.address, premiumMultiplierWeiPerEth: parseEther('0.9') },
      { token: wrappedNative.address, premiumMultiplierWeiPerEth: parseEther('1') },
    ],
    [],
  ]);
  const pools = await deployPools({ foundation, owner, router, rmnProxy, registry });
  const nodes = rmnNodes.map(({ address }, nodeIndex) => ({ onchainPublicKey: address, nodeIndex }));
  await rmnRemote.send(
    'setConfig',
    [{ rmnHomeContractConfigDigest: rmnDigest, signers: nodes, fSign: FAULTY_RMN_NODES }],
    from,
  );
  return { foundation, owner, rmnRemote, rmnProxy, router, registry, nonceManager, feeQuoter, pools };
}

/** Everything of a lane but its ramps. */
async function connectSite(source: Site, dest: Site): Promise<void> {
  const { feeQuoter, foundation, owner } = source;
  const { link, wrappedNative } = foundation;
  const destChainSelector = dest.foundation.network.selector;
  const destChainConfig = {
    isEnabled: true,
    maxNumberOfTokensPerMsg: 5,
    maxDataBytes: 30_000,
    maxPerMsgGasLimit: 3_000_000,
    destGasOverhead: 300_000,
    destGasPerPayloadByteBase: 16,
    destGasPerPayloadByteHigh: 40,
    destGasPerPayloadByteThreshold: 3000,
    destDataAvailabilityOverheadGas: 0,
    destGasPerDataAvailabilityByte: 0,
    destDataAvailabilityMultiplierBps: 0,
    chainFamilySelector: EVM_FAMILY,
    enforceOutOfOrder: false,
    defaultTokenFeeUSDCents: 25,
    defaultTokenDestGasOverhead: 90_000,
    defaultTxGasLimit: 200_000,
    gasMultiplierWeiPerEth: parseEther('1.1'),
    gasPriceStalenessThreshold: 0,
    networkFeeUSDCents: 10,
  };
  const from = { from: owner };
  await feeQuoter.send('applyDestChainConfigUpdates', [[{ destChainSelector, destChainConfig }]], from);
  const prices = {
    tokenPriceUpdates: [
      { sourceToken: wrappedNative.address, usdPerToken: parseEther('3000') },
      { sourceToken: link.address, usdPerToken: parseEther('15') },
    ],
    gasPriceUpdates: [{ destChainSelector, usdPerUnitGas: 10n ** 12n }],
  };
  await feeQuoter.send('updatePrices', [prices], from);
  await connectPools(source, dest);
}

async function deployOnRamp(source: Site, dest: Site): Promise<Contract> {
  const { foundation, owner, rmnProxy, nonceManager, registry, feeQuoter, router } = source;
  const { network, feeAggregator } = foundation;
  const onRamp = await network.deploy(
    ccipContract('v1_6_0/onramp'),
    [
      {
        chainSelector: network.selector,
        rmnRemote: rmnProxy.address,
        nonceManager: nonceManager.address,
        tokenAdminRegistry: registry.address,
      },
      {
        feeQuoter: feeQuoter.address,
        reentrancyGuardEntered: false,
        messageInterceptor: zeroAddress,
        feeAggregator,
        allowlistAdmin: zeroAddress,
      },
      [
        {
          destChainSelector: dest.foundation.network.selector,
          router: router.address,
          allowlistEnabled: false,
        },
      ],
    ],
    { from: owner },
  );
  await allowNonces(source, onRamp);
  return onRamp;
}

async function deployOffRamp(dest: Site): Promise<Contract> {
  const { foundation, owner, rmnProxy, nonceManager, registry, feeQuoter } = dest;
  const { network } = foundation;
  const from = { from: owner };
  const offRamp = await network.deploy(
    ccipContract('v1_6_0/offramp'),
    [
      {
        chainSelector: network.selector,
        gasForCallExactCheck: 5000,
        rmnRemote: rmnProxy.address,
        tokenAdminRegistry: registry.address,
        nonceManager: nonceManager.address,
      },
      {
        feeQuoter: feeQuoter.address,
        permissionLessExecutionThresholdSeconds: PERMISSIONLESS_AFTER_SECONDS,
        messageInterceptor: zeroAddress,
      },
      [],
    ],
    from,
  );
  await allowNonces(dest, offRamp);
  const plugin = { F: FAULTY_ORACLES, transmitters: [owner] };
  await offRamp.send(
    'setOCR3Configs',
    [
      [
        {
          ...plugin,
          configDigest: commitDigest,
          ocrPluginType: COMMIT_PLUGIN,
          isSignatureVerificationEnabled: true,
          signers: oracles.map(({ address }) => address),
        },
        {
          ...plugin,
          configDigest: executionDigest,
          ocrPluginType: EXECUTION_PLUGIN,
          isSignatureVerificationEnabled: false,
          signers: [],
        },
      ],
    ],
    from,
  );
  return offRamp;
}

async function allowNonces({ nonceManager, owner }: Site, ramp: Contract): Promise<void> {
  const callers = { addedCallers: [ramp.address], removedCallers: [] };
  await nonceManager.send('applyAuthorizedCallerUpdates', [callers], { from: owner });
}

async function connectOffRamp(ramps: Ramps, source: Site, dest: Site, isSigned: boolean): Promise<void> {
  const update = {
    router: dest.router.address,
    sourceChainSelector: source.foundation.network.selector,
    isEnabled: true,
    isRMNVerificationDisabled: !isSigned,
    onRamp: pad(ramps.onRamp.address),
  };
  await ramps.offRamp.send('applySourceChainConfigUpdates', [[update]], { from: dest.owner });
}

/** The message of the event, as far as it is read. */
interface RampMessage {
  readonly header: { readonly messageId: Hex; readonly sequenceNumber: bigint; readonly nonce: bigint };
  readonly sender: Hex;
  readonly data: Hex;
  readonly receiver: Hex;
}

/** The same fields as the official client names them. */
interface DecodedMessage {
  readonly messageId: Hex;
  readonly sourceChainSelector: bigint;
  readonly destChainSelector: bigint;
  readonly sequenceNumber: bigint;
  readonly nonce: bigint;
  readonly sender: Hex;
  readonly data: Hex;
  readonly receiver: Hex;
  readonly gasLimit: bigint;
  readonly tokenAmounts: readonly {
    readonly sourcePoolAddress: Hex;
    readonly destTokenAddress: Hex;
    readonly destGasAmount: bigint;
    readonly extraData: Hex;
    readonly amount: bigint;
  }[];
}

const rootStruct =
  'struct MerkleRoot { uint64 sourceChainSelector; bytes onRampAddress; uint64 minSeqNr; uint64 maxSeqNr; bytes32 merkleRoot; }';

const commitReport = parseAbiParameters([
  'CommitReport report',
  'struct CommitReport { PriceUpdates priceUpdates; MerkleRoot[] blessedMerkleRoots; MerkleRoot[] unblessedMerkleRoots; Signature[] rmnSignatures; }',
  'struct Signature { bytes32 r; bytes32 s; }',
  rootStruct,
  ...priceStructs,
]);

const rmnReport = parseAbiParameters([
  'bytes32 kind, Report report',
  'struct Report { uint256 destChainId; uint64 destChainSelector; address rmnRemoteContractAddress; address offrampAddress; bytes32 rmnHomeContractConfigDigest; MerkleRoot[] merkleRoots; }',
  rootStruct,
]);

interface MerkleRoot {
  readonly sourceChainSelector: bigint;
  readonly onRampAddress: Hex;
  readonly minSeqNr: bigint;
  readonly maxSeqNr: bigint;
  readonly merkleRoot: Hex;
}

async function rmnSignatures(dest: Site, offRamp: Contract, roots: readonly MerkleRoot[]) {
  const { network } = dest.foundation;
  const report = encodeAbiParameters(rmnReport, [
    keccak256(stringToHex('RMN_V1_6_ANY2EVM_REPORT')),
    {
      destChainId: BigInt(network.chainId),
      destChainSelector: network.selector,
      rmnRemoteContractAddress: dest.rmnRemote.address,
      offrampAddress: offRamp.address,
      rmnHomeContractConfigDigest: rmnDigest,
      merkleRoots: roots,
    },
  ]);
  return signEven(rmnNodes.slice(0, FAULTY_RMN_NODES + 1), keccak256(report));
}

function addressesOf(site: Site): Readonly<Record<string, Hex>> {
  const { rmnRemote, rmnProxy, router, registry, nonceManager, feeQuoter, pools } = site;
  return {
    rmnRemote: rmnRemote.address,
    rmnProxy: rmnProxy.address,
    router: router.address,
    tokenAdminRegistry: registry.address,
    nonceManager: nonceManager.address,
    feeQuoter: feeQuoter.address,
    pool: pools[0].address,
    coinPool: pools[1].address,
  };
}
