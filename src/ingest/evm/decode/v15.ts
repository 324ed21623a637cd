/**
 * CCIP 1.2 and 1.5. Every lane has ramps and a commit store of its own, so that what an event leaves out stands in the
 * configuration of its emitter.
 */
import { zeroAddress, zeroHash } from 'viem';
import { zeroAddresses } from '../../../domain/addresses.ts';
import type { TokenAmount } from '../../../domain/message.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import {
  knownNetwork,
  rejectOtherSource,
  spelled,
  spelledToken,
  UnreadableLogError,
} from '../../engine/event-facts.ts';
import * as abi from '../contracts/abi.ts';
import { compileDecoder } from '../contracts/abi-decoder.ts';
import type { BatchedCalls } from '../contracts/batched-calls.ts';
import type { CommitStore, LaneOnRamp, OtherContract } from '../contracts/contracts.ts';
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

const decodeSourceTokenData = compileDecoder(abi.sourceTokenData);

function toldTransfer(tokenData: Hex, network: Network, dest: Network): Transfer {
  const [told] = decodeSourceTokenData(tokenData);
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
