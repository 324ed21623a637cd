/**
 * Consistency check of derived rows: compares everything that writes derive from records with the records, and rebuilds it.
 *
 * The records are the source of truth. A comparison reads one snapshot and changes nothing. A repair works in transactions
 * under the writers' lock, so it may run beside writers; it can be stopped at any moment and run again.
 */
import { randomBytes } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { Message } from '../../domain/message.ts';
import type { WriteCoordinator } from '../cluster/write-coordinator.ts';
import { groupBy } from '../group-by.ts';
import { inTransaction, type UseClient } from '../server/client.ts';
import { beginningOf } from '../sql.ts';
import { changeNumbers, writeTokens } from '../write/changes.ts';
import {
  type MessageRow,
  messageColumns,
  messageIdArray,
  messageRow,
  type TokenRow,
  tokenColumns,
  tokenRows,
} from '../write/message-row.ts';
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
    compare: (options: DerivedOptions) =>
      use((client) => inSnapshot(client, 0, () => examine(client, options, false))),
    repair: (options: DerivedOptions) =>
      use((client) => writes.runRepair(client, () => examine(client, options, true))),
  };
}

/** A transaction of one snapshot, which changes nothing. */
async function inSnapshot<T>(client: ClientBase, statementTimeoutMs: number, work: () => Promise<T>) {
  await client.query(
    `begin isolation level repeatable read read only; set local statement_timeout = ${statementTimeoutMs}`,
  );
  return work().finally(() => client.query('rollback').catch(() => undefined));
}

