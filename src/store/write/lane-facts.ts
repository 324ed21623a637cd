/**
 * Facts about ranges of sequence numbers: storing and retracting them, and which messages they cover.
 *
 * A range is blessed by an event of its own, or by one that names only its merkle root. The latter is stored as it is and
 * joined with the commit at every read, so the order in which the two arrive or are retracted does not matter.
 */
import type { ClientBase } from 'pg';
import type { Lane, Observation, RangeFact, RootFact, SentMessage } from '../../domain/facts.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import { hashBytes } from '../facts/hash-bytes.ts';
import { ATTEMPT_KINDS } from '../facts/kinds.ts';
import {
  factColumnsOf,
  messageFactColumns,
  observationColumns,
  RANGE_FACT_COLUMNS,
  rangeColumns,
  rangeFactValues,
  readRangeFact,
  readRootFact,
  rootFactValues,
} from '../facts/stored-fact.ts';
import { groupBy } from '../group-by.ts';
import type { Read } from '../reads/reads.ts';
import { columnsOf, isFound } from '../sql.ts';
import type { CopyColumns, CopyValue } from './copy.ts';
import { copyRead, restoreEarlier } from './earlier-attempts.ts';
import { addressColumn, messageIdArray, storedSelector } from './message-row.ts';

/**
 * Ranges are stored in pieces of at most this length, so that those which cover a number end within this
 * distance of it and the look-up stays short. A merkle root has at most 256 leaves: one piece, as a rule.
 */
const PIECE_LENGTH = 256n;
const MAX_PIECES = 4_096n;
const MAX_CLOCK_DIFFERENCE_MS = 86_400_000;

/** A block that a reorganisation replaced. */
export interface OrphanedBlock {
  readonly network: string;
  readonly blockHash: string;
}

export interface RangeKey {
  readonly sourceSelector: string;
  readonly destSelector: string;
  readonly onramp: string;
  readonly from: string;
  readonly to: string;
}

