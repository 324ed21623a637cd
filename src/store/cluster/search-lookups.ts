/**
 * Look-ups of a search on a cluster: what the statement for one node finds by itself with a lateral join, which Citus does not
 * plan. The lanes of a network and the messages of a transaction are read first, and become part of the statement.
 */
import type { BytesHex } from '../../domain/addresses.ts';
import type { Filters } from '../../domain/query.ts';
import { selectorOf } from '../message-row.ts';
import type { Read } from '../reads/reads.ts';

/** The ends of a lane: chain selectors. */
export interface LaneOfNetwork {
  readonly source: string;
  readonly dest: string;
}

export interface SearchLookups {
  /** The lanes that begin at `source`, or that end at `dest`. */
  lanesOf(network: { readonly [End in keyof LaneOfNetwork]?: string | undefined }): readonly LaneOfNetwork[];
  /** The messages that a transaction attempted to execute, committed or blessed. */
  messagesOf(transaction: BytesHex): readonly BytesHex[];
}

/** As in the statement for one node: the longest piece of a range, twice, and the ranges of a root. */
const MAX_MESSAGES_IN_RANGE = 512;
const MAX_RANGES = 64;

export async function readSearchLookups(read: Read, filters: Filters): Promise<SearchLookups> {
  const hashes = new Set<BytesHex>([
    ...(filters.destTransactionHash ?? []),
    ...(filters.q ?? []).flatMap((term) => term.hashes),
  ]);
  const lanes = hasNetwork(filters) ? await readLanes(read) : [];
  const messagesOf = new Map<BytesHex, readonly BytesHex[]>();
  for (const hash of hashes) messagesOf.set(hash, await readMessagesOf(read, hash));
  return {
    lanesOf: ({ source, dest }) =>
      lanes.filter((lane) => (source === undefined ? lane.dest === dest : lane.source === source)),
    messagesOf: (transaction) => messagesOf.get(transaction) ?? [],
  };
}

/** Lanes matter to searches for a network with an actor or a token. */
function hasNetwork(filters: Filters): boolean {
  return (
    filters.sourceChainSelector !== undefined ||
    filters.destChainSelector !== undefined ||
    filters.chainSelector !== undefined
  );
}

async function readLanes(read: Read): Promise<readonly LaneOfNetwork[]> {
  const rows = await read('select distinct source_selector, dest_selector from lane_total', []);
  return rows.map((row) => ({
    source: selectorOf(row.source_selector as string),
    dest: selectorOf(row.dest_selector as string),
  }));
}

async function readMessagesOf(read: Read, hash: BytesHex): Promise<readonly BytesHex[]> {
  const transaction = Buffer.from(hash, 'hex');
  const attempted = await read(`select encode(message_id, 'hex') as id from fact where transaction = $1`, [
    transaction,
  ]);
  const ranges = await read(
    `select source_selector, dest_selector, onramp, from_sequence, to_sequence from lane_fact where transaction = $1
     union all
     select r.source_selector, r.dest_selector, r.onramp, r.from_sequence, r.to_sequence
     from root_blessing b cross join lateral (
       select * from lane_fact where network = b.network and merkle_root = b.merkle_root limit ${MAX_RANGES}) r
     where b.transaction = $1`,
    [transaction],
  );
  const inRanges: Record<string, unknown>[] = [];
  for (const range of ranges) {
    const found = await read(
      `select encode(message_id, 'hex') as id from message
       where source_selector = $1 and dest_selector = $2 and onramp = $3 and sequence_number between $4 and $5
       order by sequence_number limit ${MAX_MESSAGES_IN_RANGE}`,
      [range.source_selector, range.dest_selector, range.onramp, range.from_sequence, range.to_sequence],
    );
    inRanges.push(...found);
  }
  return [...attempted, ...inRanges].map(({ id }) => id as string);
}
