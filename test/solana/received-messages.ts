/** Messages that arrive on Solana, from an EVM chain or from another Solana cluster, as the off-ramp receives them. */

import type { SvmExtraArgs } from './ccip-events.ts';
import { type LeafContext, type ReceivedBody, receivedLeaf, type SentBody } from './ccip-hashes.ts';
import {
  type EvmMessage,
  leafContextOf as evmLeafContextOf,
  messageIdOf as evmMessageIdOf,
  receivedBodyOf as evmReceivedBodyOf,
} from './evm-messages.ts';
import { fromHex, pubkey, toBase58, toHex } from './runtime/bytes.ts';

/** A message from another Solana cluster. */
export interface SolanaMessage {
  readonly sourceChainSelector: bigint;
  readonly sequenceNumber: bigint;
  /** The router of its cluster. */
  readonly onRamp: `0x${string}`;
  readonly sent: SentBody;
  readonly extraArgs: SvmExtraArgs;
}

export type ReceivedMessage = EvmMessage | SolanaMessage;

export function solanaMessageOf(router: string, sent: SentBody, extraArgs: SvmExtraArgs): SolanaMessage {
  const { sourceChainSelector, sequenceNumber } = sent.header;
  return { sourceChainSelector, sequenceNumber, onRamp: toHex(pubkey(router)), sent, extraArgs };
}

export function messageIdOf(message: ReceivedMessage): `0x${string}` {
  return 'sent' in message ? toHex(message.sent.header.messageId) : evmMessageIdOf(message);
}

export function receivedBodyOf(message: ReceivedMessage): ReceivedBody {
  if (!('sent' in message)) return evmReceivedBodyOf(message);
  const { sent, extraArgs } = message;
  return {
    header: sent.header,
    sender: pubkey(sent.sender),
    data: sent.data,
    tokenReceiver: extraArgs.tokenReceiver,
    tokenAmounts: sent.tokenAmounts.map((token) => ({
      sourcePoolAddress: pubkey(token.sourcePoolAddress),
      destTokenAddress: toBase58(token.destTokenAddress),
      destGasAmount: Number(toHex(token.destExecData)),
      extraData: token.extraData,
      amount: token.amount,
    })),
    computeUnits: extraArgs.computeUnits,
    isWritableBitmap: extraArgs.isWritableBitmap,
  };
}

export function leafContextOf(message: ReceivedMessage): LeafContext {
  if (!('sent' in message)) return evmLeafContextOf(message);
  return {
    onRamp: fromHex(message.onRamp),
    receiver: toBase58(message.sent.receiver),
    accounts: message.extraArgs.accounts,
  };
}

/** The leaf of a message to Solana. */
export function leafOf(message: ReceivedMessage): Uint8Array {
  return receivedLeaf(receivedBodyOf(message), leafContextOf(message));
}
