/**
 * The search, as SQL.
 *
 * Every page is `… order by sent_at desc, message_id desc limit n` over an index that serves filter and order together
 * (`scan.ts` says which). A filter that can hold in several ways (an address that may be sender, receiver or origin; one
 * of several statuses; a search term) becomes a union of such scans, which PostgreSQL merges in order: still no sort,
 * and still no more rows read than the page needs. One filter at most is spread out like that; the rest are conditions
 * on each scan. Each of these is first looked up by itself, once: one that no message satisfies ends the search, which
 * would otherwise examine every row of a busy address in vain.
 */
import { type Filters, MAX_LIMIT, type QTerm, type SearchQuery } from '../domain/query.ts';
import type { RowBound } from './reads/reads.ts';
import { anyOf, isAnywhere, type Scan, scanFor, unite, type Wanted } from './scan.ts';
import { fixedSql, joinSql, type Sql, sql } from './sql.ts';

/**
 * Settings of the connections that search. Plans are made once, without looking at values: which index finds what is
 * settled anyway, and planning costs more than most pages. Bitmaps would read all that matches, for the sake of a page;
 * and to start other processes for it takes longer than to read it.
 */
export const searchSettings =
  '-c plan_cache_mode=force_generic_plan -c enable_bitmapscan=off -c max_parallel_workers_per_gather=0';

/** The statement for one page: digests and records (`readPage`), newest first, one more than the page shows. */
export function searchSql(query: SearchQuery): Sql {
  const rows = query.limit + 1;
  const conditions = conditionsOf(query.filters);
  return sql`select digest, body from (${matchingSql(query, conditions, rows)}) page ${gates(conditions)}limit ${rows}`;
}

