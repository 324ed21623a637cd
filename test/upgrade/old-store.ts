/** Stores of schema 21, as releases before the compact tables left them, made from stores of this program. */
import type pg from 'pg';
import { type Fact, isMessageFact } from '../../src/domain/facts.ts';
import { hashText } from '../../src/store/facts/hash-bytes.ts';
import {
  factId,
  RANGE_FACT_COLUMNS,
  readMessageFact,
  readRangeFact,
  readRootFact,
  SNAPSHOT_FACT_ID,
} from '../../src/store/facts/stored-fact.ts';
import { migrate } from '../../src/store/schema/migrate.ts';
import { observedTransaction } from '../../src/store/write/message-row.ts';
import { dataTables } from '../database.ts';
import { BASELINE } from './other-schemas.ts';

type Row = Readonly<Record<string, unknown>>;

const changes = ['created', 'updated', 'removed'];

/** What a fact was in an old table: its JSON, and a few columns. */
function oldFact(row: Row, fact: Fact): Row {
  const body = JSON.stringify(fact);
  const id = (row.fact_id as Buffer).toString('hex');
  if (id !== SNAPSHOT_FACT_ID && id !== factId(body)) throw new Error(`Not the fact ${id}: ${body}`);
  const seen = fact.kind === 'Snapshot' ? undefined : fact.seen;
  const hasTransaction = isMessageFact(fact) ? fact.kind === 'Executed' && !fact.success : true;
  const transaction = seen && hasTransaction ? observedTransaction(seen) : null;
  return {
    ...row,
    kind: fact.kind,
    block_hash: seen?.blockHash ?? null,
    transaction: transaction && Buffer.from(transaction, 'hex'),
    body,
  };
}

const ofMessage = (row: Row) =>
  oldFact(row, readMessageFact(row, (row.message_id as Buffer).toString('hex')));

/** The statement that reads the rows of this program, and what an old row has in other words. */
const readers: Readonly<Record<string, readonly [select: string, oldRow: (row: Row) => Row]>> = {
  message: ['select * from message', (row) => row],
  message_token: ['select t.*, sent_at from message_token t join message using (message_id)', (row) => row],
  fact: ['select * from fact', ofMessage],
  earlier_attempt: ['select * from earlier_attempt', ofMessage],
  removed_attempt: ['select * from removed_attempt', ofMessage],
  lane_fact: [
    `select fact_id, onramp, ${RANGE_FACT_COLUMNS} from lane_fact`,
    (row) => oldFact(row, readRangeFact(row)),
  ],
  root_blessing: ['select * from root_blessing', (row) => oldFact(row, readRootFact(row))],
  history: [
    'select * from history',
    (row) => ({
      ...row,
      change: changes[Number(row.change) - 1],
      transaction_hash: row.transaction === null ? null : hashText(row.transaction as Buffer),
    }),
  ],
  history_attempt: [
    `select message_id, position, attempt_fact as fact_id, attempt_details as details_id from history
     where attempt_fact is not null`,
    (row) => row,
  ],
};

async function columnsOf(client: pg.ClientBase, table: string): Promise<readonly string[]> {
  const { rows } = await client.query(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped
     order by attnum`,
    [table],
  );
  return rows.map(({ name }) => name);
}

/** Makes an empty database one of schema 21 that holds what the store of `from` holds. */
export async function makeOldStore(from: pg.ClientBase, to: pg.ClientBase): Promise<void> {
  await migrate(to, { upTo: BASELINE });
  for (const table of await dataTables(to)) {
    await to.query(`truncate ${table}`);
    const reader = readers[table];
    if (!reader) {
      await copyUnchanged(from, to, table);
      continue;
    }
    const [select, oldRow] = reader;
    const columns = await columnsOf(to, table);
    for await (const rows of rowsOf(from, select)) {
      const old = rows.map(oldRow).map((row) => Object.fromEntries(columns.map((name) => [name, row[name]])));
      await insertRows(to, table, columns, old);
    }
  }
}

async function* rowsOf(client: pg.ClientBase, select: string): AsyncGenerator<readonly Row[]> {
  const ROWS_PER_FETCH = 5_000;
  await client.query(`begin; declare all_rows no scroll cursor for ${select}`);
  for (;;) {
    const { rows } = await client.query(`fetch ${ROWS_PER_FETCH} from all_rows`);
    if (rows.length > 0) yield rows;
    if (rows.length < ROWS_PER_FETCH) break;
  }
  await client.query('commit');
}

async function copyUnchanged(from: pg.ClientBase, to: pg.ClientBase, table: string): Promise<void> {
  for await (const rows of rowsOf(from, `select t::text as row from ${table} t`))
    await to.query(
      `insert into ${table} overriding system value select (row::${table}).* from unnest($1::text[]) as row`,
      [rows.map(({ row }) => row)],
    );
}

async function insertRows(
  client: pg.ClientBase,
  table: string,
  columns: readonly string[],
  rows: readonly Row[],
) {
  const ROWS_PER_INSERT = 500;
  for (let first = 0; first < rows.length; first += ROWS_PER_INSERT) {
    const values = rows.slice(first, first + ROWS_PER_INSERT).map((row) => columns.map((name) => row[name]));
    const places = values.map(
      (_, row) => `(${columns.map((_name, column) => `$${row * columns.length + column + 1}`).join(', ')})`,
    );
    await client.query(
      `insert into ${table} (${columns.join(', ')}) overriding system value values ${places.join(', ')}`,
      values.flat(),
    );
  }
}

/** Every row of every table, by table. */
export async function contentsOf(
  client: pg.ClientBase,
): Promise<Readonly<Record<string, readonly string[]>>> {
  await client.query(`set timezone = 'UTC'`);
  const contents: Record<string, readonly string[]> = {};
  for (const table of await dataTables(client)) {
    const { rows } = await client.query(`select t::text as row from ${table} t order by 1`);
    contents[table] = rows.map(({ row }) => row);
  }
  return contents;
}

/** Tables with their columns, constraints, indexes, triggers, options, owners and privileges. */
export async function structureOf(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query(
    `with ours as (select * from pg_class where relnamespace = 'public'::regnamespace)
     select relname || ' ' || relkind::text || ' ' || coalesce(reloptions::text, '') || ' ' || relowner::regrole::text
       || coalesce((select ' ' || string_agg(acl::text, ' ' order by acl::text) from unnest(relacl) acl), '') as line
       from ours where relkind in ('r', 'i')
     union all
     select format('%s.%s %s %s %s', attrelid::regclass, attname, attnum, format_type(atttypid, atttypmod), attnotnull)
       from pg_attribute join ours on ours.oid = attrelid where relkind = 'r' and attnum > 0
     union all
     select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(c.oid))
       from pg_constraint c where connamespace = 'public'::regnamespace
     union all select indexdef from pg_indexes where schemaname = 'public'
     union all select pg_get_triggerdef(t.oid) from pg_trigger t join ours on ours.oid = tgrelid
     order by 1`,
  );
  return rows.map(({ line }) => line);
}
