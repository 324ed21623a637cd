/** The fact that a message was sent from Solana, and what an execution by hand needs of it. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { base58, hex } from '@scure/base';
import type { Hex } from '../../../base/hex.ts';
import { zeroAddresses } from '../../../domain/addresses.ts';
import type { Observation, Sent } from '../../../domain/facts.ts';
import type { TokenAmount } from '../../../domain/message.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import {
  executableMessage,
  gasOf,
  knownNetwork,
  parseSentMessage,
  spelled,
  spelledToken,
  UnreadableLogError,
} from '../../engine/event-facts.ts';
import { hexOf } from './borsh.ts';
import { type EventOf, readExtraArgs, type SentRampMessage } from './layouts.ts';

/** All releases of the programs up to 1.6.3 have one layout. */
const LANE_VERSION = '1.6.0';

/** Throws an UnreadableLogError where the id is not that of the message, or no record can hold it. */
export function sentMessage(
  event: EventOf<'CCIPMessageSent'>,
  context: {
    readonly router: string;
    readonly network: Network;
    /** Of the tokens, in their order, from the instruction; the event names pools only. */
    readonly mints: readonly string[];
    /** Who pays for the transaction. */
    readonly origin: string;
    readonly seen: Observation;
  },
): Sent {
  const { router, network, mints, origin, seen } = context;
  const { message } = event;
  const { header } = message;
  if (
    header.destChainSelector !== event.destChainSelector ||
    header.sequenceNumber !== event.sequenceNumber
  ) {
    throw new UnreadableLogError('the event and its header name different lanes or numbers');
  }
  const computed = sentMessageId(message, router);
  if (computed !== header.messageId) {
    throw new UnreadableLogError(`its id is ${header.messageId}, and its content has the id ${computed}`);
  }
  const dest = knownNetwork(header.destChainSelector, 'destination');
  const receiver = spelled(hexOf(message.receiver), dest.family, 'receiver');
  const tokenAmounts = message.tokenAmounts.map(
    (transfer, index): TokenAmount => ({
      sourceTokenAddress: mints[index] ?? zeroAddresses.SVM,
      destTokenAddress: spelledToken(hexOf(transfer.destTokenAddress), dest.family),
      sourcePoolAddress: transfer.sourcePoolAddress,
      amount: transfer.amount.toString(),
      extraData: hexOf(transfer.extraData),
      destGasAmount: gasOf(hexOf(transfer.destExecData)),
    }),
  );
  const extraArgs = readExtraArgs(message.extraArgs);
  const record = parseSentMessage(
    {
      messageId: header.messageId,
      origin,
      sender: message.sender,
      receiver,
      sendTransactionHash: seen.transactionHash,
      sendTimestamp: seen.at,
      nonce: header.nonce.toString(),
      sequenceNumber: header.sequenceNumber.toString(),
      onramp: router,
      routerAddress: router,
      sendBlockNumber: seen.blockNumber,
      sendLogIndex: seen.logIndex,
      data: hexOf(message.data),
      tokenAmounts,
      extraArgs,
      version: LANE_VERSION,
      finality: 0,
      verifiers: null,
      executor: null,
      fees: {
        fixedFeesDetails: { tokenAddress: message.feeToken, totalAmount: message.feeTokenAmount.toString() },
      },
    },
    network,
    dest,
  );
  return {
    kind: 'Sent',
    message: record,
    execution: {
      message: executableMessage(message, {
        receiver,
        data: hexOf(message.data),
        extraArgs: {
          ...extraArgs,
          // The client rejects the raw bytes towards another cluster, and takes the fields.
          ...(dest.family !== 'SVM' && { extraArgs: hexOf(message.extraArgs) }),
        },
        tokens: tokenAmounts.map((transfer, index) => ({
          ...transfer,
          destExecData: hexOf(message.tokenAmounts[index]?.destExecData ?? new Uint8Array()),
        })),
      }),
    },
    seen,
  };
}

// ---- The id

const LEAF_DOMAIN = new Uint8Array(32);

/** An event proves itself by its id, which is made of the message and of the program that emitted it. */
export function sentMessageId({ header, ...message }: SentRampMessage, router: string): Hex {
  const parts = [
    LEAF_DOMAIN,
    new TextEncoder().encode('SVM2AnyMessageHashV1'),
    bigEndian(header.sourceChainSelector, 8),
    bigEndian(header.destChainSelector, 8),
    base58.decode(router),
    base58.decode(message.sender),
    bigEndian(header.sequenceNumber, 8),
    bigEndian(header.nonce, 8),
    base58.decode(message.feeToken),
    littleEndian(message.feeTokenAmount, 32),
    littleEndian(message.feeValueJuels, 32),
    withLength(message.receiver, 1),
    withLength(message.data, 2),
    littleEndian(BigInt(message.tokenAmounts.length), 4),
    ...message.tokenAmounts.flatMap((transfer) => [
      base58.decode(transfer.sourcePoolAddress),
      borshBytes(transfer.destTokenAddress),
      borshBytes(transfer.extraData),
      littleEndian(transfer.amount, 32),
      borshBytes(transfer.destExecData),
    ]),
    borshBytes(message.extraArgs),
  ];
  return hexOf(keccak_256(concatBytes(...parts)));
}

function bigEndian(value: bigint, length: number): Uint8Array {
  const digits = BigInt.asUintN(8 * length, value).toString(16);
  return hex.decode(digits.padStart(2 * length, '0'));
}

function littleEndian(value: bigint, length: number): Uint8Array {
  return bigEndian(value, length).reverse();
}

/** Behind a big-endian length. The programs cut the length off in the same way where it does not fit. */
function withLength(bytes: Uint8Array, lengthBytes: number): Uint8Array {
  return concatBytes(bigEndian(BigInt(bytes.length), lengthBytes), bytes);
}

function borshBytes(bytes: Uint8Array): Uint8Array {
  return concatBytes(littleEndian(BigInt(bytes.length), 4), bytes);
}
