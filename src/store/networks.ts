/** Reading what the store knows of networks: their traffic, and how far each is indexed. */
import type { NetworkInfo } from '../domain/message.ts';
import { selectorOf } from './message-row.ts';
import type { Read } from './read.ts';

export interface NetworkTraffic {
  readonly selector: string;
  readonly sent: number;
  readonly received: number;
  /** As the newest message of one of its lanes tells it. */
  readonly info: NetworkInfo;
}

/** Networks that have messages. */
export async function readNetworkTraffic(read: Read): Promise<readonly NetworkTraffic[]> {
  const rows = await read(
    `select t.selector, t.sent, t.received, o.info
     from (select selector, sum(sent)::bigint as sent, sum(received)::bigint as received
           from (select source_selector as selector, messages as sent, 0 as received from lane_total
                 union all select dest_selector, 0, messages from lane_total) each
           group by 1) t
     join (select distinct on (selector) selector, info
           from (select source_selector as selector, last_sent_at,
                        description::json -> 'sourceNetworkInfo' as info from lane_onramp
                 union all
                 select dest_selector, last_sent_at, description::json -> 'destNetworkInfo' from lane_onramp) each
           order by selector, last_sent_at desc) o on o.selector = t.selector
     where t.sent > 0 or t.received > 0`,
    [],
  );
  return rows.map((row) => ({
    selector: selectorOf(row.selector as string),
    sent: Number(row.sent),
    received: Number(row.received),
    info: row.info as NetworkInfo,
  }));
}

/** How far a network is indexed; null: not told yet. */
export interface NetworkProgress {
  readonly selector: string;
  readonly headBlock: number | null;
  /** Time of the head block. */
  readonly headAt: Date | null;
  readonly finalizedBlock: number | null;
  readonly indexedBlock: number | null;
  /** Time of the indexed block. */
  readonly indexedAt: Date | null;
  /** When this was told. */
  readonly updatedAt: Date;
  readonly problem: string | null;
}

export async function readNetworkProgress(read: Read): Promise<readonly NetworkProgress[]> {
  const rows = await read(
    `select selector, head_block, head_at, finalized_block, indexed_block, indexed_at, updated_at, problem
     from network_progress order by selector`,
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
  }));
}
