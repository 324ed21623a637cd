/** On-ramps and off-ramps of CCIP 1.6, for lanes with an EVM chain and with Solana, and the reports of their oracles. */
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
import { PERMISSIONLESS_AFTER_SECONDS } from './deployment.ts';
import type { Foundation } from './foundation.ts';
import type { Contract, RawReceipt } from './network.ts';
import { executionReportType, noPrices, priceStructs, signersOf, signForOcr } from './oracles.ts';
import { ccipContract } from './solidity.ts';

/** What ramps need on their network. */
export interface RampSite {
  readonly foundation: Foundation;
  readonly owner: Hex;
  readonly rmnProxy: Contract;
  readonly router: Contract;
  readonly registry: Contract;
  readonly nonceManager: Contract;
  readonly feeQuoter: Contract;
}

export interface MerkleRoot {
  readonly sourceChainSelector: bigint;
  readonly onRampAddress: Hex;
  readonly minSeqNr: bigint;
  readonly maxSeqNr: bigint;
  readonly merkleRoot: Hex;
}

export const rootStruct =
  'struct MerkleRoot { uint64 sourceChainSelector; bytes onRampAddress; uint64 minSeqNr; uint64 maxSeqNr; bytes32 merkleRoot; }';

const commitReport = parseAbiParameters([
  'CommitReport report',
  'struct CommitReport { PriceUpdates priceUpdates; MerkleRoot[] blessedMerkleRoots; MerkleRoot[] unblessedMerkleRoots; Signature[] rmnSignatures; }',
  'struct Signature { bytes32 r; bytes32 s; }',
  rootStruct,
  ...priceStructs,
]);

const commitDigest = keccak256(stringToHex('commit'));
const executionDigest = keccak256(stringToHex('execution'));
const oracles = signersOf('oracle', 4);
const FAULTY_ORACLES = 1;
const COMMIT_PLUGIN = 0;
const EXECUTION_PLUGIN = 1;
const EVM_FAMILY = '0x2812d52c';

export const evmDestChainConfig = {
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

const staticsOf = ({ foundation, rmnProxy, nonceManager, registry }: RampSite) => ({
  chainSelector: foundation.network.selector,
  rmnRemote: rmnProxy.address,
  nonceManager: nonceManager.address,
  tokenAdminRegistry: registry.address,
});

export async function deployOnRamp(source: RampSite, destChainSelector: bigint): Promise<Contract> {
  const { foundation, owner, feeQuoter, router } = source;
  const onRamp = await foundation.network.deploy(
    ccipContract('v1_6_0/onramp'),
    [
      staticsOf(source),
      {
        feeQuoter: feeQuoter.address,
        reentrancyGuardEntered: false,
        messageInterceptor: zeroAddress,
        feeAggregator: foundation.feeAggregator,
        allowlistAdmin: zeroAddress,
      },
      [{ destChainSelector, router: router.address, allowlistEnabled: false }],
    ],
    { from: owner },
  );
  await allowNonces(source, onRamp);
  return onRamp;
}

/** Without sources: `applySourceChainConfigUpdates` adds them. */
export async function deployOffRamp(dest: RampSite): Promise<Contract> {
  const { foundation, owner, feeQuoter } = dest;
  const from = { from: owner };
  const offRamp = await foundation.network.deploy(
    ccipContract('v1_6_0/offramp'),
    [
      { ...staticsOf(dest), gasForCallExactCheck: 5000 },
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
  const configs = [
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
  ];
  await offRamp.send('setOCR3Configs', [configs], from);
  return offRamp;
}

async function allowNonces({ nonceManager, owner }: RampSite, ramp: Contract): Promise<void> {
  const callers = { addedCallers: [ramp.address], removedCallers: [] };
  await nonceManager.send('applyAuthorizedCallerUpdates', [callers], { from: owner });
}

/** Signs a report as the oracles do, and sends it. */
export async function sendCommit(
  offRamp: Contract,
  roots: {
    readonly blessedMerkleRoots: readonly MerkleRoot[];
    readonly unblessedMerkleRoots: readonly MerkleRoot[];
    readonly rmnSignatures: readonly { readonly r: Hex; readonly s: Hex }[];
  },
  from: Hex,
): Promise<RawReceipt> {
  const report = encodeAbiParameters(commitReport, [{ priceUpdates: noPrices, ...roots }]);
  const context: [Hex, Hex] = [commitDigest, pad('0x01')];
  const hash = keccak256(concat([keccak256(report), ...context]));
  const { rs, ss, rawVs } = await signForOcr(oracles.slice(0, FAULTY_ORACLES + 1), hash);
  return offRamp.send('commit', [context, report, rs, ss, rawVs], { from });
}

/** Executes the messages of a report as the oracles do. */
export async function sendExecution(offRamp: Contract, report: object, from: Hex): Promise<RawReceipt> {
  const encoded = encodeAbiParameters([executionReportType(offRamp)], [[report]]);
  return offRamp.send('execute', [[executionDigest, pad('0x01')], encoded], { from });
}
