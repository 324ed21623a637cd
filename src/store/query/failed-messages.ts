/** Reads of failed messages: the newest ones with what their last attempt left behind, and counts by day. */
import type { ExecutionDetails } from '../../domain/facts.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { NetworkInfo } from '../../domain/message.ts';
import { kindNumbers } from '../facts/kinds.ts';
import { factColumnsOf, readMessageFact } from '../facts/stored-fact.ts';
import type { Read } from '../reads/reads.ts';
import { messageIdArray, selectorOf, storedSelector } from '../write/message-row.ts';
import type { LaneEnds } from './lanes.ts';

export interface FailedMessage {
  readonly messageId: string;
  /** ISO 8601. */
  readonly sentAt: string;
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
  readonly readyForManualExecution: boolean;
  /** Of the last attempt; undefined where no chain has reported it. */
  readonly details: ExecutionDetails | undefined;
}

export interface FailureDay {
  /** UTC, `2026-01-31`. */
  readonly day: string;
  readonly messages: number;
  readonly failed: number;
}

export interface FailureDaysSelection extends LaneEnds {
  /** UTC days, `2026-01-31`, both ends included. */
  readonly firstDay: string;
  readonly lastDay: string;
}

export type LaneNetworks = Readonly<Record<'sourceNetworkInfo' | 'destNetworkInfo', NetworkInfo>>;

/** Messages whose status is FAILED, newest first. By the index on the status: the number of other messages does not matter. */
export async function readFailedMessages(read: Read, limit: number): Promise<readonly FailedMessage[]> {
  const rows = await read(
    // Nothing tells the order of the transactions of a Solana slot: of those, the record has the last one.
    `select encode(m.message_id, 'hex') as id, m.sent_at, m.source_selector as source, m.dest_selector as dest, m.ready,
            details.*
     from message m
     left join lateral (
       select ${factColumnsOf('f')} from fact f
       where f.message_id = m.message_id and f.kind = ${kindNumbers.ExecutionDetails}
       order by f.block_number desc, f.transaction = m.receipt_transaction desc nulls last, f.log_index desc nulls last
       limit 1) details on true
     where m.status = ${statusRank('FAILED')} order by m.sort_key desc, m.message_id desc limit $1`,
    [limit],
  );
  return rows.map((row) => ({
    messageId: `0x${row.id}`,
    sentAt: (row.sent_at as Date).toISOString(),
    sourceChainSelector: selectorOf(row.source as string),
    destChainSelector: selectorOf(row.dest as string),
    readyForManualExecution: row.ready as boolean,
    details: row.body === null ? undefined : (readMessageFact(row, row.id as string) as ExecutionDetails),
  }));
}

/** What messages say about their execution, by message id. */
export async function readExecutionTerms(read: Read, messageIds: readonly string[]) {
  const rows = await read(
    // PostgreSQL's JSON functions reject some texts that records may have. The text is in wire order.
    `select encode(message_id, 'hex') as id, substring(record from '"extraArgs":{"gasLimit":"([0-9]+)"') as gas_limit,
       substring(record from '"readyForManualExecution":(?:true|false),"version":"([^"]+)"') as version
     from message where message_id = any($1)`,
    [messageIdArray(messageIds.map((id) => id.slice(2)))],
  );
  return new Map(
    rows.map(({ id, gas_limit, version }) => [
      `0x${id}`,
      { gasLimit: (gas_limit as string | null) ?? undefined, version: version as string | null },
    ]),
  );
}

/** How many messages were sent on each day, and how many of them have failed; days without messages are left out. */
export function readFailureDays(
  read: Read,
  { firstDay, lastDay, sourceChainSelector, destChainSelector }: FailureDaysSelection,
): Promise<readonly FailureDay[]> {
  return read<FailureDay>(
    `select to_char(day, 'YYYY-MM-DD') as day, sum(messages)::float8 as messages,
       coalesce(sum(messages) filter (where status = ${statusRank('FAILED')}), 0)::float8 as failed
     from day_total
     where day between $1::date and $2::date and ($3::bigint is null or source_selector = $3)
       and ($4::bigint is null or dest_selector = $4)
     group by day_total.day having sum(messages) > 0 order by day_total.day`,
    [firstDay, lastDay, ...[sourceChainSelector, destChainSelector].map((end) => end && storedSelector(end))],
  );
}

/** The networks of each lane that has messages, by its two selectors in decimal, separated by a comma. */
export async function readLaneNetworks(read: Read): Promise<ReadonlyMap<string, LaneNetworks>> {
  const rows = await read(
    `select distinct on (source_selector, dest_selector) source_selector, dest_selector, description
     from lane_onramp order by source_selector, dest_selector, last_sent_at desc, onramp`,
    [],
  );
  return new Map(
    rows.map(({ source_selector, dest_selector, description }) => {
      const { sourceNetworkInfo, destNetworkInfo } = JSON.parse(description as string) as LaneNetworks;
      const key = `${selectorOf(source_selector as string)},${selectorOf(dest_selector as string)}`;
      return [key, { sourceNetworkInfo, destNetworkInfo }];
    }),
  );
}
