/**
 * Conversion of a store of schema 22: rows of the old tables become rows of the new ones, between migrations 22 and 23.
 *
 * It may take an hour, so it is not one transaction: each batch of pages commits with its progress, and after an interruption
 * the next start goes on there. Nobody writes to the old tables meanwhile: since migration 22 the writer guard keeps programs
 * of older schemas out, and newer ones wait for the migration. Readers of the older release go on.
 *
 * Progress is a number of pages, which means something only for the files that it was counted in. A copy of the database
 * (a restored dump, VACUUM FULL, new files of another PostgreSQL) has others: a table whose files changed is converted anew.
 */
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { readDistributedTables } from '../cluster/layout.ts';
import { convertedTables } from '../facts/conversion.ts';
import { inTransaction } from '../server/client.ts';
import { beginningOf } from '../sql.ts';
import { copyRows } from '../write/copy.ts';
import { sortKeySql } from '../write/message-row.ts';
import type { LockOptions } from './migration-lock.ts';

/** The migration that needs the rows in the new tables. */
export const FIRST_AFTER_CONVERSION = 23;

/** 8 MB: some 4,000 messages, or 8,000 facts. */
const PAGES_PER_BATCH = 1_000;
const MESSAGES_PER_BATCH = 5_000;
/** What belongs to the rows of a batch is found by its key. A hash join would read the whole other table for each batch. */
const BEGIN = 'begin; set local enable_hashjoin = off; set local enable_mergejoin = off';
/** How many rows are in memory at a time: a page may refer to a hundred bodies of a megabyte each. */
const ROWS_PER_FETCH = 1_000;
const LOG_INTERVAL_MS = 5_000;

/** A batch of rows: a condition on the columns of the old table `o`. */
interface Batch {
  readonly condition: string;
  readonly values: readonly unknown[];
  /** Where the next batch begins. */
  readonly next: string;
}

type Converter = (client: ClientBase, batch: Batch) => Promise<void>;

const newName = (table: string) => `new_${table}`;

const MESSAGE_COLUMNS = `sent_at, position, source_selector, dest_selector, finality, delivery_ms, summary_length, status,
  ready, is_snapshot, sequence_number, message_id, sender, receiver, origin, onramp, send_transaction,
  receipt_transaction, digest, record`;
const TOKEN_COLUMNS =
  'source_selector, dest_selector, token_index, message_id, source_token, dest_token, source_pool';

/** A conversion that PostgreSQL can do by itself. */
function inDatabase(statement: string): Converter {
  return async (client, { condition, values }) => {
    await client.query(`${statement} where ${condition}`, [...values]);
  };
}

const converters: Readonly<Record<string, Converter>> = {
  message: inDatabase(
    `insert into new_message (sort_key, ${MESSAGE_COLUMNS})
     select ${sortKeySql('sent_at', 'message_id')}, ${MESSAGE_COLUMNS} from message o`,
  ),
  message_token: inDatabase(
    `insert into new_message_token (sort_key, sender_beginning, receiver_beginning, ${TOKEN_COLUMNS})
     select ${sortKeySql('o.sent_at', 'message_id')}, ${beginningOf('sender')}, ${beginningOf('receiver')},
       ${TOKEN_COLUMNS.replaceAll(/\w*_selector/g, 'o.$&')}
     from message_token o join message m using (message_id)`,
  ),
  ...Object.fromEntries(
    Object.entries(convertedTables).map(([table, { select, columns, rowOf }]): [string, Converter] => [
      table,
      async (client, { condition, values }) => {
        await client.query(`declare old_rows no scroll cursor for ${select} where ${condition}`, [...values]);
        for (;;) {
          const { rows } = await client.query(`fetch ${ROWS_PER_FETCH} from old_rows`);
          await copyRows(client, newName(table), columns, rows, rowOf);
          if (rows.length < ROWS_PER_FETCH) break;
        }
        await client.query('close old_rows');
      },
    ]),
  ),
};

export interface ConversionOptions extends Pick<LockOptions, 'writeLog' | 'signal'> {
  readonly pagesPerBatch?: number | undefined;
}

/** Throws the reason of the signal when it is aborted; what was converted stays. */
export async function convertTables(client: ClientBase, options: ConversionOptions): Promise<void> {
  // Limits of the role are meant for queries: the rows of a table are counted in one statement.
  const setLimits = (value: string) =>
    client.query(
      `select set_config(name, ${value}, false) from pg_settings where name in ('statement_timeout', 'transaction_timeout')`,
    );
  await setLimits(`'0'`);
  try {
    const distributed = await readDistributedTables(client);
    const report = createReport(options.writeLog);
    for (const [table, convert] of Object.entries(converters)) {
      await convertTable(client, table, convert, distributed.includes(table), report, options);
    }
    // Also marks the pages as visible to all, so that an index answers for them alone.
    options.writeLog?.('Vacuuming the new tables');
    await client.query(`vacuum (analyze) ${Object.keys(converters).map(newName).join(', ')}`);
  } finally {
    // The connection may be broken.
    await setLimits('reset_val').catch(() => undefined);
  }
}

async function convertTable(
  client: ClientBase,
  table: string,
  convert: Converter,
  isDistributed: boolean,
  report: ReturnType<typeof createReport>,
  { signal, pagesPerBatch = PAGES_PER_BATCH }: ConversionOptions,
): Promise<void> {
  if (isDistributed) await distributeLike(client, table);
  await takeOverRights(client, table);
  const files = isDistributed ? 'shards' : await filesOf(client, table);
  let at = await placeOf(client, table, files);
  report.begin(table, at, isDistributed ? undefined : await pagesOf(client, table));
  for (;;) {
    signal?.throwIfAborted();
    const batch = isDistributed
      ? await nextIds(client, table, at)
      : await nextPages(client, table, at, pagesPerBatch);
    if (!batch) break;
    const work = async () => {
      await convert(client, batch);
      await client.query('update conversion set next = $2 where old_table = $1', [table, batch.next]);
    };
    await inTransaction(client, work, BEGIN);
    at = batch.next;
    report.advance(at);
  }
  await requireSameCount(client, table);
}

