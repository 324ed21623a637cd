/** How rows of schema 22 become rows of the new tables. Called by `schema/conversion.ts` for each batch of an old table. */
import type { CopyColumns, CopyValue } from '../write/copy.ts';

/** The conversion of a table. The new rows go into `new_<name of the old table>`. */
export interface TableConversion {
  /** The statement that reads old rows from the table `o`, up to its condition: `select … from fact o left join …`. */
  readonly select: string;
  /** The columns of the new row. */
  readonly columns: CopyColumns;
  /** Throws an OperatorError that names the message where the old row cannot be read. */
  readonly rowOf: (row: Readonly<Record<string, unknown>>) => readonly CopyValue[];
}

/** By the name of the old table: fact, earlier_attempt, removed_attempt, lane_fact, root_blessing, history. */
export const convertedTables: Readonly<Record<string, TableConversion>> = {};
