/** The off-ramp of a world: messages on their way to Solana, their commits and their executions. */

import { commitCall, type ExecuteCall, executeCall } from './ccip-calls.ts';
import { type CcipDeployment, DEST_GAS, dapp, mintOf, selectorOf, transmitter } from './ccip-deployment.ts';
import {
  commitReportAccepted,
  executionStateChanged,
  executionStates,
  merkleProof,
  merkleRoot,
  NO_RECEIVER,
} from './ccip-events.ts';
import {
  type EvmMessage,
  leafOf,
  messageIdOf,
  type ReceivedMessage,
  receivedBodyOf,
} from './received-messages.ts';
import { addressOf, fromHex } from './runtime/bytes.ts';
import { type Call, customFailure } from './runtime/runtime.ts';
import type { ExecuteOptions, ReceiveOptions, Remote, TrueCommit, TrueExecution } from './world-options.ts';

interface Report {
  readonly commit: TrueCommit;
  readonly messages: readonly ReceivedMessage[];
  states: bigint;
}

export function createReceiving(deployment: CcipDeployment, remotes: readonly Remote[]) {
  const { selector, programs, usual, laneOf, land, observed, keepReport } = deployment;
  const received: EvmMessage[] = [];
  const commits: TrueCommit[] = [];
  const executions: TrueExecution[] = [];
  const reports: Report[] = [];
  let ocrNumber = 1n;

  const remoteOf = (message: ReceivedMessage): Remote => {
    const remote = remotes.find((one) => selectorOf(one) === message.sourceChainSelector);
    if (!remote) throw new RangeError(`${message.sourceChainSelector} is not a remote chain of this world.`);
    return remote;
  };

  /** A call of the off-ramp that executes a message, whether it is committed or not. */
  const callOf = (message: ReceivedMessage, more: Partial<ExecuteCall> = {}): Call =>
    executeCall({
      programs,
      executor: transmitter,
      message,
      root: merkleRoot([leafOf(message)]),
      proofs: [],
      number: ocrNumber++,
      ...more,
    });

  return {
    executionOf: callOf,
    /** Every message of EVM chains that `receive` made or `accept` took, in order. */
    received,
    commits,
    executions,

    /** A message on its way from an EVM chain to Solana: it exists on its source chain. */
    receive(options: ReceiveOptions = {}): EvmMessage {
      const from = options.from ?? usual;
      if (from.network.family !== 'EVM') throw new RangeError('Other clusters send; `accept` takes it.');
      const lane = laneOf(from);
      lane.received += 1n;
      const { tokens = [], hasNoReceiver = false } = options;
      const message: EvmMessage = {
        sourceChainSelector: selectorOf(from),
        destChainSelector: selector,
        onRamp: from.onRamp,
        sequenceNumber: lane.received,
        sender: `0x${'a1'.repeat(20)}`,
        data: options.data ?? (hasNoReceiver ? '0x' : '0xcafe'),
        receiver: hasNoReceiver ? NO_RECEIVER : addressOf('receiver'),
        tokens: tokens.map((amount, index) => ({
          sourcePoolAddress: `0x${'9'.repeat(39)}${index}`,
          destTokenAddress: mintOf(index),
          extraData: '0x12',
          amount,
          destGasAmount: DEST_GAS,
        })),
        feeToken: `0x${'fe'.repeat(20)}`,
        feeTokenAmount: 10n ** 15n,
        feeValueJuels: 10n ** 17n,
        computeUnits: 80_000,
        isWritableBitmap: 2n,
        tokenReceiver: tokens.length > 0 ? addressOf('token receiver') : NO_RECEIVER,
        accounts: hasNoReceiver ? [] : [addressOf('message account', 0), addressOf('message account', 1)],
      };
      received.push(message);
      return message;
    },

    /** A message that another chain has sent, with the next number of its lane. */
    accept(message: ReceivedMessage): void {
      const lane = laneOf(remoteOf(message));
      if (message.sequenceNumber !== lane.received + 1n)
        throw new RangeError(`The lane expects message ${lane.received + 1n}.`);
      lane.received = message.sequenceNumber;
      if (!('sent' in message)) received.push(message);
    },

    /** Of messages with consecutive numbers, from the next one that its lane expects on. */
    commit(messages: readonly ReceivedMessage[], { isTruncated = false } = {}): TrueCommit {
      const [first] = messages;
      const last = messages.at(-1);
      if (!first || !last) throw new RangeError('A root needs a message.');
      const from = remoteOf(first);
      const lane = laneOf(from);
      if (first.sequenceNumber !== lane.nextToCommit || messages.length > 64)
        throw new RangeError(`The lane expects message ${lane.nextToCommit}, and at most 64 of them.`);
      const root = {
        sourceChainSelector: selectorOf(from),
        onRampAddress: fromHex(from.onRamp),
        minSeqNr: first.sequenceNumber,
        maxSeqNr: last.sequenceNumber,
        merkleRoot: merkleRoot(messages.map(leafOf)),
      };
      const prices = [{ destChainSelector: root.sourceChainSelector, usdPerUnitGas: 10n ** 9n }];
      const call = commitCall({ programs, transmitter, root, prices, number: ocrNumber++ });
      const encoded = commitReportAccepted(root, prices);
      const transaction = land(call, { cutEvent: isTruncated ? encoded : undefined });
      lane.nextToCommit = root.maxSeqNr + 1n;
      deployment.keepSourceChain(from);
      const commit: TrueCommit = { ...observed(transaction, encoded), ...root };
      commits.push(commit);
      reports.push({ commit, messages, states: 0n });
      keepReport(commit, 0n);
      return commit;
    },

    commitPrices(from: Remote = usual): void {
      const prices = [{ destChainSelector: selectorOf(from), usdPerUnitGas: 10n ** 9n }];
      land(commitCall({ programs, transmitter, root: undefined, prices, number: ocrNumber++ }));
    },

    /** Undefined where the off-ramp skipped the message, or a later instruction failed: there is nothing to record. */
    execute(message: ReceivedMessage, options: ExecuteOptions = {}): TrueExecution | undefined {
      const report = reports.find(({ messages }) => messages.includes(message));
      if (!report) throw new RangeError(`Message ${message.sequenceNumber} is not committed.`);
      const { outcome = 'success', isManual = false, isBuffered = false } = options;
      const { isTruncated = false, hasLookup } = options;
      const place = report.messages.indexOf(message);
      const leaf = leafOf(message);
      const executor = isManual ? addressOf('executor') : transmitter;
      const failure = options.failure ?? customFailure(6_001);
      const call = callOf(message, {
        executor,
        root: report.commit.merkleRoot,
        proofs: merkleProof(report.messages.map(leafOf), place),
        isManual,
        isBuffered,
        isSkipped: outcome === 'skipped',
        failure: outcome === 'failure' ? failure : undefined,
        failing: options.failing,
        words: options.words,
      });
      const { header } = receivedBodyOf(message);
      const later = outcome === 'later failure' ? [{ program: dapp, steps: [{ fails: failure }] }] : [];
      const begun = executionStateChanged(header, leaf, 'inProgress');
      const cutEvent = isTruncated ? begun : undefined;
      const transaction = land(call, { feePayer: executor, cutEvent, hasLookup, later });
      // The off-ramp did not fail, and what it did was taken back.
      if (outcome === 'skipped' || outcome === 'later failure') return undefined;
      const isSuccess = outcome === 'success';
      if (isSuccess) {
        report.states |= BigInt(executionStates.success) << (BigInt(place) * 2n);
        keepReport(report.commit, report.states);
      }
      const said = isSuccess ? 'success' : 'inProgress';
      const execution: TrueExecution = {
        ...observed(transaction, executionStateChanged(header, leaf, said)),
        message,
        messageId: messageIdOf(message),
        leaf,
        isSuccess,
      };
      executions.push(execution);
      return execution;
    },
  };
}
