/** The EVM end of lanes with Solana: real 1.6 contracts of a lab network, with ramps of their own for Solana. */
import {
  concat as concatHex,
  encodeAbiParameters,
  type Hex,
  keccak256,
  pad,
  parseAbiParameters,
  parseEther,
  stringToHex,
  zeroAddress,
} from 'viem';
import { merkleProof, merkleRoot, NO_RECEIVER } from '../../solana/ccip-hashes.ts';
import { evmLeaf } from '../../solana/evm-counterpart.ts';
import { type EvmMessage, extraArgsOf, messageIdOf } from '../../solana/evm-messages.ts';
import { fromHex, pubkey, toHex } from '../../solana/runtime/bytes.ts';
import { addressOf } from '../../solana/runtime/program-address.ts';
import type { TrueSend } from '../../solana/truth.ts';
import { PERMISSIONLESS_AFTER_SECONDS } from '../deployment.ts';
import type { LabNetwork } from '../lab.ts';
import type { Contract, RawReceipt } from '../network.ts';
import { executionReportType, noPrices, priceStructs } from '../reports.ts';
import { signersOf, signForOcr } from '../signers.ts';
import { ccipContract } from '../solidity.ts';

export interface SolanaPlace {
  readonly selector: bigint;
  readonly router: string;
}

export interface EvmEnd {
  readonly onRamp: Hex;
  readonly offRamp: Hex;
  /** Sends a message to Solana. Its id is the contract's, and the one that we compute. */
  send(data: Hex): Promise<EvmMessage>;
  /** Commits messages from Solana with consecutive numbers. */
  commit(sends: readonly TrueSend[]): Promise<Hex>;
  /** Executes one of a committed batch. With `fail`, the receiver refuses. */
  execute(send: TrueSend, batch: readonly TrueSend[], options?: { readonly fail?: boolean }): Promise<Hex>;
  /** What the off-ramp says of a message from Solana. */
  stateOf(send: TrueSend): Promise<'untouched' | 'success' | 'failure'>;
}

const SVM_FAMILY = '0x1e10bdc4';
const commitDigest = keccak256(stringToHex('commit from solana'));
const executionDigest = keccak256(stringToHex('execution from solana'));
const oracles = signersOf('solana oracle', 4);
const FAULTY_ORACLES = 1;
const COMPUTE_UNITS = 80_000;

