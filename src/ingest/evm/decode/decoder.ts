/**
 * What the contracts say: from their logs to facts.
 *
 * Whatever a contract emits, decoding goes on: a log that cannot be read is handed back with the reason, and the rest
 * is decoded all the same. Only a node can stop it, by failing or by contradicting itself.
 */

import { LATEST_TIME } from '../../../base/iso-time.ts';
import type { Fact } from '../../../domain/facts.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import { shortened, UnreadableLogError } from '../../engine/event-facts.ts';
import { NodeError } from '../../engine/faults.ts';
import * as abi from '../contracts/abi.ts';
import { type BatchedCalls, type Finding, runBatched } from '../contracts/batched-calls.ts';
import type {
  CommitStore,
  CommonRamp,
  GenuineContract,
  LaneOffRamp,
  LaneOnRamp,
  OtherContract,
} from '../contracts/contracts.ts';
import type { Block, CallAnswer, ChainLog, ChainNode, Hex } from '../rpc/chain.ts';
import { type Execution, executedFacts, isFailed, type LogContext, type LogReading } from './log-reading.ts';
import {
  execution15,
  readReportAccepted,
  readRootBlessed,
  readRootRemoved,
  readSendRequested,
} from './v15.ts';
import { execution16, readCommitReport, readMessageSent16 } from './v16.ts';
import { readExecution20, readMessageSent20 } from './v20.ts';

/** A log of a genuine contract that cannot be read, with the reason for people. */
export interface UnreadableLog {
  readonly log: ChainLog;
  readonly reason: string;
}

export interface Decoded {
  readonly facts: readonly Fact[];
  readonly unreadable: readonly UnreadableLog[];
  /** How many logs came from contracts that no trusted contract named. */
  readonly untrusted: number;
}

export type Decoder = ReturnType<typeof createDecoder>;

interface LogReader {
  readonly event: abi.ContractEvent;
  /** Whether the reading needs the transaction, which is asked for. */
  readonly asksForTransaction: (log: ChainLog) => boolean;
  readonly read: (context: LogContext) => LogReading | BatchedCalls<LogReading>;
}

const onRamp16 = isCommonRamp('onRamp', '1.6.0');
const offRamp16 = isCommonRamp('offRamp', '1.6.0');

const readers: ReadonlyMap<Hex | undefined, LogReader> = new Map(
  [
    readerOf(abi.ccipSendRequested, isLaneOnRamp, readSendRequested, always),
    readerOf(abi.reportAccepted, isCommitStore, readReportAccepted),
    readerOf(abi.taggedRootBlessed, isRmn, readRootBlessed),
    readerOf(abi.rootRemoved, keepsRoots, readRootRemoved),
    executionReader(abi.executionStateChanged15, isLaneOffRamp, execution15),
    readerOf(abi.ccipMessageSent16, onRamp16, readMessageSent16, always),
    readerOf(abi.commitReportAccepted, offRamp16, readCommitReport),
    executionReader(abi.executionStateChanged16, offRamp16, execution16),
    readerOf(abi.ccipMessageSent20, isCommonRamp('onRamp', '2.0.0'), readMessageSent20, always),
    readerOf(abi.executionStateChanged20, isCommonRamp('offRamp', '2.0.0'), readExecution20, always),
  ].map((reader) => [reader.event.topic, reader]),
);

function always(): boolean {
  return true;
}

function executionReader<C extends GenuineContract>(
  event: abi.ContractEvent,
  mayEmit: (contract: GenuineContract) => contract is C,
  executionIn: (log: ChainLog) => Execution,
): LogReader {
  const read = (context: LogContext<C>) => ({
    facts: executedFacts(executionIn(context.log), context),
    problems: [],
  });
  return readerOf(event, mayEmit, read, (log) => {
    try {
      return isFailed(executionIn(log));
    } catch {
      // The reader will say what is wrong with it.
      return false;
    }
  });
}

/** An event means something only from the contracts that the protocol has for it. */
function readerOf<C extends GenuineContract>(
  event: abi.ContractEvent,
  mayEmit: (contract: GenuineContract) => contract is C,
  read: (context: LogContext<C>) => LogReading | BatchedCalls<LogReading>,
  asksForTransaction: LogReader['asksForTransaction'] = () => false,
): LogReader {
  return {
    event,
    asksForTransaction,
    read(context) {
      const { emitter } = context;
      if (!mayEmit(emitter))
        throw new UnreadableLogError(`${emitter.typeAndVersion} has no event such as ${event.name}`);
      return read({ ...context, emitter });
    },
  };
}

function isLaneOnRamp(contract: GenuineContract): contract is LaneOnRamp {
  return contract.role === 'onRamp' && 'destChainSelector' in contract;
}

function isLaneOffRamp(contract: GenuineContract): contract is LaneOffRamp {
  return contract.role === 'offRamp' && 'commitStore' in contract;
}

function isCommitStore(contract: GenuineContract): contract is CommitStore {
  return contract.role === 'commitStore';
}

/** Up to 1.5 the commit store has the roots, in 1.6 the off-ramp. */
function keepsRoots(contract: GenuineContract): contract is CommitStore | CommonRamp {
  return isCommitStore(contract) || offRamp16(contract);
}

function isRmn(contract: GenuineContract): contract is OtherContract {
  return contract.role === 'rmn';
}

function isCommonRamp(role: CommonRamp['role'], version: CommonRamp['version']) {
  return (contract: GenuineContract): contract is CommonRamp =>
    contract.role === role && contract.version === version;
}