/** Whether a filter, with others of the same kind, finds a page without reading many other rows. */
const isSelective: Readonly<Record<keyof Filters, boolean>> = {
  sender: true,
  receiver: true,
  sourceChainSelector: true,
  destChainSelector: true,
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

/** Whether a page takes a moment only, whatever the data is like. */
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

/** Short pages come in one round trip; longer ones in two or three, so that the database stops where the page does. */
export function pageBound({ limit }: SearchQuery): RowBound {
  return { maxBytes: MAX_PAGE_BYTES, ...(limit > SHORT_PAGE && { firstRows: SHORT_PAGE }) };
}

/** The statement for everything that matches, newest first. */
export function exportSql(filters: Filters): Sql {
  const conditions = conditionsOf(filters);
  const matching = matchingSql({ view: 'full', after: null }, conditions, null);
  return sql`select body from (${matching}) page ${gates(conditions)}`;
}

/** Conditions without a row: the planner asks them before it reads any. */
function gates({ alternatives: [, ...others] }: Conditions): Sql {
  // Some message has nearly every status.
  const asked = others.filter((alternatives) => alternatives.every(({ status }) => status === undefined));
  return asked.length === 0 ? sql`` : sql`where ${joinSql(asked.map(isAnywhere), ' and ')} `;
}

/** Tells the planner that a page is wanted, in a plan that is kept for pages of every length. */
const LONGEST_PAGE = fixedSql(`limit ${MAX_LIMIT + 1}`);

/** `rows` is the most that anybody will take; null is all there are. */
function matchingSql(
  { view, after }: Pick<SearchQuery, 'view' | 'after'>,
  { certain, alternatives, times }: Conditions,
  rows: number | null,
): Sql {
  const [spread = [{}], ...others] = alternatives;
  const limit = rows === null ? sql`` : LONGEST_PAGE;
  const body = view === 'summary' ? sql`left(m.record, m.summary_length) || '}'` : sql`m.record`;
  const pages = spread
    .flatMap((alternative) => unite(certain, alternative) ?? [])
    .map((wanted) => pageOf(scanFor(wanted, rows !== null)));
  const [only] = pages;
  if (!only) return sql`select m.digest, ${body} as body from message m where false`;
  if (pages.length === 1) return only;
  return sql`select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from (${joinSql(
      pages.map((page) => sql`(${page})`),
      ' union all ',
    )}) scans
    order by sent_at desc, message_id desc ${limit}`;

  function pageOf({ found, checked, isByToken, lanes }: Scan): Sql {
    const key = isByToken ? sql`t` : sql`m`;
    const from = isByToken
      ? sql`message_token t join message m on m.message_id = t.message_id`
      : sql`message m`;
    // A message may have several rows of one token; each would count to the limit.
    const select = isByToken ? sql`select distinct on (t.sent_at, t.message_id)` : sql`select`;
    const where = [...found, ...checked, ...others.map(anyOf), ...timeConditions(key)];
    const page = sql`${select} ${key}.sent_at, ${key}.message_id, m.digest, ${body} as body from ${from}
      where ${where.length === 0 ? sql`true` : joinSql(where, ' and ')}
      order by ${key}.sent_at desc, ${key}.message_id desc`;
    if (!lanes) return sql`${page} ${limit}`;
    return sql`select of_lane.* from (${lanes}) l cross join lateral (${page} limit ${rows}) of_lane
      order by of_lane.sent_at desc, of_lane.message_id desc ${limit}`;
  }

  function timeConditions(key: Sql): Sql[] {
    const conditions = times.map((time) => time(key));
    if (after) {
      const place = sql`(${isoTime(after.sentAt)}::timestamptz, ${Buffer.from(after.messageId, 'hex')}::bytea)`;
      conditions.push(sql`(${key}.sent_at, ${key}.message_id) < ${place}`);
    }
    return conditions;
  }
}

/** A condition on the send time, of `message` or of `message_token`. */
type TimeCondition = (key: Sql) => Sql;

/** What filters ask for, all of it. */
interface Conditions {
  /** Holds in any case. */
  readonly certain: Wanted;
  /** Of each list, one must hold. The lists that select fewest rows come first. */
  readonly alternatives: (readonly Wanted[])[];
  readonly times: TimeCondition[];
}

type AddConditions<T> = (value: T, conditions: Conditions) => void;

/**
 * How each filter becomes SQL. The type makes the table complete: a new filter needs its conditions. The order is the
 * order of `alternatives`.
 */
const translations: { readonly [N in keyof Filters]-?: AddConditions<NonNullable<Filters[N]>> } = {
  messageId: certainly((messageIds) => ({ messageIds })),
  sourceTransactionHash: oneOf((sendTransaction) => ({ sendTransaction })),
  destTransactionHash: oneOf((receiptTransaction) => ({ receiptTransaction })),
  q: (terms, { alternatives }) =>
    alternatives.push(...[...terms].sort(mostTellingFirst).map(alternativesOfTerm)),
  sender: oneOf((sender) => ({ sender })),
  receiver: oneOf((receiver) => ({ receiver })),
  address: (addresses, { alternatives }) => alternatives.push(addresses.flatMap(involving)),
  // Never certain, even where it is only one: a message can have several tokens.
  sourceTokenAddress: (tokens, { alternatives }) =>
    alternatives.push(tokens.map((sourceToken) => ({ sourceToken }))),
  sourceChainSelector: certainly((source) => ({ source })),
  destChainSelector: certainly((dest) => ({ dest })),
  status: oneOf((status) => ({ status })),
  readyForManualExecOnly: certainly((ready) => ({ ready })),
  sentAfter: (time, { times }) => times.push((key) => sql`${key}.sent_at >= ${isoTime(time)}::timestamptz`),
  sentBefore: (time, { times }) => times.push((key) => sql`${key}.sent_at < ${isoTime(time)}::timestamptz`),
};
const filterNames = Object.keys(translations) as readonly (keyof Filters)[];

/** Fixes the order in which conditions stand in a statement, whatever sets them. */
const nothingCertain: Wanted = {
  messageIds: undefined,
  sendTransaction: undefined,
  receiptTransaction: undefined,
  sender: undefined,
  receiver: undefined,
  source: undefined,
  dest: undefined,
  status: undefined,
  ready: undefined,
};

function conditionsOf(filters: Filters): Conditions {
  const conditions: Conditions = { certain: { ...nothingCertain }, alternatives: [], times: [] };
  for (const name of filterNames) {
    if (filters[name] === undefined) continue;
    (translations[name] as AddConditions<unknown>)(filters[name], conditions);
  }
  return conditions;
}

function certainly<T>(wanted: (value: T) => Wanted): AddConditions<T> {
  return (value, conditions) => {
    Object.assign(conditions.certain, wanted(value));
  };
}

/** One value is certain; several are alternatives. */
function oneOf<T>(wanted: (value: T) => Wanted): AddConditions<readonly T[]> {
  return ([first, ...others], conditions) => {
    if (first === undefined) return;
    if (others.length > 0) conditions.alternatives.push([first, ...others].map(wanted));
    else Object.assign(conditions.certain, wanted(first));
  };
}

/** A transaction or a message id has few messages, an address any number. */
function mostTellingFirst(one: QTerm, other: QTerm): number {
  return Number(isTelling(other)) - Number(isTelling(one));
}

function isTelling({ hashes, messageId }: QTerm): boolean {
  return hashes.length > 0 || messageId !== null;
}

function alternativesOfTerm({ addresses, hashes, messageId }: QTerm): readonly Wanted[] {
  return [
    ...addresses.flatMap((address) => [
      { sender: address },
      { receiver: address },
      { sourceToken: address },
      { destToken: address },
      { sourcePool: address },
    ]),
    ...hashes.flatMap((hash) => [{ sendTransaction: hash }, { receiptTransaction: hash }]),
    ...(messageId === null ? [] : [{ messageIds: [messageId] }]),
  ];
}

/** As sender, as receiver, or as whoever made the sender send. */
function involving(address: string): readonly Wanted[] {
  return [{ sender: address }, { receiver: address }, { origin: address }];
}

function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