export async function openEvmEnd(network: LabNetwork, solana: SolanaPlace): Promise<EvmEnd> {
  const { foundation } = network;
  const { owner, sender } = foundation.accounts['1.6'];
  const from = { from: owner };
  const known = network.contracts['1.6'];
  if (!known) throw new Error('The lab was started without 1.6.');
  const addressIn = (name: string): Hex => {
    const address = known[name];
    if (!address) throw new Error(`The lab has no contract ${name}.`);
    return address;
  };
  const contract = (code: string, name: string) => network.contract(addressIn(name), ccipContract(code).abi);
  const router = contract('v1_2_0/router', 'router');
  const feeQuoter = contract('v1_6_3/fee_quoter', 'feeQuoter');
  const nonceManager = contract('v1_6_0/nonce_manager', 'nonceManager');

  await feeQuoter.send(
    'applyDestChainConfigUpdates',
    [[{ destChainSelector: solana.selector, destChainConfig }]],
    from,
  );
  const gasPriceUpdates = [{ destChainSelector: solana.selector, usdPerUnitGas: 10n ** 12n }];
  await feeQuoter.send('updatePrices', [{ tokenPriceUpdates: [], gasPriceUpdates }], from);

  const statics = {
    chainSelector: network.selector,
    rmnRemote: addressIn('rmnProxy'),
    nonceManager: nonceManager.address,
    tokenAdminRegistry: addressIn('tokenAdminRegistry'),
  };
  const onRamp = await network.deploy(
    ccipContract('v1_6_0/onramp'),
    [
      statics,
      {
        feeQuoter: feeQuoter.address,
        reentrancyGuardEntered: false,
        messageInterceptor: zeroAddress,
        feeAggregator: foundation.feeAggregator,
        allowlistAdmin: zeroAddress,
      },
      [{ destChainSelector: solana.selector, router: router.address, allowlistEnabled: false }],
    ],
    from,
  );
  const offRamp = await network.deploy(
    ccipContract('v1_6_0/offramp'),
    [
      { ...statics, gasForCallExactCheck: 5000 },
      {
        feeQuoter: feeQuoter.address,
        permissionLessExecutionThresholdSeconds: PERMISSIONLESS_AFTER_SECONDS,
        messageInterceptor: zeroAddress,
      },
      [
        {
          router: router.address,
          sourceChainSelector: solana.selector,
          isEnabled: true,
          isRMNVerificationDisabled: true,
          onRamp: toHex(pubkey(solana.router)),
        },
      ],
    ],
    from,
  );
  const callers = { addedCallers: [onRamp.address, offRamp.address], removedCallers: [] };
  await nonceManager.send('applyAuthorizedCallerUpdates', [callers], from);
  await offRamp.send('setOCR3Configs', [ocrConfigs(owner)], from);
  await router.send(
    'applyRampUpdates',
    [
      [{ destChainSelector: solana.selector, onRamp: onRamp.address }],
      [],
      [{ sourceChainSelector: solana.selector, offRamp: offRamp.address }],
    ],
    from,
  );

  return {
    onRamp: onRamp.address.toLowerCase() as Hex,
    offRamp: offRamp.address.toLowerCase() as Hex,

    async send(data) {
      const receiver = addressOf('receiver');
      const plan = {
        computeUnits: COMPUTE_UNITS,
        isWritableBitmap: 2n,
        tokenReceiver: NO_RECEIVER,
        accounts: [addressOf('message account', 0), addressOf('message account', 1)],
      };
      const message = {
        receiver: toHex(pubkey(receiver)),
        data,
        tokenAmounts: [],
        feeToken: zeroAddress,
        extraArgs: extraArgsOf(plan),
      };
      const value = await router.read<bigint>('getFee', [solana.selector, message]);
      const receipt = await router.send('ccipSend', [solana.selector, message], { from: sender, value });
      return sentMessage(onRamp, receipt, { ...plan, receiver });
    },

    async commit(sends) {
      const [first, last] = [sends[0], sends.at(-1)];
      if (!first || !last) throw new Error('A commit needs a message.');
      const report = encodeAbiParameters(commitReport, [
        {
          priceUpdates: noPrices,
          blessedMerkleRoots: [],
          unblessedMerkleRoots: [
            {
              sourceChainSelector: solana.selector,
              onRampAddress: toHex(pubkey(solana.router)),
              minSeqNr: first.body.header.sequenceNumber,
              maxSeqNr: last.body.header.sequenceNumber,
              merkleRoot: toHex(merkleRoot(leavesOf(solana, sends))),
            },
          ],
          rmnSignatures: [],
        },
      ]);
      const context: [Hex, Hex] = [commitDigest, pad('0x01')];
      const hash = keccak256(concatHex([keccak256(report), ...context]));
      const { rs, ss, rawVs } = await signForOcr(oracles.slice(0, FAULTY_ORACLES + 1), hash);
      const { transactionHash } = await offRamp.send('commit', [context, report, rs, ss, rawVs], from);
      return transactionHash;
    },

    async execute(send, batch, { fail = false } = {}) {
      const { receiver } = foundation;
      const isRefused = await receiver.read<boolean>('isRefused', [send.messageId]);
      if (isRefused !== fail) await receiver.send('refuse', [[send.messageId], fail], from);
      const proofs = merkleProof(leavesOf(solana, batch), batch.indexOf(send)).map(toHex);
      const report = encodeAbiParameters(
        [executionReportType(offRamp)],
        [[executionReport(solana, send, proofs)]],
      );
      const args = [[executionDigest, pad('0x01')], report];
      const { transactionHash } = await offRamp.send('execute', args, from);
      return transactionHash;
    },

    async stateOf({ body }) {
      const args = [solana.selector, body.header.sequenceNumber];
      const state = await offRamp.read<number>('getExecutionState', args);
      return state === 2 ? 'success' : state === 3 ? 'failure' : 'untouched';
    },
  };
}

const leavesOf = ({ router }: SolanaPlace, sends: readonly TrueSend[]) =>
  sends.map(({ body }) => fromHex(evmLeaf(router, body)));

