/** CCIP 2.0: messages in one encoding for all chains, verified by verifiers of the sender's and receiver's choice. */
import { keccak256, toFunctionSelector, zeroAddress } from 'viem';
import { addressFromBytes, zeroAddresses } from '../../../domain/addresses.ts';
import {
  type MessageV1,
  readMessageV1,
  type TokenTransferV1,
} from '../../../domain/manual-execution/message-v1.ts';
import {
  type Fees,
  type Message,
  type TokenAmount,
  UNNAMED_VERIFIER,
  type Verifier,
} from '../../../domain/message.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import {
  knownNetwork,
  rejectOtherSource,
  spelled,
  spelledToken,
  UnreadableLogError,
} from '../../engine/event-facts.ts';
import * as abi from '../contracts/abi.ts';
import type { BatchedCalls } from '../contracts/batched-calls.ts';
import type { CommonRamp } from '../contracts/contracts.ts';
import type { CallAnswer, Hex } from '../rpc/chain.ts';
import { executedFacts, type LogContext, type LogReading, sentFact } from './log-reading.ts';

export function* readMessageSent20(context: LogContext<CommonRamp>): BatchedCalls<LogReading> {
  const { emitter, log, network } = context;
  const [[destSelector, sender, messageId], [feeToken, sentAmount, encodedMessage, receipts, verifierBlobs]] =
    abi.readEvent(abi.ccipMessageSent20, log);
  if (keccak256(encodedMessage) !== messageId)
    throw new UnreadableLogError('its id is not the hash of its message');
  const message = readMessageV1(
    encodedMessage,
    (what) => new UnreadableLogError(`its encoded message ${what}`),
  );
  const [transfer] = message.tokenTransfer;
  rejectOtherSource(message.sourceChainSelector, network);
  if (message.destChainSelector !== destSelector) {
    throw new UnreadableLogError('its topics and its message tell different destinations');
  }
  const dest = knownNetwork(destSelector, 'destination');

  const sorted = sortReceipts(receipts, verifierBlobs.length, transfer);
  const { verifiers, pool, executor, router } = sorted;
  const receiver = spelled(message.receiver, dest.family, 'receiver');
  const names = yield* readNames(
    verifiers.map(({ issuer }) => issuer),
    destSelector,
  );
  const sent = sentFact(
    context,
    dest,
    {
      messageId,
      sender,
      receiver,
      nonce: null,
      sequenceNumber: message.messageNumber.toString(),
      routerAddress: router.issuer,
      data: message.data,
      tokenAmounts: tokenAmounts(transfer, pool, network, dest),
      extraArgs: extraArgsV3(message, sorted, dest, receiver),
      version: emitter.version,
      // The flags above the depth ask for the safe head, for which the contract has 0: the extra arguments have both.
      finality: Number(message.finality) & 0xffff,
      verifiers: {
        items: verifiers.map(({ issuer }, index) => pendingVerifier(issuer, names[index], dest)),
        optionalThreshold: 0,
      },
      executor: { address: executor.issuer },
      fees: {
        fixedFeesDetails: {
          tokenAddress: feeToken,
          totalAmount: receipts.reduce((sum, { feeTokenAmount }) => sum + feeTokenAmount, 0n).toString(),
          items: [
            ...verifiers.map((receipt) => feeItem(receipt, 'VERIFIER')),
            ...(pool ? [feeItem(pool, 'TOKEN_POOL')] : []),
            feeItem(executor, 'EXECUTOR'),
            feeItem(router, 'NETWORK'),
          ],
        },
        ...bpsFees(transfer, sentAmount, network),
      },
    },
    { encodedMessage, offramp: spelled(message.offRampAddress, dest.family, 'off-ramp') },
  );
  return { facts: [sent], problems: [] };
}

type Receipt = abi.Values<typeof abi.ccipMessageSent20.data>[3][number];
type SortedReceipts = ReturnType<typeof sortReceipts>;

/** Receipts stand in this order: the verifiers', the token pool's, the executor's, the network's by the router. */
function sortReceipts(
  receipts: readonly Receipt[],
  verifierCount: number,
  transfer: TokenTransferV1 | undefined,
) {
  const verifiers = receipts.slice(0, verifierCount);
  const others = receipts.slice(verifierCount);
  const pool = transfer && others.shift();
  const [executor, router] = others;
  if (!executor || !router || others.length > 2) {
    throw new UnreadableLogError(
      `it has ${receipts.length} receipts for ${verifierCount} verifiers and ${transfer ? 'a' : 'no'} token`,
    );
  }
  return { verifiers, pool, executor, router };
}

/**
 * The extra arguments in effect. The receipts name the verifiers and the executor with the arguments that each got, also
 * those that the on-ramp added to what the sender wrote. Nothing orders messages of 2.0, so each may come before another.
 */
function extraArgsV3(
  { ccipReceiveGasLimit, finality, tokenTransfer: [transfer] }: MessageV1,
  { verifiers, pool, executor }: SortedReceipts,
  dest: Network,
  receiver: string,
): Message['extraArgs'] {
  const tokenReceiver = transfer && addressFromBytes(transfer.tokenReceiver.slice(2), dest.family);
  return {
    gasLimit: ccipReceiveGasLimit.toString(),
    allowOutOfOrderExecution: true,
    requestedFinalityConfig: finality,
    ccvs: verifiers.map(({ issuer }) => issuer),
    ccvArgs: verifiers.map(({ extraArgs }) => extraArgs),
    executor: executor.issuer,
    executorArgs: executor.extraArgs,
    // Without a token this is the message's receiver, because the client rejects an empty address.
    tokenReceiver: tokenReceiver?.text ?? receiver,
    tokenArgs: pool?.extraArgs ?? '0x',
  };
}

