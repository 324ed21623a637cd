/**
 * The ledger of the indexer: how far each network has been read, what is still pending, and which process works on it.
 *
 * One step of a worker is one transaction: the facts of some blocks, the blocks themselves, the contracts that they
 * registered and the ranges that are done are committed together. The lease is checked in the same transaction, so a
 * worker that lost it writes nothing. The modules beside this one have the tables.
 */
import type { ClientBase } from 'pg';
import type { WriteCoordinator } from '../cluster/write-coordinator.ts';
import { SchemaMovedError } from '../schema/writer-guard.ts';
import type { UseClient } from '../server/client.ts';
import { type ApplyReport, applyFacts } from '../write/apply.ts';
import { storedSelector } from '../write/message-row.ts';
import { type ChainState, type ChainStateStep, readChainState, writeChainState } from './chain-state.ts';
import { type ChecksStep, createCheckLedger, writeChecks } from './checks.ts';
import {
  readAwaitingExecution,
  readContradictedBlocks,
  readFactBlocks,
  readSentFact,
  readSentIn,
  readSentTo,
} from './facts.ts';
import { LeaseLostError } from './lease.ts';
import {
  type NetworkRow,
  type NetworkUpdate,
  networkLeases,
  readNetworkRow,
  updateNetworkRow,
  writeProgress,
} from './network.ts';
import { type RangesStep, readDueFailures, readPendingRanges, writeRanges } from './ranges.ts';
import { readDueTasks, type TasksStep, writeTasks } from './tasks.ts';
import { createTokenLedger, type TokenReading, writeTokens } from './tokens.ts';

export type * from './chain-state.ts';
export type * from './checks.ts';
export type * from './facts.ts';
export type * from './network.ts';
export type * from './ranges.ts';
export type * from './tasks.ts';
export type * from './tokens.ts';
export { LeaseLostError };

export type IndexState = NetworkRow & ChainState;

/** What one transaction writes. */
export interface IndexStep extends ChainStateStep, RangesStep, TasksStep, ChecksStep, NetworkUpdate {
  /** Hashes of blocks whose events are all among `facts`: other events that are stored for them are retracted. */
  readonly reviewed?: readonly string[];
  /** What came of requests about tokens. */
  readonly tokens?: readonly TokenReading[];
}

export type IndexLedger = ReturnType<typeof createIndexLedger>;

/** Whether a retry cannot help: another indexer has the network, or the schema is newer than this program. */
export function isUnrecoverable(error: unknown): boolean {
  return error instanceof LeaseLostError || error instanceof SchemaMovedError;
}

/** `withLeaseClient` is for what must not wait behind a long write: a lease that is renewed too late is lost. */
export function createIndexLedger(
  withReader: UseClient,
  withWriter: UseClient,
  withLeaseClient: UseClient,
  writes: WriteCoordinator,
) {
  /** A query that takes the stored form of the network's selector. */
  const query =
    (use: UseClient) =>
    <Args extends readonly unknown[], T>(
      run: (client: ClientBase, network: string, ...args: Args) => Promise<T>,
    ) =>
    (network: string, ...args: Args): Promise<T> =>
      use((client) => run(client, storedSelector(network), ...args));
  const read = query(withReader);
  return {
    /** Takes or renews the lease of a network; false while another holder has it. Times are the database's. */
    lease: query(withLeaseClient)(
      async (client, key, holder: string, seconds: number) =>
        (await networkLeases.acquire(client, key, holder, seconds * 1_000)) !== undefined,
    ),
    release: query(withLeaseClient)(networkLeases.release),
    state: read(readState),
    /** Throws a LeaseLostError where `holder` does not have the network. */
    record: (network: string, holder: string, step: IndexStep): Promise<ApplyReport> =>
      withWriter((client) => recordStep(client, writes, network, storedSelector(network), holder, step)),
    /** The backlog in the order in which it is to be read: routers, history, single contracts, each from the newest. */
    pendingRanges: read(readPendingRanges),
    /** Failed ranges whose retry is due: fewest failures first, then the longest due. */
    dueFailures: read(readDueFailures),
    /** The messages that were sent in these blocks. */
    sentIn: read(readSentIn),
    dueTasks: read(readDueTasks),
    /** The `Sent` fact of a message; undefined for an unknown message, or after a retraction. */
    sentFact: (messageId: string) => withReader((client) => readSentFact(client, messageId)),
    /** Messages to this network that were committed, not executed, and are not open to everybody, in the order of ids. */
    awaitingExecution: read(readAwaitingExecution),
    /** Blocks with facts of a network, from the highest down, below `below`. */
    factBlocks: read(readFactBlocks),
    checks: createCheckLedger(withReader),
    tokens: createTokenLedger(withReader, withWriter),
    /** Publishes the progress of a network, and returns what is still pending. */
    reportProgress: query(withLeaseClient)(writeProgress),
  };
}

async function readState(client: ClientBase, network: string): Promise<IndexState> {
  return { ...(await readNetworkRow(client, network)), ...(await readChainState(client, network)) };
}

async function recordStep(
  client: ClientBase,
  writes: WriteCoordinator,
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
    writes,
    facts,
    retracted.map((blockHash) => ({ network: selector, blockHash })),
    async () => {
      await updateNetworkRow(client, network, holder, step);
      await writeChainState(client, network, step);
      await writeRanges(client, network, step);
      await writeTasks(client, network, step, reopened);
      await writeChecks(client, network, step);
      await writeTokens(client, network, step.tokens ?? []);
    },
  );
}
