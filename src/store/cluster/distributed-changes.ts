/**
 * The changes after a position, on a cluster: as `readChangesAfter` reads them in one statement on one node.
 *
 * Invariant: no change after the published position is returned, because others before it may not be visible yet.
 */
import { attemptTables, factColumnsOf } from '../facts/stored-fact.ts';
import type { Read } from '../reads/reads.ts';

type Row = Record<string, unknown>;

/**
 * Rows with the columns of the statement for one node; the last one has `has_next` where a limit ended the read.
 * `entryColumns` are those of an entry, of `history h`.
 */
export async function readDistributedChanges(
  read: Read,
  entryColumns: string,
  position: string,
  limit: number,
  maxBytes: number,
): Promise<Row[]> {
  // Read first: what is published is visible to every later statement.
  const [store] = await read('select position from store', []);
  const published = String(store?.position ?? 0);
  const lengths = await read(
    `select h.position, h.message_id, encode(h.message_id, 'hex') as id,
       octet_length(coalesce(h.removed_record, m.record)) as bytes
     from history h left join message m on m.message_id = h.message_id
     where h.position > $1 and h.position <= $2 order by h.position limit $3`,
    [position, published, limit],
  );
  const removedLengths = await readRemoved(
    read,
    'octet_length(removed_record)',
    idsWithout(lengths, 'bytes'),
  );
  const fitting = withinBytes(
    lengths,
    maxBytes,
    ({ id, bytes }) => bytes ?? removedLengths.get(id as string),
  );
  if (fitting.length === 0) return [];
  const last = String(fitting.at(-1)?.position);
  const rows = await read(
    `select ${entryColumns}, h.message_id, h.attempt_fact, h.attempt_details,
       coalesce(h.removed_record, m.record) as record
     from history h left join message m on m.message_id = h.message_id
     where h.position > $1 and h.position <= $2 order by h.position`,
    [position, last],
  );
  const removedRecords = await readRemoved(read, 'removed_record', idsWithout(rows, 'record'));
  const attempts = await readAttempts(read, rows);
  return rows.map((row, index) => ({
    ...row,
    ...prefixed('executed_', attempts.get(keyOf(row.id, row.attempt_fact))),
    ...prefixed('details_', attempts.get(keyOf(row.id, row.attempt_details))),
    record: row.record ?? removedRecords.get(row.id as string) ?? null,
    has_next: index === rows.length - 1 && fitting.length < lengths.length,
  }));
}

/** The first rows whose records have at most so many bytes together, and always the first one. */
function withinBytes(rows: readonly Row[], maxBytes: number, bytesOf: (row: Row) => unknown): readonly Row[] {
  let sum = 0;
  const end = rows.findIndex((row, index) => {
    sum += Number(bytesOf(row) ?? 0);
    return index > 0 && sum > maxBytes;
  });
  return end === -1 ? rows : rows.slice(0, end);
}

/** The messages that have no record any more: they were removed after one of these changes. */
function idsWithout(rows: readonly Row[], column: 'bytes' | 'record'): readonly unknown[] {
  return rows.filter((row) => row[column] === null).map((row) => row.message_id);
}

/** An expression of the last record of each of these messages, by message id. */
async function readRemoved(read: Read, expression: string, ids: readonly unknown[]) {
  if (ids.length === 0) return new Map();
  const removed = await read(
    `select encode(message_id, 'hex') as id, ${expression} as value from history
     where message_id = any($1) and removed_record is not null order by position`,
    [ids],
  );
  return new Map(removed.map(({ id, value }) => [id as string, value]));
}

/** The executions that the changes brought, and their details, by `keyOf`: rows of facts. */
async function readAttempts(read: Read, rows: readonly Row[]): Promise<ReadonlyMap<string, Row>> {
  const attempts = rows.filter((row) => row.attempt_fact !== null);
  if (attempts.length === 0) return new Map();
  const keys = [
    attempts.map((row) => row.message_id),
    attempts.flatMap((row) => [row.attempt_fact, row.attempt_details]).filter((id) => id !== null),
  ];
  const found = await Promise.all(
    attemptTables.map(([table, removedAt]) =>
      read(
        `select encode(message_id, 'hex') as id, fact_id, ${factColumnsOf(table)}, ${removedAt} as removed_at from ${table}
         where message_id = any($1) and fact_id = any($2)`,
        keys,
      ),
    ),
  );
  // Those that stand come last, and replace the same ones as removed.
  const inOrder = found.flat().sort((a, b) => Number(a.removed_at === null) - Number(b.removed_at === null));
  return new Map(inOrder.map((row) => [keyOf(row.id, row.fact_id), row]));
}

function prefixed(prefix: string, row: Row | undefined): Row {
  return Object.fromEntries(Object.entries(row ?? {}).map(([name, value]) => [prefix + name, value]));
}

function keyOf(id: unknown, factId: unknown): string {
  return `${id},${Buffer.isBuffer(factId) ? factId.toString('hex') : ''}`;
}
