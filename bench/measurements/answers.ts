/** Checks responses: their content, and whether a plain query finds exactly the same. */
import type pg from 'pg';
import { compareNewestFirst, matches } from '../../src/domain/filters/matches.ts';
import type { SearchQuery } from '../../src/domain/filters/query.ts';
import { statusRank } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import { storedSelector } from '../../src/store/write/message-row.ts';
import type { SearchRequest } from '../requests.ts';

interface PageAnswer {
  readonly data: readonly Message[];
  readonly pagination: {
    readonly limit: number;
    readonly hasNextPage: boolean;
    readonly cursor: string | null;
  };
}

/** Throws unless `body` is correct, as far as the response alone shows. */
export function checkAnswer({ path, search, rows }: SearchRequest, body: string): void {
  const wrong = (what: string) => new Error(`${path}: ${what}`);
  const answer = JSON.parse(body) as Message | PageAnswer;
  if ('messageId' in answer) {
    if (!matches(search.filters, answer)) throw wrong('is another message');
    return;
  }
  const { data, pagination } = answer;
  if (data.length > search.limit) throw wrong(`has ${data.length} rows`);
  if (rows !== undefined && data.length !== rows) throw wrong(`has ${data.length} rows instead of ${rows}`);
  if (pagination.limit !== search.limit) throw wrong('has another limit');
  if (pagination.hasNextPage !== (pagination.cursor !== null))
    throw wrong('contradicts itself on a next page');
  if (pagination.hasNextPage && data.length < search.limit) throw wrong('ends too early');
  data.forEach((message, index) => {
    if (search.view === 'full' && !matches(search.filters, message))
      throw wrong(`row ${index} does not match`);
    const before = data[index - 1];
    if (before && compareNewestFirst(before, message) >= 0) throw wrong(`row ${index} is out of order`);
  });
}

/** Throws unless a query without any art finds the same messages. */
export async function compareWithOracle(
  client: pg.ClientBase,
  { path, search }: SearchRequest,
  body: string,
): Promise<void> {
  const answer = JSON.parse(body) as Message | PageAnswer;
  const found = 'messageId' in answer ? [answer.messageId] : answer.data.map(({ messageId }) => messageId);
  const { text, values } = oracleSql(search);
  const { rows } = await client.query(text, values);
  const expected = rows.slice(0, search.limit).map(({ id }) => `0x${id}`);
  if (found.join() !== expected.join()) {
    throw new Error(`${path}: finds ${found.join()}, and the plain query ${expected.join()}`);
  }
  if (!('messageId' in answer) && answer.pagination.hasNextPage !== rows.length > search.limit) {
    throw new Error(`${path}: is wrong about a next page`);
  }
}

/** The filters one by one on the table, as anybody would write them down. */
function oracleSql({ filters, after, limit }: SearchQuery): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const value = (given: unknown) => `$${values.push(given)}`;
  const list = (hex: readonly string[]) =>
    `any(${value(hex.map((text) => Buffer.from(text, 'hex')))}::bytea[])`;
  const where = ['true'];
  const bytes = {
    sender: filters.sender,
    receiver: filters.receiver,
    send_transaction: filters.sourceTransactionHash,
    receipt_transaction: filters.destTransactionHash,
    message_id: filters.messageId,
  };
  for (const [column, hex] of Object.entries(bytes)) if (hex) where.push(`${column} = ${list(hex)}`);
  const selectors = {
    source_selector: filters.sourceChainSelector,
    dest_selector: filters.destChainSelector,
  };
  for (const [column, selector] of Object.entries(selectors))
    if (selector) where.push(`${column} = ${value(storedSelector(selector))}`);
  if (filters.readyForManualExecOnly) where.push('ready');
  if (filters.status) where.push(`status = any(${value(filters.status.map(statusRank))}::smallint[])`);
  if (filters.sentAfter !== undefined) where.push(`sent_at >= ${value(new Date(filters.sentAfter))}`);
  if (filters.sentBefore !== undefined) where.push(`sent_at < ${value(new Date(filters.sentBefore))}`);
  if (filters.address) {
    const any = list(filters.address);
    where.push(`(sender = ${any} or receiver = ${any} or origin = ${any})`);
  }
  if (filters.sourceTokenAddress) {
    where.push(
      `message_id in (select message_id from message_token where source_token = ${list(filters.sourceTokenAddress)})`,
    );
  }
  for (const { addresses, hashes, messageId } of filters.q ?? []) {
    const any = list(addresses);
    const hash = list(hashes);
    const id = list(messageId === null ? [] : [messageId]);
    where.push(`(sender = ${any} or receiver = ${any} or send_transaction = ${hash} or receipt_transaction = ${hash}
      or message_id = ${id} or message_id in (
        select message_id from message_token where source_token = ${any} or dest_token = ${any} or source_pool = ${any}))`);
  }
  if (after) {
    const sentAt = value(new Date(after.sentAt));
    where.push(
      `(sent_at < ${sentAt} or sent_at = ${sentAt} and message_id < ${value(Buffer.from(after.messageId, 'hex'))})`,
    );
  }
  return {
    text: `select encode(message_id, 'hex') as id from message where ${where.join(' and ')}
           order by sent_at desc, message_id desc limit ${limit + 1}`,
    values,
  };
}
