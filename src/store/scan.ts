/**
 * Which index finds what is wanted.
 *
 * That is decided here, not by the planner: the condition that finds rows is written so that an index answers it, all
 * others so that none can (`unindexed`). The plan is then the same whatever the data is like, and can be kept. Whichever
 * of sender, receiver, source and destination are asked for together, the rows that match stand side by side in one
 * index and in order, so that a page costs its own rows and no others:
 *
 * - one of them, or a lane: its own index;
 * - several with at least one actor: an index by `search_key`, a hash of them;
 * - an actor and one network: the lanes of that network one after the other, each by `search_key`.
 *
 * Each of these indexes exists three times: for all messages, for those that failed, and for those that are ready for
 * manual execution. A token, alone or with networks, is found in the same ways in a table of its own.
 */
import type { BytesHex } from '../domain/addresses.ts';
import { type Status, statusRank } from '../domain/lifecycle.ts';
import { storedSelector } from './message-row.ts';
import { fixedSql, joinSql, type Sql, sql } from './sql.ts';

/** What must hold of a message, all of it. */
export interface Wanted {
  readonly messageIds?: readonly BytesHex[] | undefined;
  readonly sendTransaction?: BytesHex | undefined;
  readonly receiptTransaction?: BytesHex | undefined;
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

/** How rows are found: by `found`, in the order of an index, and then looked at for `checked`. */
export interface Scan {
  readonly found: readonly Sql[];
  readonly checked: readonly Sql[];
  /** Whether they are found in `message_token`, as `t`, where a message stands once for each of its tokens. */
  readonly isByToken?: true;
  /** Lanes to scan one after the other, as `l`. */
  readonly lanes?: Sql;
}

type Name = keyof Wanted;

/** Each requirement as a condition on a row of `message`. The type makes the table complete. */
const conditions: { readonly [N in Name]-?: (value: NonNullable<Wanted[N]>) => Sql } = {
  messageIds: (ids) => sql`m.message_id = any(${ids.map(bytes)}::bytea[])`,
  sendTransaction: (hash) => sql`m.send_transaction = ${bytes(hash)}::bytea`,
  receiptTransaction: (hash) => sql`m.receipt_transaction = ${bytes(hash)}::bytea`,
  sender: (address) => sql`m.sender = ${bytes(address)}::bytea`,
  receiver: (address) => sql`m.receiver = ${bytes(address)}::bytea`,
  // Where the origin is the sender, the sender finds it.
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

/** Of `message_token`. */
const tokenColumns = {
  sourceToken: fixedSql('t.source_token'),
  destToken: fixedSql('t.dest_token'),
  sourcePool: fixedSql('t.source_pool'),
};
type TokenName = keyof typeof tokenColumns;
const tokenNames = Object.keys(tokenColumns) as TokenName[];

/** On a row of `message_token`. */
function isToken(name: TokenName, address: BytesHex): Sql {
  return sql`${tokenColumns[name]} = ${bytes(address)}::bytea`;
}

function hasToken(name: TokenName, address: BytesHex): Sql {
  return sql`exists (select from message_token t where t.message_id = m.message_id and ${isToken(name, address)})`;
}

/** Asked once, before any row: whether it is a token at all. Most addresses that are searched for are none. */
function tokenGates(wanted: Wanted): Sql[] {
  return tokenNames.flatMap((name) => {
    const address = wanted[name];
    if (address === undefined) return [];
    return [sql`exists (select from message_token t where ${isToken(name, address)})`];
  });
}

/** `isPage`: only the first rows are taken, instead of all. */
export function scanFor(wanted: Wanted, isPage: boolean): Scan {
  const { status } = wanted;
  const given = (...names: readonly Name[]) => names.filter((name) => wanted[name] !== undefined);
  const foundBy = (...names: readonly Name[]): Scan => ({
    found: conditionsOf(wanted, (name) => names.includes(name)),
    checked: [...tokenGates(wanted), ...conditionsOf(wanted, (name) => !names.includes(name)).map(unindexed)],
  });

  // Of these there are few to look at, whatever else must hold.
  const [telling] = given('messageIds', 'sendTransaction', 'receiptTransaction');
  if (telling) return foundBy(telling);
  if (status !== undefined && statusRank(status) < statusRank('FAILED')) return foundBy('status');
  if (status === 'SUCCESS' && wanted.ready) return foundBy('status', 'ready');
  if (wanted.origin !== undefined) return foundBy('origin');

  // What is wrong has indexes of its own. Nearly all the rest has succeeded: that tells nothing.
  const kind: readonly Name[] = wanted.ready ? ['ready'] : status === 'FAILED' ? ['status'] : [];
  const actors = given('sender', 'receiver');
  const networks = given('source', 'dest');
  if (actors.length === 0) {
    const token = kind.length === 0 ? tokenNames.find((name) => wanted[name] !== undefined) : undefined;
    if (token) return scanForToken(token, wanted, isPage);
    if (status === 'SUCCESS' && networks.length === 0) return foundBy('status');
    return foundBy(...networks, ...kind);
  }

  const laneScan = laneScanFor(wanted, isPage);
  if (!laneScan && actors.length === 1) return foundBy(...actors, ...kind);
  const { lane, ...lanes } = laneScan ?? {};
  const rest = foundBy(...kind);
  return { ...rest, found: [keyCondition(wanted, lane), ...rest.found], ...lanes };
}

function scanForToken(name: TokenName, wanted: Wanted, isPage: boolean): Scan {
  const { [name]: address = '', ...others } = wanted;
  const condition = isToken(name, address);
  const checked = conditionsOf(others).map(unindexed);
  const laneScan = laneScanFor(wanted, isPage);
  if (!laneScan) return { found: [condition], checked, isByToken: true };
  const { lane, ...lanes } = laneScan;
  const key = sql`search_key(${tokenColumns[name]}, null, t.source_selector, t.dest_selector)`;
  return {
    found: [sql`${key} = search_key(${bytes(address)}::bytea, null, ${joinSql(lane, ', ')})`],
    checked: [unindexed(condition), ...checked],
    isByToken: true,
    ...lanes,
  };
}

type Lane = readonly [source: Sql, dest: Sql];

/** The lane whose rows an index has side by side: the one that is wanted, or each of those of a network. */
function laneScanFor(
  wanted: Wanted,
  isPage: boolean,
): { readonly lane: Lane; readonly lanes?: Sql } | undefined {
  const { source, dest } = wanted;
  if (source !== undefined && dest !== undefined) {
    return { lane: [sql`${storedSelector(source)}::bigint`, sql`${storedSelector(dest)}::bigint`] };
  }
  // Whoever takes everything may look at all lanes: that needs no sort.
  if (!isPage || (source === undefined && dest === undefined)) return undefined;
  return { lane: [sql`l.source_selector`, sql`l.dest_selector`], lanes: lanesOf(wanted) };
}

/** The hash by which an index finds actors with each other or on a lane; null stands for what is not asked for. */
function keyCondition({ sender, receiver }: Wanted, lane?: Lane): Sql {
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

/** Those that begin or end where it is wanted; a network has dozens at most. */
function lanesOf({ source, dest }: Wanted): Sql {
  const end =
    source === undefined
      ? sql`dest_selector = ${storedSelector(dest ?? '')}::bigint`
      : sql`source_selector = ${storedSelector(source)}::bigint`;
  return sql`select distinct source_selector, dest_selector from lane_total where ${end}`;
}

/** Both together; undefined where they contradict each other. */
export function unite(one: Wanted, other: Wanted): Wanted | undefined {
  for (const name of Object.keys(other) as Name[]) {
    if (name === 'messageIds' || one[name] === undefined || other[name] === undefined) continue;
    if (one[name] !== other[name]) return undefined;
  }
  const messageIds = common(one.messageIds, other.messageIds);
  return messageIds?.length === 0 ? undefined : { ...one, ...other, messageIds };
}

function common<T>(one: readonly T[] | undefined, other: readonly T[] | undefined): readonly T[] | undefined {
  return one && other ? one.filter((element) => other.includes(element)) : (one ?? other);
}

/** A filter that can hold in several ways, as one condition for rows that are found by something else. */
export function anyOf(alternatives: readonly Wanted[]): Sql {
  const ways = alternatives.map((wanted) => sql`(${joinSql(conditionsOf(wanted), ' and ')})`);
  return unindexed(sql`(${joinSql(ways, ' or ')})`);
}

/**
 * Whether any message satisfies one of these, whatever else is asked for. Each alternative is one look into the index that
 * finds it; the order keeps the planner from reading the table instead.
 */
export function isAnywhere(alternatives: readonly Wanted[]): Sql {
  const looks = alternatives.map((wanted) => {
    const { found, isByToken } = scanFor(wanted, true);
    const key = isByToken ? sql`t` : sql`m`;
    return sql`(select true from ${isByToken ? sql`message_token t` : sql`message m`} where ${joinSql(found, ' and ')}
      order by ${key}.sent_at desc, ${key}.message_id desc limit 1) is not null`;
  });
  return sql`(${joinSql(looks, ' or ')})`;
}

/** Not for an index to answer; the planner, which sees through `is true`, takes it for as likely as not. */
function unindexed(condition: Sql): Sql {
  return sql`coalesce(${condition}, false)`;
}

function conditionsOf(wanted: Wanted, isChosen: (name: Name) => boolean = () => true): Sql[] {
  return (Object.keys(wanted) as Name[])
    .filter((name) => wanted[name] !== undefined && isChosen(name))
    .map((name) => (conditions[name] as (value: unknown) => Sql)(wanted[name]));
}

function bytes(hex: BytesHex): Buffer {
  return Buffer.from(hex, 'hex');
}
