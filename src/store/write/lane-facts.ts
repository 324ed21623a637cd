/**
 * Facts about ranges of sequence numbers: storing and retracting them, and which messages they cover.
 *
 * A range is blessed by an event of its own, or by one that names only its merkle root. The latter is stored as it is and
 * joined with the commit at every read, so the order in which the two arrive or are retracted does not matter.
 */
import { hash } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { Lane, Observation, RangeFact, RootFact, SentMessage } from '../../domain/facts.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import type { Read } from '../reads/reads.ts';
import { columnsOf } from '../sql.ts';
import { restoreEarlier } from './earlier-attempts.ts';
import { addressColumn, observedTransaction, storedSelector } from './message-row.ts';

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
  const rows = facts.flatMap((fact) =>
    rangePieces(fact).map((piece) => ({ ...piece, ...factColumns(fact) })),
  );
  const { rowCount } = await client.query(
    `insert into lane_fact (source_selector, dest_selector, onramp, to_sequence, from_sequence, fact_id,
                            network, block_hash, merkle_root, transaction, body)
     select source, dest, decode(onramp, 'hex'), upper_end, lower_end, decode(fact_id, 'hex'),
            network, block_hash, decode(root, 'hex'), decode(transaction, 'hex'), body
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[], $5::numeric[], $6::text[],
                 $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[])
       as t (source, dest, onramp, upper_end, lower_end, fact_id, network, block_hash, root, transaction, body)
     on conflict do nothing`,
    [
      ...columnsOf(rows, 'sourceSelector', 'destSelector', 'onramp', 'to', 'from'),
      ...columnsOf(rows, 'id', 'network', 'blockHash', 'root', 'transaction', 'body'),
    ],
  );
  return (rowCount ?? 0) > 0;
}

/** Stores blessings and removals of roots (`root_blessing`): the ranges of those roots, and whether any was not stored yet. */
export async function writeRootFacts(client: ClientBase, facts: readonly RootFact[]) {
  if (facts.length === 0) return { ranges: [], hasNew: false };
  const rows = facts.map(factColumns);
  const { rowCount } = await client.query(
    `insert into root_blessing (network, merkle_root, fact_id, block_hash, transaction, body)
     select network, decode(root, 'hex'), decode(fact_id, 'hex'), block_hash, decode(transaction, 'hex'), body
     from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
       as t (network, root, fact_id, block_hash, transaction, body)
     on conflict do nothing`,
    columnsOf(rows, 'network', 'root', 'id', 'blockHash', 'transaction', 'body'),
  );
  return { ranges: await rangesOfRoots(client, rows), hasNew: (rowCount ?? 0) > 0 };
}

/** What the tables of both kinds of facts have in common. */
function factColumns(fact: RangeFact | RootFact) {
  const { network, blockHash } = fact.seen;
  const body = JSON.stringify(fact);
  return {
    id: factId(body),
    network: storedSelector(network),
    blockHash,
    root: rootColumn(fact.merkleRoot),
    transaction: observedTransaction(fact.seen),
    body,
  };
}

/** The ranges that were committed under these roots on these networks. */
async function rangesOfRoots(
  client: ClientBase,
  roots: readonly { readonly network: string; readonly root: string }[],
): Promise<readonly RangeKey[]> {
  const { rows } = await client.query(
    `select ${RANGE_KEY} from unnest($1::bigint[], $2::text[]) as blessed (network, root)
     join lane_fact on lane_fact.network = blessed.network
       and lane_fact.merkle_root = decode(blessed.root, 'hex')`,
    columnsOf(roots, 'network', 'root'),
  );
  return rows;
}

const RANGE_KEY = `source_selector as "sourceSelector", dest_selector as "destSelector",
  encode(onramp, 'hex') as onramp, from_sequence as "from", to_sequence as "to"`;

function rootColumn(merkleRoot: string): string {
  const [, digits] = /^0x([0-9a-fA-F]{64})$/.exec(merkleRoot) ?? [];
  if (digits === undefined) throw new Error(`A fact reached the store with a malformed root: ${merkleRoot}`);
  return digits.toLowerCase();
}

/** Deletes the facts of orphaned blocks, and returns the messages and ranges that they were about. */
export async function retract(
  client: ClientBase,
  orphaned: readonly OrphanedBlock[],
): Promise<{ messageIds: readonly string[]; ranges: readonly RangeKey[] }> {
  if (orphaned.length === 0) return { messageIds: [], ranges: [] };
  const blocks = [
    orphaned.map((block) => storedSelector(block.network)),
    orphaned.map((block) => block.blockHash),
  ];
  const deleteFrom = async (table: string, returning: string) => {
    const { rows } = await client.query(
      `delete from ${table} using unnest($1::bigint[], $2::text[]) as orphan (network, block_hash)
       where ${table}.network = orphan.network and ${table}.block_hash = orphan.block_hash returning ${returning}`,
      blocks,
    );
    return rows;
  };
  const fact = `message_id, fact_id, kind, case when kind in ('Executed', 'ExecutionDetails') then body end as body`;
  const facts = [...(await deleteFrom('fact', fact)), ...(await deleteFrom('earlier_attempt', fact))];
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

/** An execution stays readable as one that was removed. */
async function keepRemovedAttempts(
  client: ClientBase,
  facts: readonly { message_id: Buffer; fact_id: Buffer; kind: string; body: string }[],
): Promise<void> {
  if (facts.length === 0) return;
  await client.query(
    `insert into removed_attempt (message_id, fact_id, kind, removed_at, body)
     select message_id, fact_id, kind, now(), body
     from unnest($1::bytea[], $2::bytea[], $3::text[], $4::text[]) as removed (message_id, fact_id, kind, body)
     on conflict (message_id, fact_id) do update set removed_at = excluded.removed_at`,
    columnsOf(facts, 'message_id', 'fact_id', 'kind', 'body'),
  );
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
    `select m.ordinal, f.body,
       array(select b.body from root_blessing b
             where b.network = f.network and b.merkle_root = f.merkle_root) as root_facts
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::numeric[]) with ordinality
            as m (source, dest, onramp, number, ordinal)
     join lane_fact f on f.source_selector = m.source and f.dest_selector = m.dest
       and f.onramp = decode(m.onramp, 'hex')
       and f.to_sequence >= m.number and f.to_sequence < m.number + ${PIECE_LENGTH}
       and f.from_sequence <= m.number`,
    [
      messages.map((message) => storedSelector(message.sourceNetworkInfo.chainSelector)),
      messages.map((message) => storedSelector(message.destNetworkInfo.chainSelector)),
      messages.map((message) => addressColumn(message.onramp, message.sourceNetworkInfo.chainFamily)),
      messages.map((message) => message.sequenceNumber),
    ],
  );
  for (const row of rows) {
    const index = Number(row.ordinal) - 1;
    const range = JSON.parse(row.body as string) as RangeFact;
    const rootFacts = (row.root_facts as string[]).map((body) => JSON.parse(body) as RootFact);
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

/** A hash of the body: the same observation from two sources is one fact. */
export function factId(body: string): string {
  return hash('sha256', body, 'hex').slice(0, 32);
}
