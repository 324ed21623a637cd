/** CCIP 1.6: one on-ramp and one off-ramp a chain, which commits too; destinations of every family. */
import { zeroAddress } from 'viem';
import type { Fact, RangeFact } from '../../../domain/facts.ts';
import {
  committedFact,
  gasOf,
  knownNetwork,
  onRampOf,
  rejectOtherSource,
  spelled,
  spelledToken,
  UnreadableLogError,
} from '../../engine/event-facts.ts';
import { executableMessage } from '../../engine/executable-message.ts';
import {
  answerOf,
  callOf,
  ccipMessageSent16,
  commitReportAccepted,
  executionStateChanged16,
  getRouter16,
  getToken,
  readEvent,
} from '../contracts/abi.ts';
import type { BatchedCalls } from '../contracts/batched-calls.ts';
import type { CommonRamp } from '../contracts/contracts.ts';
import type { ChainLog, Hex } from '../rpc/chain.ts';
import { readExtraArgs } from './extra-args.ts';
import { type Execution, executedFacts, type LogContext, type LogReading, sentFact } from './log-reading.ts';

export function* readMessageSent16(context: LogContext<CommonRamp>): BatchedCalls<LogReading> {
  const { emitter, log, network } = context;
  const [[destSelector, sequenceNumber], [message]] = readEvent(ccipMessageSent16, log);
  const { header } = message;
  rejectOtherSource(header.sourceChainSelector, network);
  if (header.destChainSelector !== destSelector || header.sequenceNumber !== sequenceNumber) {
    throw new UnreadableLogError('its topics and its header tell different lanes or numbers');
  }
  const dest = knownNetwork(destSelector, 'destination');
  const receiver = spelled(message.receiver, dest.family, 'receiver');
  const extraArgs = readExtraArgs(message.extraArgs, header.nonce);

  const [routerAnswer, ...tokenAnswers] = yield [
    callOf(getRouter16, emitter.address, destSelector),
    ...message.tokenAmounts.map(({ sourcePoolAddress }) => callOf(getToken, sourcePoolAddress)),
  ];
  const [, , router = zeroAddress] = answerOf(getRouter16, routerAnswer) ?? [];
  const tokenAmounts = message.tokenAmounts.map((transfer, index) => {
    const [token = zeroAddress] = answerOf(getToken, tokenAnswers[index]) ?? [];
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
      routerAddress: router === zeroAddress ? null : router,
      data: message.data,
      tokenAmounts,
      extraArgs,
      version: emitter.version,
      finality: 0,
      verifiers: null,
      executor: null,
      fees: {
        fixedFeesDetails: { tokenAddress: message.feeToken, totalAmount: message.feeTokenAmount.toString() },
      },
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
  const [, [blessed, unblessed]] = readEvent(commitReportAccepted, context.log);
  const facts: Fact[] = [];
  const problems: string[] = [];
  for (const [index, root] of [...blessed, ...unblessed].entries()) {
    try {
      const committed = committedRoot(root, context);
      facts.push(committed);
      if (index < blessed.length) facts.push({ ...committed, kind: 'Blessed' });
    } catch (error) {
      if (!(error instanceof UnreadableLogError)) throw error;
      problems.push(error.message);
    }
  }
  return { facts, problems };
}

interface MerkleRoot {
  readonly sourceChainSelector: bigint;
  readonly onRampAddress: Hex;
  readonly minSeqNr: bigint;
  readonly maxSeqNr: bigint;
  readonly merkleRoot: Hex;
}

function committedRoot(root: MerkleRoot, { emitter, network, seen }: LogContext): RangeFact {
  const source = knownNetwork(root.sourceChainSelector, 'source');
  return committedFact(
    {
      min: root.minSeqNr,
      max: root.maxSeqNr,
      merkleRoot: root.merkleRoot,
      offramp: spelled(emitter.address, network.family, 'off-ramp'),
    },
    {
      sourceChainSelector: source.selector,
      destChainSelector: network.selector,
      onramp: onRampOf(root.onRampAddress, source),
    },
    seen,
  );
}

export function readExecution16(context: LogContext<CommonRamp>): LogReading {
  return { facts: executedFacts(execution16(context.log), context), problems: [] };
}

export function execution16(log: ChainLog): Execution {
  const [[, , messageId], [, state, returnData, gasUsed]] = readEvent(executionStateChanged16, log);
  return { messageId, state, returnData, gasUsed };
}
