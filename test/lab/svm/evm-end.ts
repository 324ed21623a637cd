/** The EVM end of lanes with Solana: real 1.6 contracts of a lab network, with ramps of their own for Solana. */
import { type Hex, zeroAddress } from 'viem';
import { ccipMessageSent, NO_RECEIVER, type SvmExtraArgs } from '../../solana/ccip-events.ts';
import { type EvmMessage, extraArgsOf, messageIdOf } from '../../solana/received-messages.ts';
import { addressOf, pubkey, toBase64, toHex } from '../../solana/runtime/bytes.ts';
import type { TrueSend } from '../../solana/world-options.ts';
import type { LabNetwork } from '../lab.ts';
import type { Contract, RawReceipt } from '../network.ts';
import {
  deployOffRamp,
  deployOnRamp,
  evmDestChainConfig,
  type RampSite,
  sendCommit,
  sendExecution,
} from '../ramps-1.6.ts';
import type { SdkLane } from '../sdk.ts';
import { calculateManualExecProof, SolanaChain, silent } from '../sdk-chain.ts';
import { ccipContract } from '../solidity.ts';

interface SolanaPlace {
  readonly selector: bigint;
  readonly router: string;
}

const SVM_FAMILY = '0x1e10bdc4';
const COMPUTE_UNITS = 80_000;

export async function openEvmEnd(network: LabNetwork, solana: SolanaPlace) {
  const { foundation } = network;
  const { owner, sender } = foundation.accounts['1.6'];
  const from = { from: owner };
  const known = network.contracts['1.6'];
  if (!known) throw new Error('The lab was started without 1.6.');
  const contract = (code: string, name: string) => {
    const address = known[name];
    if (!address) throw new Error(`The lab has no contract ${name}.`);
    return network.contract(address, ccipContract(code).abi);
  };
  const router = contract('v1_2_0/router', 'router');
  const feeQuoter = contract('v1_6_3/fee_quoter', 'feeQuoter');
  const site: RampSite = {
    foundation,
    owner,
    router,
    feeQuoter,
    rmnProxy: contract('v1_0_0/rmn_proxy_contract', 'rmnProxy'),
    registry: contract('v1_5_0/token_admin_registry', 'tokenAdminRegistry'),
    nonceManager: contract('v1_6_0/nonce_manager', 'nonceManager'),
  };
  const destChainConfig = {
    ...evmDestChainConfig,
    maxNumberOfTokensPerMsg: 1,
    maxPerMsgGasLimit: 1_400_000,
    chainFamilySelector: SVM_FAMILY,
    enforceOutOfOrder: true,
  };
  await feeQuoter.send(
    'applyDestChainConfigUpdates',
    [[{ destChainSelector: solana.selector, destChainConfig }]],
    from,
  );
  const gasPriceUpdates = [{ destChainSelector: solana.selector, usdPerUnitGas: 10n ** 12n }];
  await feeQuoter.send('updatePrices', [{ tokenPriceUpdates: [], gasPriceUpdates }], from);

  const onRamp = await deployOnRamp(site, solana.selector);
  const offRamp = await deployOffRamp(site);
  const source = {
    router: router.address,
    sourceChainSelector: solana.selector,
    isEnabled: true,
    isRMNVerificationDisabled: true,
    onRamp: toHex(pubkey(solana.router)),
  };
  await offRamp.send('applySourceChainConfigUpdates', [[source]], from);
  await router.send(
    'applyRampUpdates',
    [
      [{ destChainSelector: solana.selector, onRamp: onRamp.address }],
      [],
      [{ sourceChainSelector: solana.selector, offRamp: offRamp.address }],
    ],
    from,
  );

  /** From Solana. */
  const lane = {
    sourceChainSelector: solana.selector,
    destChainSelector: network.selector,
    onRamp: solana.router,
    version: '1.6.0',
  };

  return {
    onRamp: onRamp.address.toLowerCase() as Hex,
    offRamp: offRamp.address.toLowerCase() as Hex,

    /** Sends a message to Solana. Its id is the contract's, and the one that we compute. */
    async send(data: Hex): Promise<EvmMessage> {
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

    /** Commits messages from Solana with consecutive numbers. */
    async commit(sends: readonly TrueSend[]): Promise<Hex> {
      const [first, last] = [sends[0], sends.at(-1)];
      if (!first || !last) throw new Error('A commit needs a message.');
      const root = {
        sourceChainSelector: solana.selector,
        onRampAddress: toHex(pubkey(solana.router)),
        minSeqNr: first.body.header.sequenceNumber,
        maxSeqNr: last.body.header.sequenceNumber,
        merkleRoot: proveSend(first, sends, lane).merkleRoot,
      };
      const report = { blessedMerkleRoots: [], unblessedMerkleRoots: [root], rmnSignatures: [] };
      const { transactionHash } = await sendCommit(offRamp, report, owner);
      return transactionHash;
    },

    /** Executes one of a committed batch. With `fail`, the receiver fails. */
    async execute(send: TrueSend, batch: readonly TrueSend[], { fail = false } = {}): Promise<Hex> {
      const { receiver } = foundation;
      const isRefused = await receiver.read<boolean>('isRefused', [send.messageId]);
      if (isRefused !== fail) await receiver.send('refuse', [[send.messageId], fail], from);
      const report = { ...executionReport(solana, send), ...proveSend(send, batch, lane) };
      const { transactionHash } = await sendExecution(offRamp, report, owner);
      return transactionHash;
    },

    /** What the off-ramp says of a message from Solana. */
    async stateOf({ body }: TrueSend): Promise<'untouched' | 'success' | 'failure'> {
      const args = [solana.selector, body.header.sequenceNumber];
      const state = await offRamp.read<number>('getExecutionState', args);
      return state === 2 ? 'success' : state === 3 ? 'failure' : 'untouched';
    },
  };
}

/** The root over messages from Solana, and the proof that it has one of them, as the official client computes them. */
export function proveSend({ messageId }: TrueSend, batch: readonly TrueSend[], lane: SdkLane) {
  const decoded = batch.map(({ body }) => {
    const message = SolanaChain.decodeMessage({ data: toBase64(ccipMessageSent(body)) });
    if (!message) throw new Error('The client does not decode the event.');
    return message;
  });
  return calculateManualExecProof(decoded, lane, messageId, undefined, { logger: silent });
}

/** Tokens are not sent on these lanes. */
function executionReport({ selector }: SolanaPlace, { body }: TrueSend) {
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
  };
}

