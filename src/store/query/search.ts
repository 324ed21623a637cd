/**
 * The SQL of a search.
 *
 * Every page is `… order by sort_key desc, message_id desc limit n` (keyset pagination) over an index that serves filter and
 * order together (`scan.ts` chooses it). The sort key stands for send time and message id; PostgreSQL sorts the few rows of
 * equal keys (incremental sort). A filter with alternatives (an address that may be sender, receiver or origin; one
 * of several statuses; a search term) becomes a union of such scans, which PostgreSQL merges in order: still no sort, and
 * still no more rows read than the page needs. At most one filter is split like that; the others are conditions on each
 * scan. An existence check comes first for each of these: where no message satisfies it, the search ends at once, and does
 * not examine every row of a busy address.
 */

import type { QTerm } from '../../domain/filters/parameter-values.ts';
import type { Filters, SearchQuery } from '../../domain/filters/query.ts';
import type { Layout } from '../cluster/layout.ts';
import { readSearchLookups, type SearchLookups } from '../cluster/search-lookups.ts';
import type { Read, RowBound } from '../reads/reads.ts';
import { fixedSql, joinSql, type Sql, sql } from '../sql.ts';
import { sortKey } from '../write/message-row.ts';
import {
  anyMessageHas,
  anyOf,
  mergeRequirements,
  type Requirements,
  type Scan,
  scanFor,
  tokenExists,
} from './scan.ts';

/**
 * Settings of the connections that search. Generic plans are made once, without looking at values: `scan.ts` has chosen the
 * index, and planning costs more than most pages. The planner does not know how short a page is: it would think of reading a
 * table or all matching rows, sorting them, or starting parallel workers, each of which takes longer than the page.
 */
export const SEARCH_SETTINGS =
  '-c plan_cache_mode=force_generic_plan -c enable_bitmapscan=off -c enable_seqscan=off -c enable_sort=off ' +
  '-c max_parallel_workers_per_gather=0';

/** Citus cannot plan a statement without its values: it looks for the shards that they are on. */
export const searchSettings: Readonly<Record<Layout, string>> = {
  single: SEARCH_SETTINGS,
  distributed: SEARCH_SETTINGS.replace('force_generic_plan', 'auto'),
};

/** The statement for one page: the columns of `readPage`, newest first, one row more than the page shows. */
export function searchSql(query: SearchQuery): Sql {
  const rows = query.limit + 1;
  const conditions = conditionsOf(query.filters);
  return sql`select ${PAGE_COLUMNS}
    from (${matchingSql(query, conditions, scansOf(conditions, true), rows)}) page ${existenceChecks(conditions)}limit ${rows}`;
}

const PAGE_COLUMNS = fixedSql(`digest, body, encode(message_id, 'hex'), sort_key`);

/**
 * The same for a cluster. The order and the only limit are outermost: Citus sends them to every shard, which returns no more
 * than a page. A limit inside would make it a statement of its own, whose rows are collected first. Existence checks would be
 * such statements too: the look-ups have their results. A single scan has no subquery: Citus plans it in less time.
 */
export function distributedSearchSql(query: SearchQuery, lookups: SearchLookups): Sql {
  const conditions = conditionsOf(query.filters, lookups);
  const scans = scansOf(conditions, true, lookups);
  const [scan] = scans;
  const limit = sql`limit ${query.limit + 1}`;
  if (scan && !scan.isByToken && scans.length === 1) {
    const columns = sql`m.digest, ${bodyOf(query)} as body, encode(m.message_id, 'hex'), m.sort_key`;
    return sql`select ${columns} from message m where ${whereOf(scan, query, conditions, lookups)}
      order by m.sort_key desc, m.message_id desc ${limit}`;
  }
  return sql`select ${PAGE_COLUMNS} from (${matchingSql(query, conditions, scans, null, lookups)}) page
    order by sort_key desc, message_id desc ${limit}`;
}

