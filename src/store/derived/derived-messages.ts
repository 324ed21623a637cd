/** Check of rows that are derived from one record each: the columns of a message, and its tokens. */
import type { ClientBase } from 'pg';
import type { Message } from '../../domain/message.ts';
import { groupBy } from '../group-by.ts';
import { writeTokens } from '../write/changes.ts';
import {
  type MessageRow,
  messageIdArray,
  messageRow,
  type TokenRow,
  tokenRows,
} from '../write/message-row.ts';

/** A derived row of one message that is wrong. */
export interface MessageFault {
  readonly kind: 'columns' | 'tokens' | 'record';
  readonly messageId: string;
  /** The correct rows; undefined where the message does not exist, or its record cannot be parsed. */
  readonly row: MessageRow | undefined;
  readonly tokens: readonly TokenRow[];
}

export interface MessageBatch {
  readonly size: number;
  readonly faults: readonly MessageFault[];
  /** The last id of the batch, in hex; undefined at the end. */
  readonly last: string | undefined;
}

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

/** Columns as `MessageRow` has them. */
const COLUMNS = `encode(message_id, 'hex') as "messageId", to_char(sent_at at time zone 'UTC', ${ISO}) as "sentAt",
  source_selector::text as "sourceSelector", dest_selector::text as "destSelector",
  sequence_number::text as "sequenceNumber", delivery_ms::float8 as "deliveryMs", finality::float8 as finality,
  summary_length as "summaryLength", status, ready, encode(sender, 'hex') as sender,
  encode(receiver, 'hex') as receiver, encode(origin, 'hex') as origin, encode(onramp, 'hex') as onramp,
  encode(send_transaction, 'hex') as "sendTransaction", encode(receipt_transaction, 'hex') as "receiptTransaction",
  encode(digest, 'hex') as digest, record`;

const TOKENS = `encode(message_id, 'hex') as "messageId", token_index as "tokenIndex",
  to_char(sent_at at time zone 'UTC', ${ISO}) as "sentAt", source_selector::text as "sourceSelector",
  dest_selector::text as "destSelector", encode(source_token, 'hex') as "sourceToken",
  encode(dest_token, 'hex') as "destToken", encode(source_pool, 'hex') as "sourcePool"`;

/** Compares the messages after an id (hex; '' to begin) with their records. Finds tokens without a message too. */
export async function compareBatch(client: ClientBase, after: string, limit: number): Promise<MessageBatch> {
  const afterId = Buffer.from(after, 'hex');
  const { rows } = await client.query(
    `select ${COLUMNS} from message where message_id > $1 order by message_id limit $2`,
    [afterId, limit],
  );
  const last = rows.length < limit ? undefined : (rows.at(-1)?.messageId as string);
  const { rows: tokens } = await client.query(
    `select ${TOKENS} from message_token where message_id > $1 and ($2::bytea is null or message_id <= $2)`,
    [afterId, last === undefined ? null : Buffer.from(last, 'hex')],
  );
  return { size: rows.length, faults: findFaults(rows, tokens), last };
}

/** Compares the messages at or after each of these ids, so many of each. */
export async function compareSample(
  client: ClientBase,
  ids: readonly string[],
  messagesOfEach: number,
): Promise<MessageBatch> {
  const found = new Map<string, MessageRow>();
  for (const id of ids) {
    const { rows } = await client.query(
      `select ${COLUMNS} from message where message_id >= $1 order by message_id limit $2`,
      [Buffer.from(id, 'hex'), messagesOfEach],
    );
    for (const row of rows) found.set(row.messageId, row);
  }
  const rows = [...found.values()];
  const { rows: tokens } = await client.query(
    `select ${TOKENS} from message_token where message_id = any($1)`,
    [messageIdArray(rows.map(({ messageId }) => messageId))],
  );
  return { size: rows.length, faults: findFaults(rows, tokens), last: undefined };
}

function findFaults(rows: readonly MessageRow[], storedTokens: readonly TokenRow[]): MessageFault[] {
  const tokensOf = groupBy(storedTokens, ({ messageId }) => messageId);
  const faults: MessageFault[] = [];
  for (const stored of rows) {
    const { messageId } = stored;
    const found = tokensOf.get(messageId) ?? [];
    tokensOf.delete(messageId);
    const expected = rowsOf(stored.record);
    if (!expected || expected.row.messageId !== messageId) {
      faults.push({ kind: 'record', messageId, row: undefined, tokens: [] });
      continue;
    }
    if (!isSame(stored, expected.row)) faults.push({ kind: 'columns', messageId, ...expected });
    if (!areSame(found, expected.tokens)) faults.push({ kind: 'tokens', messageId, ...expected });
  }
  // The rest belongs to no message.
  for (const messageId of tokensOf.keys())
    faults.push({ kind: 'tokens', messageId, row: undefined, tokens: [] });
  return faults;
}

function rowsOf(record: string): { row: MessageRow; tokens: readonly TokenRow[] } | undefined {
  try {
    const message = JSON.parse(record) as Message;
    return { row: messageRow(message), tokens: tokenRows(message) };
  } catch {
    return undefined;
  }
}

function areSame(stored: readonly TokenRow[], expected: readonly TokenRow[]): boolean {
  if (stored.length !== expected.length) return false;
  const byIndex = new Map(stored.map((token) => [token.tokenIndex, token]));
  return expected.every((token) => isSame(byIndex.get(token.tokenIndex), token));
}

/** Compares every member of the expected row; times by their value, not their text. */
function isSame<T extends { readonly sentAt: string }>(stored: T | undefined, expected: T): boolean {
  return (
    stored !== undefined &&
    (Object.keys(expected) as (keyof T)[]).every((name) =>
      name === 'sentAt'
        ? Date.parse(stored.sentAt) === Date.parse(expected.sentAt)
        : stored[name] === expected[name],
    )
  );
}

/** Writes the correct rows, in the transaction of the caller, which holds the writers' lock. */
export async function repairMessages(client: ClientBase, faults: readonly MessageFault[]): Promise<void> {
  const withTokens = faults.filter(({ kind }) => kind === 'tokens');
  if (withTokens.length > 0) {
    await client.query('delete from message_token where message_id = any($1)', [
      messageIdArray(withTokens.map(({ messageId }) => messageId)),
    ]);
    await writeTokens(
      client,
      withTokens.flatMap(({ tokens }) => tokens),
    );
  }
  for (const { kind, messageId, row } of faults) {
    if (kind !== 'columns' || !row) continue;
    const bytes = (hex: string | null) => (hex === null ? null : Buffer.from(hex, 'hex'));
    await client.query(
      `update message set sent_at = $2, source_selector = $3, dest_selector = $4, sequence_number = $5,
         delivery_ms = $6, finality = $7, summary_length = $8, status = $9, ready = $10, sender = $11, receiver = $12,
         origin = $13, onramp = $14, send_transaction = $15, receipt_transaction = $16, digest = $17, record = $18
       where message_id = $1`,
      [
        bytes(messageId),
        row.sentAt,
        row.sourceSelector,
        row.destSelector,
        row.sequenceNumber,
        row.deliveryMs,
        row.finality,
        row.summaryLength,
        row.status,
        row.ready,
        bytes(row.sender),
        bytes(row.receiver),
        bytes(row.origin),
        bytes(row.onramp),
        bytes(row.sendTransaction),
        bytes(row.receiptTransaction),
        bytes(row.digest),
        row.record,
      ],
    );
  }
}
