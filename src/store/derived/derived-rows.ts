/**
 * Consistency check of derived rows: compares everything that writes derive from records with the records, and rebuilds it.
 *
 * The records are the source of truth. A comparison reads one snapshot and changes nothing. A repair works in transactions
 * under the writers' lock, so it may run beside writers; it can be stopped at any moment and run again.
 */
import { randomBytes } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { WriteCoordinator } from '../cluster/write-coordinator.ts';
import { inTransaction, type UseClient } from '../server/client.ts';
import { compareHistory, repairHistory } from './derived-history.ts';
import { compareBatch, compareSample, type MessageFault, repairMessages } from './derived-messages.ts';
import {
  compareDeliveries,
  compareDescriptions,
  countDifferences,
  countedTables,
  repairTable,
} from './derived-statistics.ts';

export interface Disagreement {
  /** What disagrees with the records, to follow the count: `12 …`. */
  readonly what: string;
  readonly count: number;
  readonly isRepairable: boolean;
}

export interface DerivedReport {
  /** How many messages were compared with their rows. */
  readonly messages: number;
  /** What was found; after a repair, what was repaired or could not be. */
  readonly disagreements: readonly Disagreement[];
  /** What was left out because it took too long. */
  readonly unchecked: readonly string[];
}

export interface DerivedOptions {
  readonly signal: AbortSignal;
  /** Called with the number of messages that were compared since the last call. */
  readonly advance?: (messages: number) => void;
  /** Called with the name of each step. */
  readonly note?: (step: string) => void;
}

const BATCH_SIZE = 1_000;
const SAMPLE_SIZE = 1_000;
const SAMPLE_PLACES = 50;
/** The sample counts messages up to this number. */
const MAX_COUNTED = 100_000;
const SAMPLE_TIMEOUT_MS = 5_000;
const QUERY_CANCELED = '57014';

const faultLabels: Record<MessageFault['kind'], string> = {
  tokens: 'messages whose token rows disagree with their records',
  columns: 'messages whose columns disagree with their records',
  record: 'records that cannot be read',
};

export function createDerivedRows(use: UseClient, writes: WriteCoordinator) {
  return {
    /** Checks a thousand messages and some sums; takes seconds at most, whatever the size of the store. */
    sample: () => use(sample),
    /** Everything, from one snapshot. */
    compare: (options: DerivedOptions) => use((client) => compare(client, options)),
    repair: (options: DerivedOptions) =>
      use((client) => writes.runRepair(client, () => examine(client, options, true))),
  };
}

/** A comparison is one transaction, of one snapshot; a repair has one for each step, under the writers' lock. */
async function compare(client: ClientBase, options: DerivedOptions): Promise<DerivedReport> {
  await client.query('begin isolation level repeatable read read only; set local statement_timeout = 0');
  try {
    return await examine(client, options, false);
  } finally {
    await client.query('rollback').catch(() => undefined);
  }
}

async function examine(
  client: ClientBase,
  { signal, advance, note }: DerivedOptions,
  isRepair: boolean,
): Promise<DerivedReport> {
  const counts = createCounts();
  const step = async (name: string, work: () => Promise<void>) => {
    signal.throwIfAborted();
    note?.(name);
    await (isRepair ? withWriteLock(client, work) : work());
  };
  note?.('messages and tokens');
  let messages = 0;
  for (let after: string | undefined = ''; after !== undefined; ) {
    signal.throwIfAborted();
    const from: string = after;
    const batch = await compareBatch(client, from, BATCH_SIZE);
    if (!isRepair) counts.addFaults(batch.faults);
    // Most batches are correct. One that is not is read again under the lock, so that it cannot change meanwhile.
    else if (batch.faults.length > 0) {
      await withWriteLock(client, async () => {
        const { faults } = await compareBatch(client, from, BATCH_SIZE);
        await repairMessages(client, faults);
        counts.addFaults(faults);
      });
    }
    messages += batch.size;
    advance?.(batch.size);
    after = batch.last;
  }
  for (const part of countedTables) {
    await step(part.table, async () => {
      const differences = isRepair ? await repairTable(client, part) : await countDifferences(client, part);
      counts.add(`rows of ${part.table}`, differences);
      if (part.table === 'lane_onramp')
        counts.add('descriptions of lanes', await compareDescriptions(client, isRepair));
    });
  }
  await step('lane_delivery', async () =>
    counts.add('rows of lane_delivery', await compareDeliveries(client, isRepair)),
  );
  await step('history', async () => {
    if (isRepair) counts.add('positions in the history', await repairHistory(client));
    const found = await compareHistory(client);
    counts.add('messages whose position is not that of their latest change', found.messages);
    counts.add('position of the store that is not the latest in the history', found.store);
    counts.add('positions that the history lacks or has twice', found.gaps, false);
  });
  return { messages, disagreements: counts.disagreements(), unchecked: [] };
}

