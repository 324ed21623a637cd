/** What an operator watches, from the statistics that every write keeps: nothing here counts messages. */
import { type Status, statuses, statusRank } from '../domain/lifecycle.ts';
import { emptyCounts, type StatusCounts } from './lanes.ts';
import { selectorOf } from './message-row.ts';
import type { Read } from './read.ts';

export interface StoreFigures {
  /** Position of the latest change. */
  readonly position: number;
  readonly byStatus: StatusCounts;
  readonly inFlight: number;
  readonly readyForManualExecution: number;
  readonly lanes: number;
  /** Sequence numbers that are missing between the first and the last of their on-ramps. */
  readonly missingSequenceNumbers: number;
  readonly onrampsWithHoles: number;
  readonly networks: readonly NetworkFigures[];
}

/** How far behind an indexed network is. */
export interface NetworkFigures {
  readonly selector: string;
  /** Blocks between what the network has and what is indexed; null where one of them is unknown. */
  readonly lagBlocks: number | null;
  readonly lagSeconds: number | null;
  readonly isStopped: boolean;
  /** Blocks of history that are still to be read. */
  readonly owedBlocks: number;
  readonly failedRanges: number;
  /** Of the range that has failed for the longest time; 0 where there is none. */
  readonly failedSeconds: number;
  readonly unreadableLogs: number;
  readonly foreignLogs: number;
}

export async function readFigures(read: Read): Promise<StoreFigures> {
  const totals = await read(
    `select status, ready, sum(messages)::bigint as messages from lane_total group by 1, 2`,
    [],
  );
  const [rest] = await read(
    `with onramp as (
       select runs, (select to_sequence from lane_run r
                     where (r.source_selector, r.dest_selector, r.onramp) = (o.source_selector, o.dest_selector, o.onramp)
                     order by from_sequence desc limit 1)
                  - (select from_sequence from lane_run r
                     where (r.source_selector, r.dest_selector, r.onramp) = (o.source_selector, o.dest_selector, o.onramp)
                     order by from_sequence limit 1) + 1 - present as missing
       from lane_onramp o)
     select (select position from store)::text as position,
            (select count(*) from (select distinct source_selector, dest_selector from lane_onramp) l)::int as lanes,
            coalesce(sum(missing), 0)::text as missing,
            (count(*) filter (where runs > 1))::int as holed
     from onramp`,
    [],
  );
  const networks = await read(
    `select selector, head_block - indexed_block as lag_blocks,
            extract(epoch from head_at - indexed_at)::float8 as lag_seconds, problem is not null as is_stopped,
            owed_blocks, failed_ranges, unreadable_logs, foreign_logs,
            coalesce(extract(epoch from now() - oldest_failure_at), 0)::float8 as failed_seconds
     from network_progress`,
    [],
  );
  const byStatus = emptyCounts();
  let inFlight = 0;
  let readyForManualExecution = 0;
  for (const row of totals) {
    const status: Status = statuses[row.status as number] ?? 'SENT';
    const messages = Number(row.messages);
    byStatus[status] += messages;
    if (statusRank(status) < statusRank('FAILED')) inFlight += messages;
    if (row.ready) readyForManualExecution += messages;
  }
  return {
    position: Number(rest?.position ?? 0),
    byStatus,
    inFlight,
    readyForManualExecution,
    lanes: (rest?.lanes as number | undefined) ?? 0,
    missingSequenceNumbers: Number(rest?.missing ?? 0),
    onrampsWithHoles: (rest?.holed as number | undefined) ?? 0,
    networks: networks.map((row) => ({
      selector: selectorOf(row.selector as string),
      lagBlocks: row.lag_blocks === null ? null : Math.max(0, Number(row.lag_blocks)),
      lagSeconds: row.lag_seconds === null ? null : Math.max(0, row.lag_seconds as number),
      isStopped: row.is_stopped as boolean,
      owedBlocks: Number(row.owed_blocks),
      failedRanges: Number(row.failed_ranges),
      failedSeconds: Math.max(0, row.failed_seconds as number),
      unreadableLogs: Number(row.unreadable_logs),
      foreignLogs: Number(row.foreign_logs),
    })),
  };
}