/** What `distributedSearchSql` needs to know first. */
export function readLookups(read: Read, filters: Filters): Promise<SearchLookups> {
  const conditions = conditionsOf(filters);
  const [split = []] = conditions.alternatives;
  const tokens = split
    .flatMap((alternative) => mergeRequirements(conditions.required, alternative) ?? [])
    .flatMap((requirements) => scanFor(requirements, true).token ?? []);
  return readSearchLookups(read, filters, { tokens, lists: checkedLists(conditions) });
}

/** Whether a search with this filter, and others that are true here, reads few rows beyond its page. */
const isSelective: Readonly<Record<keyof Filters, boolean>> = {
  sender: true,
  receiver: true,
  sourceChainSelector: true,
  destChainSelector: true,
  chainSelector: false,
  readyForManualExecOnly: true,
  sourceTransactionHash: true,
  destTransactionHash: true,
  messageId: true,
  sentAfter: true,
  sentBefore: true,
  status: false,
  address: false,
  sourceTokenAddress: false,
  q: false,
};
const SHORT_PAGE = 100;

/** Whether a search takes about a millisecond, whatever the data is like (`Statement.isShort`). */
export function isShort({ filters, limit }: SearchQuery): boolean {
  return (
    limit <= SHORT_PAGE && (Object.keys(filters) as (keyof Filters)[]).every((name) => isSelective[name])
  );
}

/**
 * The most bytes of records on a page, unless the first record alone is longer. A page that would be longer ends early,
 * with a cursor: a walk through the pages misses nothing.
 */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** Short pages are fetched in one round trip, longer ones in two or three, so that the database stops where the page does. */
export function pageBound({ limit }: SearchQuery): RowBound {
  return { maxBytes: MAX_PAGE_BYTES, ...(limit > SHORT_PAGE && { firstRows: SHORT_PAGE }) };
}

/** The statement for everything that matches, newest first. */
export function exportSql(filters: Filters): Sql {
  const conditions = conditionsOf(filters);
  const matching = matchingSql({ view: 'full', after: null }, conditions, scansOf(conditions, false), null);
  return sql`select body from (${matching}) page ${existenceChecks(conditions)}`;
}

/** Conditions that depend on no row: PostgreSQL evaluates them once, before it reads any. */
function existenceChecks(conditions: Conditions): Sql {
  const checked = checkedLists(conditions);
  return checked.length === 0 ? sql`` : sql`where ${joinSql(checked.map(anyMessageHas), ' and ')} `;
}

function checkedLists({ alternatives: [, ...others] }: Conditions): readonly (readonly Requirements[])[] {
  // Nearly every status has some message.
  return others.filter((alternatives) => alternatives.every(({ status }) => status === undefined));
}

type PageQuery = Pick<SearchQuery, 'view' | 'after'>;

/** `rows` is the most that is read; null is all. */
function matchingSql(
  query: PageQuery,
  conditions: Conditions,
  scans: readonly Scan[],
  rows: number | null,
  lookups?: SearchLookups,
): Sql {
  // Of each part, too: it bounds how many rows an incremental sort reads ahead.
  const limit = rows === null ? sql`` : sql`limit ${rows}`;
  const body = bodyOf(query);
  const pages = scans.map(pageOf);
  const [only] = pages;
  if (!only)
    return sql`select m.sort_key, m.message_id, m.digest, ${body} as body from message m where false`;
  if (pages.length === 1) return only;
  return sql`select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from (${joinSql(
      pages.map((page) => sql`(${page})`),
      ' union all ',
    )}) scans
    order by sort_key desc, message_id desc ${limit}`;

  function pageOf(scan: Scan): Sql {
    const key = keyOf(scan);
    const from = scan.isByToken
      ? sql`message_token t join message m on m.message_id = t.message_id`
      : scan.isById && !lookups
        ? // The planner does not look into a subquery with an offset: it would read an index in order instead of sorting.
          // A cluster rejects conditions on tokens of such a subquery, and its workers sort.
          sql`(select * from message m where ${joinSql(scan.found, ' and ')} offset 0) m`
        : sql`message m`;
    const matching = sql`select ${key}.sort_key, ${key}.message_id, m.digest, ${body} as body from ${from}
      where ${whereOf(scan, query, conditions, lookups)}
      order by ${key}.sort_key desc, ${key}.message_id desc`;
    const page = scan.isByToken
      ? // A message may have several rows of one token, each of which would count to the limit. In a subquery, because
        // PostgreSQL 15 has no incremental sort for a `distinct`.
        sql`select distinct on (r.sort_key, r.message_id) r.* from (${matching}) r
      order by r.sort_key desc, r.message_id desc`
      : matching;
    if (!scan.lanes) return sql`${page} ${limit}`;
    return sql`select of_lane.* from (${scan.lanes}) l cross join lateral (${page} ${limit}) of_lane
      order by of_lane.sort_key desc, of_lane.message_id desc ${limit}`;
  }
}

