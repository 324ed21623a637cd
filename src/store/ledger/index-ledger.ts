/**
 * The ledger of the indexer: how far each network has been read, what is still pending, and which process works on it.
 *
 * One step of a worker is one transaction: the facts of some blocks, the blocks themselves, the contracts that they
 * registered and the ranges that are done are committed together. The lease is checked in the same transaction, so a
 * worker that lost it writes nothing. Each table has a module of its own beside this one.
 */
import type { ClientBase } from 'pg';
import type { Fact, Sent } from '../../domain/facts.ts';
import type { WriteTurns } from '../cluster/write-turn.ts';
import { SchemaMovedError } from '../schema/writer-guard.ts';
import { type ApplyReport, applyFacts } from '../write/apply.ts';
import { storedSelector } from '../write/message-row.ts';
import { type Anchor, addAnchors, readAnchors } from './anchors.ts';
import {
  addToBacklog,
  endBacklogAt,
  readPendingRanges,
  removeFromBacklog,
  shortenBacklog,
  trimBacklog,
} from './backlog.ts';
import type { BlockRange, PendingRange } from './block-range.ts';
import { addBlocks, type BlockId, readBlocks, removeBlocksBelow, removeOrphanedBlocks } from './blocks.ts';
import { type CheckLedger, createCheckLedger } from './checks.ts';
import {
  addContracts,
  confirmContractsBelow,
  type RegisteredContract,
  readContracts,
  removeOrphanedContracts,
} from './contracts.ts';
import { type LaneCounter, type LaneKey, writeCounters } from './counters.ts';
import {
  type AwaitingExecution,
  type AwaitingQuery,
  readAwaitingExecution,
  readContradictedBlocks,
  readFactBlocks,
  readSentFact,
  readSentIn,
  readSentTo,
  type SentIn,
} from './facts.ts';
import {
  addFailures,
  endFailuresAt,
  type FailedRange,
  type NewFailure,
  type PostponedFailure,
  postponeFailures,
  readDueFailures,
  removeFailures,
} from './failures.ts';
import {
  type FindingKey,
  type IndexFinding,
  removeFindings,
  type StoredFinding,
  writeFindings,
} from './findings.ts';
import { LeaseLostError } from './lease.ts';
import { type NetworkRow, networkLeases, readNetworkRow, updateNetworkRow } from './network.ts';
import {
  type BacklogStats,
  type HeadStats,
  type PublishedHead,
  type ReportedProblem,
  readPublishedHead,
  writeProgress,
} from './progress.ts';
import { type RampRegistration, writeRegistrations } from './registrations.ts';
import {
  addTasks,
  type PostponedTask,
  postponeTasks,
  readDueTasks,
  removeExecutedTasks,
  removeObsoleteTasks,
  removeTasks,
  type Task,
  type TaskKind,
} from './tasks.ts';
import {
  createTokenLedger,
  type DueToken,
  type TokenLedger,
  type TokenReading,
  writeTokens,
} from './tokens.ts';
import {
  removeOrphanedLogs,
  rescanUnreadableLogs,
  type UnreadableLog,
  writeUnreadableLogs,
} from './unreadable-logs.ts';

export type {
  Anchor,
  AwaitingExecution,
  AwaitingQuery,
  BacklogStats,
  BlockId,
  BlockRange,
  CheckLedger,
  DueToken,
  FailedRange,
  FindingKey,
  HeadStats,
  IndexFinding,
  LaneCounter,
  LaneKey,
  NewFailure,
  PendingRange,
  PostponedFailure,
  PostponedTask,
  RampRegistration,
  RegisteredContract,
  ReportedProblem,
  SentIn,
  StoredFinding,
  Task,
  TaskKind,
  TokenLedger,
  TokenReading,
  UnreadableLog,
};
export { LeaseLostError };

export interface IndexState extends NetworkRow {
  /** By height; the last is the checkpoint. Empty where nothing has been read. */
  readonly blocks: readonly BlockId[];
  readonly contracts: readonly RegisteredContract[];
  readonly anchors: readonly Anchor[];
  readonly head: PublishedHead | null;
}

