/** Reads of the history: of one message, and of all messages in order. */
import { type Attempt, attemptOf } from '../../domain/attempts.ts';
import type { Executed, ExecutionDetails, Fact } from '../../domain/facts.ts';
import { MAX_HISTORY_ROWS } from '../../domain/filters/query.ts';
import { type Status, statuses, statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import { readDistributedChanges } from '../cluster/distributed-changes.ts';
import type { Layout } from '../cluster/layout.ts';
import { hashText } from '../facts/hash-bytes.ts';
import { EXECUTION_KINDS, kindNumbers } from '../facts/kinds.ts';
import { attemptTables, factColumnsOf, readMessageFact } from '../facts/stored-fact.ts';
import type { Read } from '../reads/reads.ts';
import { isFound } from '../sql.ts';
import { changeNumbers } from '../write/changes.ts';
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

/** The place of the change is prefixed, because the row of a change has facts beside it. */
const ENTRY_COLUMNS = `h.position, encode(h.message_id, 'hex') as id, h.change, h.status, h.previous_status, h.ready,
  h.recorded_at, h.occurred_at, h.network as at_network, h.block_number as at_block, h.transaction as at_transaction,
  h.derived`;

/** Undefined for an unknown message. */
export async function readMessageHistory(read: Read, messageId: string): Promise<MessageHistory | undefined> {
  const id = Buffer.from(messageId, 'hex');
  const latest = await read(
    `select ${ENTRY_COLUMNS} from history h where ${isFound('h.message_id', '$1::bytea')} order by h.position desc limit $2`,
    [id, MAX_HISTORY_ROWS + 1],
  );
  if (latest.length === 0) return undefined;
  const entries = latest.slice(0, MAX_HISTORY_ROWS).reverse().map(entryOf);
  const messages = await read('select record from message where message_id = $1', [id]);
  const record = (messages[0]?.record as string | undefined) ?? null;
  const { facts, hasMore } = await readStageFacts(read, messageId);
  const isTruncated = hasMore || latest.length > entries.length;
  if (record === null) return { record, facts, entries, isTruncated };

  const ranges = (await rangesCovering(read, [JSON.parse(record) as Message])).get(0) ?? [];
  return { record, facts: [...facts, ...ranges], entries, isTruncated };
}

/**
 * Executions come last, the newest first: a message can have any number of failed attempts. Where there are too many, the other
 * stages are still complete. The execution that counts is in the record.
 */
async function readStageFacts(read: Read, messageId: string) {
  const { Sent, Snapshot, ExecutionDetails: Details } = kindNumbers;
  const rows = await read(
    // A body that is over the limit is not read: its length is known without it.
    `select has_next, ${factColumnsOf('measured')} from (
       select known.*, row_number() over in_order as number, sum(octet_length(body)) over in_order as bytes,
         lead(true, 1, false) over in_order as has_next
       from (
         select fact_id, ${factColumnsOf('f')} from fact f
         where message_id = $1 and kind not in (${Sent}, ${Snapshot}, ${Details})
         union all (
           select fact_id, ${factColumnsOf('e')} from earlier_attempt e
           where message_id = $1 and kind in ${EXECUTION_KINDS}
           order by block_number desc limit $2)) known
       window in_order as (
         order by kind in ${EXECUTION_KINDS}, block_number desc, fact_id rows unbounded preceding)) measured
     where number = 1 or (number <= $2 and bytes <= $3) order by number`,
    [Buffer.from(messageId, 'hex'), MAX_HISTORY_ROWS, MAX_FACTS_BYTES],
  );
  const facts: Fact[] = [];
  let characters = 0;
  for (const row of rows) {
    const fact = readMessageFact(row, messageId);
    // A body can be much shorter than what it stands for.
    characters += JSON.stringify(fact).length;
    if (facts.length > 0 && characters > MAX_FACTS_BYTES) break;
    facts.push(fact);
  }
  return { facts, hasMore: facts.length < rows.length || rows.at(-1)?.has_next === true };
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
    `select measured.*, executed.*, details.*
     from (
       select c.*, coalesce(sum(octet_length(c.record)) over in_order, 0) as bytes,
         lead(true, 1, false) over in_order as has_next
       from (
         select ${ENTRY_COLUMNS}, h.message_id, h.attempt_fact, h.attempt_details,
           coalesce(h.removed_record, m.record, r.removed_record) as record
         from history h
         left join message m on m.message_id = h.message_id
         left join lateral (
           select removed_record from history
           where m.message_id is null and ${isFound('message_id', 'h.message_id')} and removed_record is not null
           order by position desc limit 1) r on true
         where h.position > $1 order by h.position limit $2) c
       window in_order as (order by c.position rows unbounded preceding)) measured
     left join lateral (${factSql('attempt_fact', 'executed_')}) executed on true
     left join lateral (${factSql('attempt_details', 'details_')}) details on true
     where bytes <= $3 or bytes = octet_length(record)
     order by position`,
    [position, limit, maxBytes],
  );
}

/** SQL of the fact with the id of a column, whether it stands or was removed; its columns with the prefix. */
function factSql(column: 'attempt_fact' | 'attempt_details', prefix: string): string {
  const inTable = attemptTables.map(
    ([
      table,
      removedAt,
    ]) => `select ${factColumnsOf(table, prefix)}, ${removedAt} as ${prefix}removed_at from ${table}
      where measured.${column} is not null and message_id = measured.message_id and fact_id = measured.${column}`,
  );
  return `select * from (${inTable.join(' union all ')}) known order by ${prefix}removed_at nulls first limit 1`;
}

function changeAttemptOf(row: Record<string, unknown>): ChangeAttempt | null {
  if ((row.executed_body ?? null) === null) return null;
  const id = row.id as string;
  const hasDetails = (row.details_body ?? null) !== null;
  return {
    executed: readMessageFact(row, id, 'executed_') as Executed,
    details: hasDetails ? (readMessageFact(row, id, 'details_') as ExecutionDetails) : undefined,
    removedAt: (row.executed_removed_at as Date | null)?.toISOString() ?? null,
  };
}

function entryOf(row: Record<string, unknown>): HistoryEntry {
  return {
    position: String(row.position),
    messageId: `0x${row.id}`,
    change: changeAt(row.change as number),
    status: statusAt(row.status as number),
    previousStatus: row.previous_status === null ? null : statusAt(row.previous_status as number),
    readyForManualExecution: row.ready as boolean,
    recordedAt: (row.recorded_at as Date).toISOString(),
    occurredAt: (row.occurred_at as Date | null)?.toISOString() ?? null,
    network: row.at_network === null ? null : selectorOf(row.at_network as string),
    blockNumber: row.at_block === null ? null : Number(row.at_block),
    transactionHash: row.at_transaction === null ? null : (hashText(row.at_transaction as Buffer) ?? null),
    derived: row.derived === null ? [] : (JSON.parse(row.derived as string) as string[]),
  };
}

const changes = Object.keys(changeNumbers) as readonly HistoryEntry['change'][];

function changeAt(number: number): HistoryEntry['change'] {
  return changes.find((change) => changeNumbers[change] === number) ?? 'updated';
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