/** A comparison is one transaction, of one snapshot; a repair has one for each step, under the writers' lock. */
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
  const bounded = (what: string, work: () => Promise<void>) =>
    inSnapshot(client, SAMPLE_TIMEOUT_MS, work).catch((error) => {
      if (error.code !== QUERY_CANCELED) throw error;
      unchecked.push(what);
    });
  await bounded('messages and tokens', async () => {
    // From the first id too: a small store is compared as a whole. No message is compared twice.
    const places = [
      '',
      ...Array.from({ length: SAMPLE_PLACES }, () => randomBytes(32).toString('hex')),
    ].sort();
    let last: string | undefined = '';
    for (const place of places) {
      if (last === undefined) return;
      const after: string = place > last ? place : last;
      const batch = await compareBatch(client, after, Math.ceil(SAMPLE_SIZE / places.length));
      messages += batch.size;
      counts.addFaults(batch.faults);
      last = batch.last;
    }
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

// --- Rows that are derived from one record each: the columns of a message, and its tokens -------------------

/** A derived row of one message that is wrong. */
interface MessageFault {
  readonly kind: 'columns' | 'tokens' | 'record';
  readonly messageId: string;
  /** The correct rows; undefined where the message does not exist, or its record cannot be parsed. */
  readonly row: MessageRow | undefined;
  readonly tokens: readonly TokenRow[];
}

/** Members of a row as text, as `isSame` compares them. */
type AsText<Row> = Readonly<Record<keyof Row, string | null>> & { readonly messageId: string };

/** SQL of columns as text, named as the members of a row. */
const asText = (columns: typeof messageColumns | typeof tokenColumns) =>
  Object.entries(columns)
    .map(([name, [column, type]]) => {
      if (type === 'bytea') return `encode(${column}, 'hex') as "${name}"`;
      if (type !== 'timestamptz') return `${column}::text as "${name}"`;
      return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "${name}"`;
    })
    .join(', ');
const [COLUMNS, TOKENS] = [asText(messageColumns), asText(tokenColumns)];

/**
 * Compares the messages after an id (hex; '' to begin) with their records. Finds tokens without a message too. `last` is the
 * last id of the batch; undefined at the end.
 */
async function compareBatch(client: ClientBase, after: string, limit: number) {
  const afterId = Buffer.from(after, 'hex');
  const { rows } = await client.query(
    `select ${COLUMNS} from message where message_id > $1 order by message_id limit $2`,
    [afterId, limit],
  );
  const last = rows.length < limit ? undefined : (rows.at(-1)?.messageId as string);
  const { rows: tokens } = await client.query(
    `select ${TOKENS} from message_token where message_id > $1 and ($2::bytea is null or message_id <= $2)`,
    [afterId, last === undefined ? null : Buffer.from(last, 'hex')],
  );
  return { size: rows.length, faults: findFaults(rows, tokens), last };
}

function findFaults(rows: readonly AsText<MessageRow>[], storedTokens: readonly AsText<TokenRow>[]) {
  const tokensOf = groupBy(storedTokens, ({ messageId }) => messageId);
  const faults: MessageFault[] = [];
  for (const stored of rows) {
    const { messageId } = stored;
    const found = tokensOf.get(messageId) ?? [];
    tokensOf.delete(messageId);
    const expected = rowsOf(String(stored.record));
    if (!expected || expected.row.messageId !== messageId) {
      faults.push({ kind: 'record', messageId, row: undefined, tokens: [] });
      continue;
    }
    if (!isSame(stored, expected.row)) faults.push({ kind: 'columns', messageId, ...expected });
    if (!areSame(found, expected.tokens)) faults.push({ kind: 'tokens', messageId, ...expected });
  }
  // The rest belongs to no message.
  for (const messageId of tokensOf.keys())
    faults.push({ kind: 'tokens', messageId, row: undefined, tokens: [] });
  return faults;
}

function rowsOf(record: string): { row: MessageRow; tokens: readonly TokenRow[] } | undefined {
  try {
    const message = JSON.parse(record) as Message;
    return { row: messageRow(message), tokens: tokenRows(message) };
  } catch {
    return undefined;
  }
}

function areSame(stored: readonly AsText<TokenRow>[], expected: readonly TokenRow[]): boolean {
  if (stored.length !== expected.length) return false;
  const byIndex = new Map(stored.map((token) => [token.tokenIndex, token]));
  return expected.every((token) => isSame(byIndex.get(String(token.tokenIndex)), token));
}

const timeNames: ReadonlySet<unknown> = new Set<keyof MessageRow>(['sentAt']);

/** Compares every member of the expected row; times by their value, not their text. */
function isSame<T extends MessageRow | TokenRow>(stored: AsText<T> | undefined, expected: T): boolean {
  return (
    stored !== undefined &&
    (Object.keys(expected) as (keyof T)[]).every((name) =>
      timeNames.has(name)
        ? Date.parse(String(stored[name])) === Date.parse(String(expected[name]))
        : String(stored[name]) === String(expected[name]),
    )
  );
}

/** Writes the correct rows, in the transaction of the caller, which holds the writers' lock. */
async function repairMessages(client: ClientBase, faults: readonly MessageFault[]): Promise<void> {
  const withTokens = faults.filter(({ kind }) => kind === 'tokens');
  if (withTokens.length > 0) {
    await client.query('delete from message_token where message_id = any($1)', [
      messageIdArray(withTokens.map(({ messageId }) => messageId)),
    ]);
    await writeTokens(
      client,
      withTokens.flatMap(({ tokens }) => tokens),
    );
  }
  for (const { kind, row } of faults) {
    if (kind !== 'columns' || !row) continue;
    const values = (Object.keys(messageColumns) as (keyof MessageRow)[]).map((name) => {
      const value = row[name];
      return messageColumns[name][1] === 'bytea' && value !== null
        ? Buffer.from(String(value), 'hex')
        : value;
    });
    const [id, ...others] = Object.values(messageColumns).map(
      ([column], index) => `${column} = $${index + 1}`,
    );
    await client.query(`update message set ${others.join(', ')} where ${id}`, values);
  }
}

// --- Positions in the history: 1 to that of the store, each once, and every message has its latest ----------

/** For the index, which has the beginning of the message id. */
const SAME_BEGINNING = `${beginningOf('h.message_id')} = ${beginningOf('m.message_id')}`;
const LATEST = `(select max(h.position) from history h where h.message_id = m.message_id and ${SAME_BEGINNING})`;

/** How many faults there are, by kind. */
async function compareHistory(client: ClientBase) {
  const { rows: messages } = await client.query(
    `select count(*) from message m where position is distinct from ${LATEST}`,
  );
  const { rows: positions } = await client.query(
    `select s.position as stored, h.* from store s, (
       select coalesce(max(position), 0) as highest, count(*) as changes, count(distinct position) as different
       from history) h`,
  );
  const [{ stored, highest, changes, different }] = positions;
  const most = Math.max(Number(stored), Number(highest));
  return {
    /** Messages whose position is not that of their latest change. */
    messages: Number(messages[0].count),
    /** The position of the store is not the highest one. */
    store: stored === highest ? 0 : 1,
    /** Positions that no change has, or several have. */
    gaps: most - Number(different) + Number(changes) - Number(different),
  };
}

/**
 * Gives messages the position of their latest change, inserts a change for those that have none, and sets the position of
 * the store. A change that only the history had is lost: its position stays a gap, which readers skip. Runs in the
 * transaction of the caller, which holds the writers' lock.
 */
async function repairHistory(client: ClientBase): Promise<number> {
  const missing = await insertMissingChanges(client);
  const { rowCount: moved } = await client.query(
    `update message m set position = ${LATEST} where position <> ${LATEST}`,
  );
  const { rowCount: store } = await client.query(
    `update store set position = highest from (select coalesce(max(position), 0) as highest from history) h
     where position <> highest`,
  );
  await client.query('update publication set assigned_position = position, is_published = true from store');
  return missing + (moved ?? 0) + (store ?? 0);
}

/** Two messages may have one position, of which the history has one change. So the positions are looked up by themselves. */
async function insertMissingChanges(client: ClientBase): Promise<number> {
  const { rows: without } = await client.query(
    `select m.message_id as id, m.position from message m
     where not exists (select 1 from history h where h.message_id = m.message_id and ${SAME_BEGINNING})`,
  );
  if (without.length === 0) return 0;
  const { rows: taken } = await client.query('select position from history where position = any($1)', [
    without.map(({ position }) => position),
  ]);
  const positions = new Set(taken.map(({ position }) => position));
  const { rowCount } = await client.query(
    `insert into history (position, message_id, recorded_at, change, status, ready)
     select m.position, m.message_id, now(), ${changeNumbers.created}, m.status, m.ready from message m where m.message_id = any($1)`,
    [without.filter(({ position }) => !positions.has(position)).map(({ id }) => id)],
  );
  return rowCount ?? 0;
}
