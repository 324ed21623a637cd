/** Reads of the history: of one message, and of all messages in order. */
import { type Attempt, attemptOf } from '../../domain/attempts.ts';
import type { Executed, ExecutionDetails, Fact } from '../../domain/facts.ts';
import { MAX_HISTORY_ROWS } from '../../domain/filters/query.ts';
import { type Status, statuses, statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import { readDistributedChanges } from '../cluster/distributed-changes.ts';
import type { Layout } from '../cluster/layout.ts';
import type { Read } from '../reads/reads.ts';
import { rangesCovering } from '../write/lane-facts.ts';
import { selectorOf } from '../write/message-row.ts';

/** One change of one message, as the history keeps it. */
export interface HistoryEntry {
  /** Gapless over the whole store, and in the order in which changes became visible. */
  readonly position: string;
  readonly messageId: string;
  readonly change: 'created' | 'updated' | 'removed';
  readonly status: Status;
  readonly previousStatus: Status | null;
  readonly readyForManualExecution: boolean;
  /** When Lanescan learned of it. */
  readonly recordedAt: string;
  /** When and where a chain emitted the event behind the status; null where no chain was read. */
  readonly occurredAt: string | null;
  readonly network: string | null;
  readonly blockNumber: number | null;
  readonly transactionHash: string | null;
  /** Members that the source had left out of the record and that were derived. */
  readonly derived: readonly string[];
}

/** A change with the record as it is now, or as it was before it was removed. */
export interface RecordedChange extends HistoryEntry {
  readonly record: string;
  /** The execution that the change brought; the latest where it brought several. */
  readonly attempt: ChangeAttempt | null;
}

export interface ChangeAttempt {
  readonly executed: Executed;
  readonly details: ExecutionDetails | undefined;
  /** When a reorganisation removed its block; null while it stands. */
  readonly removedAt: string | null;
}

export interface MessageHistory {
  /** Null where the message was removed, or its sending is not known yet. */
  readonly record: string | null;
  /**
   * The facts behind the stages of the message. `Sent` and `Snapshot` are left out, for the record contains them, and
   * `ExecutionDetails`, which are no stage.
   */
  readonly facts: readonly Fact[];
  /** In order; the latest ones where there are too many. */
  readonly entries: readonly HistoryEntry[];
  /** Whether there are more entries or facts than these. */
  readonly isTruncated: boolean;
}

/** The most bytes of facts in a message's history. A verification can be long. */
const MAX_FACTS_BYTES = 8 * 1024 * 1024;

const ENTRY_COLUMNS = `h.position, encode(h.message_id, 'hex') as id, h.change, h.status, h.previous_status, h.ready,
  h.recorded_at, h.occurred_at, h.network, h.block_number, h.transaction_hash, h.derived`;

/** Undefined for an unknown message. */
export async function readMessageHistory(read: Read, messageId: string): Promise<MessageHistory | undefined> {
  const id = Buffer.from(messageId, 'hex');
  const latest = await read(
    `select ${ENTRY_COLUMNS} from history h where h.message_id = $1 order by h.position desc limit $2`,
    [id, MAX_HISTORY_ROWS + 1],
  );
  if (latest.length === 0) return undefined;
  const entries = latest.slice(0, MAX_HISTORY_ROWS).reverse().map(entryOf);
  const messages = await read('select record from message where message_id = $1', [id]);
  const record = (messages[0]?.record as string | undefined) ?? null;
  const { facts, hasMore } = await readStageFacts(read, id);
  const isTruncated = hasMore || latest.length > entries.length;
  if (record === null) return { record, facts, entries, isTruncated };

  const ranges = (await rangesCovering(read, [JSON.parse(record) as Message])).get(0) ?? [];
  return { record, facts: [...facts, ...ranges], entries, isTruncated };
}

/**
 * Executions come last: a message can have any number of failed attempts. Where there are too many, the other stages are
 * still complete. The execution that counts is in the record.
 */
async function readStageFacts(read: Read, id: Buffer) {
  const rows = await read(
    // A body that is over the limit is not read: its length is known without it.
    `select body, has_next from (
       select body, row_number() over in_order as number, sum(octet_length(body)) over in_order as bytes,
         lead(true, 1, false) over in_order as has_next
       from (
         select kind, fact_id, body from fact where message_id = $1 and kind not in ('Sent', 'Snapshot', 'ExecutionDetails')
         union all (
           select kind, fact_id, body from earlier_attempt where message_id = $1 and kind = 'Executed'
           order by block_number desc limit $2)) known
       window in_order as (order by kind = 'Executed', fact_id rows unbounded preceding)) measured
     where number = 1 or (number <= $2 and bytes <= $3) order by number`,
    [id, MAX_HISTORY_ROWS, MAX_FACTS_BYTES],
  );
  return {
    facts: rows.map(({ body }) => JSON.parse(body as string) as Fact),
    hasMore: rows.at(-1)?.has_next === true,
  };
}

/** When the latest change was recorded; null before the first change. */
export async function readLastChangeAt(read: Read): Promise<Date | null> {
  const [row] = await read('select recorded_at from history order by position desc limit 1', []);
  return (row?.recorded_at as Date | undefined) ?? null;
}

/** Changes of the history in order, without a gap. */
export interface ChangesRead {
  readonly changes: readonly RecordedChange[];
  /** Whether a limit ended the read: there are more changes, or there may be. */
  readonly hasMore: boolean;
}

/** The most bytes of records in one read of changes, unless the first record alone is longer. */
export const MAX_CHANGES_BYTES = 8 * 1024 * 1024;

/**
 * The changes after a position, in order: at most `limit`, and at most `maxBytes` of records, but always the first one.
 *
 * The database adds up the lengths, which it knows without reading a long record (`octet_length` of a TOAST pointer), so
 * it neither reads nor sends what is over the limit.
 */
export async function readChangesAfter(
  read: Read,
  position: string,
  limit: number,
  maxBytes: number = MAX_CHANGES_BYTES,
  layout: Layout = 'single',
): Promise<ChangesRead> {
  const rows =
    layout === 'single'
      ? await readSingleNodeChanges(read, position, limit, maxBytes)
      : await readDistributedChanges(read, ENTRY_COLUMNS, position, limit, maxBytes);
  return {
    changes: rows.map((row) => ({
      ...entryOf(row),
      record: row.record as string,
      attempt: changeAttemptOf(row),
    })),
    hasMore: rows.length === limit || rows.at(-1)?.has_next === true,
  };
}

function readSingleNodeChanges(read: Read, position: string, limit: number, maxBytes: number) {
  return read(
    `select measured.*, ${executionSql('fact_id')} as executed, ${executionSql('details_id')} as details,
       (select r.removed_at from removed_attempt r
        where r.message_id = measured.message_id and r.fact_id = measured.fact_id
          and not exists (select from fact f where f.message_id = r.message_id and f.fact_id = r.fact_id)
          and not exists (select from earlier_attempt e where e.message_id = r.message_id and e.fact_id = r.fact_id)
       ) as removed_at
     from (
       select c.*, coalesce(sum(octet_length(c.record)) over in_order, 0) as bytes,
         lead(true, 1, false) over in_order as has_next
       from (
         select ${ENTRY_COLUMNS}, h.message_id, a.fact_id, a.details_id,
           coalesce(h.removed_record, m.record, r.removed_record) as record
         from history h
         left join message m on m.message_id = h.message_id
         left join lateral (
           select removed_record from history
           where m.message_id is null and message_id = h.message_id and removed_record is not null
           order by position desc limit 1) r on true
         left join lateral (
           select fact_id, details_id from history_attempt
           where message_id = h.message_id and position = h.position limit 1) a on true
         where h.position > $1 order by h.position limit $2) c
       window in_order as (order by c.position rows unbounded preceding)) measured
     where bytes <= $3 or bytes = octet_length(record)
     order by position`,
    [position, limit, maxBytes],
  );
}

/** The body of a fact by its id, whether it stands or was removed. A subquery, so that each is looked up by its key. */
function executionSql(column: 'fact_id' | 'details_id'): string {
  const bodyOf = (table: string) =>
    `(select body from ${table} where message_id = measured.message_id and fact_id = measured.${column})`;
  return `coalesce(${['fact', 'earlier_attempt', 'removed_attempt'].map(bodyOf).join(', ')})`;
}

function changeAttemptOf({ executed, details, removed_at }: Record<string, unknown>): ChangeAttempt | null {
  if (executed === null) return null;
  return {
    executed: JSON.parse(executed as string) as Executed,
    details: details === null ? undefined : (JSON.parse(details as string) as ExecutionDetails),
    removedAt: (removed_at as Date | null)?.toISOString() ?? null,
  };
}

function entryOf(row: Record<string, unknown>): HistoryEntry {
  return {
    position: String(row.position),
    messageId: `0x${row.id}`,
    change: row.change as HistoryEntry['change'],
    status: statusAt(row.status as number),
    previousStatus: row.previous_status === null ? null : statusAt(row.previous_status as number),
    readyForManualExecution: row.ready as boolean,
    recordedAt: (row.recorded_at as Date).toISOString(),
    occurredAt: (row.occurred_at as Date | null)?.toISOString() ?? null,
    network: row.network === null ? null : selectorOf(row.network as string),
    blockNumber: row.block_number === null ? null : Number(row.block_number),
    transactionHash: row.transaction_hash as string | null,
    derived: row.derived === null ? [] : (JSON.parse(row.derived as string) as string[]),
  };
}

function statusAt(rank: number): Status {
  return statuses[rank] ?? 'SENT';
}

/** The attempt that a change brought. */
export function attemptAtChange({ attempt }: RecordedChange, message: Message): Attempt | undefined {
  return attempt ? attemptOf(attempt.executed, attempt.details, message, attempt.removedAt) : undefined;
}

/** The message as it was at a change: the current record, with the status and the receipt of that time. */
export function messageAtChange({
  change,
  status,
  readyForManualExecution,
  record,
  ...entry
}: RecordedChange): Message {
  const { reportedStatus, ...rest } = JSON.parse(record) as Message;
  const isSame = rest.status === status;
  const message: Message = { ...rest, ...(isSame && reportedStatus !== undefined && { reportedStatus }) };
  if (change === 'removed') {
    // The history does not store it, but followers of ready messages must see the removal.
    const ready = isSame ? message.readyForManualExecution : status === 'FAILED';
    return { ...message, status, readyForManualExecution: ready };
  }
  const then = { ...message, status, readyForManualExecution };
  if (statusRank(status) < statusRank('FAILED')) {
    return { ...then, receiptTransactionHash: null, receiptTimestamp: null, deliveryTime: null };
  }
  // A failed attempt has its own receipt, which a later attempt has replaced in the record.
  if (entry.occurredAt === null || (isSame && status === 'SUCCESS')) return then;
  return {
    ...then,
    receiptTransactionHash: entry.transactionHash,
    receiptTimestamp: entry.occurredAt,
    deliveryTime: Date.parse(entry.occurredAt) - Date.parse(message.sendTimestamp),
  };
}
