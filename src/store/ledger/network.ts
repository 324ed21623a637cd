/**
 * The row of a network (`index_network`): its lease, where its history begins, and its counters; and its public progress
 * (`network_progress`): its head, and counts of what is not read yet.
 */
import type { ClientBase } from 'pg';
import type { ProblemKind } from '../../domain/networks/indexing-problem.ts';
import { createLeases, LeaseLostError } from './lease.ts';

export const networkLeases = createLeases({
  table: 'index_network',
  keyColumn: 'selector',
  untilColumn: 'lease_until',
  renewedValues: { seen_at: 'clock_timestamp()' },
});

export interface NetworkRow {
  readonly startBlock: number | null;
  /** Where following the head began; null where nothing has been read. */
  readonly followedFrom: number | null;
  /** The earliest event of a router that was found so far. */
  readonly firstRouterBlock: number | null;
  readonly foreignLogs: number;
  /** Whether executions were read without their details, by an earlier version. */
  readonly lacksAttempts: boolean;
  /** The head that was published last, and its time in milliseconds since 1970. */
  readonly head: { readonly number: number; readonly at: number } | null;
}

export interface NetworkUpdate {
  readonly startBlock?: number;
  /** Only the first counts. */
  readonly followedFrom?: number;
  /** A block with an event of a router; only the lowest counts. */
  readonly routerBlock?: number;
  /** How many logs of untrusted contracts were seen: added to the counter. */
  readonly untrusted?: number;
  /** False once the details of earlier executions are pending. */
  readonly lacksAttempts?: false;
}

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

export async function readNetworkRow(client: ClientBase, network: string): Promise<NetworkRow> {
  const { rows } = await client.query(
    `select n.start_block::float8 as "startBlock", followed_from::float8 as "followedFrom",
            first_router_block::float8 as "firstRouterBlock", coalesce(n.foreign_logs, 0)::float8 as "foreignLogs",
            coalesce(lacks_attempts, false) as "lacksAttempts", head_block::float8 as number, head_at
     from (select $1::bigint as selector) asked
     left join index_network n using (selector) left join network_progress p using (selector)`,
    [network],
  );
  const { number, head_at, ...row } = rows[0];
  return { ...row, head: number === null ? null : { number, at: head_at.getTime() } };
}

/** Throws a LeaseLostError unless `holder` has the lease. The row lock keeps the lease until the transaction ends. */
export async function updateNetworkRow(
  client: ClientBase,
  network: string,
  holder: string,
  { startBlock, followedFrom, routerBlock, untrusted = 0, lacksAttempts }: NetworkUpdate,
): Promise<void> {
  const { rowCount } = await client.query(
    `update index_network
     set start_block = coalesce($3, start_block), followed_from = coalesce(followed_from, $4),
         first_router_block = least(first_router_block, $5), foreign_logs = foreign_logs + $6,
         lacks_attempts = coalesce($7, lacks_attempts)
     where selector = $1 and ${networkLeases.isHeldBySql('$2')}`,
    [network, holder, startBlock, followedFrom, routerBlock, untrusted, lacksAttempts],
  );
  if (rowCount !== 1)
    throw new LeaseLostError(
      'The lease on this network has expired, or another indexer has it; asking for it again',
    );
}

export async function writeProgress(
  client: ClientBase,
  network: string,
  head: HeadStats | null,
  problem: ReportedProblem | null,
): Promise<BacklogStats> {
  const stats: Partial<HeadStats> = head ?? {};
  const { headBlock, headAt, finalizedBlock, indexedBlock, indexedAt } = stats;
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
     returning owed_blocks::float8 as "owedBlocks", failed_ranges as "failedRanges"`,
    [
      ...[network, headBlock, at(headAt), finalizedBlock, indexedBlock, at(indexedAt)],
      ...[problem?.text, problem?.kind],
    ],
  );
  return rows[0];
}
