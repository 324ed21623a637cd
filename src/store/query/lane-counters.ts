/** What contracts count of each lane, with what the records have of it: what `audit` judges both ends of a lane by. */
import type { NumberRun } from '../../domain/missing-numbers.ts';
import type { Read } from '../reads/reads.ts';
import { selectorOf } from '../write/message-row.ts';
import { endValues, IS_BETWEEN, type LaneEnds } from './lanes.ts';

export interface CountedLane {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
  /** Canonical bytes in hex. */
  readonly onramp: string;
  /** Messages that the on-ramp has sent, or messages of it that are committed on the destination. */
  readonly kind: 'sent' | 'committed';
  readonly lastNumber: string;
  /** Whether everything from number 1 on is expected; false where indexing starts at a configured block or time. */
  readonly isWhole: boolean;
  readonly checkedAt: Date;
  /** The numbers that the records have, the lowest first. */
  readonly present: readonly NumberRun[];
}

/** Of a lane with more runs than this, the lowest are compared. */
const MAX_RUNS = 10_000;

export async function readCountedLanes(read: Read, ends: LaneEnds): Promise<readonly CountedLane[]> {
  const ofLane =
    'source_selector = c.source_selector and dest_selector = c.dest_selector and onramp = c.onramp';
  const rows = await read<CountedLane>(
    `select c.source_selector as "sourceChainSelector", c.dest_selector as "destChainSelector",
            encode(c.onramp, 'hex') as onramp, c.kind, c.last_number as "lastNumber", c.is_whole as "isWhole",
            c.checked_at as "checkedAt", present.runs as present
     from index_counter c
     cross join lateral (
       select coalesce(json_agg(json_build_object('from', lower(run)::text, 'to', (upper(run) - 1)::text)
                                order by run), '[]') as runs
       from (select run from (
               select unnest(range_agg(numrange(from_sequence, to_sequence + 1))) as run from (
                 select from_sequence, to_sequence from lane_run where c.kind = 'sent' and ${ofLane}
                 union all
                 select from_sequence, to_sequence from lane_fact
                 where c.kind = 'committed' and ${ofLane}) piece) merged
             order by run limit ${MAX_RUNS}) bounded) present
     where ${IS_BETWEEN}
     order by c.source_selector, c.dest_selector, c.onramp, c.kind`,
    endValues(ends),
  );
  return rows.map((row) => ({
    ...row,
    sourceChainSelector: selectorOf(row.sourceChainSelector),
    destChainSelector: selectorOf(row.destChainSelector),
  }));
}

/**
 * How many messages of indexed source networks are known from imports and mirrors alone. Null where no network is indexed:
 * then nothing could confirm them.
 */
export async function countUnconfirmed(read: Read, ends: LaneEnds): Promise<number | null> {
  const [row] = await read(
    `select case when exists (select 1 from index_network) then (
       select count(*) from message
       where is_snapshot and source_selector in (select selector from index_network) and ${IS_BETWEEN}) end as messages`,
    endValues(ends),
  );
  return row?.messages == null ? null : Number(row.messages);
}
