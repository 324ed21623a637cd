/** The fact that a message was sent from Solana, and what an execution by hand needs of it. */
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
import type { CcipEvent } from './events.ts';
import { readExtraArgs } from './extra-args.ts';
import { sentMessageId } from './message-hashes.ts';

/** All releases of the programs up to 1.6.3 have one layout. */
const LANE_VERSION = '1.6.0';

export interface SentContext {
  readonly router: string;
  readonly network: Network;
  /** Of the tokens, in their order, from the instruction; the event names pools only. */
  readonly mints: readonly string[];
  /** Who pays for the transaction. */
  readonly origin: string;
  readonly seen: Observation;
}

/** Throws an UnreadableLogError where the id is not that of the message, or no record can hold it. */
export function sentMessage(
  event: Extract<CcipEvent, { readonly name: 'CCIPMessageSent' }>,
  { router, network, mints, origin, seen }: SentContext,
): Sent {
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
