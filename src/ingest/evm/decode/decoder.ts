/**
 * What the contracts say: from their logs to facts.
 *
 * Whatever a contract emits, decoding goes on: a log that cannot be read is handed back with the reason, and the rest
 * is decoded all the same. Only a node can stop it, by failing or by contradicting itself.
 */

import { LATEST_TIME } from '../../../base/iso-time.ts';
import type { Fact, VerifierPolicy } from '../../../domain/facts.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import { shortened, UnreadableLogError } from '../../engine/event-facts.ts';
import { NodeError } from '../../engine/faults.ts';
import {
  answerOf,
  type ContractEvent,
  callOf,
  ccipMessageSent16,
  ccipMessageSent20,
  ccipSendRequested,
  commitReportAccepted,
  executionStateChanged15,
  executionStateChanged16,
  executionStateChanged20,
  getCcvsForMessage,
  getThreshold15,
  getThreshold16,
  getToken,
  reportAccepted,
  rootRemoved,
  taggedRootBlessed,
  typeAndVersion,
} from '../contracts/abi.ts';
import { type AnswerCache, type BatchedCalls, type Finding, runBatched } from '../contracts/batched-calls.ts';
import type {
  CommitStore,
  CommonRamp,
  GenuineContract,
  LaneOffRamp,
  LaneOnRamp,
  OtherContract,
} from '../contracts/contracts.ts';
import type { Block, ChainLog, ChainNode, Hex, Transaction } from '../rpc/chain.ts';
import { type Execution, isFailed, type LogContext, type LogReading } from './log-reading.ts';
import {
  execution15,
  readExecution15,
  readReportAccepted,
  readRootBlessed,
  readRootRemoved,
  readSendRequested,
} from './v15.ts';
import { execution16, readCommitReport, readExecution16, readMessageSent16 } from './v16.ts';
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

export interface Decoder {
  /**
   * `registry` has the genuine contracts by address; `blocks` the headers at hand by hash, the others are asked for. The
   * events by which routers and RMN proxies name contracts are passed over.
   */
  decode(
    node: ChainNode,
    logs: readonly ChainLog[],
    registry: ReadonlyMap<Hex, GenuineContract>,
    blocks?: ReadonlyMap<Hex, Block>,
  ): Promise<Decoded>;
}

interface LogReader {
  readonly event: ContractEvent;
  /** Whether the reading needs the transaction, which is asked for. */
  readonly asksForTransaction: (log: ChainLog) => boolean;
  readonly read: (context: LogContext) => LogReading | BatchedCalls<LogReading>;
}

const readers: ReadonlyMap<Hex | undefined, LogReader> = new Map(
  [
    readerOf(ccipSendRequested, isLaneOnRamp, readSendRequested, always),
    readerOf(reportAccepted, isCommitStore, readReportAccepted),
    readerOf(taggedRootBlessed, isRmn, readRootBlessed),
    readerOf(rootRemoved, keepsRoots, readRootRemoved),
    readerOf(executionStateChanged15, isLaneOffRamp, readExecution15, ifFailed(execution15)),
    readerOf(ccipMessageSent16, isCommonRamp('onRamp', '1.6.0'), readMessageSent16, always),
    readerOf(commitReportAccepted, isCommonRamp('offRamp', '1.6.0'), readCommitReport),
    readerOf(
      executionStateChanged16,
      isCommonRamp('offRamp', '1.6.0'),
      readExecution16,
      ifFailed(execution16),
    ),
    readerOf(ccipMessageSent20, isCommonRamp('onRamp', '2.0.0'), readMessageSent20, always),
    readerOf(executionStateChanged20, isCommonRamp('offRamp', '2.0.0'), readExecution20, always),
  ].map((reader) => [reader.event.topic, reader]),
);

function always(): boolean {
  return true;
}

function ifFailed(read: (log: ChainLog) => Execution): LogReader['asksForTransaction'] {
  return (log) => {
    try {
      return isFailed(read(log));
    } catch {
      // The reader will say what is wrong with it.
      return false;
    }
  };
}

/** An event means something only from the contracts that the protocol has for it. */
function readerOf<C extends GenuineContract>(
  event: ContractEvent,
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
  return isCommitStore(contract) || isCommonRamp('offRamp', '1.6.0')(contract);
}

function isRmn(contract: GenuineContract): contract is OtherContract {
  return contract.role === 'rmn';
}

