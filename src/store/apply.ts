/**
 * Facts in, folded messages and history out, in one transaction.
 *
 * One writer at a time: a transaction begins by locking the store's single row, and holds it until it
 * commits. That is what makes the rest simple. The fold sees every fact there is, two sources that speak of
 * the same message cannot overwrite each other, and history positions have no gaps and become visible in
 * their order. What a batch needs is read in a handful of statements; what it changes is written with COPY.
 */
import { hash } from 'node:crypto';
import type { ClientBase } from 'pg';
import {
  type ChainFact,
  type Fact,
  factMessageId,
  isRangeFact,
  type Lane,
  type RangeFact,
  type SentMessage,
  type Snapshot,
} from '../domain/facts.ts';
import { foldFacts, joinSnapshots, statusCause } from '../domain/fold.ts';
import { statusRank } from '../domain/lifecycle.ts';
import { type Message, wireRecord } from '../domain/message.ts';
import { networkBySelector } from '../domain/networks.ts';
import { type CopyValue, copyRows } from './copy.ts';
import {
  addressColumn,
  type MessageRow,
  messageRow,
  recordDigest,
  storedSelector,
  tokenRows,
} from './message-row.ts';
import { type LaneDescription, type Tally, updateStatistics } from './statistics.ts';

/** A block that the chain has abandoned, with all that was seen in it. */
export interface OrphanedBlock {
  readonly network: string;
  readonly blockHash: string;
}

export interface ApplyReport {
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  /** Messages that facts spoke of without changing anything. */
  readonly unchanged: number;
}

/**
 * Ranges are stored in pieces of at most this length, so that those which cover a number end within this
 * distance of it and the look-up stays short. A merkle root has at most 256 leaves: one piece, as a rule.
 */
const PIECE_LENGTH = 256n;
const MAX_PIECES = 4_096n;

/** Tells listeners, when the transaction commits, how far the history now reaches. */
export const CHANGE_CHANNEL = 'lanescan_change';

const SNAPSHOT_FACT_ID = '0'.repeat(32);

/**
 * Applies facts, and takes back those of orphaned blocks, in one transaction on `client`, which must not be
 * in one already.
 */
