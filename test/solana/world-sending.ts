/** The router of a world: it sends messages, and may begin to count a lane anew. */

import { addresses } from './ccip-accounts.ts';
import { poolProgram, sendCall, wrapped } from './ccip-calls.ts';
import { type CcipDeployment, dapp, mintOf, selectorOf } from './ccip-deployment.ts';
import {
  ccipMessageSent,
  evmExtraArgs,
  type SvmExtraArgs,
  svmExtraArgs,
  versionChanged,
} from './ccip-events.ts';
import { NO_RECEIVER, type SentBody, sentMessageId } from './ccip-hashes.ts';
import { addressOf, concat, fromHex, pubkey, toHex, u32be } from './runtime/bytes.ts';
import type { Call, Failure } from './runtime/runtime.ts';
import type { TrueSend } from './truth.ts';
import type { Remote, SendOptions } from './world-options.ts';

const WRAPPED_SOL = 'So11111111111111111111111111111111111111112';
const FEE_TOKEN_LAMPORTS = 41_032n;
const FEE_JUELS = 422_097_000_000_000n;
export const DEST_GAS = 90_000;

export function createSending(deployment: CcipDeployment, { isRelaying }: { isRelaying: boolean }) {
  const { selector, programs, usual, laneOf, land, observed } = deployment;
  const { router } = programs;
  const sends: TrueSend[] = [];
  const nonces = new Map<string, bigint>();

  /** The message that `send` would send next. */
  const bodyOf = (options: SendOptions, to: Remote): SentBody => {
    const { data = '0x1234', tokens = [], isOrdered = false } = options;
    const isSvm = to.network.family === 'SVM';
    const sender = options.sender ?? addressOf('sender', sends.length % 5);
    const nonceKey = `${selectorOf(to)} ${sender}`;
    const nonce = isOrdered ? (nonces.get(nonceKey) ?? 0n) + 1n : 0n;
    const unnamed: SentBody = {
      header: {
        messageId: new Uint8Array(32),
        sourceChainSelector: selector,
        destChainSelector: selectorOf(to),
        sequenceNumber: laneOf(to).sequenceNumber + 1n,
        nonce,
      },
      sender,
      data: fromHex(data),
      receiver: isSvm
        ? fromHex(options.receiver ?? toHex(pubkey(addressOf('receiver'))))
        : concat(new Uint8Array(12), fromHex(options.receiver ?? `0x${'b0'.repeat(20)}`)),
      extraArgs: isSvm
        ? svmExtraArgs(svmArgsOf(options))
        : evmExtraArgs(options.gasLimit ?? 200_000n, !isOrdered),
      feeToken: WRAPPED_SOL,
      tokenAmounts: tokens.map((amount, index) => ({
        sourcePoolAddress: addresses.poolConfig(poolProgram, mintOf(index)),
        destTokenAddress: isSvm
          ? pubkey(addressOf('mint elsewhere', index))
          : concat(new Uint8Array(31), new Uint8Array([0x70 + index])),
        extraData: concat(new Uint8Array(31), new Uint8Array([9])),
        amount,
        destExecData: u32be(DEST_GAS),
      })),
      feeTokenAmount: FEE_TOKEN_LAMPORTS,
      feeValueJuels: FEE_JUELS,
    };
    return { ...unnamed, header: { ...unnamed.header, messageId: sentMessageId(router, unnamed) } };
  };

  const callOf = (body: SentBody, failure?: Failure): Call =>
    sendCall({
      programs,
      body,
      isRelayed: isRelaying,
      failure,
      mints: body.tokenAmounts.map((_, index) => mintOf(index)),
    });

  return {
    sends,
    bodyOf,
    callOf,

    send(options: SendOptions = {}): TrueSend {
      const to = options.to ?? usual;
      const body = bodyOf(options, to);
      const call = callOf(body);
      const encoded = ccipMessageSent(body);
      const transaction = land(options.isWrapped ? wrapped(dapp, call) : call, {
        feePayer: body.sender,
        cutEvent: options.isTruncated ? encoded : undefined,
        hasLookup: options.hasLookup,
      });
      laneOf(to).sequenceNumber = body.header.sequenceNumber;
      if (body.header.nonce > 0n) nonces.set(`${selectorOf(to)} ${body.sender}`, body.header.nonce);
      deployment.keepDestChain(to);
      const place = observed(transaction, encoded);
      const sent: TrueSend = {
        ...place,
        messageId: toHex(body.header.messageId),
        body,
        ...(to.network.family === 'SVM' && { svm: svmArgsOf(options) }),
        origin: body.sender,
        mints: body.tokenAmounts.map((_, index) => mintOf(index)),
        trace: place.logIndex !== undefined ? 'log' : isRelaying ? 'relayed copy' : 'counter',
      };
      sends.push(sent);
      return sent;
    },

    /** The router begins to count a lane anew. */
    bumpVersion(to: Remote = usual): void {
      const lane = laneOf(to);
      const { sequenceNumber: previous, restore } = lane;
      // The event says 0 also where the lane goes on with the numbers that a rollback has left.
      const event = versionChanged('Bumped', selectorOf(to), previous, 0n);
      deployment.administer(router, 'bump_ccip_version_for_dest_chain', event);
      lane.sequenceNumber = restore?.on === 'upgrade' ? restore.number : 0n;
      lane.restore = { number: previous, on: 'rollback' };
      deployment.keepDestChain(to);
    },

    /** The router goes back to the version before, and goes on where that one had stopped to count. */
    rollBackVersion(to: Remote = usual): void {
      const lane = laneOf(to);
      const { sequenceNumber: previous, restore } = lane;
      if (restore?.on !== 'rollback') throw new RangeError('The lane has no version to go back to.');
      const event = versionChanged('RolledBack', selectorOf(to), previous, restore.number);
      deployment.administer(router, 'rollback_ccip_version_for_dest_chain', event);
      lane.sequenceNumber = restore.number;
      lane.restore = { number: previous, on: 'upgrade' };
      deployment.keepDestChain(to);
    },
  };
}

function svmArgsOf({ tokens = [], svm }: SendOptions): SvmExtraArgs {
  return {
    computeUnits: 80_000,
    isWritableBitmap: 1n,
    tokenReceiver: tokens.length > 0 ? addressOf('token receiver') : NO_RECEIVER,
    accounts: [addressOf('message account', 0)],
    ...svm,
  };
}