function isCommonRamp(role: CommonRamp['role'], version: CommonRamp['version']) {
  return (contract: GenuineContract): contract is CommonRamp =>
    contract.role === role && contract.version === version;
}

export function createDecoder(network: Network): Decoder {
  const cache: AnswerCache = {
    answers: new Map(),
    // A pool keeps its token and a contract its type. Routers and implementations are exchanged at times.
    isImmutable: ({ data }) => data === getToken.selector || data === typeAndVersion.selector,
  };
  return {
    async decode(node, logs, registry, blocks = new Map()) {
      const entries = logs.flatMap((log) => {
        const emitter = registry.get(log.address);
        const reader = readers.get(log.topics[0]);
        return emitter && reader ? [{ log, emitter, reader }] : [];
      });
      const [times, transactions] = await Promise.all([
        readTimes(
          node,
          entries.map(({ log }) => log),
          blocks,
        ),
        readTransactions(
          node,
          entries.filter(({ log, reader }) => reader.asksForTransaction(log)).map(({ log }) => log),
        ),
      ]);
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
        const finding = findings[index];
        if (finding && 'result' in finding) facts.push(...finding.result.facts);
        const reason = finding && reasonOf(finding);
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
function reasonOf(finding: Finding<LogReading>): string | undefined {
  if ('result' in finding) {
    const { problems } = finding.result;
    return problems.length === 0 ? undefined : shortened(problems.join('; '), MAX_REASON);
  }
  const { error } = finding;
  return shortened((error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '', MAX_REASON);
}

/**
 * The time of each block that logs stand in, in ISO 8601: from the headers at hand, else from the logs themselves where
 * the node puts it there, else from headers that are asked for.
 */
async function readTimes(
  node: ChainNode,
  logs: readonly ChainLog[],
  blocks: ReadonlyMap<Hex, Block>,
): Promise<ReadonlyMap<Hex, string>> {
  const numbers = new Map(logs.map(({ blockHash, blockNumber }) => [blockHash, blockNumber]));
  const stamps = new Map(logs.map(({ blockHash, blockTimestamp }) => [blockHash, blockTimestamp]));
  const unknown = [...numbers].filter(([hash]) => !blocks.has(hash) && stamps.get(hash) === undefined);
  const headers = unknown.length === 0 ? [] : await node.blocks(unknown.map(([, number]) => number));
  const times = new Map<Hex, string>();
  for (const [hash] of numbers) {
    const header = blocks.get(hash) ?? headers[unknown.findIndex(([missing]) => missing === hash)];
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

async function readTransactions(
  node: ChainNode,
  logs: readonly ChainLog[],
): Promise<ReadonlyMap<Hex, Transaction>> {
  const hashes = [...new Set(logs.map(({ transactionHash }) => transactionHash))];
  const transactions = hashes.length === 0 ? [] : await node.transactions(hashes);
  return new Map(transactions.map((transaction) => [transaction.hash, transaction]));
}

/** The receiver has a say in it, and anybody can be one. A list that no execution could pay for is ignored. */
const MAX_VERIFIERS = 100;

/** Which verifiers a 2.0 message needs, by its off-ramp; undefined where the contract does not say. */
export async function readVerifierPolicy(
  node: ChainNode,
  offramp: Hex,
  encodedMessage: Hex,
): Promise<Pick<VerifierPolicy, 'required' | 'optional' | 'optionalThreshold'> | undefined> {
  const [answer] = await node.calls([callOf(getCcvsForMessage, offramp, encodedMessage)]);
  const policy = answerOf(getCcvsForMessage, answer);
  if (!policy) return undefined;
  const [required, optional, optionalThreshold] = policy;
  if (required.length + optional.length > MAX_VERIFIERS) return undefined;
  return { required, optional, optionalThreshold };
}

/** Seconds from the commit after which anybody may execute; undefined where there is no such threshold (2.0). */
export async function readExecutionThreshold(
  node: ChainNode,
  offramp: GenuineContract,
): Promise<number | undefined> {
  if (offramp.role !== 'offRamp' || offramp.version === '2.0.0') return undefined;
  if (offramp.version === '1.6.0') {
    const [answer] = await node.calls([callOf(getThreshold16, offramp.address)]);
    return answerOf(getThreshold16, answer)?.[1];
  }
  const [answer] = await node.calls([callOf(getThreshold15, offramp.address)]);
  return answerOf(getThreshold15, answer)?.[0];
}