export async function applyFacts(
  client: ClientBase,
  facts: readonly Fact[],
  orphaned: readonly OrphanedBlock[] = [],
): Promise<ApplyReport> {
  // Everything here is a look-up by key, also while a table is too new to have statistics that say so.
  await client.query(
    'begin; set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_seqscan = off',
  );
  try {
    const report = await applyInTransaction(client, facts, orphaned);
    await client.query('commit');
    return report;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

async function applyInTransaction(
  client: ClientBase,
  facts: readonly Fact[],
  orphaned: readonly OrphanedBlock[],
): Promise<ApplyReport> {
  const { rows } = await client.query('select position from store for update');
  const position = BigInt(rows[0].position);

  const told = groupByMessage(facts.filter((fact) => !isRangeFact(fact)));
  const ranges = facts.filter(isRangeFact);
  const retracted = await retract(client, orphaned);
  await writeRangeFacts(client, ranges);

  const moved = new Set(retracted.messageIds);
  for (const id of await messagesInRanges(client, [...ranges.flatMap(rangePieces), ...retracted.ranges]))
    moved.add(id);
  const touched = [...new Set([...told.keys(), ...moved])];

  const stored = await readStored(client, touched);
  const news = touched.filter((id) => moved.has(id) || !isOldNews(told.get(id) ?? [], stored.get(id)));
  const changes = foldAll(await readKnowledge(client, news, told, stored));
  await write(client, changes, position);
  const count = (kind: Change['change']) => changes.filter(({ change }) => change === kind).length;
  return {
    created: count('created'),
    updated: count('updated'),
    removed: count('removed'),
    unchanged: count('none') + touched.length - news.length,
  };
}

type MessageFact = ChainFact | Snapshot;

function groupByMessage(facts: readonly Fact[]): Map<string, MessageFact[]> {
  const groups = new Map<string, MessageFact[]>();
  for (const fact of facts) {
    if (isRangeFact(fact)) continue;
    const id = factMessageId(fact).slice(2);
    const group = groups.get(id);
    if (group) group.push(fact);
    else groups.set(id, [fact]);
  }
  return groups;
}

// --- Ranges and retraction ---------------------------------------------------------------------------

interface RangeKey {
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly onramp: string;
  readonly from: string;
  readonly to: string;
}

function rangePieces(fact: RangeFact): RangeKey[] {
  const lane = laneKey(fact.lane);
  const last = BigInt(fact.toSequenceNumber);
  const first = BigInt(fact.fromSequenceNumber);
  if (first > last || last - first >= PIECE_LENGTH * MAX_PIECES) {
    throw new Error(`A ${fact.kind} fact covers the sequence numbers ${first} to ${last}, which no root can`);
  }
  const pieces: RangeKey[] = [];
  for (let from = first; from <= last; from += PIECE_LENGTH) {
    const end = from + PIECE_LENGTH - 1n;
    pieces.push({ ...lane, from: from.toString(), to: (end < last ? end : last).toString() });
  }
  return pieces;
}

function laneKey(lane: Lane): Omit<RangeKey, 'from' | 'to'> {
  const family = networkBySelector(lane.sourceChainSelector)?.family;
  if (!family) throw new Error(`A range fact names an unknown source network: ${lane.sourceChainSelector}`);
  return {
    sourceSelector: storedSelector(lane.sourceChainSelector),
    destSelector: storedSelector(lane.destChainSelector),
    onramp: addressColumn(lane.onramp, family),
  };
}

async function writeRangeFacts(client: ClientBase, facts: readonly RangeFact[]): Promise<void> {
  if (facts.length === 0) return;
  const rows = facts.flatMap((fact) => {
    const body = JSON.stringify(fact);
    return rangePieces(fact).map((piece) => ({ seen: fact.seen, body, piece }));
  });
  await client.query(
    `insert into lane_fact (source_selector, dest_selector, onramp, to_sequence, from_sequence, fact_id,
                            network, block_hash, body)
     select source, dest, decode(onramp, 'hex'), upper_end, lower_end, decode(fact_id, 'hex'),
            network, block_hash, body
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[], $5::numeric[], $6::text[],
                 $7::bigint[], $8::text[], $9::text[])
       as t (source, dest, onramp, upper_end, lower_end, fact_id, network, block_hash, body)
     on conflict do nothing`,
    [
      rows.map(({ piece }) => piece.sourceSelector),
      rows.map(({ piece }) => piece.destSelector),
      rows.map(({ piece }) => piece.onramp),
      rows.map(({ piece }) => piece.to),
      rows.map(({ piece }) => piece.from),
      rows.map(({ body }) => factId(body)),
      rows.map(({ seen }) => storedSelector(seen.network)),
      rows.map(({ seen }) => seen.blockHash),
      rows.map(({ body }) => body),
    ],
  );
}

async function retract(
  client: ClientBase,
  orphaned: readonly OrphanedBlock[],
): Promise<{ messageIds: readonly string[]; ranges: readonly RangeKey[] }> {
  if (orphaned.length === 0) return { messageIds: [], ranges: [] };
  const blocks = [
    orphaned.map((block) => storedSelector(block.network)),
    orphaned.map((block) => block.blockHash),
  ];
  const facts = await client.query(
    `delete from fact using unnest($1::bigint[], $2::text[]) as orphan (network, block_hash)
     where fact.network = orphan.network and fact.block_hash = orphan.block_hash
     returning encode(message_id, 'hex') as id`,
    blocks,
  );
  const ranges = await client.query(
    `delete from lane_fact using unnest($1::bigint[], $2::text[]) as orphan (network, block_hash)
     where lane_fact.network = orphan.network and lane_fact.block_hash = orphan.block_hash
     returning source_selector as "sourceSelector", dest_selector as "destSelector",
               encode(onramp, 'hex') as onramp, from_sequence as "from", to_sequence as "to"`,
    blocks,
  );
  return { messageIds: facts.rows.map((row) => row.id), ranges: ranges.rows };
}

async function messagesInRanges(client: ClientBase, ranges: readonly RangeKey[]): Promise<readonly string[]> {
  if (ranges.length === 0) return [];
  const { rows } = await client.query(
    `select encode(m.message_id, 'hex') as id
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[], $5::numeric[])
            as r (source, dest, onramp, lower_end, upper_end)
     cross join lateral (
       select message_id from message
       where source_selector = r.source and dest_selector = r.dest and onramp = decode(r.onramp, 'hex')
         and sequence_number between r.lower_end and r.upper_end
       order by sequence_number) m`,
    [
      ranges.map((range) => range.sourceSelector),
      ranges.map((range) => range.destSelector),
      ranges.map((range) => range.onramp),
      ranges.map((range) => range.from),
      ranges.map((range) => range.to),
    ],
  );
  return rows.map((row) => row.id);
}

// --- What is known of each message -------------------------------------------------------------------

interface StoredMessage {
  readonly digest: string;
  readonly isSnapshot: boolean;
  readonly tally: Tally;
}

/** All that bears on one message: its stored row, the facts stored before, and those told now. */
interface Knowledge {
  readonly id: string;
  readonly stored: StoredMessage | undefined;
  readonly chainFacts: Map<string, ChainFact>;
  snapshot: Message | undefined;
  /** Of the chain facts, those that no transaction before has stored. */
  readonly unstored: { readonly id: string; readonly fact: ChainFact; readonly body: string }[];
  /** The snapshot as it stands in `fact`, where it does: to be replaced when it grows. */
  readonly storedSnapshot: string | undefined;
  ranges: RangeFact[];
}

async function readStored(client: ClientBase, ids: readonly string[]): Promise<Map<string, StoredMessage>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id, encode(digest, 'hex') as digest, is_snapshot as "isSnapshot",
            source_selector as "sourceSelector", dest_selector as "destSelector", encode(onramp, 'hex') as onramp,
            sequence_number as "sequenceNumber", to_char(sent_at, 'YYYY-MM-DD') as day, status, ready,
            delivery_ms as "deliveryMs"
     from message where message_id = any($1)`,
    [ids.map((id) => Buffer.from(id, 'hex'))],
  );
  return new Map(
    rows.map(({ id, digest, isSnapshot, deliveryMs, ...tally }) => [
      id,
      {
        digest,
        isSnapshot,
        tally: { ...tally, deliveryMs: deliveryMs === null ? null : Number(deliveryMs) },
      },
    ]),
  );
}

/** Exactly what is stored, told once more: most of what an import repeats, settled without reading records. */
function isOldNews(told: readonly MessageFact[], stored: StoredMessage | undefined): boolean {
  const [fact] = told;
  return (
    stored?.isSnapshot === true &&
    told.length === 1 &&
    fact?.kind === 'Snapshot' &&
    recordDigest(wireRecord(fact.message).json) === stored.digest
  );
}

async function readKnowledge(
  client: ClientBase,
  ids: readonly string[],
  told: ReadonlyMap<string, readonly MessageFact[]>,
  stored: ReadonlyMap<string, StoredMessage>,
): Promise<Knowledge[]> {
  if (ids.length === 0) return [];
  const facts = await client.query(
    `select encode(message_id, 'hex') as id, encode(fact_id, 'hex') as fact_id, body from fact where message_id = any($1)`,
    [ids.map((id) => Buffer.from(id, 'hex'))],
  );
  const snapshots = await readRecords(
    client,
    ids.filter((id) => stored.get(id)?.isSnapshot),
  );

  const all = new Map<string, Knowledge>();
  for (const id of ids) {
    all.set(id, {
      id,
      stored: stored.get(id),
      chainFacts: new Map(),
      snapshot: parsedRecord(snapshots.get(id)),
      unstored: [],
      storedSnapshot: undefined,
      ranges: [],
    });
  }
  for (const row of facts.rows) {
    const known = all.get(row.id);
    if (!known) continue;
    const fact = JSON.parse(row.body) as MessageFact;
    if (fact.kind === 'Snapshot')
      all.set(row.id, { ...known, snapshot: fact.message, storedSnapshot: row.body });
    else known.chainFacts.set(row.fact_id, fact);
  }
  for (const known of all.values()) addTold(known, told.get(known.id) ?? []);
  await addCoveringRanges(client, [...all.values()]);
  return [...all.values()];
}

async function readRecords(client: ClientBase, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id, record from message where message_id = any($1)`,
    [ids.map((id) => Buffer.from(id, 'hex'))],
  );
  return new Map(rows.map((row) => [row.id, row.record]));
}