export function rangePieces(fact: RangeFact): RangeKey[] {
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

/** Whether any of them was not stored yet. */
export async function writeRangeFacts(client: ClientBase, facts: readonly RangeFact[]): Promise<boolean> {
  if (facts.length === 0) return false;
  return insertNew(client, 'lane_fact', laneFactColumns, facts.flatMap(laneFactRows));
}

/** The rows of a range fact in `lane_fact`, one for each piece. */
export function laneFactRows(fact: RangeFact) {
  return rangePieces(fact).map((piece) => ({
    ...rangeFactValues(fact, piece),
    source_selector: piece.sourceSelector,
    dest_selector: piece.destSelector,
    to_sequence: piece.to,
    from_sequence: piece.from,
    onramp: piece.onramp,
  }));
}

/** Stores blessings and removals of roots (`root_blessing`): the ranges of those roots, and whether any was not stored yet. */
export async function writeRootFacts(client: ClientBase, facts: readonly RootFact[]) {
  if (facts.length === 0) return { ranges: [], hasNew: false };
  const rows = facts.map(rootFactValues);
  const hasNew = await insertNew(client, 'root_blessing', rootFactColumns, rows);
  const roots = rows.map(({ network, merkle_root }) => ({ network: String(network), root: merkle_root }));
  return { ranges: await rangesOfRoots(client, roots), hasNew };
}

export const rootFactColumns = {
  ...observationColumns,
  kind: 'smallint',
  merkle_root: 'bytea',
  fact_id: 'bytea',
  body: 'bytea',
} as const satisfies CopyColumns;
export const laneFactColumns = { ...rootFactColumns, ...rangeColumns } as const satisfies CopyColumns;

/** Inserts the rows that are not stored yet; whether there were any. COPY would fail on the others. */
async function insertNew<Columns extends CopyColumns>(
  client: ClientBase,
  table: 'lane_fact' | 'root_blessing',
  columns: Columns,
  rows: readonly Readonly<Record<keyof Columns, CopyValue>>[],
): Promise<boolean> {
  const names = Object.keys(columns);
  const parameters = names.map((name, index) => `$${index + 1}::${columns[name]}[]`);
  const { rowCount } = await client.query(
    `insert into ${table} (${names.join(', ')}) select * from unnest(${parameters.join(', ')}) on conflict do nothing`,
    names.map((name) => rows.map((row) => parameterOf(row[name as keyof Columns], columns[name]))),
  );
  return (rowCount ?? 0) > 0;
}

/** Bytes in hex as PostgreSQL reads them. */
function parameterOf(value: CopyValue, type: CopyColumns[string] | undefined) {
  return type === 'bytea' && typeof value === 'string' ? `\\x${value}` : value;
}

/** The ranges that were committed under these roots on these networks. */
async function rangesOfRoots(
  client: ClientBase,
  roots: readonly { readonly network: string; readonly root: string }[],
): Promise<readonly RangeKey[]> {
  const { rows } = await client.query(
    `select ${RANGE_KEY} from unnest($1::bigint[], $2::text[]) as blessed (network, root)
     join lane_fact on ${isFound('lane_fact.merkle_root', "decode(blessed.root, 'hex')")}
       and lane_fact.network = blessed.network`,
    columnsOf(roots, 'network', 'root'),
  );
  return rows;
}

const RANGE_KEY = `source_selector as "sourceSelector", dest_selector as "destSelector",
  encode(onramp, 'hex') as onramp, from_sequence as "from", to_sequence as "to"`;

/** Deletes the facts of orphaned blocks, and returns the messages and ranges that they were about. */
export async function retract(
  client: ClientBase,
  orphaned: readonly OrphanedBlock[],
): Promise<{ messageIds: readonly string[]; ranges: readonly RangeKey[] }> {
  if (orphaned.length === 0) return { messageIds: [], ranges: [] };
  const blocks = [
    orphaned.map((block) => storedSelector(block.network)),
    messageIdArray(orphaned.map((block) => hashBytes(block.blockHash))),
  ];
  const deleteFrom = async (table: string, returning: string) => {
    const { rows } = await client.query(
      `delete from ${table} using unnest($1::bigint[], $2::bytea[]) as orphan (network, block_hash)
       where ${isFound(`${table}.block_hash`, 'orphan.block_hash')} and ${table}.network = orphan.network
       returning ${returning}`,
      blocks,
    );
    return rows;
  };
  const deleteFacts = (table: 'fact' | 'earlier_attempt') => {
    const { body, ...others } = messageFactColumns;
    const attemptBody = `case when kind in ${ATTEMPT_KINDS} then body end as body`;
    const columns = [...Object.keys(others).map((name) => `${table}.${name}`), attemptBody];
    return deleteFrom(table, columns.join(', '));
  };
  const facts = [...(await deleteFacts('fact')), ...(await deleteFacts('earlier_attempt'))];
  const attempts = facts.filter(({ body }) => body !== null);
  await keepRemovedAttempts(client, attempts);
  await restoreEarlier(
    client,
    attempts.map(({ message_id }) => message_id.toString('hex')),
  );
  const ranges = await deleteFrom('lane_fact', RANGE_KEY);
  const blessing = `root_blessing.network, encode(merkle_root, 'hex') as root`;
  const unblessedRanges = await rangesOfRoots(client, await deleteFrom('root_blessing', blessing));
  return {
    messageIds: facts.map((row) => row.message_id.toString('hex')),
    ranges: [...ranges, ...unblessedRanges],
  };
}

export const removedAttemptColumns = {
  ...messageFactColumns,
  removed_at: 'timestamptz',
} as const satisfies CopyColumns;

/** An execution stays readable as one that was removed. */
async function keepRemovedAttempts(
  client: ClientBase,
  facts: readonly { readonly message_id: Buffer; readonly fact_id: Buffer }[],
): Promise<void> {
  if (facts.length === 0) return;
  await client.query('delete from removed_attempt where message_id = any($1) and fact_id = any($2)', [
    facts.map(({ message_id }) => message_id),
    facts.map(({ fact_id }) => fact_id),
  ]);
  const removed_at = new Date();
  const rows = facts.map((fact) => ({ ...fact, removed_at }));
  await copyRead(client, 'removed_attempt', removedAttemptColumns, rows);
}

export async function messagesInRanges(client: ClientBase, ranges: readonly RangeKey[]) {
  if (ranges.length === 0) return [];
  const { rows } = await client.query<{ id: string }>(
    `select encode(m.message_id, 'hex') as id
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[], $5::numeric[])
            as r (source, dest, onramp, lower_end, upper_end)
     cross join lateral (
       select message_id from message
       where source_selector = r.source and dest_selector = r.dest and onramp = decode(r.onramp, 'hex')
         and sequence_number between r.lower_end and r.upper_end
       order by sequence_number) m`,
    columnsOf(ranges, 'sourceSelector', 'destSelector', 'onramp', 'from', 'to'),
  );
  return rows.map(({ id }) => id);
}

/**
 * The range facts that cover each of these messages, by its place in the list; with the blessings that follow from
 * those of their roots.
 */
export async function rangesCovering(read: Read, messages: readonly SentMessage[]) {
  const covering = new Map<number, RangeFact[]>();
  const [any] = await read('select exists (select from lane_fact) as present', []);
  if (!any?.present || messages.length === 0) return covering;
  const rows = await read(
    `select m.ordinal, lane_fact.fact_id, ${RANGE_FACT_COLUMNS}, ${factColumnsOf('b', 'root_')}
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[]) with ordinality
            as m (source, dest, onramp, number, ordinal)
     join lane_fact on source_selector = m.source and dest_selector = m.dest
       and lane_fact.onramp = decode(m.onramp, 'hex')
       and to_sequence >= m.number and to_sequence < m.number + ${PIECE_LENGTH} and from_sequence <= m.number
     left join root_blessing b on b.merkle_root = lane_fact.merkle_root and b.network = lane_fact.network`,
    [
      messages.map((message) => storedSelector(message.sourceNetworkInfo.chainSelector)),
      messages.map((message) => storedSelector(message.destNetworkInfo.chainSelector)),
      messages.map((message) => addressColumn(message.onramp, message.sourceNetworkInfo.chainFamily)),
      messages.map((message) => message.sequenceNumber),
    ],
  );
  // A range has a row for each fact about its root.
  const rowsOfRanges = groupBy(
    rows,
    ({ ordinal, fact_id }) => `${ordinal},${(fact_id as Buffer).toString('hex')}`,
  );
  for (const ofRange of rowsOfRanges.values()) {
    const [row] = ofRange;
    if (!row) continue;
    const index = Number(row.ordinal) - 1;
    const range = readRangeFact(row);
    const rootFacts = ofRange
      .filter(({ root_body }) => root_body !== null)
      .map((of) => readRootFact(of, 'root_'));
    if (rootFacts.some(({ kind, seen }) => kind === 'RootRemoved' && isLater(seen, range.seen))) continue;
    if (messages[index] && isOfEarlierMessage(range, messages[index])) continue;
    const blessings =
      range.kind === 'Committed' ? rootFacts.filter(({ kind }) => kind === 'RootBlessed') : [];
    covering.set(index, [
      ...(covering.get(index) ?? []),
      range,
      ...blessings.map(({ seen }) => ({ ...range, kind: 'Blessed' as const, seen })),
    ]);
  }
  return covering;
}

/**
 * Whether a range was committed long before the message was sent: then it is of another message with the same number, from
 * before its lane began to count anew. Clocks of chains differ by much less than a day.
 */
function isOfEarlierMessage({ seen }: RangeFact, { sendTimestamp }: SentMessage): boolean {
  return Date.parse(seen.at) + MAX_CLOCK_DIFFERENCE_MS < Date.parse(sendTimestamp);
}

/** On one chain: a root may be committed again after its removal. */
function isLater(a: Observation, b: Observation): boolean {
  return a.blockNumber === b.blockNumber
    ? (a.logIndex ?? -1) > (b.logIndex ?? -1)
    : a.blockNumber > b.blockNumber;
}