/** `isPage`: only the first rows are read, instead of all. */
function scansOf(
  { required, alternatives: [split = [{}]] }: Conditions,
  isPage: boolean,
  lookups?: SearchLookups,
): readonly Scan[] {
  return split
    .flatMap((alternative) => mergeRequirements(required, alternative) ?? [])
    .flatMap((requirements) => {
      const scan = scanFor(requirements, isPage);
      if (!lookups) return [scan];
      if (scan.token && !lookups.hasToken(scan.token)) return [];
      if (!scan.lanes) return [scan];
      return lookups.lanesOf(requirements).map((lane) => scanFor({ ...requirements, ...lane }, true));
    });
}

function bodyOf({ view }: PageQuery): Sql {
  return view === 'summary' ? sql`left(m.record, m.summary_length) || '}'` : sql`m.record`;
}

/** The table whose index a scan walks. */
function keyOf({ isByToken }: Scan): Sql {
  return isByToken ? sql`t` : sql`m`;
}

function whereOf(
  scan: Scan,
  { after }: PageQuery,
  { alternatives: [, ...others], times }: Conditions,
  lookups?: SearchLookups,
): Sql {
  const key = keyOf(scan);
  const tokenChecks = scan.token && !lookups ? [tokenExists(scan.token)] : [];
  const found = scan.isById && !lookups ? [] : scan.found;
  const where = [...found, ...tokenChecks, ...scan.checked, ...others.map(anyOf)];
  where.push(...times.map((time) => time(key)));
  if (after) {
    const sort = sql`${sortKey(after.sentAt, after.messageId)}::bigint`;
    const place = sql`(${sort}, ${Buffer.from(after.messageId, 'hex')}::bytea)`;
    // The index has the sort key alone: it begins there, and the row comparison decides between equal keys.
    where.push(sql`${key}.sort_key <= ${sort}`, sql`(${key}.sort_key, ${key}.message_id) < ${place}`);
  }
  return where.length === 0 ? sql`true` : joinSql(where, ' and ');
}

/** A condition on the send time, of `message` or of `message_token`. */
type TimeCondition = (key: Sql) => Sql;

/** The conditions of all filters. */
interface Conditions {
  readonly required: Requirements;
  /** Of each list, one must hold. The lists that select the fewest rows come first. */
  readonly alternatives: (readonly Requirements[])[];
  readonly times: TimeCondition[];
}

type AddConditions<T> = (value: T, conditions: Conditions) => void;

/**
 * How each filter becomes SQL. The type makes the table complete: a new filter needs its conditions. The order is the
 * order of `alternatives`.
 */