function parsedRecord(record: string | undefined): Message | undefined {
  return record === undefined ? undefined : (JSON.parse(record) as Message);
}

function addTold(known: Knowledge, facts: readonly MessageFact[]): void {
  for (const fact of facts) {
    if (fact.kind === 'Snapshot') {
      known.snapshot = known.snapshot ? joinSnapshots(known.snapshot, fact.message) : fact.message;
      continue;
    }
    const body = JSON.stringify(fact);
    const id = factId(body);
    if (known.chainFacts.has(id)) continue;
    known.chainFacts.set(id, fact);
    known.unstored.push({ id, fact, body });
  }
}

async function addCoveringRanges(client: ClientBase, all: readonly Knowledge[]): Promise<void> {
  const { rows: any } = await client.query('select exists (select from lane_fact) as present');
  if (!any[0].present) return;
  const sent = all.flatMap((known) => {
    const message = sentMessage(known);
    return message ? [{ known, message }] : [];
  });
  const { rows } = await client.query(
    `select m.ordinal, f.body
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[]) with ordinality
            as m (source, dest, onramp, number, ordinal)
     join lane_fact f on f.source_selector = m.source and f.dest_selector = m.dest
       and f.onramp = decode(m.onramp, 'hex')
       and f.to_sequence >= m.number and f.to_sequence < m.number + ${PIECE_LENGTH}
       and f.from_sequence <= m.number`,
    [
      sent.map(({ message }) => storedSelector(message.sourceNetworkInfo.chainSelector)),
      sent.map(({ message }) => storedSelector(message.destNetworkInfo.chainSelector)),
      sent.map(({ message }) => addressColumn(message.onramp, message.sourceNetworkInfo.chainFamily)),
      sent.map(({ message }) => message.sequenceNumber),
    ],
  );
  for (const row of rows) sent[Number(row.ordinal) - 1]?.known.ranges.push(JSON.parse(row.body) as RangeFact);
}