/** Tokens are not sent on these lanes. */
function executionReport({ selector }: SolanaPlace, { body }: TrueSend, proofs: readonly Hex[]) {
  const { header } = body;
  return {
    sourceChainSelector: selector,
    messages: [
      {
        header: { ...header, messageId: toHex(header.messageId) },
        sender: toHex(pubkey(body.sender)),
        data: toHex(body.data),
        receiver: toHex(body.receiver.slice(12)),
        gasLimit: BigInt(toHex(body.extraArgs.slice(4, 20).reverse())),
        tokenAmounts: [],
      },
    ],
    offchainTokenData: [[]],
    proofs,
    proofFlagBits: 0n,
  };
}

interface SentEvent {
  readonly header: {
    readonly messageId: Hex;
    readonly sourceChainSelector: bigint;
    readonly destChainSelector: bigint;
    readonly sequenceNumber: bigint;
  };
  readonly sender: Hex;
  readonly data: Hex;
  readonly feeToken: Hex;
  readonly feeTokenAmount: bigint;
  readonly feeValueJuels: bigint;
}

function sentMessage(
  onRamp: Contract,
  receipt: RawReceipt,
  plan: Pick<EvmMessage, 'receiver' | 'computeUnits' | 'isWritableBitmap' | 'tokenReceiver' | 'accounts'>,
): EvmMessage {
  const [event] = onRamp.events(receipt, 'CCIPMessageSent');
  const { header, ...sent } = (event?.args.message ?? {}) as SentEvent;
  const message: EvmMessage = {
    ...plan,
    sourceChainSelector: header.sourceChainSelector,
    destChainSelector: header.destChainSelector,
    sequenceNumber: header.sequenceNumber,
    onRamp: onRamp.address.toLowerCase() as Hex,
    sender: sent.sender.toLowerCase() as Hex,
    data: sent.data,
    tokens: [],
    feeToken: sent.feeToken.toLowerCase() as Hex,
    feeTokenAmount: sent.feeTokenAmount,
    feeValueJuels: sent.feeValueJuels,
  };
  if (messageIdOf(message) !== header.messageId)
    throw new Error(`The on-ramp gave a message another id than ${messageIdOf(message)}.`);
  return message;
}

function ocrConfigs(transmitter: Hex): readonly unknown[] {
  const plugin = { F: FAULTY_ORACLES, transmitters: [transmitter] };
  return [
    {
      ...plugin,
      configDigest: commitDigest,
      ocrPluginType: 0,
      isSignatureVerificationEnabled: true,
      signers: oracles.map(({ address }) => address),
    },
    {
      ...plugin,
      configDigest: executionDigest,
      ocrPluginType: 1,
      isSignatureVerificationEnabled: false,
      signers: [],
    },
  ];
}

const destChainConfig = {
  isEnabled: true,
  maxNumberOfTokensPerMsg: 1,
  maxDataBytes: 30_000,
  maxPerMsgGasLimit: 1_400_000,
  destGasOverhead: 300_000,
  destGasPerPayloadByteBase: 16,
  destGasPerPayloadByteHigh: 40,
  destGasPerPayloadByteThreshold: 3000,
  destDataAvailabilityOverheadGas: 0,
  destGasPerDataAvailabilityByte: 0,
  destDataAvailabilityMultiplierBps: 0,
  chainFamilySelector: SVM_FAMILY,
  enforceOutOfOrder: true,
  defaultTokenFeeUSDCents: 25,
  defaultTokenDestGasOverhead: 90_000,
  defaultTxGasLimit: 200_000,
  gasMultiplierWeiPerEth: parseEther('1.1'),
  gasPriceStalenessThreshold: 0,
  networkFeeUSDCents: 10,
};

const commitReport = parseAbiParameters([
  'CommitReport report',
  'struct CommitReport { PriceUpdates priceUpdates; MerkleRoot[] blessedMerkleRoots; MerkleRoot[] unblessedMerkleRoots; Signature[] rmnSignatures; }',
  'struct Signature { bytes32 r; bytes32 s; }',
  'struct MerkleRoot { uint64 sourceChainSelector; bytes onRampAddress; uint64 minSeqNr; uint64 maxSeqNr; bytes32 merkleRoot; }',
  ...priceStructs,
]);
