/** Queries of an indexer about facts that are stored. */
import type { ClientBase } from 'pg';
import type { Fact, RangeFact, Sent, SentMessage } from '../../domain/facts.ts';
import { type Status, statusRank } from '../../domain/lifecycle.ts';
import { hashBytes, hashText } from '../facts/hash-bytes.ts';
import { kindNumbers } from '../facts/kinds.ts';
import { factColumnsOf, factId, readMessageFact } from '../facts/stored-fact.ts';
import { readWith } from '../reads/reads.ts';
import { isFound } from '../sql.ts';
import { rangesCovering } from '../write/lane-facts.ts';
import { messageIdArray, storedSelector } from '../write/message-row.ts';
import type { BlockId } from './chain-state.ts';

/** Where facts of chains are stored. */
const factTables = ['fact', 'earlier_attempt', 'lane_fact', 'root_blessing'];

/** A committed message that has not been executed, or not successfully. */
export interface AwaitingExecution {
  readonly messageId: string;
  readonly status: number;
  /** The commits (and blessings) that cover it. */
  readonly ranges: readonly RangeFact[];
}

/** Message ids have 64 hexadecimal digits. */
export function readSentIn(client: ClientBase, network: string, hashes: readonly string[]) {
  return readWith(client)<{ messageId: string; blockHash: string }>(
    `select encode(message_id, 'hex') as "messageId", b.hash as "blockHash"
     from ${BLOCKS} join fact f on ${inBlock('f')} where f.kind = ${kindNumbers.Sent} order by message_id`,
    blockValues(network, hashes),
  );
}

/** SQL of the blocks in `blockValues`, as `b`. */
const BLOCKS = 'unnest($2::text[], $3::bytea[]) as b (hash, bytes)';

/** SQL condition that a fact was seen in block `b`. */
function inBlock(table: string): string {
  return `${isFound(`${table}.block_hash`, 'b.bytes')} and ${table}.network = $1`;
}

function blockValues(network: string, hashes: readonly string[]): unknown[] {
  return [network, hashes, messageIdArray(hashes.map(hashBytes))];
}

/** Of several, for example across a reorganisation, the one in the highest block. */
export async function readSentFact(client: ClientBase, messageId: string): Promise<Sent | undefined> {
  const { rows } = await client.query(
    `select ${factColumnsOf('fact')} from fact where message_id = $1 and kind = ${kindNumbers.Sent}
     order by block_number desc limit 1`,
    [Buffer.from(messageId, 'hex')],
  );
  return rows[0] && (readMessageFact(rows[0], messageId) as Sent);
}

/** Messages to this network of which a fact was seen in these blocks, also one that a task brought. */
export async function readSentTo(client: ClientBase, network: string, hashes: readonly string[]) {
  if (hashes.length === 0) return [];
  const { rows } = await client.query(
    `select distinct encode(sent.message_id, 'hex') as id, sent.fact_id, ${factColumnsOf('sent')}
     from ${BLOCKS} join fact orphan on ${inBlock('orphan')}
     join fact sent on sent.message_id = orphan.message_id
     where sent.kind = ${kindNumbers.Sent}`,
    blockValues(network, hashes),
  );
  return rows
    .map((row) => readMessageFact(row, row.id) as Sent)
    .filter(({ message }) => storedSelector(message.destNetworkInfo.chainSelector) === network);
}

/** Those of these blocks for which an event is stored that is not among the facts. */
export async function readContradictedBlocks(
  client: ClientBase,
  network: string,
  hashes: readonly string[],
  facts: readonly Fact[],
): Promise<readonly string[]> {
  if (hashes.length === 0) return [];
  // Without the texts of the hashes: where a local table is joined with one of several columns of an `unnest`, Citus takes another.
  const storedIn = (table: string) =>
    `select encode(f.block_hash, 'hex') as bytes from unnest($2::bytea[]) as b (bytes) join ${table} f on ${inBlock('f')}
     where f.transaction is not null and f.fact_id <> all($3)`;
  const { rows } = await client.query(factTables.map(storedIn).join(' union all '), [
    network,
    messageIdArray(hashes.map(hashBytes)),
    messageIdArray(facts.map((fact) => factId(JSON.stringify(fact)))),
  ]);
  const contradicted = new Set(rows.map(({ bytes }) => bytes as string));
  return hashes.filter((hash) => contradicted.has(hashBytes(hash)));
}

/** `after`: only those with an id above this one (64 digits). */
export function readAwaitingExecution(
  client: ClientBase,
  network: string,
  query: {
    readonly after: string | null;
    readonly limit: number;
    /** Also messages whose execution has failed. On most chains these are open to everybody at once. */
    readonly withFailed?: boolean;
  },
): Promise<readonly AwaitingExecution[]> {
  const condition = query.withFailed ? 'status in (2, 3, 6) and not ready' : 'status in (2, 3) and not ready';
  return readMessagesTo(client, condition, network, query.after, query.limit);
}

/** Messages to this network whose execution was not seen, whatever else is known of them. */
export function readUnexecuted(client: ClientBase, network: string, after: string | null, limit: number) {
  return readMessagesTo(client, 'status < 6', network, after, limit);
}

/** Those of these messages (ids in hex) that have not reached a status yet. */
export async function readBelowStatus(client: ClientBase, messageIds: readonly string[], status: Status) {
  if (messageIds.length === 0) return new Set();
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id from message where message_id = any($1) and status < $2`,
    [messageIdArray(messageIds), statusRank(status)],
  );
  return new Set(rows.map(({ id }) => id as string));
}

async function readMessagesTo(
  client: ClientBase,
  condition: 'status in (2, 3) and not ready' | 'status in (2, 3, 6) and not ready' | 'status < 6',
  network: string,
  after: string | null,
  limit: number,
): Promise<readonly AwaitingExecution[]> {
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id, status, record from message
     where dest_selector = $1 and ${condition} and message_id > $2
     order by message_id limit $3`,
    [network, Buffer.from(after ?? '', 'hex'), limit],
  );
  const covering = await rangesCovering(
    readWith(client),
    rows.map((row) => JSON.parse(row.record) as SentMessage),
  );
  return rows.map((row, index) => ({
    messageId: row.id,
    status: row.status,
    ranges: covering.get(index) ?? [],
  }));
}

export async function readFactBlocks(client: ClientBase, network: string, below: number, limit: number) {
  const blocksOf = (table: string) =>
    `(select distinct block_number, block_hash from ${table} where network = $1 and block_number < $2
     order by block_number desc, block_hash limit $3)`;
  const { rows } = await client.query(
    `select distinct block_number, block_hash from (${factTables.map(blocksOf).join(' union all ')}) seen
     order by block_number desc, block_hash limit $3`,
    [network, below, limit],
  );
  return rows.map(
    ({ block_number, block_hash }): BlockId => ({
      number: Number(block_number),
      hash: hashText(block_hash) ?? '',
    }),
  );
}
