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
import type { RowBound } from './raw-rows.ts';
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
  return sql`select digest, body from (${matchingSql(query, rows)}) page ${gates(query.filters)}limit ${rows}`;
}

/** Filters that, together with any others of these, find a page without looking at much else. */
const findingFilters: ReadonlySet<string> = new Set<keyof Filters>([
  'sender',
  'receiver',
  'sourceChainSelector',
  'destChainSelector',
  'readyForManualExecOnly',
  'sourceTransactionHash',
  'destTransactionHash',
  'messageId',
  'sentAfter',
  'sentBefore',
]);
const SHORT_PAGE = 100;

/** Whether a page takes a moment only, whatever the data is like. */
export function isShort({ filters, limit }: SearchQuery): boolean {
  return limit <= SHORT_PAGE && Object.keys(filters).every((name) => findingFilters.has(name));
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
  return sql`select body from (${matchingSql({ filters, view: 'full', after: null }, null)}) page ${gates(filters)}`;
}

/** Conditions without a row: the planner asks them before it reads any. */
function gates(filters: Filters): Sql {
  const [, ...others] = alternativesOf(filters);
  // Some message has nearly every status.
  const asked = others.filter((alternatives) => alternatives.every(({ status }) => status === undefined));
  return asked.length === 0 ? sql`` : sql`where ${joinSql(asked.map(isAnywhere), ' and ')} `;
}

/** Tells the planner that a page is wanted, in a plan that is kept for pages of every length. */
const LONGEST_PAGE = fixedSql(`limit ${MAX_LIMIT + 1}`);

/** `rows` is the most that anybody will take; null is all there are. */
function matchingSql({ filters, view, after }: Omit<SearchQuery, 'limit'>, rows: number | null): Sql {
  const [spread = [{}], ...others] = alternativesOf(filters);
  const limit = rows === null ? sql`` : LONGEST_PAGE;
  const body = view === 'summary' ? sql`left(m.record, m.summary_length) || '}'` : sql`m.record`;
  const pages = spread
    .flatMap((alternative) => unite(certaintiesOf(filters), alternative) ?? [])
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
    const { sentAfter, sentBefore } = filters;
    const conditions: Sql[] = [];
    if (sentAfter !== undefined) conditions.push(sql`${key}.sent_at >= ${isoTime(sentAfter)}::timestamptz`);
    if (sentBefore !== undefined) conditions.push(sql`${key}.sent_at < ${isoTime(sentBefore)}::timestamptz`);
    if (after) {
      const place = sql`(${isoTime(after.sentAt)}::timestamptz, ${Buffer.from(after.messageId, 'hex')}::bytea)`;
      conditions.push(sql`(${key}.sent_at, ${key}.message_id) < ${place}`);
    }
    return conditions;
  }
}

/** What must hold in any case. */
function certaintiesOf(filters: Filters): Wanted {
  return {
    messageIds: filters.messageId,
    sendTransaction: only(filters.sourceTransactionHash),
    receiptTransaction: only(filters.destTransactionHash),
    sender: only(filters.sender),
    receiver: only(filters.receiver),
    source: filters.sourceChainSelector,
    dest: filters.destChainSelector,
    status: only(filters.status),
    ready: filters.readyForManualExecOnly,
  };
}

/** Filters that can hold in several ways, each as a list of these; those that tell most come first. */
function alternativesOf(filters: Filters): (readonly Wanted[])[] {
  return [
    ...several(filters.sourceTransactionHash, (sendTransaction) => ({ sendTransaction })),
    ...several(filters.destTransactionHash, (receiptTransaction) => ({ receiptTransaction })),
    ...[...(filters.q ?? [])].sort(mostTellingFirst).map(alternativesOfTerm),
    ...several(filters.sender, (sender) => ({ sender })),
    ...several(filters.receiver, (receiver) => ({ receiver })),
    ...(filters.address ? [filters.address.flatMap(involving)] : []),
    // Not among what holds in any case, even where it is one: a message can have several tokens.
    ...(filters.sourceTokenAddress
      ? [filters.sourceTokenAddress.map((sourceToken) => ({ sourceToken }))]
      : []),
    ...several(filters.status, (status) => ({ status })),
  ];
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

function only<T>(meanings: readonly T[] | undefined): T | undefined {
  return meanings?.length === 1 ? meanings[0] : undefined;
}

function several<T>(meanings: readonly T[] | undefined, as: (meaning: T) => Wanted): (readonly Wanted[])[] {
  return meanings && meanings.length > 1 ? [meanings.map(as)] : [];
}

function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
