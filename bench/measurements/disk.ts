/**
 * What a database takes on disk by table and index, and what was written to get there. Everything comes from PostgreSQL's
 * catalogs and statistics, so that it holds for any schema.
 */
import type pg from 'pg';

/** A table with its TOAST, or an index. */
export interface Relation {
  readonly name: string;
  /** The table of an index; null for a table. */
  readonly table: string | null;
  readonly bytes: number;
}

export interface DiskUse {
  readonly messages: number;
  readonly bytesPerMessage: number;
  /** Null where nobody knows the position of the WAL before the messages. */
  readonly walBytesPerMessage: number | null;
  /** The largest first. */
  readonly relations: readonly (Relation & { readonly bytesPerMessage: number })[];
}

/** Tables and indexes of the schema, the largest first. */
export async function readRelations(client: pg.ClientBase): Promise<readonly Relation[]> {
  const { rows } = await client.query<Relation>(
    `select c.relname as name, t.relname as table, pg_table_size(c.oid)::float8 as bytes from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     left join pg_index i on i.indexrelid = c.oid left join pg_class t on t.oid = i.indrelid
     where n.nspname = 'public' and c.relkind in ('r', 'i') order by bytes desc, name`,
  );
  return rows;
}

/** Bytes that were written to the WAL of the whole server since it was created. */
export async function readWalPosition(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as position`,
  );
  return rows[0].position;
}

/** @param walFrom the position of the WAL before the messages were written; null where it is not known */
export async function readDiskUse(
  client: pg.ClientBase,
  messages: number,
  walFrom: number | null,
): Promise<DiskUse> {
  const relations = await readRelations(client);
  const walBytes = walFrom === null ? null : (await readWalPosition(client)) - walFrom;
  return {
    messages,
    bytesPerMessage: Math.round(relations.reduce((sum, { bytes }) => sum + bytes, 0) / messages),
    walBytesPerMessage: walBytes === null ? null : Math.round(walBytes / messages),
    relations: relations.map((relation) => ({
      ...relation,
      bytesPerMessage: Math.round(relation.bytes / messages),
    })),
  };
}

/** Smaller ones are summed up. */
const MIN_SHOWN_BYTES_PER_MESSAGE = 10;

/** Tables from the largest with their indexes on; each index below its table. */
export function printDiskUse({ messages, bytesPerMessage, walBytesPerMessage, relations }: DiskUse): void {
  const line = (name: string, bytes: number) =>
    console.log(`  ${name.padEnd(44)}${Math.round(bytes).toLocaleString('en').padStart(8)}`);
  console.log(`\nBytes on disk per message, ${messages.toLocaleString('en')} messages`);
  const ownerOf = ({ name, table }: Relation) => table ?? name;
  const totals = new Map<string, number>();
  for (const relation of relations)
    totals.set(ownerOf(relation), (totals.get(ownerOf(relation)) ?? 0) + relation.bytes / messages);
  let rest = bytesPerMessage;
  for (const [table, total] of [...totals].sort(([, one], [, other]) => other - one)) {
    if (total < MIN_SHOWN_BYTES_PER_MESSAGE) continue;
    rest -= total;
    line(`${table} with its indexes`, total);
    for (const relation of relations)
      if (ownerOf(relation) === table && relation.bytesPerMessage >= MIN_SHOWN_BYTES_PER_MESSAGE)
        line(`  ${relation.table === null ? 'the table alone' : relation.name}`, relation.bytesPerMessage);
  }
  line('all others', rest);
  line('total', bytesPerMessage);
  if (walBytesPerMessage !== null) line('WAL written', walBytesPerMessage);
}