/** The new table gets the owner of the old one, and the privileges that were granted on it. */
async function takeOverRights(client: ClientBase, table: string): Promise<void> {
  const { rows } = await client.query(
    `select format('alter table %s owner to %s', n.oid::regclass, o.relowner::regrole) as statement
     from pg_class o, pg_class n
     where o.oid = $1::regclass and n.oid = $2::regclass and n.relowner <> o.relowner
     union all
     select format('grant %s on %s to %s', privilege_type, $2::regclass,
                   case grantee when 0 then 'public' else grantee::regrole::text end)
            || case when is_grantable then ' with grant option' else '' end
     from pg_class o, aclexplode(o.relacl) where o.oid = $1::regclass`,
    [table, newName(table)],
  );
  for (const { statement } of rows) await client.query(statement);
}

/** Where the conversion of a table goes on. If the files are not those of the progress, the new table is emptied. */
async function placeOf(client: ClientBase, table: string, files: string): Promise<string> {
  const { rows } = await client.query('select files, next from conversion where old_table = $1', [table]);
  if (rows[0]?.files === files) return rows[0].next;
  await inTransaction(client, async () => {
    await client.query(`truncate ${newName(table)}`);
    await client.query(
      `insert into conversion (old_table, files, next) values ($1, $2, '')
       on conflict (old_table) do update set files = excluded.files, next = excluded.next`,
      [table, files],
    );
  });
  return '';
}

/** Names the files of a table: two tables whose rows are in other places differ in it. */
async function filesOf(client: ClientBase, table: string): Promise<string> {
  const { rows } = await client.query(
    `select (select system_identifier from pg_control_system()) || '/' || pg_relation_filepath($1::regclass) as files`,
    [table],
  );
  return rows[0].files;
}

async function pagesOf(client: ClientBase, table: string): Promise<number> {
  const { rows } = await client.query(
    `select (pg_relation_size($1::regclass) / current_setting('block_size')::integer)::integer as pages`,
    [table],
  );
  return rows[0].pages;
}

async function nextPages(
  client: ClientBase,
  table: string,
  at: string,
  pagesPerBatch: number,
): Promise<Batch | undefined> {
  const from = Number(at);
  if (from >= (await pagesOf(client, table))) return undefined;
  const to = from + pagesPerBatch;
  return {
    condition: 'o.ctid >= $1::tid and o.ctid < $2::tid',
    values: [`(${from},0)`, `(${to},0)`],
    next: String(to),
  };
}

/** On a cluster a row has no place: its messages are taken in the order of their ids. */
async function nextIds(client: ClientBase, table: string, at: string): Promise<Batch | undefined> {
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as last from (
       select distinct message_id from ${table} where message_id > $1 order by message_id limit ${MESSAGES_PER_BATCH}) next
     order by message_id desc limit 1`,
    [Buffer.from(at, 'hex')],
  );
  if (!rows[0]) return undefined;
  const last = rows[0].last as string;
  return {
    condition: 'o.message_id > $1 and o.message_id <= $2',
    values: [Buffer.from(at, 'hex'), Buffer.from(last, 'hex')],
    next: last,
  };
}

async function distributeLike(client: ClientBase, table: string): Promise<void> {
  const { rows } = await client.query(
    'select exists (select from pg_dist_partition where logicalrelid = $1::regclass) as done',
    [newName(table)],
  );
  if (rows[0].done) return;
  await client.query(`select create_distributed_table($1, 'message_id', colocate_with => 'message')`, [
    newName(table),
  ]);
}

/** A row that was lost or doubled would otherwise be noticed when the old tables are gone. */
async function requireSameCount(client: ClientBase, table: string): Promise<void> {
  const { rows } = await client.query(
    `select (select count(*) from ${table}) as old, (select count(*) from ${newName(table)}) as new`,
  );
  const { old, new: converted } = rows[0];
  if (old === converted) return;
  throw new OperatorError(
    `The conversion of ${table} is wrong: ${old} rows have become ${converted}. The old table is unchanged.`,
    `Run \`truncate ${newName(table)}; delete from conversion where old_table = '${table}'\` in the database, then start this again; if it fails again, report it.`,
  );
}

/** A log line for each table, and every few seconds how far it is. */
function createReport(writeLog: LockOptions['writeLog']) {
  let title = '';
  let total: number | undefined;
  let first = 0;
  let startedAt = 0;
  let shownAt = 0;
  return {
    /** @param pages of the table; undefined where they are not known */
    begin(table: string, at: string, pages: number | undefined) {
      [title, total, first] = [table, pages, Number(pages === undefined ? 0 : at)];
      startedAt = shownAt = performance.now();
      if (pages === undefined || first < pages)
        writeLog?.(first > 0 ? `Converting ${table}, from where it was left` : `Converting ${table}`);
    },
    advance(at: string) {
      const now = performance.now();
      if (total === undefined || now - shownAt < LOG_INTERVAL_MS) return;
      shownAt = now;
      const done = Number(at);
      const leftMs = ((now - startedAt) * (total - done)) / (done - first);
      const left = leftMs > 0 ? ` · about ${Math.ceil(leftMs / 60_000)} min left` : '';
      writeLog?.(`Converting ${title}: ${Math.min(100, Math.floor((done / total) * 100))}%${left}`);
    },
  };
}
