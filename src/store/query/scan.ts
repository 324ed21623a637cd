/**
 * The choice of the index for a search.
 *
 * It is made here, not by the planner: the condition that finds rows is written so that an index serves it, all other
 * conditions so that none can (`unindexed`). So the plan is the same whatever the data is like, and can be cached. Whichever
 * of sender, receiver, source and destination a search combines, the matching rows are adjacent and in order in one index,
 * so that a page reads its own rows and no others:
 *
 * - one of them, or a lane: its own index, of an actor by the beginning of its address;
 * - several with at least one actor: an index by `search_key`, a hash of them;
 * - an actor and one network: the lanes of that network one after the other, each by `search_key`;
 * - a source token and an actor: an index by `search_key` of the tokens.
 *
 * Each of these indexes exists three times: for all messages, for those that failed, and for those that are ready for
 * manual execution. A token, alone or with networks, is found in the same ways in a table of its own.
 */
import type { BytesHex } from '../../domain/addresses.ts';
import { type Status, statusRank } from '../../domain/lifecycle.ts';
import { FAILED_EXECUTION } from '../facts/kinds.ts';
import { BEGINNING_BYTES, beginningOf, fixedSql, isFound, joinSql, type Sql, sql } from '../sql.ts';
import { storedSelector } from '../write/message-row.ts';

/** Requirements on a message, all of which must hold. */
export interface Requirements {
  readonly messageIds?: readonly BytesHex[] | undefined;
  readonly sendTransaction?: BytesHex | undefined;
  readonly receiptTransaction?: BytesHex | undefined;
  readonly otherTransaction?: BytesHex | undefined;
  readonly sender?: BytesHex | undefined;
  readonly receiver?: BytesHex | undefined;
  readonly origin?: BytesHex | undefined;
  readonly source?: string | undefined;
  readonly dest?: string | undefined;
  readonly sourceToken?: BytesHex | undefined;
  readonly destToken?: BytesHex | undefined;
  readonly sourcePool?: BytesHex | undefined;
  readonly status?: Status | undefined;
  readonly ready?: true | undefined;
}

/** An index scan: `found` are the conditions that the index serves, in order; `checked` are tested on each row found. */
export interface Scan {
  readonly found: readonly Sql[];
  readonly checked: readonly Sql[];
  /**
   * A required token that the scan does not find rows by. Whether any message has it is checked once, before any row is
   * read: most addresses that are searched for are not tokens.
   */
  readonly token?: TokenRequirement;
  /** Whether the scan is over `message_token`, as `t`, which has a row for each token of a message. */
  readonly isByToken?: true;
  /** Whether the rows are looked up by message id, and then sorted. */
  readonly isById?: true;
  /** Lanes to scan one after the other, as `l`. */
  readonly lanes?: Sql;
}

type Name = keyof Requirements;

/** Each requirement as a condition on a row of `message`. The type makes the table complete. */
const conditions: { readonly [N in Name]-?: (value: NonNullable<Requirements[N]>) => Sql } = {
  messageIds: (ids) => sql`m.message_id = any(${ids.map(bytes)}::bytea[])`,
  sendTransaction: (hash) => sql`m.send_transaction = ${bytes(hash)}::bytea`,
  receiptTransaction: (hash) => sql`m.receipt_transaction = ${bytes(hash)}::bytea`,
  otherTransaction: (hash) => sql`m.message_id = any(array(${messagesOfTransaction(hash)}))`,
  sender: (address) => sql`m.sender = ${bytes(address)}::bytea`,
  receiver: (address) => sql`m.receiver = ${bytes(address)}::bytea`,
  // Where the origin is the sender, the scan by sender finds it.
  origin: (address) => sql`(m.origin = ${bytes(address)}::bytea and m.origin <> m.sender)`,
  source: (selector) => sql`m.source_selector = ${storedSelector(selector)}::bigint`,
  dest: (selector) => sql`m.dest_selector = ${storedSelector(selector)}::bigint`,
  sourceToken: (address) => hasToken('sourceToken', address),
  destToken: (address) => hasToken('destToken', address),
  sourcePool: (address) => hasToken('sourcePool', address),
  // A constant, one of eight, so that the planner sees which partial indexes hold it.
  status: (status) => fixedSql(`m.status = ${statusRank(status)}`),
  ready: () => sql`m.ready`,
};

