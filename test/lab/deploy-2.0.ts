/**
 * CCIP 2.0: no commits; verifiers sign each message, and anybody with the signatures may execute it.
 *
 * A verifier is a committee's contract behind a resolver, by whose address everybody knows it. There are two: the
 * first is the lane's own, the second one has to be asked for by sender and receiver.
 */
import { concat, type Hex, keccak256, numberToHex, pad, parseEther, zeroAddress } from 'viem';
import {
  addressesOf,
  type Deployment,
  deploySites,
  otherNetwork,
  type Ramps,
  type SentMessage,
} from './deployment.ts';
import { type Foundation, type Foundations, pricesOf } from './foundation.ts';
import type { Contract } from './network.ts';
import { type Signer, signEven, signersOf } from './oracles.ts';
import { encodeExtraArgs } from './sdk-chain.ts';
import { ccipContract } from './solidity.ts';
import { ANY_FINALITY, connectPools, deployPoolsOf20, setTransferFee } from './token-pools.ts';

interface Verifier {
  readonly committee: readonly Signer[];
  readonly contract: Contract;
  readonly resolver: Contract;
}

type Site = Awaited<ReturnType<typeof deploySite>>;

/** Begins every result, so that the resolver finds the contract which can check it. */
const RESULT_TAG = '0x49ff34ed';
const SIGNATURE_BYTES = 64;
const THRESHOLD = 2;
const EVM_FAMILY = '0x2812d52c';
const committees = [signersOf('committee', 3), signersOf('second committee', 3)] as const;

export async function deploy20(foundations: Foundations): Promise<Deployment> {
  const deployed = await deploySites(foundations, deploySite, connectSite);
  const { sites } = deployed;

  const verifierResults = async (message: SentMessage) => {
    const { offRamp } = message.ramps;
    const [required, optional, threshold] = await offRamp.read<[Hex[], Hex[], number]>('getCCVsForMessage', [
      message.args.encodedMessage,
    ]);
    const ccvs = [...required, ...optional.slice(0, threshold)].map((ccv) => ccv.toLowerCase() as Hex);
    const { verifiers } = sites[otherNetwork(message.from)];
    const results = await Promise.all(
      ccvs.map((ccv) => {
        const verifier = verifiers.find(({ resolver }) => resolver.address === ccv);
        if (!verifier)
          throw new Error(`The destination asks for a verifier ${ccv} that the lab does not have.`);
        return resultOf(message, verifier);
      }),
    );
    return { ccvs, results };
  };

  const execute = async (message: SentMessage, from: Hex) => {
    const { ccvs, results } = await verifierResults(message);
    // Zero keeps the gas limit of the message.
    const args = [message.args.encodedMessage, ccvs, results, 0];
    return message.ramps.offRamp.send('execute', args, { from });
  };

  return {
    ...deployed,
    version: '2.0',
    sentEvent: 'CCIPMessageSent',

    async createRamps(from) {
      return deployRamps(sites[from], sites[otherNetwork(from)]);
    },

    extraArgs({ from, gasLimit, finality, verifiers }) {
      const named = sites[from].verifiers.slice(0, verifiers);
      return encodeExtraArgs({
        gasLimit,
        finality,
        ccvs: named.map(({ resolver }) => resolver.address),
        ccvArgs: named.map(() => '0x'),
        executor: '',
        executorArgs: '0x',
        tokenReceiver: '',
        tokenArgs: '0x',
      });
    },

    verifierResults,
    execute: (message) => execute(message, sites[otherNetwork(message.from)].owner),
    executeByHand: (message, _commit, from) => execute(message, from),
  };
}

async function deploySite(foundation: Foundation) {
  const { network, wrappedNative, link, feeAggregator } = foundation;
  const { owner } = foundation.accounts['2.0'];
  const from = { from: owner };
  const deploy = (name: string, args: readonly unknown[] = []) =>
    network.deploy(ccipContract(name), args, from);
  const rmn = await deploy('v2_0_0/rmn', [[owner]]);
  const rmnProxy = await deploy('v1_0_0/rmn_proxy_contract', [rmn.address]);
  const router = await deploy('v1_2_0/router', [wrappedNative.address, rmnProxy.address]);
  const registry = await deploy('v1_5_0/token_admin_registry');
  const feeQuoter = await deploy('v2_0_0/fee_quoter', [
    { maxFeeJuelsPerMsg: parseEther('200'), linkToken: link.address },
    [owner],
    [],
    [],
  ]);
  const executor = await deploy('v2_0_0/executor', [
    8,
    { feeAggregator, allowedFinalityConfig: ANY_FINALITY, ccvAllowlistEnabled: false },
  ]);
  const executorProxy = await deploy('v2_0_0/proxy', [executor.address, feeAggregator]);
  const verifierOf = async (committee: readonly Signer[]): Promise<Verifier> => {
    const contract = await deploy('v2_0_0/committee_verifier', [
      { feeAggregator, allowlistAdmin: zeroAddress },
      ['http://127.0.0.1/verifier-results'],
      rmnProxy.address,
      RESULT_TAG,
    ]);
    const resolver = await deploy('v2_0_0/versioned_verifier_resolver');
    await contract.send('setAllowedFinalityConfig', [ANY_FINALITY], from);
    const implementation = { version: RESULT_TAG, verifier: contract.address };
    await resolver.send('applyInboundImplementationUpdates', [[implementation]], from);
    return { committee, contract, resolver };
  };
  const verifiers = [await verifierOf(committees[0]), await verifierOf(committees[1])] as const;
  const [first, second] = verifiers;
  await foundation.strictReceiver.send(
    'demandVerifiers',
    [[first.resolver.address], [second.resolver.address], 1],
    from,
  );
  const pools = await deployPoolsOf20({ foundation, owner, router, rmnProxy, registry });
  const named = { rmn, rmnProxy, router, feeQuoter, executor, executorProxy };
  const verifying = {
    verifier: first.resolver,
    committeeVerifier: first.contract,
    secondVerifier: second.resolver,
    secondCommitteeVerifier: second.contract,
  };
  const addresses = addressesOf({ ...named, ...verifying, tokenAdminRegistry: registry }, pools);
  return { ...named, foundation, owner, registry, verifiers, pools, addresses };
}

