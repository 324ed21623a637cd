/** Reads about networks: their traffic, and how far each is indexed. */

import type { NetworkInfo } from '../../domain/message.ts';
import { type FindingKind, findingKindOf } from '../../domain/networks/index-findings.ts';
import { type ProblemKind, problemKindOf } from '../../domain/networks/indexing-problem.ts';
import { networkLeases } from '../ledger/network.ts';
import type { Read } from '../reads/reads.ts';
import { selectorOf } from '../write/message-row.ts';
import type { LaneNetworks } from './failed-messages.ts';

export interface NetworkTraffic {
  readonly selector: string;
  readonly sent: number;
  readonly received: number;
  /** From the newest message of one of its lanes. */
  readonly info: NetworkInfo;
}

/** Networks that have messages. */
export async function readNetworkTraffic(read: Read): Promise<readonly NetworkTraffic[]> {
  const rows = await read(
    `select t.selector, t.sent, t.received, o.description, o.is_source
     from (select selector, sum(sent)::bigint as sent, sum(received)::bigint as received
           from (select source_selector as selector, messages as sent, 0 as received from lane_total
                 union all select dest_selector, 0, messages from lane_total) each
           group by 1) t
     join (select distinct on (selector) selector, description, is_source
           from (select source_selector as selector, last_sent_at, description, true as is_source from lane_onramp
                 union all select dest_selector, last_sent_at, description, false from lane_onramp) each
           order by selector, last_sent_at desc) o on o.selector = t.selector
     where t.sent > 0 or t.received > 0`,
    [],
  );
  return rows.map((row) => {
    // Parsed here: PostgreSQL's JSON functions refuse some texts that records may have, such as U+0000 in a name.
    const lane = JSON.parse(row.description as string) as LaneNetworks;
    return {
      selector: selectorOf(row.selector as string),
      sent: Number(row.sent),
      received: Number(row.received),
      info: row.is_source ? lane.sourceNetworkInfo : lane.destNetworkInfo,
    };
  });
}

/** How far a network is indexed; null: not known yet. */
export interface NetworkProgress {
  readonly selector: string;
  readonly headBlock: number | null;
  /** Time of the head block. */
  readonly headAt: Date | null;
  readonly finalizedBlock: number | null;
  /** The newest block that was read. */
  readonly indexedBlock: number | null;
  /** Time of the indexed block. */
  readonly indexedAt: Date | null;
  /** When the indexer last reported its progress. */
  readonly updatedAt: Date;
  /** For the operator: it may name hosts. */
  readonly problem: string | null;
  /** What clients may know of the problem; null without one. */
  readonly problemKind: ProblemKind | null;
  /** Whether an indexer holds the lease. */
  readonly isLeased: boolean;
  /** When an indexer was last alive. */
  readonly seenAt: Date;
  /** The database's time of this reading: ages are counted up to it. */
  readonly readAt: Date;
  /** The first block of the history that is indexed. */
  readonly startBlock: number | null;
  /** Blocks below the indexed one that are still to be read. */
  readonly owedBlocks: number;
  /** Ranges that could not be read and are tried again, and the blocks in them. */
  readonly failedRanges: number;
  readonly failedBlocks: number;
  readonly oldestFailureAt: Date | null;
  /** Logs of genuine contracts that could not be understood. */
  readonly unreadableLogs: number;
  /** Logs of contracts that no router registered. */
  readonly foreignLogs: number;
  /** Open findings about its completeness, by kind. */
  readonly findings: readonly { readonly kind: FindingKind; readonly count: number }[];
}

/**
 * SQL: whether an indexer is alive, from `network_progress p` and `index_network n`. An indexer of an older version renews
 * its lease without a heartbeat; then its latest progress counts.
 */
const HEARTBEAT = `${networkLeases.isHeldSql('n')} as is_leased,
            greatest(n.seen_at, p.updated_at) as seen_at, clock_timestamp() as read_at`;

export async function readNetworkProgress(read: Read): Promise<readonly NetworkProgress[]> {
  const rows = await read(
    `select p.selector, head_block, head_at, finalized_block, indexed_block, indexed_at, updated_at, problem,
            problem_kind, p.start_block, owed_blocks, failed_ranges, failed_blocks, oldest_failure_at,
            unreadable_logs, p.foreign_logs, ${HEARTBEAT},
            (select coalesce(json_agg(f), '[]')
             from (select kind, count(*)::int as count from index_finding where network = p.selector
                   group by kind order by kind) f) as findings
     from network_progress p left join index_network n on n.selector = p.selector order by p.selector`,
    [],
  );
  const block = (value: unknown) => (value === null ? null : Number(value));
  return rows.map((row) => ({
    selector: selectorOf(row.selector as string),
    headBlock: block(row.head_block),
    headAt: row.head_at as Date | null,
    finalizedBlock: block(row.finalized_block),
    indexedBlock: block(row.indexed_block),
    indexedAt: row.indexed_at as Date | null,
    updatedAt: row.updated_at as Date,
    problem: row.problem as string | null,
    problemKind: row.problem === null ? null : problemKindOf(row.problem_kind as string | null),
    isLeased: row.is_leased as boolean,
    seenAt: row.seen_at as Date,
    readAt: row.read_at as Date,
    startBlock: block(row.start_block),
    owedBlocks: Number(row.owed_blocks),
    failedRanges: Number(row.failed_ranges),
    failedBlocks: Number(row.failed_blocks),
    oldestFailureAt: row.oldest_failure_at as Date | null,
    unreadableLogs: Number(row.unreadable_logs),
    foreignLogs: Number(row.foreign_logs),
    findings: findingsOf(row),
  }));
}

/** The stored findings, and the logs that are kept because they could not be decoded. */
function findingsOf(row: Record<string, unknown>): NetworkProgress['findings'] {
  const stored = (row.findings as { kind: string; count: number }[]).flatMap(({ kind, count }) => {
    const known = findingKindOf(kind);
    return known ? [{ kind: known, count }] : [];
  });
  const unreadable = Number(row.unreadable_logs);
  return [...stored, ...(unreadable > 0 ? [{ kind: 'logs-unreadable' as const, count: unreadable }] : [])];
}