/**
 * The messages that a transaction attempted to execute, committed or blessed. A commit names a range of sequence numbers
 * (one piece of it has at most 256) and a blessing a root; the laterals keep the planner on the index of the numbers.
 */
function messagesOfTransaction(hash: BytesHex): Sql {
  const isTransaction = (column: string) =>
    joinSql([beginsLike(column, hash), sql`${fixedSql(column)} = ${bytes(hash)}::bytea`], ' and ');
  const failed = fixedSql(String(FAILED_EXECUTION));
  const inRange = sql`cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, sequence_number limit ${MAX_MESSAGES_IN_RANGE}) c`;
  const ofRoot = fixedSql(isFound('merkle_root', 'b.merkle_root'));
  return sql`select f.message_id from fact f where f.kind = ${failed} and ${isTransaction('f.transaction')}
    union all select e.message_id from earlier_attempt e where e.kind = ${failed} and ${isTransaction('e.transaction')}
    union all select c.message_id from lane_fact r ${inRange} where ${isTransaction('r.transaction')}
    union all select c.message_id from root_blessing b cross join lateral (
        select * from lane_fact where ${ofRoot} and network = b.network limit ${MAX_RANGES_OF_ROOT}) r
      ${inRange} where ${isTransaction('b.transaction')}`;
}

/** Twice a piece, because a reorganisation may have given a number to two messages for a moment. */
const MAX_MESSAGES_IN_RANGE = fixedSql('512');
const MAX_RANGES_OF_ROOT = fixedSql('64');

/**
 * True of all messages. The indexes in order of time, of all, ready or failed ones, have it as their predicate, so that no
 * other search can walk them and test row after row.
 */
const IN_ORDER_OF_TIME = fixedSql('m.sequence_number >= 0');

/** Columns of long values, of which indexes have the beginning. */
const columnsByBeginning = {
  sendTransaction: 'm.send_transaction',
  receiptTransaction: 'm.receipt_transaction',
  sender: 'm.sender',
  receiver: 'm.receiver',
  origin: 'm.origin',
};

/** The condition that an index of the beginning of a column serves. Whether the rest agrees is still to be checked. */
function beginsLike(column: string, value: BytesHex): Sql {
  const beginning = bytes(value).subarray(0, BEGINNING_BYTES);
  return sql`${fixedSql(beginningOf(column))} = ${beginning}::bytea`;
}

/** Columns of `message_token`. */
const tokenColumns = {
  sourceToken: 't.source_token',
  destToken: 't.dest_token',
  sourcePool: 't.source_pool',
};
type TokenName = keyof typeof tokenColumns;
/** One of them. */
export type TokenRequirement = Pick<Requirements, TokenName>;
const tokenNames = Object.keys(tokenColumns) as TokenName[];

/** A condition on a row of `message_token`. */
function isToken(name: TokenName, address: BytesHex): Sql {
  return sql`${fixedSql(tokenColumns[name])} = ${bytes(address)}::bytea`;
}

function hasToken(name: TokenName, address: BytesHex): Sql {
  return sql`exists (select 1 from message_token t where t.message_id = m.message_id and ${isToken(name, address)})`;
}

/** Whether any message has the token: a condition that depends on no row. */
export function tokenExists(token: TokenRequirement): Sql {
  const checks = tokenNames.flatMap((name) => {
    const address = token[name];
    if (address === undefined) return [];
    const isFound = joinSql([beginsLike(tokenColumns[name], address), isToken(name, address)], ' and ');
    return [sql`exists (select 1 from message_token t where ${isFound} limit 1)`];
  });
  return joinSql(checks, ' and ');
}