/** Whoever tells of the sending names the same lane and number: they are part of what the id is a hash of. */
function sentMessage(known: Knowledge): SentMessage | undefined {
  for (const fact of known.chainFacts.values()) if (fact.kind === 'Sent') return fact.message;
  return known.snapshot;
}

function factsOf(known: Knowledge): Fact[] {
  const facts: Fact[] = [...known.chainFacts.values(), ...known.ranges];
  if (known.snapshot) facts.push({ kind: 'Snapshot', message: known.snapshot });
  return facts;
}

// --- Folding and writing -----------------------------------------------------------------------------

interface Change {
  readonly change: 'created' | 'updated' | 'removed' | 'none';
  readonly known: Knowledge;
  readonly message: Message | undefined;
  readonly row: MessageRow | undefined;
  readonly isSnapshot: boolean;
}

function foldAll(all: readonly Knowledge[]): Change[] {
  return all.map((known) => {
    const message = foldFacts(factsOf(known));
    const row = message && messageRow(message);
    const isSnapshot = known.chainFacts.size === 0 && known.ranges.length === 0;
    return { change: changeKind(known.stored, row), known, message, row, isSnapshot };
  });
}

function changeKind(stored: StoredMessage | undefined, row: MessageRow | undefined): Change['change'] {
  if (!row) return stored ? 'removed' : 'none';
  if (!stored) return 'created';
  return stored.digest === row.digest ? 'none' : 'updated';
}