const translations: { readonly [N in keyof Filters]-?: AddConditions<NonNullable<Filters[N]>> } = {
  messageId: always((messageIds) => ({ messageIds })),
  sourceTransactionHash: oneOf((sendTransaction) => ({ sendTransaction })),
  destTransactionHash: (hashes, { alternatives }) => alternatives.push(hashes.flatMap(onDestination)),
  q: (terms, { alternatives }) =>
    alternatives.push(...[...terms].sort(mostSelectiveFirst).map(alternativesOfTerm)),
  sender: oneOf((sender) => ({ sender })),
  receiver: oneOf((receiver) => ({ receiver })),
  address: (addresses, { alternatives }) => alternatives.push(addresses.flatMap(involving)),
  // Alternatives even where it is only one: a message can have several tokens.
  sourceTokenAddress: (tokens, { alternatives }) =>
    alternatives.push(tokens.map((sourceToken) => ({ sourceToken }))),
  sourceChainSelector: always((source) => ({ source })),
  destChainSelector: always((dest) => ({ dest })),
  chainSelector: (network, { alternatives }) => alternatives.push([{ source: network }, { dest: network }]),
  status: oneOf((status) => ({ status })),
  readyForManualExecOnly: always((ready) => ({ ready })),
  sentAfter: (time, { times }) => times.push((key) => sql`${key}.sort_key >= ${sortKey(time, '')}::bigint`),
  sentBefore: (time, { times }) => times.push((key) => sql`${key}.sort_key < ${sortKey(time, '')}::bigint`),
};
const filterNames = Object.keys(translations) as readonly (keyof Filters)[];

/** Fixes the order of the conditions in a statement, whatever the order of the filters. */
const nothingRequired: Requirements = {
  messageIds: undefined,
  sendTransaction: undefined,
  sender: undefined,
  receiver: undefined,
  source: undefined,
  dest: undefined,
  status: undefined,
  ready: undefined,
};

function conditionsOf(filters: Filters, lookups?: SearchLookups): Conditions {
  const conditions: Conditions = { required: { ...nothingRequired }, alternatives: [], times: [] };
  for (const name of filterNames) {
    if (filters[name] === undefined) continue;
    (translations[name] as AddConditions<unknown>)(filters[name], conditions);
  }
  if (!lookups) return conditions;
  // No alternative is left to scan for.
  if (lookups.isEmpty) return { ...conditions, alternatives: [[]] };
  return {
    ...conditions,
    alternatives: conditions.alternatives.map((list) =>
      list.map(({ otherTransaction, ...requirements }) =>
        otherTransaction === undefined
          ? requirements
          : { ...requirements, messageIds: lookups.messagesOf(otherTransaction) },
      ),
    ),
  };
}

function always<T>(requirementsOf: (value: T) => Requirements): AddConditions<T> {
  return (value, conditions) => {
    Object.assign(conditions.required, requirementsOf(value));
  };
}

/** One value is required; several are alternatives. */
function oneOf<T>(requirementsOf: (value: T) => Requirements): AddConditions<readonly T[]> {
  return ([first, ...others], conditions) => {
    if (first === undefined) return;
    if (others.length > 0) conditions.alternatives.push([first, ...others].map(requirementsOf));
    else Object.assign(conditions.required, requirementsOf(first));
  };
}

/** A transaction or a message id has few messages, an address any number. */
function mostSelectiveFirst(one: QTerm, other: QTerm): number {
  const isSelectiveTerm = ({ hashes, messageId }: QTerm) => hashes.length > 0 || messageId !== null;
  return Number(isSelectiveTerm(other)) - Number(isSelectiveTerm(one));
}

function alternativesOfTerm({ addresses, hashes, messageId }: QTerm): readonly Requirements[] {
  return [
    ...addresses.flatMap((address) => [
      { sender: address },
      { receiver: address },
      { sourceToken: address },
      { destToken: address },
      { sourcePool: address },
    ]),
    ...hashes.flatMap((hash) => [{ sendTransaction: hash }, ...onDestination(hash)]),
    ...(messageId === null ? [] : [{ messageIds: [messageId] }]),
  ];
}

/** As the execution that counts, or as another transaction: a commit, a blessing, a failed attempt. */
function onDestination(hash: string): readonly Requirements[] {
  return [{ receiptTransaction: hash }, { otherTransaction: hash }];
}

/** As sender, as receiver, or as origin of the transaction. */
function involving(address: string): readonly Requirements[] {
  return [{ sender: address }, { receiver: address }, { origin: address }];
}
