/**
 * The guard against older writers: a statement trigger on every table. It rejects sessions that do not declare the schema of
 * the database, or a later one. For all others it costs one comparison a statement, and no round trip.
 */
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { readDistributedTables } from '../cluster/layout.ts';
import { existingTables } from './tables.ts';

/** SQLSTATE that the trigger raises. */
const REJECTED_WRITER = '57L01';
/** SQL of the schema that a session declares; 0 where it declares none. */
const DECLARED = `coalesce(nullif(current_setting('lanescan.schema', true), ''), '0')::integer`;
/** SQLSTATEs of an undefined table, column or function. */
const MISSING_PARTS: readonly unknown[] = ['42P01', '42703', '42883'];

/** The database has a newer schema than this program knows, and the operation needs the older one. */
export class SchemaMovedError extends OperatorError {
  constructor(schema: number, known: number, options?: ErrorOptions) {
    super(
      `The database was upgraded by a newer Lanescan (schema ${schema}; this program knows ${known}). Nothing was written.`,
      'Upgrade this program, then start it again.',
      options,
    );
  }
}

/** Options of a connection that declare the schema that its writes are made for. */
export function declaredSchema(schema: number): string {
  return `-c lanescan.schema=${schema}`;
}

/** Creates the guard on every table, for a schema of this number; inside the transaction of the migration. */
export async function guardWriters(client: ClientBase, schema: number): Promise<void> {
  // A distributed table cannot have one. Its writers write to other tables in the same transaction.
  const distributed = await readDistributedTables(client);
  for (const table of await existingTables(client)) {
    if (distributed.includes(table)) continue;
    await client.query(
      `create or replace trigger refuse_older_writer before insert or update or delete on ${table}
       for each statement when (${DECLARED} < ${schema}) execute function refuse_older_writer('${schema}')`,
    );
  }
}

/** Turns the guard's error into a SchemaMovedError; `known` is the schema of this program. Other errors stay. */
export function explainRejectedWriter(error: unknown, known: number): unknown {
  const { code, detail } = (error ?? {}) as { code?: unknown; detail?: unknown };
  return code === REJECTED_WRITER ? new SchemaMovedError(Number(detail), known, { cause: error }) : error;
}

/** Whether a statement failed because the schema does not have what it names. */
export function isMissingPart(error: unknown): boolean {
  return MISSING_PARTS.includes((error as { code?: unknown } | undefined)?.code);
}
