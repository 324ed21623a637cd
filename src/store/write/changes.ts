/** Writes of a batch: messages, their tokens, facts, history and statistics, all with COPY. */
import type { ClientBase } from 'pg';
import { isSameLog, newestAttempts } from '../../domain/attempts.ts';
import type { Fact, MessageFact } from '../../domain/facts.ts';
import { foldFacts, statusCause } from '../../domain/fold.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import { type Message, wireRecord } from '../../domain/message.ts';
import type { WriteCoordinator } from '../cluster/write-coordinator.ts';
import { hashBytes } from '../facts/hash-bytes.ts';
import {
  type MessageFactValues,
  messageFactColumns,
  messageFactValues,
  SNAPSHOT_FACT_ID,
} from '../facts/stored-fact.ts';
import { type CopyColumns, type CopyValue, copyRows } from './copy.ts';
import { earlierAttempts, moveToEarlier } from './earlier-attempts.ts';
import { factsOf, type KnownFacts, readRecords, type StoredMessage } from './known-facts.ts';
import {
  type MessageRow,
  messageColumns,
  messageIdArray,
  messageRow,
  outcomeKeys,
  sendTextOf,
  storedSelector,
  type TokenRow,
  tokenColumns,
  tokenRows,
  tokensTextOf,
} from './message-row.ts';
import { type CountedMessage, updateStatistics } from './statistics.ts';

/** Changes as the history stores them. */
export const changeNumbers = { created: 1, updated: 2, removed: 3 } as const;

/** The result of folding a message. */
export interface Change {
  readonly change: keyof typeof changeNumbers | 'none';
  readonly known: KnownFacts;
  readonly message: Message | undefined;
  readonly row: MessageRow | undefined;
  readonly isSnapshot: boolean;
}

/** The rows of snapshots, computed in advance. A message without other facts is stored as exactly this row. */
export function rowsOfSnapshots(facts: readonly Fact[]): ReadonlyMap<Message, MessageRow> {
  const rows = new Map<Message, MessageRow>();
  for (const fact of facts) if (fact.kind === 'Snapshot') rows.set(fact.message, messageRow(fact.message));
  return rows;
}

export function foldAll(all: readonly KnownFacts[], rowsMade: ReadonlyMap<Message, MessageRow>): Change[] {
  return all.map((known) => {
    const message = foldFacts(factsOf(known));
    const row = message && (rowsMade.get(message) ?? messageRow(message));
    const isSnapshot = known.chainFacts.size === 0 && known.ranges.length === 0;
    return { change: changeKind(known.stored, row), known, message, row, isSnapshot };
  });
}

function changeKind(stored: StoredMessage | undefined, row: MessageRow | undefined): Change['change'] {
  if (!row) return stored ? 'removed' : 'none';
  if (!stored) return 'created';
  return stored.digest === row.digest ? 'none' : 'updated';
}

/**
 * Writes the changes. Each gets a position of its own in the history, after `position`. `hasNewEvidence`: facts about ranges
 * were stored or retracted.
 */