/** What the token pool kept of the sent amount; the pool rounds down, so the share is rounded to the nearest. */
function bpsFees(transfer: TokenTransferV1 | undefined, sentAmount: bigint, network: Network) {
  const fee = transfer ? sentAmount - transfer.amount : 0n;
  if (!transfer || fee <= 0n) return {};
  return {
    bpsFeeDetails: [
      {
        contractAddress: spelled(transfer.sourcePoolAddress, network.family, 'token pool'),
        tokenAddress: spelled(transfer.sourceTokenAddress, network.family, 'token'),
        amount: fee.toString(),
        bps: Number((fee * 10_000n + sentAmount / 2n) / sentAmount),
      },
    ],
  };
}

function feeItem({ issuer, feeTokenAmount }: Receipt, feeType: FeeItem['feeType']): FeeItem {
  return { contractAddress: issuer, feeType, amount: feeTokenAmount.toString() };
}

type FeeItem = NonNullable<Fees['fixedFeesDetails']['items']>[number];

/** A transfer that the pool keeps whole as its fee is left out: a record has no amounts of 0. */
function tokenAmounts(
  transfer: TokenTransferV1 | undefined,
  pool: Receipt | undefined,
  network: Network,
  dest: Network,
): TokenAmount[] {
  if (!transfer || transfer.amount === 0n) return [];
  return [
    {
      sourceTokenAddress: spelled(transfer.sourceTokenAddress, network.family, 'token'),
      destTokenAddress: spelledToken(transfer.destTokenAddress, dest.family),
      sourcePoolAddress: spelled(transfer.sourcePoolAddress, network.family, 'token pool'),
      amount: transfer.amount.toString(),
      extraData: transfer.extraData,
      destGasAmount: pool ? pool.destGasLimit.toString() : null,
    },
  ];
}

/** Which verifier stands for it on the destination, and whether it must, only the destination tells. */
function pendingVerifier(issuer: Hex, name: string | undefined, dest: Network): Verifier {
  return {
    sourceAddress: issuer,
    destAddress: zeroAddresses[dest.family],
    metadata: { name: name ?? UNNAMED_VERIFIER },
    isRequired: true,
    status: 'PENDING',
    verification: null,
  };
}

/**
 * What the verifiers call themselves, or those to whom a resolver hands the lane. Anybody may write a verifier and a
 * sender may choose any: a name is believed only as far as it looks like a type and version.
 */
function* readNames(
  issuers: readonly Hex[],
  destSelector: bigint,
): BatchedCalls<readonly (string | undefined)[]> {
  const implementations = yield issuers.map((issuer) =>
    abi.callOf(abi.getOutboundImplementation, issuer, destSelector, '0x'),
  );
  const behind = issuers.map((issuer, index) => {
    const [implementation = zeroAddress] =
      abi.answerOf(abi.getOutboundImplementation, implementations[index]) ?? [];
    return implementation === zeroAddress ? issuer : implementation;
  });
  const types = yield [...behind, ...issuers].map((address) => abi.callOf(abi.typeAndVersion, address));
  return issuers.map((_, index) => nameOf(types[index]) ?? nameOf(types[issuers.length + index]));
}

function nameOf(answer: CallAnswer): string | undefined {
  const [words = ''] = abi.answerOf(abi.typeAndVersion, answer) ?? [];
  return /^([A-Za-z]\w{0,63}) \d+\.\d+/.exec(words)?.[1];
}

export function readExecution20(context: LogContext<CommonRamp>): LogReading {
  const [[, , messageId], [state, returnData]] = abi.readEvent(abi.executionStateChanged20, context.log);
  const executed = executedFacts({ messageId, state, returnData }, context);
  const isVerified = executed.some(
    (fact) => fact.kind === 'Executed' && (fact.success || failedAfterVerification(returnData)),
  );
  return {
    facts: [...executed, ...(isVerified ? completedVerifications(messageId, context) : [])],
    problems: [],
  };
}

/** The verifiers' results stand in the call of the off-ramp, if that is what the transaction does. */
function completedVerifications(messageId: Hex, { emitter, seen, transaction }: LogContext) {
  const call =
    transaction?.to === emitter.address ? abi.argumentsOf(abi.execute20, transaction.input) : undefined;
  if (!call) return [];
  const [encodedMessage, verifiers, results] = call;
  if (keccak256(encodedMessage) !== messageId) return [];
  return verifiers.flatMap((verifier, index) => {
    const data = results[index];
    return data === undefined
      ? []
      : [{ kind: 'VerifierCompleted' as const, messageId, verifier, data, seen }];
  });
}

const receiverError = toFunctionSelector('ReceiverError(bytes)');
const tokenHandlingError = toFunctionSelector('TokenHandlingError(address,bytes)');
/** Behind the selector: the token, where its words begin, and how long they are. The words may be cut off. */
const tokenHandlingWords = /^0x.{8}.{64}.{64}0*[1-9a-f]/;

/**
 * Anybody may execute, and a false verification makes the execution fail: only a failure that lies behind the
 * verification speaks for the results. The receiver is called last. Tokens are handled behind it too, but a call with
 * too little gas breaks off with the same error, then without a word, where their balance is read before it.
 */
function failedAfterVerification(returnData: Hex): boolean {
  if (returnData.startsWith(receiverError)) return true;
  return returnData.startsWith(tokenHandlingError) && tokenHandlingWords.test(returnData.slice(0, 202));
}
