/**
 * The changes after a position, on a cluster: as `readChangesAfter` reads them in one statement on one node.
 *
 * Invariant: no change after the published position is returned, because others before it may not be visible yet.
 */
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
    `select ${entryColumns}, h.message_id, a.fact_id, a.details_id,
       coalesce(h.removed_record, m.record) as record
     from history h left join message m on m.message_id = h.message_id
     left join history_attempt a on a.message_id = h.message_id and a.position = h.position
     where h.position > $1 and h.position <= $2 order by h.position`,
    [position, last],
  );
  const removedRecords = await readRemoved(read, 'removed_record', idsWithout(rows, 'record'));
  const bodies = await readBodies(read, rows);
  return rows.map((row, index) => {
    const bodyOf = (factId: unknown) => (factId ? bodies.get(keyOf(row.id, factId as Buffer)) : undefined);
    const executed = bodyOf(row.fact_id);
    return {
      ...row,
      record: row.record ?? removedRecords.get(row.id as string) ?? null,
      executed: executed?.body ?? null,
      details: bodyOf(row.details_id)?.body ?? null,
      removed_at: executed?.removedAt ?? null,
      has_next: index === rows.length - 1 && fitting.length < lengths.length,
    };
  });
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

interface FactBody {
  readonly body: string;
  /** Null while the fact stands. */
  readonly removedAt: Date | null;
}

/** The executions that the changes brought, and their details, by `keyOf`. */
async function readBodies(read: Read, rows: readonly Row[]): Promise<ReadonlyMap<string, FactBody>> {
  const attempts = rows.filter((row) => row.fact_id !== null);
  if (attempts.length === 0) return new Map();
  const keys = [
    attempts.map((row) => row.message_id),
    attempts.flatMap((row) => [row.fact_id, row.details_id]).filter((id) => id !== null),
  ];
  const of = 'message_id = any($1) and fact_id = any($2)';
  const standingIn = (table: 'fact' | 'earlier_attempt') =>
    read(
      `select encode(message_id, 'hex') as id, fact_id, body, null::timestamptz as removed_at from ${table} where ${of}`,
      keys,
    );
  const [removed, ...standing] = await Promise.all([
    read(
      `select encode(message_id, 'hex') as id, fact_id, body, removed_at from removed_attempt where ${of}`,
      keys,
    ),
    standingIn('fact'),
    standingIn('earlier_attempt'),
  ]);
  // A fact that came back with its block counts as standing.
  return new Map(
    [...removed, ...standing.flat()].map(({ id, fact_id, body, removed_at }) => [
      keyOf(id, fact_id as Buffer),
      { body: body as string, removedAt: removed_at as Date | null },
    ]),
  );
}

function keyOf(id: unknown, factId: Buffer): string {
  return `${id},${factId.toString('hex')}`;
}