export async function writeChanges(
  client: ClientBase,
  writes: WriteCoordinator,
  changes: readonly Change[],
  position: bigint,
  hasNewEvidence: boolean,
): Promise<void> {
  if (changes.length === 0) return;
  await writes.prepareWrite(
    client,
    changes.map(({ known }) => known.id),
  );
  const hasNewFacts = await writeFacts(client, changes);
  await writeSnapshotMarks(client, changes);
  const changed = changes.filter(({ change }) => change !== 'none');
  if (changed.length === 0) {
    // A search by transaction finds facts that change no record, too.
    if (hasNewFacts || hasNewEvidence) await writes.advancePosition(client, position);
    return;
  }

  const removedRecords = await readRecords(
    client,
    changed.filter(({ change }) => change === 'removed').map(({ known }) => known.id),
  );
  const recordedAt = new Date().toISOString();
  const messages: PlacedRow[] = [];
  const outcomes: PlacedRow[] = [];
  const outdated: string[] = [];
  const tokens: TokenRow[] = [];
  const outdatedTokens: string[] = [];
  const history: HistoryRow[] = [];
  changed.forEach((change, index) => {
    const { known, message, row, isSnapshot } = change;
    const { id, stored } = known;
    const changePosition = position + BigInt(index) + 1n;
    history.push(historyRow(change, changePosition, recordedAt, removedRecords));
    const isSameSend = row !== undefined && stored?.sendText === sendTextOf(row);
    if (stored && !isSameSend) outdated.push(id);
    if (row) (isSameSend ? outcomes : messages).push({ row, isSnapshot, position: changePosition });
    const rows = message ? tokenRows(message) : [];
    if (stored && stored.tokensText === tokensTextOf(rows)) return;
    if (stored && stored.tokensText !== '') outdatedTokens.push(id);
    tokens.push(...rows);
  });
  await deleteMessages(client, 'message', outdated);
  await deleteMessages(client, 'message_token', outdatedTokens);
  await updateOutcomes(client, outcomes);
  await copyRows(client, 'message', MESSAGE_COLUMNS, messages, messageValues);
  await writeTokens(client, tokens);
  await copyRows(client, 'history', historyColumns, history, (row) => historyKeys.map((key) => row[key]));
  await updateStatistics(
    client,
    changed.map(({ known, row }) => ({
      messageId: known.id,
      before: known.stored?.counted,
      after: row && countedOf(row),
    })),
    changed.flatMap(({ message, row }) => (message && row ? [{ row, message }] : [])),
  );
  const newPosition = position + BigInt(changed.length);
  await writes.advancePosition(client, newPosition);
  if (hasOutgrownStatistics(position, newPosition)) {
    await client.query('analyze message, message_token, lane_fact');
  }
}

export interface PlacedRow {
  readonly row: MessageRow;
  readonly isSnapshot: boolean;
  /** Of the change in the history. */
  readonly position: bigint;
}

async function deleteMessages(
  client: ClientBase,
  table: 'message' | 'message_token',
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await client.query(`delete from ${table} where message_id = any($1)`, [messageIdArray(ids)]);
}

/**
 * Updates what changes in the life of a message. An update that sets no column of an index lets PostgreSQL remove the entry of
 * the version before when the page of the index is full; after a delete and an insert it would split the page.
 */
async function updateOutcomes(client: ClientBase, outcomes: readonly PlacedRow[]): Promise<void> {
  if (outcomes.length === 0) return;
  const rows = outcomes.map(({ row }) => row);
  const shortKeys = outcomeKeys.filter((key) => key !== 'record');
  await client.query(UPDATE_OUTCOMES, [
    messageIdArray(rows.map(({ messageId }) => messageId)),
    outcomes.map(({ position }) => position),
    outcomes.map(({ isSnapshot }) => isSnapshot),
    // One text, because the driver would escape each quote in an array of texts.
    rows.map(({ record }) => record).join(BETWEEN_RECORDS),
    ...shortKeys.map((key) => rows.map((row) => row[key])),
  ]);
}

/** A control character: JSON texts have it only as an escape sequence. */
const BETWEEN_RECORDS = '\u0001';

const UPDATE_OUTCOMES = (() => {
  const short = outcomeKeys.filter((key) => key !== 'record').map((key) => messageColumns[key]);
  const names = short.map(([column]) => column);
  const arrays = short.map(([, type], index) => `$${index + 5}::${type === 'bytea' ? 'text' : type}[]`);
  const values = short.map(([column, type]) =>
    type === 'bytea' ? `${column} = decode(o.${column}, 'hex')` : `${column} = o.${column}`,
  );
  return `update message m set position = o.position, is_snapshot = o.is_snapshot, record = o.record, ${values.join(', ')}
    from unnest($1::bytea[], $2::bigint[], $3::boolean[], string_to_array($4::text, chr(1)), ${arrays.join(', ')})
      as o (message_id, position, is_snapshot, record, ${names.join(', ')})
    where m.message_id = o.message_id`;
})();