/** `isPage`: only the first rows are read, instead of all. */
export function scanFor(requirements: Requirements, isPage: boolean): Scan {
  const { status } = requirements;
  const given = (...names: readonly Name[]) => names.filter((name) => requirements[name] !== undefined);
  const tokenName = tokenNames.find((name) => requirements[name] !== undefined);
  const foundBy = (...names: readonly Name[]): Scan => ({
    found: [
      ...names.flatMap((name) => indexConditionsOf(name, requirements)),
      ...(names.every((name) => name === 'status' || name === 'ready') ? [IN_ORDER_OF_TIME] : []),
    ],
    checked: conditionsOf(requirements, (name) => !names.includes(name) || isByBeginning(name)).map(
      unindexed,
    ),
    ...(tokenName && { token: { [tokenName]: requirements[tokenName] } }),
  });

  // Each of these finds few rows.
  const [selective] = given('messageIds', 'sendTransaction', 'receiptTransaction', 'otherTransaction');
  if (selective) {
    const isById = selective === 'messageIds' || selective === 'otherTransaction';
    return { ...foundBy(selective), ...(isById && { isById }) };
  }
  if (status !== undefined && statusRank(status) < statusRank('FAILED')) return foundBy('status');
  if (status === 'SUCCESS' && requirements.ready) return foundBy('status', 'ready');
  if (requirements.origin !== undefined) return foundBy('origin');

  // Failed and ready messages have partial indexes. Nearly all others succeeded, so that status selects nothing.
  const kind: readonly Name[] = requirements.ready ? ['ready'] : status === 'FAILED' ? ['status'] : [];
  const actors = given('sender', 'receiver');
  const networks = given('source', 'dest');
  if (actors.length === 0) {
    if (tokenName && kind.length === 0) return scanForToken(tokenName, requirements, isPage);
    if (status === 'SUCCESS' && networks.length === 0) return foundBy('status');
    return foundBy(...networks, ...kind);
  }

  if (tokenName === 'sourceToken' && kind.length === 0) return scanForTokenAndActor(requirements);
  const laneScan = laneScanFor(requirements, isPage);
  if (!laneScan && actors.length === 1) return foundBy(...actors, ...kind);
  const { lane, ...lanes } = laneScan ?? {};
  const { checked, token } = foundBy(...kind);
  const found = [
    keyCondition(requirements, lane),
    ...kind.flatMap((name) => indexConditionsOf(name, requirements)),
  ];
  return { found, checked, ...(token && { token }), ...lanes };
}

function scanForToken(name: TokenName, requirements: Requirements, isPage: boolean): Scan {
  const { [name]: address = '', ...others } = requirements;
  const checked = [isToken(name, address), ...conditionsOf(others)].map(unindexed);
  const laneScan = laneScanFor(requirements, isPage);
  if (!laneScan) return { found: [beginsLike(tokenColumns[name], address)], checked, isByToken: true };
  const { lane, ...lanes } = laneScan;
  const key = sql`search_key(${fixedSql(tokenColumns[name])}, null, t.source_selector, t.dest_selector)`;
  return {
    found: [sql`${key} = search_key(${bytes(address)}::bytea, null, ${joinSql(lane, ', ')})`],
    checked,
    isByToken: true,
    ...lanes,
  };
}

/** A source token that a sender or a receiver has in common with others. The key has the actor by its beginning. */
function scanForTokenAndActor({ sourceToken = '', ...others }: Requirements): Scan {
  const token = sql`${bytes(sourceToken)}::bytea`;
  const { sender, receiver = '' } = others;
  const beginning = sql`${bytes(sender ?? receiver).subarray(0, BEGINNING_BYTES)}::bytea`;
  const [key, value] =
    sender === undefined
      ? [fixedSql('t.receiver_beginning, t.source_token'), sql`${beginning}, ${token}`]
      : [fixedSql('t.source_token, t.sender_beginning'), sql`${token}, ${beginning}`];
  return {
    found: [sql`search_key(${key}, null, null) = search_key(${value}, null, null)`],
    checked: [isToken('sourceToken', sourceToken), ...conditionsOf(others)].map(unindexed),
    isByToken: true,
  };
}

type Lane = readonly [source: Sql, dest: Sql];

/** The lane whose rows are adjacent in an index: the required one, or in turn each lane of a required network. */
function laneScanFor(
  requirements: Requirements,
  isPage: boolean,
): { readonly lane: Lane; readonly lanes?: Sql } | undefined {
  const { source, dest } = requirements;
  if (source !== undefined && dest !== undefined) {
    return { lane: [sql`${storedSelector(source)}::bigint`, sql`${storedSelector(dest)}::bigint`] };
  }
  // An export reads all lanes by the index of the actor: that needs no sort.
  if (!isPage || (source === undefined && dest === undefined)) return undefined;
  return { lane: [sql`l.source_selector`, sql`l.dest_selector`], lanes: lanesOf(requirements) };
}