/** A transaction under the writers' lock. The update of `store` invalidates the response caches of servers. */
async function withWriteLock(client: ClientBase, work: () => Promise<void>): Promise<void> {
  const lockedWork = async () => {
    await work();
    await client.query('update store_revision set revision = revision + 1');
  };
  await inTransaction(
    client,
    lockedWork,
    'begin; set local statement_timeout = 0; select from store for update',
  );
}

async function sample(client: ClientBase): Promise<DerivedReport> {
  const counts = createCounts();
  const unchecked: string[] = [];
  let messages = 0;
  const bounded = async (what: string, work: () => Promise<void>) => {
    await client.query(
      `begin isolation level repeatable read read only; set local statement_timeout = ${SAMPLE_TIMEOUT_MS}`,
    );
    try {
      await work();
    } catch (error) {
      if ((error as { code?: unknown }).code !== QUERY_CANCELED) throw error;
      unchecked.push(what);
    } finally {
      await client.query('rollback').catch(() => undefined);
    }
  };
  await bounded('messages and tokens', async () => {
    // From the first id too: a small store is compared as a whole.
    const ids = ['00', ...Array.from({ length: SAMPLE_PLACES }, () => randomBytes(32).toString('hex'))];
    const { faults, size } = await compareSample(client, ids, Math.ceil(SAMPLE_SIZE / ids.length));
    messages = size;
    counts.addFaults(faults);
  });
  await bounded('totals', async () => {
    const { rows } = await client.query(
      `select (select coalesce(sum(messages), 0) from lane_total) as lanes,
              (select coalesce(sum(messages), 0) from day_total) as days,
              (select count(*) from (select 1 from message limit $1) few) as counted`,
      [MAX_COUNTED + 1],
    );
    const [lanes, days, counted] = [rows[0].lanes, rows[0].days, rows[0].counted].map(Number);
    const isWrong = lanes !== days || ((counted ?? 0) <= MAX_COUNTED && counted !== lanes);
    counts.add('sums of messages by lane or by day', isWrong ? 1 : 0);
  });
  await bounded('runs of sequence numbers', async () => {
    const { rows } = await client.query(
      `select count(*) from lane_onramp o left join (
         select source_selector, dest_selector, onramp, count(*) as runs, sum(to_sequence - from_sequence + 1) as present
         from lane_run group by source_selector, dest_selector, onramp) r using (source_selector, dest_selector, onramp)
       where (o.present, o.runs) is distinct from (coalesce(r.present, 0), coalesce(r.runs, 0))`,
    );
    counts.add('on-ramps whose runs of sequence numbers do not add up', Number(rows[0].count));
  });
  await bounded('the position of the store', async () => {
    const { rows } = await client.query(
      'select position = (select coalesce(max(position), 0) from history) as is_highest from store',
    );
    counts.add('position of the store that is not the latest in the history', rows[0].is_highest ? 0 : 1);
  });
  return { messages, disagreements: counts.disagreements(), unchecked };
}

function createCounts() {
  const counts = new Map<string, { count: number; isRepairable: boolean }>();
  const add = (what: string, count: number, isRepairable = true) => {
    if (count > 0) counts.set(what, { count: (counts.get(what)?.count ?? 0) + count, isRepairable });
  };
  return {
    add,
    addFaults(faults: readonly MessageFault[]) {
      for (const { kind } of faults) add(faultLabels[kind], 1, kind !== 'record');
    },
    disagreements: (): Disagreement[] => [...counts].map(([what, found]) => ({ what, ...found })),
  };
}