/** What one transaction writes. */
export interface IndexStep {
  readonly facts?: readonly Fact[];
  /** Hashes of blocks that a reorganisation replaced: every fact that was seen in them is retracted. */
  readonly orphaned?: readonly string[];
  /** Hashes of blocks whose events are all among `facts`: other events that are stored for them are retracted. */
  readonly reviewed?: readonly string[];
  /** Blocks that were read and may still be replaced. */
  readonly blocks?: readonly BlockId[];
  /** Blocks below this height are final and are removed from the ledger. */
  readonly forgetBelow?: number;
  /** There are no blocks above: what is pending of them, and what has failed, is dropped. */
  readonly endsAt?: number;
  readonly contracts?: readonly RegisteredContract[];
  /** Transactions from which lists can be continued. */
  readonly anchors?: readonly Anchor[];
  /** The history begins here: the backlog below is dropped. */
  readonly startBlock?: number;
  readonly followedFrom?: number;
  /** A block with an event of a router; the lowest counts. */
  readonly routerBlock?: number;
  readonly pending?: readonly BlockRange[];
  /** Ids of pending ranges whose blocks are in `pending` now. */
  readonly replaced?: readonly string[];
  /** A piece at the upper end of a pending range that has been read, or put on the ledger of failures. */
  readonly done?: { readonly id: string; readonly from: number };
  readonly failed?: readonly NewFailure[];
  /** Ids of failed ranges that have been read, or were split. */
  readonly recovered?: readonly string[];
  readonly postponed?: readonly PostponedFailure[];
  readonly unreadable?: readonly UnreadableLog[];
  /** Blocks that were read: of their unreadable logs, only `unreadable` is left. */
  readonly read?: BlockRange;
  /** Blocks with unreadable logs go on the backlog again: this version may have a decoder for them. */
  readonly rescanUnreadable?: boolean;
  /** The details of earlier executions are in `pending` now. */
  readonly lacksAttempts?: false;
  /** How many logs of untrusted contracts were seen. */
  readonly untrusted?: number;
  readonly tasksDone?: readonly Task[];
  /** Of messages whose sending was retracted; kept where the source's worker has recorded it again meanwhile. */
  readonly tasksObsolete?: readonly Task[];
  readonly tasksPostponed?: readonly PostponedTask[];
  readonly registrations?: readonly RampRegistration[];
  readonly counters?: readonly LaneCounter[];
  /** Added, or changed where they are open already. */
  readonly findings?: readonly IndexFinding[];
  /** Findings that hold no longer. */
  readonly resolved?: readonly FindingKey[];
  /** What came of requests about tokens. */
  readonly tokens?: readonly TokenReading[];
}

export interface IndexLedger {
  /** Takes or renews the lease of a network; false while another holder has it. Times are the database's. */
  lease(network: string, holder: string, seconds: number): Promise<boolean>;
  release(network: string, holder: string): Promise<void>;
  state(network: string): Promise<IndexState>;
  /** Throws a LeaseLostError where `holder` does not have the network. */
  record(network: string, holder: string, step: IndexStep): Promise<ApplyReport>;
  /** The backlog in the order in which it is to be read: routers, history, single contracts, each from the newest. */
  pendingRanges(network: string): Promise<readonly PendingRange[]>;
  /** Failed ranges whose retry is due: fewest failures first, then the longest due. */
  dueFailures(network: string, limit: number): Promise<readonly FailedRange[]>;
  /** The messages that were sent in these blocks. */
  sentIn(network: string, hashes: readonly string[]): Promise<readonly SentIn[]>;
  dueTasks(network: string, kind: TaskKind, limit: number): Promise<readonly Task[]>;
  /** The `Sent` fact of a message; undefined for an unknown message, or after a retraction. */
  sentFact(messageId: string): Promise<Sent | undefined>;
  /** Messages to this network that were committed, not executed, and are not open to everybody, in the order of ids. */
  awaitingExecution(network: string, query: AwaitingQuery): Promise<readonly AwaitingExecution[]>;
  /** Blocks with facts of a network, from the highest down, below `below`. */
  factBlocks(network: string, below: number, limit: number): Promise<readonly BlockId[]>;
  readonly checks: CheckLedger;
  readonly tokens: TokenLedger;
  /** Publishes the progress of a network, and returns what is still pending. */
  reportProgress(
    network: string,
    head: HeadStats | null,
    problem: ReportedProblem | null,
  ): Promise<BacklogStats>;
}

/** Whether a retry cannot help: another indexer has the network, or the schema is newer than this program. */
export function isUnrecoverable(error: unknown): boolean {
  return error instanceof LeaseLostError || error instanceof SchemaMovedError;
}

type UseClient = <T>(use: (client: ClientBase) => Promise<T>) => Promise<T>;