export function createDecoder(network: Network) {
  const cache = new Map<string, CallAnswer>();
  return {
    /**
     * `registry` has the genuine contracts by address; `blocks` the headers at hand by hash, the others are asked for. The
     * events by which routers and RMN proxies name contracts are passed over.
     */
    async decode(
      node: ChainNode,
      logs: readonly ChainLog[],
      registry: ReadonlyMap<Hex, GenuineContract>,
      blocks: ReadonlyMap<Hex, Block> = new Map(),
    ): Promise<Decoded> {
      const entries = logs.flatMap((log) => {
        const emitter = registry.get(log.address);
        const reader = readers.get(log.topics[0]);
        return emitter && reader ? [{ log, emitter, reader }] : [];
      });
      const found = entries.map(({ log }) => log);
      const asking = entries.filter(({ log, reader }) => reader.asksForTransaction(log));
      const hashes = new Set(asking.map(({ log }) => log.transactionHash));
      const [times, asked] = await Promise.all([
        readTimes(node, found, blocks),
        hashes.size === 0 ? [] : node.transactions([...hashes]),
      ]);
      const transactions = new Map(asked.map((transaction) => [transaction.hash, transaction]));
      const findings = await runBatched(
        node,
        entries.map(({ log, emitter, reader }) =>
          inquire(reader, {
            log,
            emitter,
            network,
            registry,
            transaction: transactions.get(log.transactionHash),
            seen: {
              network: network.selector,
              blockNumber: log.blockNumber,
              blockHash: log.blockHash,
              transactionHash: log.transactionHash,
              logIndex: log.logIndex,
              at: times.get(log.blockHash) ?? '',
            },
          }),
        ),
        cache,
      );
      const facts: Fact[] = [];
      const unreadable: UnreadableLog[] = [];
      for (const [index, { log, reader }] of entries.entries()) {
        const finding = findings[index] ?? {};
        facts.push(...(finding.result?.facts ?? []));
        const reason = reasonOf(finding);
        if (reason !== undefined) unreadable.push({ log, reason: `${reader.event.name}: ${reason}` });
      }
      return { facts, unreadable, untrusted: logs.filter(({ address }) => !registry.has(address)).length };
    },
  };
}

function* inquire(reader: LogReader, context: LogContext): BatchedCalls<LogReading> {
  const reading = reader.read(context);
  return 'facts' in reading ? reading : yield* reading;
}

const MAX_REASON = 500;

/** Why a log could not be read, in full or in part. The decoder's own words on broken data run over many lines. */
function reasonOf({ result, error }: Finding<LogReading>): string | undefined {
  if (result?.problems.length === 0) return undefined;
  const words = error instanceof Error ? error.message : String(error);
  return shortened(result?.problems.join('; ') ?? words.split('\n')[0] ?? '', MAX_REASON);
}

/**
 * The time of each block that logs stand in, in ISO 8601: from the headers at hand, else from the logs themselves where
 * the node puts it there, else from headers that are asked for.
 */
async function readTimes(node: ChainNode, logs: readonly ChainLog[], blocks: ReadonlyMap<Hex, Block>) {
  const numbers = new Map(logs.map(({ blockHash, blockNumber }) => [blockHash, blockNumber]));
  const stamps = new Map(logs.map(({ blockHash, blockTimestamp }) => [blockHash, blockTimestamp]));
  const unknown = [...numbers].filter(([hash]) => !blocks.has(hash) && stamps.get(hash) === undefined);
  const asked = unknown.length === 0 ? [] : await node.blocks(unknown.map(([, number]) => number));
  const headers = new Map(unknown.map(([hash], index) => [hash, asked[index]]));
  const times = new Map<Hex, string>();
  for (const [hash] of numbers) {
    const header = blocks.get(hash) ?? headers.get(hash);
    const seconds = header?.timestamp ?? stamps.get(hash);
    if (seconds === undefined || (header && header.hash !== hash)) {
      throw new NodeError(
        `${node.name} shows logs of block ${numbers.get(hash)} that are not of its own block`,
      );
    }
    const time = seconds * 1_000;
    if (!(time >= 0 && time <= LATEST_TIME)) {
      throw new NodeError(`${node.name} gives block ${numbers.get(hash)} the timestamp ${seconds}`);
    }
    times.set(hash, new Date(time).toISOString());
  }
  return times;
}

/** The receiver has a say in it, and anybody can be one. A list that no execution could pay for is ignored. */
const MAX_VERIFIERS = 100;

/** Which verifiers a 2.0 message needs, by its off-ramp; undefined where the contract does not say. */
export async function readVerifierPolicy(node: ChainNode, offramp: Hex, encodedMessage: Hex) {
  const [answer] = await node.calls([abi.callOf(abi.getCcvsForMessage, offramp, encodedMessage)]);
  const policy = abi.answerOf(abi.getCcvsForMessage, answer);
  if (!policy) return undefined;
  const [required, optional, optionalThreshold] = policy;
  if (required.length + optional.length > MAX_VERIFIERS) return undefined;
  return { required, optional, optionalThreshold };
}

/** Seconds from the commit after which anybody may execute; undefined where there is no such threshold (2.0). */
export async function readExecutionThreshold(node: ChainNode, offramp: GenuineContract) {
  if (offramp.role !== 'offRamp' || offramp.version === '2.0.0') return undefined;
  const view = offramp.version === '1.6.0' ? abi.getThreshold16 : abi.getThreshold15;
  const [answer] = await node.calls([abi.callOf(view, offramp.address)]);
  const seconds = abi.answerOf<abi.Params>(view, answer)?.at(-1);
  return typeof seconds === 'number' ? seconds : undefined;
}
