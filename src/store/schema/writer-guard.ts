/**
 * Programs beside a newer schema.
 *
 * Writers: a statement trigger on every table rejects sessions that do not declare the schema of the database, or a later
 * one. For all others it costs one comparison a statement, and no round trip.
 *
 * Readers go on while the tables that they read are unchanged. Once a read fails because a table, a column or a function is
 * missing, and the schema is newer, reads fail with a SchemaMovedError until the restart.
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

/** `known` is the number of the latest migration that this program knows, `readSchema` reads that of the database. */
export function createSchemaWatch(
  known: number,
  readSchema: () => Promise<number>,
  writeLog: (line: string) => void,
) {
  let moved: SchemaMovedError | undefined;
  return {
    /** Throws the error, or a SchemaMovedError where the schema has moved under the statement that failed. */
    async explain(error: unknown): Promise<never> {
      if (!MISSING_PARTS.includes((error as { code?: unknown } | undefined)?.code)) throw error;
      const schema = moved ? 0 : await readSchema().catch(() => 0);
      if (schema > known) {
        moved = new SchemaMovedError(schema, known, { cause: error });
        writeLog(`${moved.message} ${moved.remedy}`);
      }
      throw moved ?? error;
    },
    /** Throws a SchemaMovedError once a read has failed with it. */
    throwIfMoved() {
      if (moved) throw moved;
    },
  };
}
