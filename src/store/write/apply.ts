/**
 * The writer of messages: applies a batch of facts in one transaction, and writes the folded messages and their history.
 *
 * One writer at a time: a transaction first locks the only row of `store`, and holds that lock until it commits. So the fold
 * sees every fact, two sources of the same message cannot overwrite each other, and positions in the history have no gaps
 * and become visible in order. A batch is read in a few statements and written with COPY.
 *
 * What depends on the facts alone is computed before the lock is taken: an import prepares its next batch while the one
 * before is written.
 */
import type { ClientBase } from 'pg';
import {
  type Fact,
  factMessageId,
  isMessageFact,
  isRangeFact,
  isRootFact,
  type MessageFact,
} from '../../domain/facts.ts';
import type { Message } from '../../domain/message.ts';
import type { WriteCoordinator } from '../cluster/write-coordinator.ts';
import { groupBy } from '../group-by.ts';
import { inTransaction } from '../server/client.ts';
import { type Change, foldAll, rowsOfSnapshots, writeChanges } from './changes.ts';
import { isUnchangedSnapshot, readKnownFacts, readStored } from './known-facts.ts';
import {
  messagesInRanges,
  type OrphanedBlock,
  rangePieces,
  retract,
  writeRangeFacts,
  writeRootFacts,
} from './lane-facts.ts';
import type { MessageRow } from './message-row.ts';

export interface ApplyReport {
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  /** Messages that have facts in the batch and did not change. */
  readonly unchanged: number;
}

/**
 * Applies facts and retracts those of orphaned blocks, in one transaction on `client`, which must not be in a transaction.
 * `alongside` writes more in the same transaction.
 */
export function applyFacts(
  client: ClientBase,
  writes: WriteCoordinator,
  facts: readonly Fact[],
  orphaned: readonly OrphanedBlock[] = [],
  alongside?: () => Promise<void>,
): Promise<ApplyReport> {
  const newFacts = groupBy(facts.filter(isMessageFact), (fact) => factMessageId(fact).slice(2));
  const rows = rowsOfSnapshots(facts);
  const work = async () => {
    const report = await applyInTransaction(client, writes, { facts, newFacts, rows, orphaned });
    await alongside?.();
    return report;
  };
  return writes.run(client, () => inTransaction(client, work, BEGIN));
}

/** All queries here look up rows by key. Without these settings, the planner may scan a table that has no statistics yet. */
const BEGIN =
  'begin; set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_seqscan = off';

/** Facts, with what was computed from them before the lock. */
interface Batch {
  readonly facts: readonly Fact[];
  readonly newFacts: ReadonlyMap<string, readonly MessageFact[]>;
  readonly rows: ReadonlyMap<Message, MessageRow>;
  readonly orphaned: readonly OrphanedBlock[];
}

async function applyInTransaction(
  client: ClientBase,
  writes: WriteCoordinator,
  { facts, newFacts, rows, orphaned }: Batch,
): Promise<ApplyReport> {
  const position = await writes.lockPosition(client);
  const ranges = facts.filter(isRangeFact);
  const retracted = await retract(client, orphaned);
  const hasNewRanges = await writeRangeFacts(client, ranges);
  const roots = await writeRootFacts(client, facts.filter(isRootFact));

  const moved = new Set(retracted.messageIds);
  const movedRanges = [...ranges.flatMap(rangePieces), ...retracted.ranges, ...roots.ranges];
  for (const id of await messagesInRanges(client, movedRanges)) moved.add(id);
  const touched = [...new Set([...newFacts.keys(), ...moved])];

  const stored = await readStored(client, touched);
  const idsToFold = touched.filter(
    (id) => moved.has(id) || !isUnchangedSnapshot(newFacts.get(id) ?? [], stored.get(id), rows),
  );
  const changes = foldAll(await readKnownFacts(client, idsToFold, newFacts, stored), rows);
  const hasRetracted = retracted.messageIds.length + retracted.ranges.length > 0;
  await writeChanges(client, writes, changes, position, hasRetracted || hasNewRanges || roots.hasNew);
  const count = (kind: Change['change']) => changes.filter(({ change }) => change === kind).length;
  return {
    created: count('created'),
    updated: count('updated'),
    removed: count('removed'),
    unchanged: count('none') + touched.length - idsToFold.length,
  };
}