async function write(client: ClientBase, changes: readonly Change[], position: bigint): Promise<void> {
  await writeFacts(client, changes);
  await writeSnapshotMarks(client, changes);
  const changed = changes.filter(({ change }) => change !== 'none');
  if (changed.length === 0) return;

  const removedRecords = await readRecords(
    client,
    changed.filter(({ change }) => change === 'removed').map(({ known }) => known.id),
  );
  const outdated = changed
    .filter(({ known }) => known.stored)
    .map(({ known }) => Buffer.from(known.id, 'hex'));
  if (outdated.length > 0) {
    await client.query('delete from message where message_id = any($1)', [outdated]);
    await client.query('delete from message_token where message_id = any($1)', [outdated]);
  }
  const recordedAt = new Date().toISOString();
  const messageValues: CopyValue[][] = [];
  const tokenValues: CopyValue[][] = [];
  const historyValues: CopyValue[][] = [];
  changed.forEach((change, index) => {
    const changePosition = (position + BigInt(index) + 1n).toString();
    historyValues.push(historyRow(change, changePosition, recordedAt, removedRecords));
    if (!change.message || !change.row) return;
    messageValues.push(messageColumns(change.row, changePosition, change.isSnapshot));
    for (const token of tokenRows(change.message)) {
      tokenValues.push([
        { hex: token.messageId },
        token.tokenIndex,
        token.sentAt,
        { hex: token.sourceToken },
        { hex: token.destToken },
        { hex: token.sourcePool },
      ]);
    }
  });
  await copyRows(client, 'message', MESSAGE_COLUMNS, messageValues);
  await copyRows(
    client,
    'message_token',
    ['message_id', 'token_index', 'sent_at', 'source_token', 'dest_token', 'source_pool'],
    tokenValues,
  );
  await copyRows(client, 'history', HISTORY_COLUMNS, historyValues);
  await updateStatistics(
    client,
    changed.map(({ known, row }) => ({ before: known.stored?.tally, after: row && tallyOf(row) })),
    changed.flatMap(({ message, row }) => (message && row ? [laneDescription(message, row)] : [])),
  );
  const newPosition = position + BigInt(changed.length);
  await client.query('update store set position = $1', [newPosition.toString()]);
  await client.query('select pg_notify($1, $2)', [CHANGE_CHANNEL, newPosition.toString()]);
  if (hasOutgrownStatistics(position, newPosition)) {
    await client.query('analyze message, message_token, fact, lane_fact, history');
  }
}

function tallyOf(row: MessageRow): Tally {
  return { ...row, day: row.sentAt.slice(0, 10) };
}

function laneDescription(message: Message, row: MessageRow): LaneDescription {
  const { onramp, routerAddress, version, sourceNetworkInfo, destNetworkInfo } = message;
  return {
    ...row,
    description: JSON.stringify({ onramp, routerAddress, version, sourceNetworkInfo, destNetworkInfo }),
  };
}

/**
 * Each time the store has grown fourfold. Autovacuum comes round too late for a first bulk load, and without
 * statistics the planner takes indexes that cost a thousand times as much.
 */
function hasOutgrownStatistics(before: bigint, after: bigint): boolean {
  for (let size = 1_000n; size <= after; size *= 4n) if (before < size) return true;
  return false;
}

