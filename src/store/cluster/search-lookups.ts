/**
 * Look-ups of a search on a cluster: what the statement for one node finds by itself, with a lateral join, which Citus does not
 * plan, or with an existence check, of which Citus makes a distributed statement whose result it first copies to all workers.
 * The lanes of a network, the messages of a transaction and the results of the checks are read first, and the statement is made
 * from them.
 *
 * Look-ups and search have no snapshot in common, as the shards of one statement have none either: a message that is written
 * meanwhile may be missing, as if it had been written later. The response cache stays correct, because it reads the version of
 * the store before all of them.
 */
import type { BytesHex } from '../../domain/addresses.ts';
import type { Filters } from '../../domain/filters/query.ts';
import { FAILED_EXECUTION } from '../facts/kinds.ts';
import { type Requirements, satisfiedSql, type TokenRequirement } from '../query/scan.ts';
import type { Read } from '../reads/reads.ts';
import { isFound, renderSql } from '../sql.ts';
import { selectorOf } from '../write/message-row.ts';

/** The ends of a lane: chain selectors. */
type LaneOfNetwork = Readonly<Record<'source' | 'dest', string>>;

/** The existence checks of a search, which a cluster makes before it. */
export interface SearchChecks {
  /** A scan whose token no message has finds nothing. */
  readonly tokens: readonly TokenRequirement[];
  /** Where no message satisfies any alternative of one of these lists, the answer is empty. */
  readonly lists: readonly (readonly Requirements[])[];
}

export interface SearchLookups {
  /** The lanes that begin at `source`, or that end at `dest`; with `ready`, those with a message that is. */
  lanesOf(requirements: Pick<Requirements, keyof LaneOfNetwork | 'ready'>): readonly LaneOfNetwork[];
  /** The messages that a transaction attempted to execute, committed or blessed. */
  messagesOf(transaction: BytesHex): readonly BytesHex[];
  /** Whether any message has a token that the search checks. */
  hasToken(token: TokenRequirement): boolean;
  /** Whether one of the filters is satisfied by no message at all. */
  readonly isEmpty: boolean;
}

/** As in the statement for one node: the longest piece of a range, twice, and the ranges of a root. */
const MAX_MESSAGES_IN_RANGE = 512;
const MAX_RANGES = 64;

export async function readSearchLookups(
  read: Read,
  filters: Filters,
  checks: SearchChecks,
): Promise<SearchLookups> {
  const hashes = new Set<BytesHex>([
    ...(filters.destTransactionHash ?? []),
    ...(filters.q ?? []).flatMap((term) => term.hashes),
  ]);
  const { sourceChainSelector, destChainSelector, chainSelector } = filters;
  const [lanes, messages, tokens, satisfied] = await Promise.all([
    // Lanes matter to searches for a network with an actor or a token.
    (sourceChainSelector ?? destChainSelector ?? chainSelector) ? readLanes(read) : [],
    Promise.all([...hashes].map(async (hash) => [hash, await readMessagesOf(read, hash)] as const)),
    readExistingTokens(read, checks.tokens),
    Promise.all(checks.lists.map((list) => readSatisfied(read, list.filter(needsStatement)))),
  ]);
  const messagesByTransaction = new Map(messages);
  const lanesOf: SearchLookups['lanesOf'] = ({ source, dest, ready }) =>
    lanes
      .filter((lane) => (source === undefined ? lane.dest === dest : lane.source === source))
      .filter(({ hasReady }) => !ready || hasReady)
      .map((lane) => ({ source: lane.source, dest: lane.dest }));
  const messagesOf: SearchLookups['messagesOf'] = (transaction) =>
    messagesByTransaction.get(transaction) ?? [];
  const isFound = ({ otherTransaction, source, dest }: Requirements) =>
    (otherTransaction !== undefined && messagesOf(otherTransaction).length > 0) ||
    ((source !== undefined || dest !== undefined) && lanesOf({ source, dest }).length > 0);
  return {
    lanesOf,
    messagesOf,
    hasToken: (token) => tokens.has(keyOf(token)),
    isEmpty: checks.lists.some((list, index) => satisfied[index] === undefined && !list.some(isFound)),
  };
}

/** Of transactions and networks, the look-ups of messages and lanes show whether some message has them. */
function needsStatement({ otherTransaction, source, dest }: Requirements): boolean {
  return otherTransaction === undefined && source === undefined && dest === undefined;
}

/** The tokens that some message has. Most addresses are not tokens, which a single statement shows. */
async function readExistingTokens(read: Read, tokens: readonly TokenRequirement[]) {
  const found = new Set<string>();
  for (let others = tokens; ; ) {
    const token = await readSatisfied(read, others);
    if (!token) return found;
    found.add(keyOf(token));
    others = others.filter((other) => other !== token);
  }
}

function keyOf(token: TokenRequirement): string {
  return JSON.stringify(token);
}

/** One of the alternatives that some message satisfies; undefined if no message satisfies any. */
async function readSatisfied<R extends Requirements>(
  read: Read,
  alternatives: readonly R[],
): Promise<R | undefined> {
  if (alternatives.length === 0) return undefined;
  const { text, values } = renderSql(satisfiedSql(alternatives));
  const [row] = await read(text, values);
  return row && alternatives[row.alternative as number];
}

/** All lanes; `hasReady`: whether any of its messages is ready for manual execution. */
async function readLanes(read: Read) {
  const rows = await read<LaneOfNetwork & { readonly hasReady: boolean }>(
    `select source_selector as source, dest_selector as dest, bool_or(ready and messages > 0) as "hasReady"
     from lane_total group by source_selector, dest_selector`,
    [],
  );
  return rows.map((row) => ({ ...row, source: selectorOf(row.source), dest: selectorOf(row.dest) }));
}

async function readMessagesOf(read: Read, hash: BytesHex): Promise<readonly BytesHex[]> {
  const transaction = Buffer.from(hash, 'hex');
  const attemptedIn = (table: 'fact' | 'earlier_attempt') =>
    read(
      `select encode(message_id, 'hex') as id from ${table}
       where kind = ${FAILED_EXECUTION} and ${isFound('transaction', '$1::bytea')}`,
      [transaction],
    );
  const [attempted, attemptedEarlier, ranges] = await Promise.all([
    attemptedIn('fact'),
    attemptedIn('earlier_attempt'),
    read(
      `select source_selector, dest_selector, onramp, from_sequence, to_sequence from lane_fact
       where ${isFound('transaction', '$1::bytea')}
       union all
       select r.source_selector, r.dest_selector, r.onramp, r.from_sequence, r.to_sequence
       from root_blessing b cross join lateral (
         select * from lane_fact
         where ${isFound('merkle_root', 'b.merkle_root')} and network = b.network limit ${MAX_RANGES}) r
       where ${isFound('b.transaction', '$1::bytea')}`,
      [transaction],
    ),
  ]);
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
  return [...attempted, ...attemptedEarlier, ...inRanges].map(({ id }) => id as string);
}