/** Everything of a lane but its ramps, as far as the source has to know; and whom it believes in the other direction. */
async function connectSite(source: Site, dest: Site): Promise<void> {
  const { foundation, owner, feeQuoter, router, verifiers, executor, pools } = source;
  const selector = dest.foundation.network.selector;
  const from = { from: owner };
  const destChainConfig = {
    isEnabled: true,
    maxDataBytes: 30_000,
    maxPerMsgGasLimit: 3_000_000,
    destGasOverhead: 300_000,
    destGasPerPayloadByteBase: 16,
    chainFamilySelector: EVM_FAMILY,
    defaultTokenFeeUSDCents: 25,
    defaultTokenDestGasOverhead: 90_000,
    defaultTxGasLimit: 200_000,
    networkFeeUSDCents: 10,
    linkFeeMultiplierPercent: 90,
  };
  await feeQuoter.send(
    'applyDestChainConfigUpdates',
    [[{ destChainSelector: selector, destChainConfig }]],
    from,
  );
  await feeQuoter.send('updatePrices', [pricesOf(foundation, selector)], from);
  for (const { contract, resolver, committee } of verifiers) {
    const remote = {
      router: router.address,
      remoteChainSelector: selector,
      allowlistEnabled: false,
      feeUSDCents: 5,
      gasForVerification: 60_000,
      payloadSizeBytes: 200,
    };
    await contract.send('applyRemoteChainConfigUpdates', [[remote]], from);
    const implementation = { destChainSelector: selector, verifier: contract.address };
    await resolver.send('applyOutboundImplementationUpdates', [[implementation]], from);
    const signers = committee.map(({ address }) => address);
    const quorum = { sourceChainSelector: selector, threshold: THRESHOLD, signers };
    await contract.send('applySignatureConfigs', [[], [quorum]], from);
  }
  const execution = { destChainSelector: selector, config: { usdCentsFee: 7, enabled: true } };
  await executor.send('applyDestChainUpdates', [[], [execution]], from);
  await connectPools(source, dest);
  await setTransferFee(pools[1], selector, owner);
}

async function deployRamps(source: Site, dest: Site): Promise<Ramps> {
  const [onRamp, offRamp] = await Promise.all([deployOnRamp(source), deployOffRamp(dest)]);
  const toDest = {
    destChainSelector: dest.foundation.network.selector,
    router: source.router.address,
    addressBytesLength: 20,
    tokenReceiverAllowed: false,
    messageNetworkFeeUSDCents: 10,
    tokenNetworkFeeUSDCents: 20,
    baseExecutionGasCost: 150_000,
    defaultCCVs: [source.verifiers[0].resolver.address],
    laneMandatedCCVs: [],
    defaultExecutor: source.executorProxy.address,
    offRamp: offRamp.address,
  };
  const fromSource = {
    router: dest.router.address,
    sourceChainSelector: source.foundation.network.selector,
    isEnabled: true,
    onRamps: [pad(onRamp.address)],
    defaultCCVs: [dest.verifiers[0].resolver.address],
    laneMandatedCCVs: [],
  };
  await Promise.all([
    onRamp.send('applyDestChainConfigUpdates', [[toDest]], { from: source.owner }),
    offRamp.send('applySourceChainConfigUpdates', [[fromSource]], { from: dest.owner }),
  ]);
  return { onRamp, offRamp };
}

async function deployOnRamp({ foundation, owner, rmnProxy, registry, feeQuoter }: Site): Promise<Contract> {
  const { network, feeAggregator } = foundation;
  return network.deploy(
    ccipContract('v2_0_0/onramp'),
    [
      {
        chainSelector: network.selector,
        rmnRemote: rmnProxy.address,
        maxUSDCentsPerMessage: 100_000,
        tokenAdminRegistry: registry.address,
      },
      { feeQuoter: feeQuoter.address, reentrancyGuardEntered: false, feeAggregator },
    ],
    { from: owner },
  );
}

async function deployOffRamp({ foundation, owner, rmnProxy, registry }: Site): Promise<Contract> {
  const { network } = foundation;
  return network.deploy(
    ccipContract('v2_0_0/offramp'),
    [
      {
        localChainSelector: network.selector,
        gasForCallExactCheck: 5000,
        rmnRemote: rmnProxy.address,
        tokenAdminRegistry: registry.address,
        maxGasBufferToUpdateState: 12_000,
      },
    ],
    { from: owner },
  );
}

async function resultOf({ messageId }: SentMessage, { committee }: Verifier): Promise<Hex> {
  const hash = keccak256(concat([RESULT_TAG, messageId]));
  const signatures = await signEven(committee.slice(0, THRESHOLD), hash);
  const length = numberToHex(signatures.length * SIGNATURE_BYTES, { size: 2 });
  return concat([RESULT_TAG, length, ...signatures.map(({ r, s }) => concat([r, s]))]);
}