export async function writeTokens(client: ClientBase, tokens: readonly TokenRow[]): Promise<void> {
  await copyRows(client, 'message_token', TOKEN_COLUMNS, tokens, tokenValues);
}

function countedOf(row: MessageRow): CountedMessage {
  const { sourceSelector, destSelector, onramp, sequenceNumber, sentAt, status, ready, deliveryMs } = row;
  const day = sentAt.slice(0, 10);
  return { sourceSelector, destSelector, onramp, sequenceNumber, day, status, ready, deliveryMs };
}

/**
 * Whether the store has grown fourfold since the last ANALYZE. Autovacuum is too late for a first bulk load, and without
 * statistics the planner takes indexes that cost a thousand times as much.
 */
function hasOutgrownStatistics(before: bigint, after: bigint): boolean {
  for (let size = 1_000n; size <= after; size *= 4n) if (before < size) return true;
  return false;
}

/** Whether anything was written. */
async function writeFacts(client: ClientBase, changes: readonly Change[]): Promise<boolean> {
  const newFacts: FactToStore[] = [];
  const newEarlier: FactToStore[] = [];
  const replacedSnapshots: string[] = [];
  for (const { known, isSnapshot } of changes) {
    const outdated = new Map(earlierAttempts(known.chainFacts));
    for (const fact of known.toStore) (outdated.delete(fact.id) ? newEarlier : newFacts).push(fact);
    await moveToEarlier(client, known.id, [...outdated.keys()]);
    if (!known.snapshot) continue;
    // Without chain facts, the record is the snapshot. Beside them, the snapshot has a row of its own.
    const snapshot = isSnapshot ? undefined : snapshotFact(known.snapshot);
    if (snapshot && known.storedSnapshot?.equals(rowOf(snapshot).body)) continue;
    if (known.storedSnapshot !== undefined) replacedSnapshots.push(known.id);
    if (snapshot) newFacts.push(snapshot);
  }
  if (replacedSnapshots.length > 0) {
    await client.query('delete from fact where message_id = any($1) and fact_id = $2', [
      messageIdArray(replacedSnapshots),
      Buffer.from(SNAPSHOT_FACT_ID, 'hex'),
    ]);
  }
  await copyRows(client, 'fact', messageFactColumns, newFacts, factValues);
  await copyRows(client, 'earlier_attempt', messageFactColumns, newEarlier, factValues);
  return newFacts.length + newEarlier.length + replacedSnapshots.length > 0;
}

interface FactToStore {
  readonly id: string;
  readonly fact: MessageFact;
}

/** In wire order, so that the same snapshot has the same bytes. */
function snapshotFact(snapshot: Message): FactToStore {
  const message = JSON.parse(wireRecord(snapshot).json) as Message;
  return { id: SNAPSHOT_FACT_ID, fact: { kind: 'Snapshot', message } };
}

const factKeys = Object.keys(messageFactColumns) as readonly (keyof MessageFactValues)[];

function rowOf({ id, fact }: FactToStore): MessageFactValues {
  return messageFactValues(fact, id);
}

function factValues(fact: FactToStore): CopyValue[] {
  const row = rowOf(fact);
  return factKeys.map((key) => row[key]);
}

/**
 * Updates `is_snapshot` of messages whose record did not change: a chain confirmed a snapshot, or all facts beside it were
 * retracted. The column says where the snapshot is stored; a wrong value would lose it.
 */
async function writeSnapshotMarks(client: ClientBase, changes: readonly Change[]): Promise<void> {
  const outdated = changes.filter(
    ({ change, known, isSnapshot }) =>
      change === 'none' && known.stored && known.stored.isSnapshot !== isSnapshot,
  );
  if (outdated.length === 0) return;
  await client.query(
    `update message set is_snapshot = mark.is_snapshot from unnest($1::bytea[], $2::boolean[]) as mark (id, is_snapshot)
     where message_id = mark.id`,
    [messageIdArray(outdated.map(({ known }) => known.id)), outdated.map(({ isSnapshot }) => isSnapshot)],
  );
}