async function writeFacts(client: ClientBase, changes: readonly Change[]): Promise<void> {
  const values: CopyValue[][] = [];
  const replacedSnapshots: Buffer[] = [];
  for (const { known, isSnapshot } of changes) {
    for (const { id, fact, body } of known.unstored) {
      values.push([
        { hex: known.id },
        { hex: id },
        storedSelector(fact.seen.network),
        fact.seen.blockHash,
        body,
      ]);
    }
    if (!known.snapshot) continue;
    // Alone, a snapshot is the record itself; beside chain facts it needs a row of its own.
    const body = isSnapshot ? undefined : `{"kind":"Snapshot","message":${wireRecord(known.snapshot).json}}`;
    if (body === known.storedSnapshot) continue;
    if (known.storedSnapshot !== undefined) replacedSnapshots.push(Buffer.from(known.id, 'hex'));
    if (body !== undefined) values.push([{ hex: known.id }, { hex: SNAPSHOT_FACT_ID }, null, null, body]);
  }
  if (replacedSnapshots.length > 0) {
    await client.query('delete from fact where message_id = any($1) and fact_id = $2', [
      replacedSnapshots,
      Buffer.from(SNAPSHOT_FACT_ID, 'hex'),
    ]);
  }
  await copyRows(client, 'fact', ['message_id', 'fact_id', 'network', 'block_hash', 'body'], values);
}

/**
 * A record may stay the same while what it rests on does not: a chain confirms a snapshot, or takes back all
 * that it had said beside one. The mark tells where the snapshot is; a wrong one would lose it.
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
    [outdated.map(({ known }) => Buffer.from(known.id, 'hex')), outdated.map(({ isSnapshot }) => isSnapshot)],
  );
}

const MESSAGE_COLUMNS = [
  'message_id',
  'sent_at',
  'position',
  'source_selector',
  'dest_selector',
  'sequence_number',
  'delivery_ms',
  'finality',
  'summary_length',
  'status',
  'ready',
  'is_snapshot',
  'sender',
  'receiver',
  'origin',
  'onramp',
  'send_transaction',
  'receipt_transaction',
  'digest',
  'record',
];

function messageColumns(row: MessageRow, position: string, isSnapshot: boolean): CopyValue[] {
  return [
    { hex: row.messageId },
    row.sentAt,
    position,
    row.sourceSelector,
    row.destSelector,
    row.sequenceNumber,
    row.deliveryMs,
    row.finality,
    row.summaryLength,
    row.status,
    row.ready,
    isSnapshot,
    { hex: row.sender },
    { hex: row.receiver },
    { hex: row.origin },
    { hex: row.onramp },
    { hex: row.sendTransaction },
    row.receiptTransaction === null ? null : { hex: row.receiptTransaction },
    { hex: row.digest },
    row.record,
  ];
}

const HISTORY_COLUMNS = [
  'position',
  'message_id',
  'recorded_at',
  'change',
  'status',
  'previous_status',
  'ready',
  'removed_record',
  'occurred_at',
  'network',
  'block_number',
  'transaction_hash',
];

function historyRow(
  { change, known, message }: Change,
  position: string,
  recordedAt: string,
  removedRecords: ReadonlyMap<string, string>,
): CopyValue[] {
  const cause = message ? statusCause(message, factsOf(known)) : null;
  const previous = known.stored?.tally.status ?? null;
  return [
    position,
    { hex: known.id },
    recordedAt,
    change,
    message ? statusRank(message.status) : (previous ?? 0),
    previous,
    message?.readyForManualExecution ?? false,
    removedRecords.get(known.id) ?? null,
    cause?.at ?? null,
    cause ? storedSelector(cause.network) : null,
    cause?.blockNumber ?? null,
    cause?.transactionHash ?? null,
  ];
}

/** The same observation told twice is one fact. */
function factId(body: string): string {
  return hash('sha256', body, 'hex').slice(0, 32);
}
