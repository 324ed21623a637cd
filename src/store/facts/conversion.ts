/** How rows of schema 22 become rows of the new tables. Called by `schema/conversion.ts` for each batch of an old table. */
import { explained } from '../../base/operator-error.ts';
import type { MessageFact, RangeFact, RootFact } from '../../domain/facts.ts';
import { changeNumbers, historyColumns } from '../write/changes.ts';
import type { CopyColumns, CopyValue } from '../write/copy.ts';
import { laneFactColumns, rootFactColumns } from '../write/lane-facts.ts';
import { hashBytes } from './hash-bytes.ts';
import { messageFactColumns, messageFactValues, rangeFactValues, rootFactValues } from './stored-fact.ts';

type OldRow = Readonly<Record<string, unknown>>;

/** The conversion of a table. The new rows go into `new_<name of the old table>`. */
export interface TableConversion {
  /** The statement that reads old rows from the table `o`, up to its condition: `select … from fact o left join …`. */
  readonly select: string;
  /** The columns of the new row. */
  readonly columns: CopyColumns;
  /** Throws an OperatorError that names the message where the old row cannot be read. */
  readonly rowOf: (row: OldRow) => readonly CopyValue[];
}

/** A conversion by the names of the new columns; the compiler names a missing one. */
function conversion<Columns extends CopyColumns>(
  select: string,
  columns: Columns,
  valuesOf: (row: OldRow) => Readonly<Record<keyof Columns, CopyValue>>,
): TableConversion {
  const names = Object.keys(columns) as readonly (keyof Columns)[];
  return {
    select,
    columns,
    rowOf(row) {
      const values = valuesOf(row);
      return names.map((name) => values[name]);
    },
  };
}

const removedColumns = { ...messageFactColumns, removed_at: 'timestamptz' } as const satisfies CopyColumns;

/** By the name of the old table: fact, earlier_attempt, removed_attempt, lane_fact, root_blessing, history. */
export const convertedTables: Readonly<Record<string, TableConversion>> = {
  fact: conversion('select o.* from fact o', messageFactColumns, messageFactOf),
  earlier_attempt: conversion('select o.* from earlier_attempt o', messageFactColumns, messageFactOf),
  removed_attempt: conversion('select o.* from removed_attempt o', removedColumns, (row) => ({
    ...messageFactOf(row),
    removed_at: timeOf(row.removed_at),
  })),
  lane_fact: conversion('select o.* from lane_fact o', laneFactColumns, (row) => {
    const lane = {
      sourceSelector: String(row.source_selector),
      destSelector: String(row.dest_selector),
      from: String(row.from_sequence),
      to: String(row.to_sequence),
    };
    return {
      ...readOldBody<RangeFact, ReturnType<typeof rangeFactValues>>(row, (fact) =>
        rangeFactValues(fact, lane),
      ),
      fact_id: row.fact_id as Buffer,
      source_selector: lane.sourceSelector,
      dest_selector: lane.destSelector,
      to_sequence: lane.to,
      from_sequence: lane.from,
      onramp: row.onramp as Buffer,
    };
  }),
  root_blessing: conversion('select o.* from root_blessing o', rootFactColumns, (row) => ({
    ...readOldBody(row, (fact: RootFact) => rootFactValues(fact)),
    fact_id: row.fact_id as Buffer,
  })),
  history: conversion(
    `select o.*, a.fact_id as attempt_fact, a.details_id as attempt_details from history o
     left join history_attempt a on a.message_id = o.message_id and a.position = o.position`,
    historyColumns,
    (row) => ({
      position: row.position as string,
      recorded_at: timeOf(row.recorded_at),
      occurred_at: timeOf(row.occurred_at),
      network: row.network as string | null,
      block_number: row.block_number as string | null,
      status: row.status as number,
      previous_status: row.previous_status as number | null,
      change: changeNumbers[row.change as keyof typeof changeNumbers],
      ready: row.ready as boolean,
      message_id: row.message_id as Buffer,
      transaction: row.transaction_hash === null ? null : hashBytes(row.transaction_hash as string),
      attempt_fact: row.attempt_fact as Buffer | null,
      attempt_details: row.attempt_details as Buffer | null,
      removed_record: row.removed_record as string | null,
      derived: row.derived as string | null,
    }),
  ),
};

function messageFactOf(row: OldRow) {
  const id = (row.fact_id as Buffer).toString('hex');
  const values = readOldBody(row, (fact: MessageFact) => messageFactValues(fact, id));
  return { ...values, message_id: row.message_id as Buffer };
}

/** The body of an old row is the JSON of the fact. */
function readOldBody<F, Values>(row: OldRow, valuesOf: (fact: F) => Values): Values {
  return explained(
    () => valuesOf(JSON.parse(row.body as string) as F),
    (message) => `A stored fact of ${nameOf(row)} cannot be read: ${message}`,
    'Restore the database from a backup, or report it with that row of the database.',
  );
}

function nameOf({ message_id, merkle_root, fact_id }: OldRow): string {
  if (message_id) return `message 0x${(message_id as Buffer).toString('hex')}`;
  if (merkle_root) return `the root 0x${(merkle_root as Buffer).toString('hex')}`;
  return `a lane, with the id ${(fact_id as Buffer).toString('hex')},`;
}

function timeOf(time: unknown): string | null {
  return (time as Date | null)?.toISOString() ?? null;
}
