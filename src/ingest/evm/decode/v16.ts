/** CCIP 1.6: one on-ramp and one off-ramp a chain, which commits too; destinations of every family. */
import { slice, zeroAddress } from 'viem';
import type { Fact } from '../../../domain/facts.ts';
import type { Message } from '../../../domain/message.ts';
import {
  executableMessage,
  gasOf,
  knownNetwork,
  onRampOf,
  rejectOtherSource,
  spelled,
  spelledToken,
  UnreadableLogError,
} from '../../engine/event-facts.ts';
import * as abi from '../contracts/abi.ts';
import { compileDecoder } from '../contracts/abi-decoder.ts';
import type { BatchedCalls } from '../contracts/batched-calls.ts';
import type { CommonRamp } from '../contracts/contracts.ts';
import type { ChainLog, Hex } from '../rpc/chain.ts';
import {
  committedHere,
  type Execution,
  type LogContext,
  type LogReading,
  partsBefore20,
  sentFact,
} from './log-reading.ts';

export function* readMessageSent16(context: LogContext<CommonRamp>): BatchedCalls<LogReading> {
  const { emitter, log, network } = context;
  const [[destSelector, sequenceNumber], [message]] = abi.readEvent(abi.ccipMessageSent16, log);
  const { header } = message;
  rejectOtherSource(header.sourceChainSelector, network);
  if (header.destChainSelector !== destSelector || header.sequenceNumber !== sequenceNumber) {
    throw new UnreadableLogError('its topics and its header tell different lanes or numbers');
  }
  const dest = knownNetwork(destSelector, 'destination');
  const receiver = spelled(message.receiver, dest.family, 'receiver');
  const extraArgs = readExtraArgs(message.extraArgs, header.nonce);

  const [routerAnswer, ...tokenAnswers] = yield [
    abi.callOf(abi.getRouter16, emitter.address, destSelector),
    ...message.tokenAmounts.map(({ sourcePoolAddress }) => abi.callOf(abi.getToken, sourcePoolAddress)),
  ];
  const [, , router = zeroAddress] = abi.answerOf(abi.getRouter16, routerAnswer) ?? [];
  const tokenAmounts = message.tokenAmounts.map((transfer, index) => {
    const [token = zeroAddress] = abi.answerOf(abi.getToken, tokenAnswers[index]) ?? [];
    return {
      sourceTokenAddress: token,
      destTokenAddress: spelledToken(transfer.destTokenAddress, dest.family),
      sourcePoolAddress: transfer.sourcePoolAddress,
      amount: transfer.amount.toString(),
      extraData: transfer.extraData,
      destGasAmount: gasOf(transfer.destExecData),
    };
  });
  const sent = sentFact(
    context,
    dest,
    {
      messageId: header.messageId,
      sender: message.sender,
      receiver,
      nonce: header.nonce.toString(),
      sequenceNumber: sequenceNumber.toString(),
      tokenAmounts,
      extraArgs,
      ...partsBefore20(context, router, message),
    },
    {
      message: executableMessage(message, {
        receiver,
        data: message.data,
        extraArgs: { extraArgs: message.extraArgs },
        tokens: tokenAmounts.map(({ destGasAmount, ...transfer }, index) => ({
          ...transfer,
          destExecData: message.tokenAmounts[index]?.destExecData,
        })),
      }),
    },
  );
  return { facts: [sent], problems: [] };
}

/** One report commits to roots of many lanes; what is wrong with one of them says nothing of the others. */
export function readCommitReport(context: LogContext<CommonRamp>): LogReading {
  const [, [blessed, unblessed]] = abi.readEvent(abi.commitReportAccepted, context.log);
  const facts: Fact[] = [];
  const problems: string[] = [];
  for (const [index, root] of [...blessed, ...unblessed].entries()) {
    try {
      const { minSeqNr: min, maxSeqNr: max, merkleRoot } = root;
      const source = knownNetwork(root.sourceChainSelector, 'source');
      const onramp = onRampOf(root.onRampAddress, source);
      const { address } = context.emitter;
      const committed = committedHere({ min, max, merkleRoot }, source, onramp, address, context);
      facts.push(committed);
      if (index < blessed.length) facts.push({ ...committed, kind: 'Blessed' });
    } catch (error) {
      if (!(error instanceof UnreadableLogError)) throw error;
      problems.push(error.message);
    }
  }
  return { facts, problems };
}

export function execution16(log: ChainLog): Execution {
  const [[, , messageId], [, state, returnData, gasUsed]] = abi.readEvent(abi.executionStateChanged16, log);
  return { messageId, state, returnData, gasUsed };
}

/** The first four bytes of the hash of a name such as `CCIP EVMExtraArgsV1`. */
export const extraArgsTags = {
  evmV1: '0x97a657c9',
  evmV2: '0x181dcf10',
  svmV1: '0x1f3b3aba',
  suiV1: '0x21ea4ca9',
} as const;

const decodeExtraArgs = {
  evmV1: compileDecoder(abi.evmExtraArgsV1),
  evmV2: compileDecoder(abi.evmExtraArgsV2),
  svmV1: compileDecoder(abi.svmExtraArgsV1),
  suiV1: compileDecoder(abi.suiExtraArgsV1),
};

/**
 * What the sender asked of the execution. Aptos and TON are sent the second form of EVM. Sui's own form has two members
 * more, behind those of EVM's.
 */
function readExtraArgs(extraArgs: Hex, nonce: bigint): Message['extraArgs'] {
  const tag = extraArgs.slice(0, 10);
  const encoded = (): Hex => slice(extraArgs, 4);
  switch (tag) {
    case extraArgsTags.evmV1: {
      const [gasLimit] = decodeExtraArgs.evmV1(encoded());
      return { gasLimit: gasLimit.toString(), allowOutOfOrderExecution: nonce === 0n };
    }
    case extraArgsTags.evmV2: {
      const [gasLimit, allowOutOfOrderExecution] = decodeExtraArgs.evmV2(encoded());
      return { gasLimit: gasLimit.toString(), allowOutOfOrderExecution };
    }
    case extraArgsTags.svmV1: {
      const [args] = decodeExtraArgs.svmV1(encoded());
      return {
        computeUnits: args.computeUnits,
        accountIsWritableBitmap: args.accountIsWritableBitmap.toString(),
        allowOutOfOrderExecution: args.allowOutOfOrderExecution,
        tokenReceiver: spelled(args.tokenReceiver, 'SVM', 'token receiver'),
        accounts: args.accounts.map((account) => spelled(account, 'SVM', 'account')),
      };
    }
    case extraArgsTags.suiV1: {
      const [args] = decodeExtraArgs.suiV1(encoded());
      return {
        gasLimit: args.gasLimit.toString(),
        allowOutOfOrderExecution: args.allowOutOfOrderExecution,
        tokenReceiver: spelled(args.tokenReceiver, 'SUI', 'token receiver'),
        receiverObjectIds: args.receiverObjectIds.map((id) => spelled(id, 'SUI', 'object')),
      };
    }
    default:
      throw new UnreadableLogError(`its extra arguments have the tag ${tag}, which we do not know`);
  }
}
