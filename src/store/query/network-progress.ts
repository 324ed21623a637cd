/** Reads about networks: their traffic, and how far each is indexed. */
import { type FindingKind, findingKindOf } from '../../domain/networks/index-findings.ts';
import { type ProblemKind, problemKindOf } from '../../domain/networks/indexing-problem.ts';
import { networkLeases } from '../ledger/network.ts';
import type { Read } from '../reads/reads.ts';
import { selectorOf } from '../write/message-row.ts';
import type { LaneNetworks } from './failed-messages.ts';

/** Networks that have messages; `info` is from the newest message of one of their lanes. */
export async function readNetworkTraffic(read: Read) {
  const rows = await read<{
    selector: string;
    sent: number;
    received: number;
    description: string;
    is_source: boolean;
  }>(
    `select t.selector, t.sent, t.received, o.description, o.is_source
     from (select selector, sum(sent)::float8 as sent, sum(received)::float8 as received
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
  return rows.map(({ selector, sent, received, description, is_source }) => {
    // Parsed here: PostgreSQL's JSON functions reject some texts that records may have, such as U+0000 in a name.
    const lane = JSON.parse(description) as LaneNetworks;
    const info = is_source ? lane.sourceNetworkInfo : lane.destNetworkInfo;
    return { selector: selectorOf(selector), sent, received, info };
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
const HEARTBEAT = `${networkLeases.isHeldSql('n')} as "isLeased",
            greatest(n.seen_at, p.updated_at) as "seenAt", clock_timestamp() as "readAt"`;

export async function readNetworkProgress(read: Read): Promise<readonly NetworkProgress[]> {
  const rows = await read<NetworkProgress>(
    `select p.selector, head_block::float8 as "headBlock", head_at as "headAt",
            finalized_block::float8 as "finalizedBlock", indexed_block::float8 as "indexedBlock",
            indexed_at as "indexedAt", updated_at as "updatedAt", problem, problem_kind as "problemKind",
            p.start_block::float8 as "startBlock", owed_blocks::float8 as "owedBlocks",
            failed_ranges as "failedRanges", failed_blocks::float8 as "failedBlocks",
            oldest_failure_at as "oldestFailureAt", unreadable_logs::float8 as "unreadableLogs",
            p.foreign_logs::float8 as "foreignLogs", ${HEARTBEAT},
            (select coalesce(json_agg(f), '[]')
             from (select kind, count(*)::int as count from index_finding where network = p.selector
                   group by kind order by kind) f) as findings
     from network_progress p left join index_network n on n.selector = p.selector order by p.selector`,
    [],
  );
  return rows.map((row) => ({
    ...row,
    selector: selectorOf(row.selector),
    problemKind: row.problem === null ? null : problemKindOf(row.problemKind),
    findings: findingsOf(row),
  }));
}

/** The stored findings of known kinds, and the logs that are kept because they could not be decoded. */
function findingsOf({ findings, unreadableLogs }: NetworkProgress): NetworkProgress['findings'] {
  const unreadable = { kind: 'logs-unreadable' as const, count: unreadableLogs };
  return [...findings.filter(({ kind }) => findingKindOf(kind)), ...(unreadableLogs > 0 ? [unreadable] : [])];
}
