/**
 * A reader beside a newer schema: it goes on while the tables it reads have their form. Once a read fails for want of a
 * table, a column or a function, and the schema has moved, that is the reason it gives, until it is started anew.
 */
import { isMissingPart, SchemaMovedError } from './writer-guard.ts';

export interface SchemaWatch {
  /** Throws the error, or a SchemaMovedError where the schema has moved under the statement that failed. */
  explain(error: unknown): Promise<never>;
  /** Throws a SchemaMovedError once a read has failed with it. */
  refuseIfMoved(): void;
}

export interface SchemaWatchOptions {
  /** The number of the latest migration that this program knows. */
  readonly known: number;
  /** The number of the latest one that the database has. */
  readonly readSchema: () => Promise<number>;
  readonly notice: (line: string) => void;
}

export function createSchemaWatch({ known, readSchema, notice }: SchemaWatchOptions): SchemaWatch {
  let moved: SchemaMovedError | undefined;
  return {
    async explain(error) {
      if (!isMissingPart(error)) throw error;
      const schema = moved ? 0 : await readSchema().catch(() => 0);
      if (schema > known) {
        moved = new SchemaMovedError(schema, known, { cause: error });
        notice(`${moved.message} ${moved.remedy}`);
      }
      throw moved ?? error;
    },
    refuseIfMoved() {
      if (moved) throw moved;
    },
  };
}
