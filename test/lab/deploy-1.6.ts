/** CCIP 1.6: one on-ramp and one off-ramp for all lanes of a network, here one of each for every lane. */
import {
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
  addressesOf,
  type Commit,
  type Deployment,
  deploySites,
  otherNetwork,
  type Ramps,
  type SentMessage,
} from './deployment.ts';
import { type Foundation, type Foundations, pricesOf } from './foundation.ts';
import type { Contract, NetworkKey } from './network.ts';
import { committed, endsOf, prove, proveCommitted, signEven, signersOf } from './oracles.ts';
import {
  deployOffRamp,
  deployOnRamp,
  evmDestChainConfig,
  type MerkleRoot,
  rootStruct,
  sendCommit,
  sendExecution,
} from './ramps-1.6.ts';
import { encodeExtraArgs } from './sdk-chain.ts';
import { ccipContract } from './solidity.ts';
import { connectPools, deployPools } from './token-pools.ts';

type Site = Awaited<ReturnType<typeof deploySite>>;

const rmnDigest = keccak256(stringToHex('rmn home'));
const rmnNodes = signersOf('rmn', 3);
const FAULTY_RMN_NODES = 1;

export async function deploy16(foundations: Foundations): Promise<Deployment> {
  const deployed = await deploySites(foundations, deploySite, connectSite);
  const { sites } = deployed;

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
    const { proofs, proofFlagBits } = proveCommitted(message, commit, foundations);
    const { decoded, messageId, sequenceNumber, nonce, sender } = message;
    const { sourceChainSelector, destChainSelector, data, receiver, gasLimit } = decoded;
    const tokenAmounts = decoded.tokenAmounts.map((token) => ({
      ...token,
      sourcePoolAddress: pad(token.sourcePoolAddress as Hex),
    }));
    return {
      sourceChainSelector,
      messages: [
        {
          header: { messageId, sourceChainSelector, destChainSelector, sequenceNumber, nonce },
          sender: pad(sender),
          data,
          receiver,
          gasLimit,
          tokenAmounts,
        },
      ],
      offchainTokenData: [tokenAmounts.map(() => '0x')],
      proofs,
      proofFlagBits,
    };
  };

  return {
    ...deployed,
    version: '1.6',
    sentEvent: 'CCIPMessageSent',

    async createRamps(from) {
      const source = sites[from];
      const dest = sites[otherNetwork(from)];
      const { selector } = dest.foundation.network;
      const [onRamp, offRamp] = await Promise.all([deployOnRamp(source, selector), deployOffRamp(dest)]);
      const ramps = { onRamp, offRamp };
      await connectOffRamp(ramps, source, dest, false);
      return ramps;
    },

    extraArgs: ({ gasLimit, outOfOrder }) =>
      encodeExtraArgs({ gasLimit, allowOutOfOrderExecution: outOfOrder }),

    async commit(ramps, messages, { blessed }) {
      const [first, last] = endsOf(messages);
      const { offRamp } = ramps;
      const dest = sites[otherNetwork(first.from)];
      await useRmn(ramps, first.from, blessed);
      const { merkleRoot } = prove(messages, first, foundations);
      const root = {
        sourceChainSelector: sites[first.from].foundation.network.selector,
        onRampAddress: pad(ramps.onRamp.address),
        minSeqNr: first.sequenceNumber,
        maxSeqNr: last.sequenceNumber,
        merkleRoot,
      };
      const report = {
        blessedMerkleRoots: blessed ? [root] : [],
        unblessedMerkleRoots: blessed ? [] : [root],
        rmnSignatures: blessed ? await rmnSignatures(dest, offRamp, [root]) : [],
      };
      const receipt = await sendCommit(offRamp, report, dest.owner);
      return committed(messages, merkleRoot, receipt, [offRamp, 'CommitReportAccepted'], blessed);
    },

    async execute(message, commit) {
      const { offRamp } = message.ramps;
      const { owner } = sites[otherNetwork(message.from)];
      return sendExecution(offRamp, executionReport(message, commit), owner);
    },

    async executeByHand(message, commit, from) {
      const report = executionReport(message, commit);
      // Zero keeps what the message says, for the receiver as for each token.
      const tokenGasOverrides = message.decoded.tokenAmounts.map(() => 0);
      const overrides = [[{ receiverExecutionGasLimit: 0n, tokenGasOverrides }]];
      return message.ramps.offRamp.send('manuallyExecute', [[report], overrides], { from });
    },
  };
}

async function deploySite(foundation: Foundation) {
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
  const named = { rmnRemote, rmnProxy, router, nonceManager, feeQuoter };
  const addresses = addressesOf({ ...named, tokenAdminRegistry: registry }, pools);
  return { ...named, foundation, owner, registry, pools, addresses };
}

/** Everything of a lane but its ramps. */
async function connectSite(source: Site, dest: Site): Promise<void> {
  const { feeQuoter, foundation, owner } = source;
  const destChainSelector = dest.foundation.network.selector;
  const from = { from: owner };
  await feeQuoter.send(
    'applyDestChainConfigUpdates',
    [[{ destChainSelector, destChainConfig: evmDestChainConfig }]],
    from,
  );
  await feeQuoter.send('updatePrices', [pricesOf(foundation, destChainSelector)], from);
  await connectPools(source, dest);
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

const rmnReport = parseAbiParameters([
  'bytes32 kind, Report report',
  'struct Report { uint256 destChainId; uint64 destChainSelector; address rmnRemoteContractAddress; address offrampAddress; bytes32 rmnHomeContractConfigDigest; MerkleRoot[] merkleRoots; }',
  rootStruct,
]);

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
