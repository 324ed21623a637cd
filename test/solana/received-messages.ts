/** Messages that arrive on Solana, as the off-ramp receives them and as their source sends them. */
import {
  concat as concatHex,
  encodeAbiParameters,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  parseAbiParameters,
  stringToHex,
} from 'viem';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import { encodeEvent } from '../virtual-chain/ccip-events.ts';
import {
  type LeafContext,
  type ReceivedBody,
  receivedLeaf,
  type SentBody,
  type SvmExtraArgs,
} from './ccip-events.ts';
import { fromHex, pubkey, toBase58, toHex } from './runtime/bytes.ts';

export interface EvmToken {
  readonly sourcePoolAddress: Hex;
  /** The mint. */
  readonly destTokenAddress: string;
  readonly extraData: Hex;
  readonly amount: bigint;
  readonly destGasAmount: number;
}

export interface EvmMessage extends SvmExtraArgs {
  readonly sourceChainSelector: bigint;
  readonly destChainSelector: bigint;
  readonly onRamp: Hex;
  readonly sequenceNumber: bigint;
  readonly sender: Hex;
  readonly data: Hex;
  /** A program, or the system program's address where only tokens are sent. */
  readonly receiver: string;
  readonly tokens: readonly EvmToken[];
  readonly feeToken: Hex;
  readonly feeTokenAmount: bigint;
  readonly feeValueJuels: bigint;
}

/** A message from another Solana cluster. */
export interface SolanaMessage {
  readonly sourceChainSelector: bigint;
  readonly sequenceNumber: bigint;
  /** The router of its cluster. */
  readonly onRamp: Hex;
  readonly sent: SentBody;
  readonly extraArgs: SvmExtraArgs;
}

export type ReceivedMessage = EvmMessage | SolanaMessage;

export function solanaMessageOf(router: string, sent: SentBody, extraArgs: SvmExtraArgs): SolanaMessage {
  const { sourceChainSelector, sequenceNumber } = sent.header;
  return { sourceChainSelector, sequenceNumber, onRamp: toHex(pubkey(router)), sent, extraArgs };
}

const SVM_EXTRA_ARGS_V1_TAG: Hex = '0x1f3b3aba';
const svmExtraArgs = parseAbiParameters([
  'Args args',
  'struct Args { uint32 computeUnits; uint64 bitmap; bool outOfOrder; bytes32 tokenReceiver; bytes32[] accounts; }',
]);
const tokenTransfers = parseAbiParameters([
  'Token[] tokens',
  'struct Token { address sourcePoolAddress; bytes destTokenAddress; bytes extraData; uint256 amount; bytes destExecData; }',
]);

const word = (address: string): Hex => toHex(pubkey(address));

/** Always out of order: Solana takes no other messages. */
export function extraArgsOf({ computeUnits, isWritableBitmap, tokenReceiver, accounts }: SvmExtraArgs): Hex {
  const encoded = encodeAbiParameters(svmExtraArgs, [
    {
      computeUnits,
      bitmap: isWritableBitmap,
      outOfOrder: true,
      tokenReceiver: word(tokenReceiver),
      accounts: accounts.map(word),
    },
  ]);
  return concatHex([SVM_EXTRA_ARGS_V1_TAG, encoded]);
}

export const tokensOf = (message: EvmMessage) =>
  message.tokens.map(({ sourcePoolAddress, destTokenAddress, extraData, amount, destGasAmount }) => ({
    sourcePoolAddress,
    destTokenAddress: word(destTokenAddress),
    extraData,
    amount,
    destExecData: pad(numberToHex(destGasAmount)),
  }));

export function messageIdOf(message: ReceivedMessage): Hex {
  if ('sent' in message) return toHex(message.sent.header.messageId);
  const lane = keccak256(
    encodeAbiParameters(parseAbiParameters('bytes32, uint64, uint64, address'), [
      keccak256(stringToHex('EVM2AnyMessageHashV1')),
      message.sourceChainSelector,
      message.destChainSelector,
      message.onRamp,
    ]),
  );
  const fixed = keccak256(
    encodeAbiParameters(parseAbiParameters('address, uint64, uint64, address, uint256'), [
      message.sender,
      message.sequenceNumber,
      0n,
      message.feeToken,
      message.feeTokenAmount,
    ]),
  );
  return keccak256(
    encodeAbiParameters(parseAbiParameters('bytes32, bytes32, bytes32, bytes32, bytes32, bytes32, bytes32'), [
      pad('0x'),
      lane,
      fixed,
      keccak256(word(message.receiver)),
      keccak256(message.data),
      keccak256(encodeAbiParameters(tokenTransfers, [tokensOf(message)])),
      keccak256(extraArgsOf(message)),
    ]),
  );
}

/** The message as the off-ramp on Solana receives it. */
export function receivedBodyOf(message: ReceivedMessage): ReceivedBody {
  if ('sent' in message) {
    const { header, sender, data, tokenAmounts } = message.sent;
    const { tokenReceiver, computeUnits, isWritableBitmap } = message.extraArgs;
    return {
      header,
      sender: pubkey(sender),
      data,
      tokenReceiver,
      tokenAmounts: tokenAmounts.map(({ destExecData, ...token }) => ({
        ...token,
        sourcePoolAddress: pubkey(token.sourcePoolAddress),
        destTokenAddress: toBase58(token.destTokenAddress),
        destGasAmount: Number(toHex(destExecData)),
      })),
      computeUnits,
      isWritableBitmap,
    };
  }
  const { sourceChainSelector, destChainSelector, sequenceNumber, computeUnits, isWritableBitmap } = message;
  return {
    header: {
      messageId: fromHex(messageIdOf(message)),
      sourceChainSelector,
      destChainSelector,
      sequenceNumber,
      nonce: 0n,
    },
    sender: fromHex(message.sender),
    data: fromHex(message.data),
    tokenReceiver: message.tokenReceiver,
    tokenAmounts: message.tokens.map((token) => ({
      ...token,
      sourcePoolAddress: fromHex(token.sourcePoolAddress),
      extraData: fromHex(token.extraData),
    })),
    computeUnits,
    isWritableBitmap,
  };
}

export function leafContextOf(message: ReceivedMessage): LeafContext {
  const { receiver, accounts } =
    'sent' in message
      ? { receiver: toBase58(message.sent.receiver), accounts: message.extraArgs.accounts }
      : message;
  return { onRamp: fromHex(message.onRamp), receiver, accounts };
}

/** The leaf of a message to Solana. */
export function leafOf(message: ReceivedMessage): Uint8Array {
  return receivedLeaf(receivedBodyOf(message), leafContextOf(message));
}

/** The event with which an on-ramp sends a message to Solana. */
export function messageSent(message: EvmMessage) {
  const { sourceChainSelector, destChainSelector, sequenceNumber } = message;
  const body = {
    header: {
      messageId: messageIdOf(message),
      sourceChainSelector,
      destChainSelector,
      sequenceNumber,
      nonce: 0n,
    },
    sender: message.sender,
    data: message.data,
    receiver: toHex(pubkey(message.receiver)),
    extraArgs: extraArgsOf(message),
    feeToken: message.feeToken,
    feeTokenAmount: message.feeTokenAmount,
    feeValueJuels: message.feeValueJuels,
    tokenAmounts: tokensOf(message),
  };
  return encodeEvent(abi.ccipMessageSent16, [destChainSelector, sequenceNumber], [body]);
}
