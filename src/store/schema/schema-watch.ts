/**
 * Readers beside a newer schema: they go on while the tables that they read are unchanged. Once a read fails because a
 * table, a column or a function is missing, and the schema is newer, reads fail with a SchemaMovedError until the restart.
 */
import { isMissingPart, SchemaMovedError } from './writer-guard.ts';

export interface SchemaWatch {
  /** Throws the error, or a SchemaMovedError where the schema has moved under the statement that failed. */
  explain(error: unknown): Promise<never>;
  /** Throws a SchemaMovedError once a read has failed with it. */
  throwIfMoved(): void;
}

export interface SchemaWatchOptions {
  /** The number of the latest migration that this program knows. */
  readonly known: number;
  /** The number of the latest one that the database has. */
  readonly readSchema: () => Promise<number>;
  readonly writeLog: (line: string) => void;
}

export function createSchemaWatch({ known, readSchema, writeLog }: SchemaWatchOptions): SchemaWatch {
  let moved: SchemaMovedError | undefined;
  return {
    async explain(error) {
      if (!isMissingPart(error)) throw error;
      const schema = moved ? 0 : await readSchema().catch(() => 0);
      if (schema > known) {
        moved = new SchemaMovedError(schema, known, { cause: error });
        writeLog(`${moved.message} ${moved.remedy}`);
      }
      throw moved ?? error;
    },
    throwIfMoved() {
      if (moved) throw moved;
    },
  };
}
