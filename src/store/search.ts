/**
 * The search, as SQL.
 *
 * Every page is `… order by sent_at desc, message_id desc limit n` over an index that serves filter and order
 * together. A filter that one column cannot answer (an address that may be sender, receiver or origin; one
 * of several statuses; a token) becomes a union of such scans, which PostgreSQL merges in order: still no
 * sort, and still no more rows read than the page needs. One filter at most is spread out like that; the
 * rest are conditions on each scan.
 */
import type { BytesHex } from '../domain/addresses.ts';
import { statusRank } from '../domain/lifecycle.ts';
import type { Filters, QTerm, SearchQuery } from '../domain/query.ts';
import { storedSelector } from './message-row.ts';
import { joinSql, type Sql, sql } from './sql.ts';

/** One way to find rows: through `message` alone, or from a row of `message_token`. */
interface Scan {
  readonly from: 'message' | 'message_token';
  readonly where: Sql;
}

/** A filter as alternatives to be united, and as one condition for when another filter is spread out. */
interface SpreadFilter {
  readonly scans: readonly Scan[];
  readonly condition: Sql;
}

/** The statement for one page: rows of a single text column, newest first, one more than the page shows. */
export function searchSql(query: SearchQuery): Sql {
  return matchingSql(query, query.limit + 1);
}

/** The statement for everything that matches, newest first. */
export function exportSql(filters: Filters): Sql {
  return matchingSql({ filters, view: 'full', after: null }, null);
}

/** `rows` is the most to return; null is all there are. */
function matchingSql(query: Omit<SearchQuery, 'limit'>, rows: number | null): Sql {
  const { filters, after } = query;
  const conditions = columnConditions(filters);
  const [driver, ...rest] = spreadFilters(filters);
  conditions.push(...rest.map(({ condition }) => condition));

  const scans = driver?.scans ?? [{ from: 'message' as const, where: sql`true` }];
  const pages = scans.map((scan) => pageOf(scan, conditions, query));
  const [only] = pages;
  if (pages.length === 1 && only) return sql`select body from (${only}) page`;
  return sql`select body from (
    select distinct on (sent_at, message_id) sent_at, message_id, body
    from (${joinSql(
      pages.map((page) => sql`(${page})`),
      ' union all ',
    )}) scans
    order by sent_at desc, message_id desc limit ${rows}) page`;

  function pageOf(scan: Scan, all: readonly Sql[], { view }: Pick<SearchQuery, 'view'>): Sql {
    const body = view === 'summary' ? sql`left(m.record, m.summary_length) || '}'` : sql`m.record`;
    const keyOf = scan.from === 'message_token' ? sql`t` : sql`m`;
    const tables =
      scan.from === 'message_token'
        ? sql`message_token t join message m on m.message_id = t.message_id`
        : sql`message m`;
    const where = [scan.where, ...all, ...timeConditions(filters, keyOf)];
    if (after) {
      const sentAt = new Date(after.sentAt);
      where.push(
        sql`(${keyOf}.sent_at, ${keyOf}.message_id) < (${sentAt}::timestamptz, ${bytes(after.messageId)}::bytea)`,
      );
    }
    // A message may have several rows of one token; each would count to the limit.
    const select =
      scan.from === 'message_token' ? sql`select distinct on (t.sent_at, t.message_id)` : sql`select`;
    return sql`${select} ${keyOf}.sent_at, ${keyOf}.message_id, ${body} as body from ${tables}
      where ${joinSql(where, ' and ')}
      order by ${keyOf}.sent_at desc, ${keyOf}.message_id desc limit ${rows}`;
  }
}

/** Filters that one column answers. */
function columnConditions(filters: Filters): Sql[] {
  const conditions: Sql[] = [];
  if (filters.sourceChainSelector !== undefined) {
    conditions.push(sql`m.source_selector = ${storedSelector(filters.sourceChainSelector)}::bigint`);
  }
  if (filters.destChainSelector !== undefined) {
    conditions.push(sql`m.dest_selector = ${storedSelector(filters.destChainSelector)}::bigint`);
  }
  if (filters.readyForManualExecOnly) conditions.push(sql`m.ready`);
  if (filters.messageId) conditions.push(sql`m.message_id = any(${filters.messageId.map(bytes)}::bytea[])`);
  return conditions;
}

