/** Check of rows that are derived from one record each: the columns of a message, and its tokens. */
import type { ClientBase } from 'pg';
import type { Message } from '../../domain/message.ts';
import { groupBy } from '../group-by.ts';
import { writeTokens } from '../write/changes.ts';
import {
  type MessageRow,
  messageColumns,
  messageIdArray,
  messageRow,
  type TokenRow,
  tokenColumns,
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

/** Members of a row as text, as `isSame` compares them. */
type AsText<Row> = Readonly<Record<keyof Row, string | null>> & { readonly messageId: string };

/** SQL of columns as text, named as the members of a row. */
const asText = (columns: typeof messageColumns | typeof tokenColumns) =>
  Object.entries(columns)
    .map(([name, [column, type]]) => {
      if (type === 'bytea') return `encode(${column}, 'hex') as "${name}"`;
      if (type !== 'timestamptz') return `${column}::text as "${name}"`;
      return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "${name}"`;
    })
    .join(', ');
const [COLUMNS, TOKENS] = [asText(messageColumns), asText(tokenColumns)];

/**
 * Compares the messages after an id (hex; '' to begin) with their records. Finds tokens without a message too. `last` is the
 * last id of the batch; undefined at the end.
 */
export async function compareBatch(client: ClientBase, after: string, limit: number) {
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
export async function compareSample(client: ClientBase, ids: readonly string[], messagesOfEach: number) {
  const found = new Map<string, AsText<MessageRow>>();
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
  return { size: rows.length, faults: findFaults(rows, tokens) };
}

function findFaults(
  rows: readonly AsText<MessageRow>[],
  storedTokens: readonly AsText<TokenRow>[],
): MessageFault[] {
  const tokensOf = groupBy(storedTokens, ({ messageId }) => messageId);
  const faults: MessageFault[] = [];
  for (const stored of rows) {
    const { messageId } = stored;
    const found = tokensOf.get(messageId) ?? [];
    tokensOf.delete(messageId);
    const expected = rowsOf(String(stored.record));
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

function areSame(stored: readonly AsText<TokenRow>[], expected: readonly TokenRow[]): boolean {
  if (stored.length !== expected.length) return false;
  const byIndex = new Map(stored.map((token) => [token.tokenIndex, token]));
  return expected.every((token) => isSame(byIndex.get(String(token.tokenIndex)), token));
}

/** Compares every member of the expected row; times by their value, not their text. */
function isSame<T extends MessageRow | TokenRow>(stored: AsText<T> | undefined, expected: T): boolean {
  return (
    stored !== undefined &&
    (Object.keys(expected) as (keyof T)[]).every((name) =>
      name === 'sentAt'
        ? Date.parse(String(stored[name])) === Date.parse(expected.sentAt)
        : String(stored[name]) === String(expected[name]),
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
  for (const { kind, row } of faults) {
    if (kind !== 'columns' || !row) continue;
    const values = (Object.keys(messageColumns) as (keyof MessageRow)[]).map((name) => {
      const value = row[name];
      return messageColumns[name][1] === 'bytea' && value !== null
        ? Buffer.from(String(value), 'hex')
        : value;
    });
    const [id, ...others] = Object.values(messageColumns).map(
      ([column], index) => `${column} = $${index + 1}`,
    );
    await client.query(`update message set ${others.join(', ')} where ${id}`, values);
  }
}