/** `withKeeper` is for what must not wait behind a long write: a lease that is renewed too late is lost. */
export function createIndexLedger(
  withReader: UseClient,
  withWriter: UseClient,
  withKeeper: UseClient,
  turns: WriteTurns,
): IndexLedger {
  return {
    lease: (network, holder, seconds) =>
      withKeeper(async (client) => {
        const key = storedSelector(network);
        return (await networkLeases.acquire(client, key, holder, seconds * 1_000)) !== undefined;
      }),
    release: (network, holder) =>
      withKeeper((client) => networkLeases.release(client, storedSelector(network), holder)),
    state: (network) => withReader((client) => readState(client, storedSelector(network))),
    record: (network, holder, step) =>
      withWriter((client) => recordStep(client, turns, network, storedSelector(network), holder, step)),
    pendingRanges: (network) => withReader((client) => readPendingRanges(client, storedSelector(network))),
    dueFailures: (network, limit) =>
      withReader((client) => readDueFailures(client, storedSelector(network), limit)),
    sentIn: (network, hashes) => withReader((client) => readSentIn(client, storedSelector(network), hashes)),
    dueTasks: (network, kind, limit) =>
      withReader((client) => readDueTasks(client, storedSelector(network), kind, limit)),
    sentFact: (messageId) => withReader((client) => readSentFact(client, messageId)),
    awaitingExecution: (network, query) =>
      withReader((client) => readAwaitingExecution(client, storedSelector(network), query)),
    factBlocks: (network, below, limit) =>
      withReader((client) => readFactBlocks(client, storedSelector(network), below, limit)),
    checks: createCheckLedger(withReader),
    tokens: createTokenLedger(withReader, withWriter),
    reportProgress: (network, head, problem) =>
      withKeeper((client) => writeProgress(client, storedSelector(network), head, problem)),
  };
}

async function readState(client: ClientBase, network: string): Promise<IndexState> {
  return {
    ...(await readNetworkRow(client, network)),
    blocks: await readBlocks(client, network),
    contracts: await readContracts(client, network),
    anchors: await readAnchors(client, network),
    head: await readPublishedHead(client, network),
  };
}

async function recordStep(
  client: ClientBase,
  turns: WriteTurns,
  selector: string,
  network: string,
  holder: string,
  step: IndexStep,
): Promise<ApplyReport> {
  const { facts = [], reviewed = [] } = step;
  // Read before the retraction. While the lease holds, no other process writes facts of this network.
  const contradicted = await readContradictedBlocks(client, network, reviewed, facts);
  const retracted = [...(step.orphaned ?? []), ...contradicted];
  const reopened = await readSentTo(client, network, retracted);
  return applyFacts(
    client,
    turns,
    facts,
    retracted.map((blockHash) => ({ network: selector, blockHash })),
    () => writeStep(client, network, holder, step, reopened),
  );
}

async function writeStep(
  client: ClientBase,
  network: string,
  holder: string,
  step: IndexStep,
  reopened: readonly Sent[],
): Promise<void> {
  await updateNetworkRow(client, network, holder, step);

  const { orphaned = [], forgetBelow } = step;
  await removeOrphanedBlocks(client, network, orphaned);
  await removeOrphanedContracts(client, network, orphaned);
  await removeOrphanedLogs(client, network, orphaned);
  await addBlocks(client, network, step.blocks ?? []);
  if (forgetBelow !== undefined) {
    await confirmContractsBelow(client, network, forgetBelow);
    await removeBlocksBelow(client, network, forgetBelow);
  }
  await addContracts(client, network, step.contracts ?? []);
  await addAnchors(client, network, step.anchors ?? []);

  if (step.startBlock !== undefined) await trimBacklog(client, network, step.startBlock);
  if (step.endsAt !== undefined) {
    await endBacklogAt(client, network, step.endsAt);
    await endFailuresAt(client, network, step.endsAt);
  }
  await removeFromBacklog(client, network, step.replaced ?? []);
  await addToBacklog(client, network, step.pending ?? []);
  if (step.done) await shortenBacklog(client, network, step.done);
  await addFailures(client, network, step.failed ?? []);
  await removeFailures(client, network, step.recovered ?? []);
  await postponeFailures(client, network, step.postponed ?? []);
  if (step.rescanUnreadable) await rescanUnreadableLogs(client, network);
  await writeUnreadableLogs(client, network, step.unreadable ?? [], step.read);

  const { facts = [] } = step;
  await addTasks(client, facts, reopened);
  await removeExecutedTasks(client, network, facts);
  await removeTasks(client, network, step.tasksDone ?? []);
  await removeObsoleteTasks(client, network, step.tasksObsolete ?? []);
  await postponeTasks(client, network, step.tasksPostponed ?? []);

  await writeRegistrations(client, network, step.registrations ?? []);
  await writeCounters(client, step.counters ?? []);
  await writeFindings(client, network, step.findings ?? []);
  await removeFindings(client, network, step.resolved ?? []);
  await writeTokens(client, network, step.tokens ?? []);
}