function timeConditions(filters: Filters, keyOf: Sql): Sql[] {
  const conditions: Sql[] = [];
  if (filters.sentAfter !== undefined) {
    conditions.push(sql`${keyOf}.sent_at >= ${new Date(filters.sentAfter)}::timestamptz`);
  }
  if (filters.sentBefore !== undefined) {
    conditions.push(sql`${keyOf}.sent_at < ${new Date(filters.sentBefore)}::timestamptz`);
  }
  return conditions;
}

/** Filters that may need several scans, the most selective kinds first. */
function spreadFilters(filters: Filters): SpreadFilter[] {
  const spread: SpreadFilter[] = [];
  const column = (meanings: readonly BytesHex[] | undefined, name: Sql) => {
    if (meanings) spread.push(oneOf(meanings.map((meaning) => sql`m.${name} = ${bytes(meaning)}::bytea`)));
  };
  column(filters.sourceTransactionHash, sql`send_transaction`);
  column(filters.destTransactionHash, sql`receipt_transaction`);
  for (const term of filters.q ?? []) spread.push(termFilter(term));
  column(filters.sender, sql`sender`);
  column(filters.receiver, sql`receiver`);
  if (filters.address) {
    spread.push(
      oneOf(
        filters.address.flatMap((meaning) => [
          sql`m.sender = ${bytes(meaning)}::bytea`,
          sql`m.receiver = ${bytes(meaning)}::bytea`,
          sql`m.origin = ${bytes(meaning)}::bytea`,
        ]),
      ),
    );
  }
  if (filters.sourceTokenAddress) {
    spread.push(
      oneOf(
        [],
        filters.sourceTokenAddress.map((meaning) => sql`t.source_token = ${bytes(meaning)}::bytea`),
      ),
    );
  }
  if (filters.status) {
    spread.push(oneOf(filters.status.map((status) => sql`m.status = ${statusRank(status)}::smallint`)));
  }
  return spread;
}

function termFilter({ addresses, hashes, messageId }: QTerm): SpreadFilter {
  const onMessage = [
    ...addresses.flatMap((meaning) => [
      sql`m.sender = ${bytes(meaning)}::bytea`,
      sql`m.receiver = ${bytes(meaning)}::bytea`,
    ]),
    ...hashes.flatMap((meaning) => [
      sql`m.send_transaction = ${bytes(meaning)}::bytea`,
      sql`m.receipt_transaction = ${bytes(meaning)}::bytea`,
    ]),
    ...(messageId === null ? [] : [sql`m.message_id = ${bytes(messageId)}::bytea`]),
  ];
  const onToken = addresses.flatMap((meaning) => [
    sql`t.source_token = ${bytes(meaning)}::bytea`,
    sql`t.dest_token = ${bytes(meaning)}::bytea`,
    sql`t.source_pool = ${bytes(meaning)}::bytea`,
  ]);
  return oneOf(onMessage, onToken);
}

function oneOf(onMessage: readonly Sql[], onToken: readonly Sql[] = []): SpreadFilter {
  const alternatives = [...onMessage];
  if (onToken.length > 0) {
    alternatives.push(
      sql`exists (select from message_token t where t.message_id = m.message_id and (${joinSql(onToken, ' or ')}))`,
    );
  }
  return {
    scans: [
      ...onMessage.map((where) => ({ from: 'message' as const, where })),
      ...onToken.map((where) => ({ from: 'message_token' as const, where })),
    ],
    condition: sql`(${joinSql(alternatives, ' or ')})`,
  };
}

function bytes(hex: BytesHex): Buffer {
  return Buffer.from(hex, 'hex');
}