/** The condition on the hash that an index has of actors and lane; null stands for what is not required. */
function keyCondition({ sender, receiver }: Requirements, lane?: Lane): Sql {
  const none = sql`null`;
  const columns = [
    sender === undefined ? none : sql`m.sender`,
    receiver === undefined ? none : sql`m.receiver`,
    lane ? sql`m.source_selector` : none,
    lane ? sql`m.dest_selector` : none,
  ];
  const values = [
    sender === undefined ? none : sql`${bytes(sender)}::bytea`,
    receiver === undefined ? none : sql`${bytes(receiver)}::bytea`,
    ...(lane ?? [none, none]),
  ];
  return sql`search_key(${joinSql(columns, ', ')}) = search_key(${joinSql(values, ', ')})`;
}

/** The lanes that begin or end at the required network; a network has dozens at most. */
function lanesOf({ source, dest }: Requirements): Sql {
  const end =
    source === undefined
      ? sql`dest_selector = ${storedSelector(dest ?? '')}::bigint`
      : sql`source_selector = ${storedSelector(source)}::bigint`;
  return sql`select distinct source_selector, dest_selector from lane_total where ${end}`;
}

/** The conjunction of both; undefined where they contradict each other. */
export function mergeRequirements(one: Requirements, other: Requirements): Requirements | undefined {
  for (const name of Object.keys(other) as Name[]) {
    if (name === 'messageIds' || one[name] === undefined || other[name] === undefined) continue;
    if (one[name] !== other[name]) return undefined;
  }
  const [ids, otherIds] = [one.messageIds, other.messageIds];
  const messageIds = ids && otherIds ? ids.filter((id) => otherIds.includes(id)) : (ids ?? otherIds);
  return messageIds?.length === 0 ? undefined : { ...one, ...other, messageIds };
}

/** A filter with alternatives, as one condition on rows that are found by something else. */
export function anyOf(alternatives: readonly Requirements[]): Sql {
  const ways = alternatives.map((requirements) => sql`(${joinSql(conditionsOf(requirements), ' and ')})`);
  return unindexed(sql`(${joinSql(ways, ' or ')})`);
}

/**
 * Whether any message satisfies one of the alternatives, whatever else is required. Each is one look-up in the index that
 * finds it; the order keeps the planner from reading the table instead. What the index does not have is not checked: a yes
 * that is wrong costs a longer search.
 */
export function anyMessageHas(alternatives: readonly Requirements[]): Sql {
  const lookUps = alternatives.map((requirements) => {
    const { found, isByToken } = scanFor(requirements, true);
    const key = isByToken ? sql`t` : sql`m`;
    return sql`(select true from ${isByToken ? sql`message_token t` : sql`message m`} where ${joinSql(found, ' and ')}
      order by ${key}.sort_key desc limit 1) is not null`;
  });
  return sql`(${joinSql(lookUps, ' or ')})`;
}

/**
 * The same as a statement for a cluster: its row is the index of an alternative that some message satisfies, and there is no
 * row where none does. Citus runs a union on the shards only if each part returns the message id.
 */
export function satisfiedSql(alternatives: readonly Requirements[]): Sql {
  const lookUps = alternatives.map((requirements, index) => {
    const { found, isByToken } = scanFor(requirements, true);
    return sql`select message_id, ${fixedSql(String(index))} as alternative
      from ${isByToken ? sql`message_token t` : sql`message m`} where ${joinSql(found, ' and ')}`;
  });
  return sql`select alternative from (${joinSql(lookUps, ' union all ')}) satisfied limit 1`;
}

/** A condition that no index can serve. The planner sees through `is true`; of this it assumes that half of the rows match. */
function unindexed(condition: Sql): Sql {
  return sql`coalesce(${condition}, false)`;
}

function isByBeginning(name: Name): name is keyof typeof columnsByBeginning {
  return name in columnsByBeginning;
}

/** The condition on a requirement that an index serves; none where it is not required. */
function indexConditionsOf(name: Name, requirements: Requirements): readonly Sql[] {
  if (requirements[name] === undefined) return [];
  if (!isByBeginning(name)) return conditionsOf(requirements, (other) => other === name);
  const condition = beginsLike(columnsByBeginning[name], requirements[name] as BytesHex);
  return name === 'origin' ? [condition, fixedSql('m.origin <> m.sender')] : [condition];
}

function conditionsOf(requirements: Requirements, isChosen: (name: Name) => boolean = () => true): Sql[] {
  return (Object.keys(requirements) as Name[])
    .filter((name) => requirements[name] !== undefined && isChosen(name))
    .map((name) => (conditions[name] as (value: unknown) => Sql)(requirements[name]));
}

function bytes(hex: BytesHex): Buffer {
  return Buffer.from(hex, 'hex');
}
