/** The public progress of a network (`network_progress`): its head, and counts of what is not read yet. */
import type { ClientBase } from 'pg';
import type { ProblemKind } from '../../domain/networks/indexing-problem.ts';

/** Times are milliseconds since 1970. */
export interface HeadStats {
  readonly headBlock: number;
  readonly headAt: number;
  readonly finalizedBlock: number;
  readonly indexedBlock: number;
  readonly indexedAt: number;
}

export interface ReportedProblem {
  readonly kind: ProblemKind;
  /** For the operator: it may name hosts. */
  readonly text: string;
}

export interface BacklogStats {
  /** Blocks of history that are still to be read, or to be read again for some contracts; each once. */
  readonly owedBlocks: number;
  readonly failedRanges: number;
}

/** The head that was published last. */
export interface PublishedHead {
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export async function readPublishedHead(client: ClientBase, network: string): Promise<PublishedHead | null> {
  const { rows } = await client.query(
    'select head_block, head_at from network_progress where selector = $1 and head_block is not null',
    [network],
  );
  const [row] = rows;
  return row ? { number: Number(row.head_block), at: (row.head_at as Date).getTime() } : null;
}

export async function writeProgress(
  client: ClientBase,
  network: string,
  head: HeadStats | null,
  problem: ReportedProblem | null,
): Promise<BacklogStats> {
  const at = (time: number | undefined) => (time === undefined ? null : new Date(time));
  const { rows } = await client.query(
    `insert into network_progress
       (selector, head_block, head_at, finalized_block, indexed_block, indexed_at, updated_at, problem, problem_kind,
        start_block, owed_blocks, failed_ranges, failed_blocks, oldest_failure_at, unreadable_logs, foreign_logs)
     select $1, $2, $3, $4, $5, $6, now(), $7, $8, n.start_block, pending.blocks, failed.ranges, failed.blocks,
            failed.oldest, unreadable.logs, coalesce(n.foreign_logs, 0)
     from (select coalesce(sum(upper(span) - lower(span)), 0) as blocks
           from (select unnest(range_agg(int8range(from_block, to_block + 1))) as span
                 from index_backlog where network = $1 and purpose <> 'routers') spans) pending,
          (select count(*) as ranges, coalesce(sum(to_block - from_block + 1), 0) as blocks,
                  min(first_failed_at) as oldest from index_failure where network = $1) failed,
          (select count(*) as logs from index_unreadable where network = $1) unreadable
          left join index_network n on n.selector = $1
     on conflict (selector) do update set
       head_block = coalesce(excluded.head_block, network_progress.head_block),
       head_at = coalesce(excluded.head_at, network_progress.head_at),
       finalized_block = coalesce(excluded.finalized_block, network_progress.finalized_block),
       indexed_block = coalesce(excluded.indexed_block, network_progress.indexed_block),
       indexed_at = coalesce(excluded.indexed_at, network_progress.indexed_at),
       updated_at = excluded.updated_at, problem = excluded.problem,
       problem_kind = excluded.problem_kind, start_block = excluded.start_block,
       owed_blocks = excluded.owed_blocks, failed_ranges = excluded.failed_ranges,
       failed_blocks = excluded.failed_blocks, oldest_failure_at = excluded.oldest_failure_at,
       unreadable_logs = excluded.unreadable_logs, foreign_logs = excluded.foreign_logs
     returning owed_blocks, failed_ranges`,
    [
      network,
      head?.headBlock ?? null,
      at(head?.headAt),
      head?.finalizedBlock ?? null,
      head?.indexedBlock ?? null,
      at(head?.indexedAt),
      problem?.text ?? null,
      problem?.kind ?? null,
    ],
  );
  return { owedBlocks: Number(rows[0].owed_blocks), failedRanges: Number(rows[0].failed_ranges) };
}
