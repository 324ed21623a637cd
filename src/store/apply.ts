/**
 * Facts in, folded messages and history out, in one transaction.
 *
 * One writer at a time: a transaction begins by locking the store's single row, and holds it until it
 * commits. That is what makes the rest simple. The fold sees every fact there is, two sources that speak of
 * the same message cannot overwrite each other, and history positions have no gaps and become visible in
 * their order. What a batch needs is read in a handful of statements; what it changes is written with COPY.
 *
 * Whatever can be made of the facts alone is made before the lock is asked for: a writer that gives the store its next
 * batch while the one before is being written (an import) has it ready when its turn comes.
 */
import type { ClientBase } from 'pg';
import { type Fact, isMessageFact, isRangeFact, type MessageFact } from '../domain/facts.ts';
import type { Message } from '../domain/message.ts';
import { type Change, foldAll, rowsOfSnapshots, writeChanges } from './changes.ts';
import { groupByMessage, isOldNews, readKnowledge, readStored } from './knowledge.ts';
import {
  messagesInRanges,
  type OrphanedBlock,
  rangePieces,
  retract,
  writeBlessings,
  writeRangeFacts,
} from './lane-facts.ts';
import type { MessageRow } from './message-row.ts';

export interface ApplyReport {
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  /** Messages that facts spoke of without changing anything. */
  readonly unchanged: number;
}

/**
 * Applies facts, and takes back those of orphaned blocks, in one transaction on `client`, which must not be
 * in one already. What is to become true together with them is written by `alongside`.
 */
export async function applyFacts(
  client: ClientBase,
  facts: readonly Fact[],
  orphaned: readonly OrphanedBlock[] = [],
  alongside?: () => Promise<void>,
): Promise<ApplyReport> {
  const told = groupByMessage(facts.filter(isMessageFact));
  const rows = rowsOfSnapshots(facts);
  // Everything here is a look-up by key, also while a table is too new to have statistics that say so.
  await client.query(
    'begin; set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_seqscan = off',
  );
  try {
    const report = await applyInTransaction(client, { facts, told, rows, orphaned });
    await alongside?.();
    await client.query('commit');
    return report;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** Facts, with what was made of them beforehand. */
interface Batch {
  readonly facts: readonly Fact[];
  readonly told: ReadonlyMap<string, readonly MessageFact[]>;
  readonly rows: ReadonlyMap<Message, MessageRow>;
  readonly orphaned: readonly OrphanedBlock[];
}

async function applyInTransaction(
  client: ClientBase,
  { facts, told, rows, orphaned }: Batch,
): Promise<ApplyReport> {
  const locked = await client.query('select position from store for update');
  const position = BigInt(locked.rows[0].position);

  const ranges = facts.filter(isRangeFact);
  const retracted = await retract(client, orphaned);
  await writeRangeFacts(client, ranges);
  const blessed = await writeBlessings(
    client,
    facts.filter((fact) => fact.kind === 'RootBlessed'),
  );

  const moved = new Set(retracted.messageIds);
  const movedRanges = [...ranges.flatMap(rangePieces), ...retracted.ranges, ...blessed];
  for (const id of await messagesInRanges(client, movedRanges)) moved.add(id);
  const touched = [...new Set([...told.keys(), ...moved])];

  const stored = await readStored(client, touched);
  const news = touched.filter((id) => moved.has(id) || !isOldNews(told.get(id) ?? [], stored.get(id), rows));
  const changes = foldAll(await readKnowledge(client, news, told, stored), rows);
  await writeChanges(client, changes, position);
  const count = (kind: Change['change']) => changes.filter(({ change }) => change === kind).length;
  return {
    created: count('created'),
    updated: count('updated'),
    removed: count('removed'),
    unchanged: count('none') + touched.length - news.length,
  };
}
