/**
 * Earlier attempts: the failed attempts of a message beyond its newest ones, in a table beside `fact`.
 *
 * Anybody may attempt to execute a message any number of times. `fact` keeps the newest failed attempts only, so that one more
 * costs the same whatever the number before. The fold needs no others: the last failure counts, and successes stay in `fact`.
 * A reorganisation that removes attempts moves earlier ones back.
 */
import type { ClientBase } from 'pg';
import type { ChainFact } from '../../domain/facts.ts';
import { messageFactColumns, storedPlaceOf } from '../facts/stored-fact.ts';
import { type CopyColumns, type CopyValue, copyRows } from './copy.ts';
import { messageIdArray } from './message-row.ts';

/** More than any list of attempts shows, so that a list can tell that there are more. */
export const KEPT_ATTEMPTS = 256;

const columnNames = Object.keys(messageFactColumns).join(', ');

/** The facts of a message that belong among its earlier attempts. All attempts of a block stay together. */
export function earlierAttempts(facts: ReadonlyMap<string, ChainFact>): ReadonlyMap<string, ChainFact> {
  const executions = [...facts.values()].filter((fact) => fact.kind === 'Executed');
  const blocks = executions.filter(({ success }) => !success).map(({ seen }) => seen.blockNumber);
  const oldestKept = blocks.sort((a, b) => b - a)[KEPT_ATTEMPTS - 1];
  if (oldestKept === undefined) return new Map();
  const successes = new Set(
    executions.filter(({ success }) => success).map(({ seen }) => storedPlaceOf(seen)),
  );
  return new Map(
    [...facts].filter(
      ([, { kind, seen }]) =>
        (kind === 'Executed' || kind === 'ExecutionDetails') &&
        seen.blockNumber < oldestKept &&
        !successes.has(storedPlaceOf(seen)),
    ),
  );
}

/** Which of these facts are stored as earlier attempts. */
export async function readEarlierIds(
  client: ClientBase,
  messageIds: readonly string[],
  factIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (factIds.length === 0) return new Set();
  const { rows } = await client.query(
    `select encode(fact_id, 'hex') as id from earlier_attempt where message_id = any($1) and fact_id = any($2)`,
    [messageIdArray(messageIds), messageIdArray(factIds)],
  );
  return new Set(rows.map(({ id }) => id));
}

/** Moves facts of a message that are stored in `fact`, by their ids. */
export async function moveToEarlier(
  client: ClientBase,
  messageId: string,
  factIds: readonly string[],
): Promise<void> {
  if (factIds.length === 0) return;
  const { rows } = await client.query(
    `delete from fact where message_id = $1 and fact_id = any($2) returning ${columnNames}`,
    [Buffer.from(messageId, 'hex'), messageIdArray(factIds)],
  );
  await copyRead(client, 'earlier_attempt', messageFactColumns, rows);
}

/** Moves the newest earlier attempts of these messages back to `fact`, as many as it keeps; the next write settles the rest. */
export async function restoreEarlier(client: ClientBase, messageIds: Iterable<string>): Promise<void> {
  const { rows: any } = await client.query('select 1 from earlier_attempt limit 1');
  if (any.length === 0) return;
  for (const messageId of new Set(messageIds)) {
    const { rows } = await client.query(
      `delete from earlier_attempt where message_id = $1 and block_number >= (
         select min(block_number) from (
           select block_number from earlier_attempt where message_id = $1 order by block_number desc limit $2) newest)
       returning ${columnNames}`,
      [Buffer.from(messageId, 'hex'), 2 * KEPT_ATTEMPTS],
    );
    await copyRead(client, 'fact', messageFactColumns, rows);
  }
}

/** Writes rows that were read from another table with the same columns. */
export function copyRead(
  client: ClientBase,
  table: 'fact' | 'earlier_attempt' | 'removed_attempt',
  columns: CopyColumns,
  rows: readonly Readonly<Record<string, unknown>>[],
): Promise<void> {
  const copyValue = (value: unknown) => (value instanceof Date ? value.toISOString() : (value as CopyValue));
  const names = Object.keys(columns);
  return copyRows(client, table, columns, rows, (row) => names.map((name) => copyValue(row[name])));
}