type SentEvent = Pick<EvmMessage, 'sender' | 'data' | 'feeToken' | 'feeTokenAmount' | 'feeValueJuels'> & {
  readonly header: Pick<EvmMessage, 'sourceChainSelector' | 'destChainSelector' | 'sequenceNumber'> & {
    readonly messageId: Hex;
  };
};

function sentMessage(
  onRamp: Contract,
  receipt: RawReceipt,
  plan: Pick<EvmMessage, 'receiver' | keyof SvmExtraArgs>,
): EvmMessage {
  const [event] = onRamp.events(receipt, 'CCIPMessageSent');
  const { header, sender, data, feeToken, feeTokenAmount, feeValueJuels } = (event?.args.message ??
    {}) as SentEvent;
  const { messageId, sourceChainSelector, destChainSelector, sequenceNumber } = header;
  const lowerCase = (address: Hex) => address.toLowerCase() as Hex;
  const message: EvmMessage = {
    ...plan,
    ...{ sourceChainSelector, destChainSelector, sequenceNumber, data, feeTokenAmount, feeValueJuels },
    onRamp: lowerCase(onRamp.address),
    sender: lowerCase(sender),
    tokens: [],
    feeToken: lowerCase(feeToken),
  };
  if (messageIdOf(message) !== messageId)
    throw new Error(`The on-ramp gave a message another id than ${messageIdOf(message)}.`);
  return message;
}
