/** CCIP 1.6 (one on-ramp and one off-ramp a chain, which commits too; destinations of every family), then 1.2 and 1.5. */
import { decodeAbiParameters, slice, zeroAddress, zeroHash } from 'viem';
import { zeroAddresses } from '../../../domain/addresses.ts';
import type { Fact } from '../../../domain/facts.ts';
import type { Message, TokenAmount } from '../../../domain/message.ts';
import type { Network } from '../../../domain/networks/networks.ts';
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
import type { BatchedCalls } from '../contracts/batched-calls.ts';
import type { CommitStore, CommonRamp, LaneOnRamp, OtherContract } from '../contracts/contracts.ts';
import type { CallAnswer, ChainLog, Hex } from '../rpc/chain.ts';
import {
  committedHere,
  type Execution,
  type LogContext,
  type LogReading,
  nothing,
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

/**
 * What the sender asked of the execution. Aptos and TON are sent the second form of EVM. Sui's own form has two members
 * more, behind those of EVM's.
 */
function readExtraArgs(extraArgs: Hex, nonce: bigint): Message['extraArgs'] {
  const tag = extraArgs.slice(0, 10);
  const encoded = (): Hex => slice(extraArgs, 4);
  switch (tag) {
    case extraArgsTags.evmV1: {
      const [gasLimit] = decodeAbiParameters(abi.evmExtraArgsV1, encoded());
      return { gasLimit: gasLimit.toString(), allowOutOfOrderExecution: nonce === 0n };
    }
    case extraArgsTags.evmV2: {
      const [gasLimit, allowOutOfOrderExecution] = decodeAbiParameters(abi.evmExtraArgsV2, encoded());
      return { gasLimit: gasLimit.toString(), allowOutOfOrderExecution };
    }
    case extraArgsTags.svmV1: {
      const [args] = decodeAbiParameters(abi.svmExtraArgsV1, encoded());
      return {
        computeUnits: args.computeUnits,
        accountIsWritableBitmap: args.accountIsWritableBitmap.toString(),
        allowOutOfOrderExecution: args.allowOutOfOrderExecution,
        tokenReceiver: spelled(args.tokenReceiver, 'SVM', 'token receiver'),
        accounts: args.accounts.map((account) => spelled(account, 'SVM', 'account')),
      };
    }
    case extraArgsTags.suiV1: {
      const [args] = decodeAbiParameters(abi.suiExtraArgsV1, encoded());
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

// ---- CCIP 1.2 and 1.5. Every lane has ramps and a commit store of its own, so that what an event leaves out stands in the
// configuration of its emitter.

export function* readSendRequested(context: LogContext<LaneOnRamp>): BatchedCalls<LogReading> {
  const { emitter, log, network } = context;
  const [, [message]] = abi.readEvent(abi.ccipSendRequested, log);
  rejectOtherSource(message.sourceChainSelector, network);
  if (message.sourceTokenData.length !== message.tokenAmounts.length) {
    throw new UnreadableLogError('it has not as many token data as tokens');
  }
  const dest = knownNetwork(emitter.destChainSelector, 'destination');

  // Only from 1.5 on does a message name the pools.
  const pools = emitter.version === '1.2.0' ? message.tokenAmounts.map(({ token }) => token) : [];
  const [routerAnswer, ...poolAnswers] = yield [
    abi.callOf(abi.getRouter15, emitter.address),
    ...pools.map((token) =>
      abi.callOf(abi.getPoolBySourceToken, emitter.address, BigInt(dest.selector), token),
    ),
  ];
  const [router = zeroAddress] = abi.answerOf(abi.getRouter15, routerAnswer) ?? [];
  const sent = sentFact(
    context,
    dest,
    {
      messageId: message.messageId,
      sender: message.sender,
      receiver: message.receiver,
      nonce: message.nonce.toString(),
      sequenceNumber: message.sequenceNumber.toString(),
      tokenAmounts: message.tokenAmounts.map(({ token, amount }, index) => ({
        sourceTokenAddress: token,
        amount: amount.toString(),
        ...(emitter.version === '1.2.0'
          ? untoldTransfer(poolAnswers[index], message.sourceTokenData[index] ?? '0x', dest)
          : toldTransfer(message.sourceTokenData[index] ?? '0x', network, dest)),
      })),
      extraArgs: { gasLimit: message.gasLimit.toString(), allowOutOfOrderExecution: message.nonce === 0n },
      ...partsBefore20(context, router, message),
    },
    { message: executable(message) },
  );
  return { facts: [sent], problems: [] };
}

/**
 * The message as the official client takes it for an execution by hand: all that its leaf of the merkle tree is hashed
 * from, one element of `messageBatch`. Numbers are decimal strings, of which the client makes integers. Of a transfer
 * `tokenAmounts` has token and amount; the rest is in `sourceTokenData` at the same place, as it was emitted.
 */
function executable(message: abi.Values<typeof abi.ccipSendRequested.data>[0]) {
  return {
    messageId: message.messageId,
    sourceChainSelector: message.sourceChainSelector.toString(),
    sequenceNumber: message.sequenceNumber.toString(),
    nonce: message.nonce.toString(),
    sender: message.sender,
    receiver: message.receiver,
    data: message.data,
    gasLimit: message.gasLimit.toString(),
    strict: message.strict,
    feeToken: message.feeToken,
    feeTokenAmount: message.feeTokenAmount.toString(),
    tokenAmounts: message.tokenAmounts.map(({ token, amount }) => ({ token, amount: amount.toString() })),
    sourceTokenData: message.sourceTokenData,
  };
}

type Transfer = Omit<TokenAmount, 'sourceTokenAddress' | 'amount'>;

function toldTransfer(tokenData: Hex, network: Network, dest: Network): Transfer {
  const [told] = decodeAbiParameters(abi.sourceTokenData, tokenData);
  return {
    sourcePoolAddress: spelled(told.sourcePoolAddress, network.family, 'token pool'),
    destTokenAddress: spelledToken(told.destTokenAddress, dest.family),
    extraData: told.extraData,
    destGasAmount: told.destGasAmount.toString(),
  };
}

/** A 1.2 message says nothing of pools and destination tokens; the on-ramp still knows the pool, as a rule. */
function untoldTransfer(poolAnswer: CallAnswer, tokenData: Hex, dest: Network): Transfer {
  const [pool = zeroAddress] = abi.answerOf(abi.getPoolBySourceToken, poolAnswer) ?? [];
  return {
    sourcePoolAddress: pool,
    destTokenAddress: zeroAddresses[dest.family],
    extraData: tokenData,
    destGasAmount: null,
  };
}

export function readReportAccepted(context: LogContext<CommitStore>): LogReading {
  const { emitter, log } = context;
  const [, [report]] = abi.readEvent(abi.reportAccepted, log);
  // A report may bring prices alone.
  if (report.merkleRoot === zeroHash) return nothing;
  const source = knownNetwork(emitter.sourceChainSelector, 'source');
  const root = { ...report.interval, merkleRoot: report.merkleRoot };
  const onramp = spelled(emitter.onRamp, source.family, 'on-ramp');
  return { facts: [committedHere(root, source, onramp, emitter.offRamp, context)], problems: [] };
}

/** An RMN blesses roots of every commit store that asks it; only those of ours mean something. */
export function readRootBlessed({ registry, log, seen }: LogContext<OtherContract>): LogReading {
  const [, [{ commitStore, root }]] = abi.readEvent(abi.taggedRootBlessed, log);
  if (registry.get(abi.lowerCase(commitStore))?.role !== 'commitStore') return nothing;
  return { facts: [{ kind: 'RootBlessed', merkleRoot: root, seen }], problems: [] };
}

/** The owner takes back a root that the RMN has not blessed. */
export function readRootRemoved({ log, seen }: LogContext): LogReading {
  const [, [root]] = abi.readEvent(abi.rootRemoved, log);
  return { facts: [{ kind: 'RootRemoved', merkleRoot: root, seen }], problems: [] };
}

export function execution15(log: ChainLog): Execution {
  const [[, messageId], [state, returnData]] = abi.readEvent(abi.executionStateChanged15, log);
  return { messageId, state, returnData };
}