export const MESSAGE_COLUMNS: CopyColumns = {
  position: 'bigint',
  is_snapshot: 'boolean',
  ...Object.fromEntries(Object.values(messageColumns)),
};
const rowKeys = Object.keys(messageColumns) as readonly (keyof MessageRow)[];
const tokenKeys = Object.keys(tokenColumns) as readonly (keyof TokenRow)[];

export const TOKEN_COLUMNS: CopyColumns = Object.fromEntries(Object.values(tokenColumns));

/** The values of `TOKEN_COLUMNS`. */
export function tokenValues(token: TokenRow): CopyValue[] {
  return tokenKeys.map((key) => token[key]);
}

/** The values of `MESSAGE_COLUMNS`. */
export function messageValues({ row, isSnapshot, position }: PlacedRow): CopyValue[] {
  return [position, isSnapshot, ...rowKeys.map((key) => row[key])];
}

export const historyColumns = {
  position: 'bigint',
  recorded_at: 'timestamptz',
  occurred_at: 'timestamptz',
  network: 'bigint',
  block_number: 'bigint',
  status: 'smallint',
  previous_status: 'smallint',
  change: 'smallint',
  ready: 'boolean',
  message_id: 'bytea',
  transaction: 'bytea',
  attempt_fact: 'bytea',
  attempt_details: 'bytea',
  removed_record: 'text',
  derived: 'text',
} as const satisfies CopyColumns;

type HistoryRow = Readonly<Record<keyof typeof historyColumns, CopyValue>>;
const historyKeys = Object.keys(historyColumns) as readonly (keyof HistoryRow)[];

/** What the history tells of a change. */
export interface HistoricChange extends Pick<Change, 'change' | 'message'> {
  readonly known: Pick<KnownFacts, 'id' | 'chainFacts' | 'ranges' | 'snapshot' | 'toStore' | 'derived'> & {
    readonly stored: { readonly counted: Pick<CountedMessage, 'status'> } | undefined;
  };
}

/** The newest execution among the facts that are new. A batch of history may bring several. */
function newAttempt({
  toStore,
}: Pick<KnownFacts, 'toStore'>): { factId: string; detailsId: string | null } | undefined {
  const [newest] = newestAttempts(
    toStore.map(({ fact }) => fact),
    1,
  );
  const executed = toStore.find(({ fact }) => fact === newest);
  if (!newest || !executed) return undefined;
  const details = toStore.find(
    ({ fact }) => fact.kind === 'ExecutionDetails' && isSameLog(fact.seen, newest.seen),
  );
  return { factId: executed.id, detailsId: details?.id ?? null };
}

/** By the names of `historyColumns`. */
export function historyRow(
  { change, known, message }: HistoricChange,
  position: bigint,
  recordedAt: string,
  removedRecords: ReadonlyMap<string, string>,
): HistoryRow {
  const cause = message ? statusCause(message, factsOf(known)) : null;
  const transactionHash = cause?.transactionHash ?? null;
  const previous = known.stored?.counted.status ?? null;
  const attempt = newAttempt(known);
  return {
    position,
    recorded_at: recordedAt,
    occurred_at: cause?.at ?? null,
    network: cause ? storedSelector(cause.network) : null,
    block_number: cause?.blockNumber ?? null,
    status: message ? statusRank(message.status) : (previous ?? 0),
    previous_status: previous,
    change: change === 'none' ? null : changeNumbers[change],
    ready: message?.readyForManualExecution ?? false,
    message_id: known.id,
    transaction: transactionHash === null ? null : hashBytes(transactionHash),
    attempt_fact: attempt?.factId ?? null,
    attempt_details: attempt?.detailsId ?? null,
    removed_record: removedRecords.get(known.id) ?? null,
    derived: known.derived.length === 0 ? null : JSON.stringify(known.derived),
  };
}
