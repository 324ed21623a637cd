/** Reads of messages: the search, and single messages by id. */

import type { BytesHex } from '../../domain/addresses.ts';
import type { CursorCodec } from '../../domain/filters/cursor.ts';
import type { SearchQuery } from '../../domain/filters/query.ts';
import type { ShortenedText } from '../../domain/filters/search-text.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Layout } from '../cluster/layout.ts';
import { statementForms } from '../cluster/statement-forms.ts';
import { arrayFrame, type Page, type PageFrame, type Read, type Reads, readPage } from '../reads/reads.ts';
import { renderSql, type Sql } from '../sql.ts';
import { recordDigest } from '../write/message-row.ts';
import { type MessageExecutions, readExecutions, readLatestExecutions } from './attempts.ts';
import { type ExecutionInputs, readExecutionInputs } from './execution-inputs.ts';
import { type MessageHistory, readMessageHistory } from './history.ts';
import {
  type KnownContract,
  readContractRoles,
  readShortened,
  readShortenedBase58,
  type ShortenedMatches,
} from './lookup.ts';
import { completeRecord, lacksOfframp, OFFRAMP_MEMBER } from './record-completion.ts';
import { distributedSearchSql, isShort, pageBound, readLookups, searchSql } from './search.ts';

export interface StoredRecord {
  readonly record: string;
  /** Changes exactly when the record does. */
  readonly digest: string;
  /** When it was executed (ms since 1970), for a message that succeeded; null while it may still change. */
  readonly settledAt: number | null;
}

/** Message ids are 64 hexadecimal digits. */
export interface MessageReads {
  /** Encodes and decodes cursors with the key of this database. */
  readonly cursors: CursorCodec;
  search(query: SearchQuery, frame?: PageFrame): Promise<Page>;
  findMessage(messageId: string): Promise<StoredRecord | undefined>;
  /** The same without the record; undefined also for a record that `findMessage` may complete. */
  messageDigest(messageId: string): Promise<Omit<StoredRecord, 'record'> | undefined>;
  /** Records whose message ids begin with these hexadecimal digits, at most `limit`. */
  findMessagesByPrefix(digits: string, limit: number): Promise<readonly string[]>;
  /** Message ids, transactions and addresses with these digits at their ends. */
  shortened(text: ShortenedText): Promise<ShortenedMatches>;
  /** The same in Base58. */
  shortenedBase58(text: ShortenedText): Promise<Pick<ShortenedMatches, 'transactions' | 'addresses'>>;
  /** What a contract is to CCIP; `spelling` is its address as records have it. */
  contractRoles(bytes: BytesHex, spelling: string): Promise<readonly KnownContract[]>;
  /** Counts messages while they are few; beyond that, what the statistics have counted. */
  countMessages(): Promise<{ readonly count: number; readonly isExact: boolean }>;
  /** The changes of one message; undefined for an unknown one. */
  messageHistory(messageId: string): Promise<MessageHistory | undefined>;
  /** What is known of its executions; undefined for an unknown message. */
  messageExecutions(messageId: string): Promise<MessageExecutions | undefined>;
  /** The same of several messages, the latest attempts only; unknown ones are left out. */
  latestExecutions(messageIds: readonly string[]): Promise<readonly MessageExecutions[]>;
  /** The inputs of a manual execution; undefined for an unknown message. */
  executionInputs(messageId: string): Promise<ExecutionInputs | undefined>;
}

/** Counting visits every row, so of a larger store the statistics tell. */
const MAX_COUNTED_MESSAGES = 100_000;

/** SQL of `StoredRecord.settledAt`. */
const SETTLED_AT = `case when status = ${statusRank('SUCCESS')}
  then (extract(epoch from sent_at) * 1000 + coalesce(delivery_ms, 0))::bigint end`;

export function createMessageReads(reads: Reads, cursors: CursorCodec, layout: Layout): MessageReads {
  /** For statements that every search repeats. */
  const readPrepared: Read = async (text, values) =>
    (await reads.run('search', { name: reads.nameOf(text), text, values: [...values] })) as Record<
      string,
      unknown
    >[];
  return {
    cursors,
    search(query, frame = arrayFrame) {
      const run = (statement: Sql): Promise<Page> => {
        const { text, values } = renderSql(statement);
        return reads.run('search', {
          name: reads.nameOf(text),
          text,
          values,
          isShort: isShort(query),
          bound: pageBound(query),
          collect: (rows) => readPage(rows, query, frame, cursors),
        });
      };
      return layout === 'single'
        ? run(searchSql(query))
        : readLookups(readPrepared, query.filters).then((lookups) =>
            run(distributedSearchSql(query, lookups)),
          );
    },

    async findMessage(messageId) {
      const rows = await reads.readRows(
        'message',
        `select encode(digest, 'hex'), ${SETTLED_AT}, record from message where message_id = $1`,
        [Buffer.from(messageId, 'hex')],
      );
      const [digest, settledAt, record] = rows[0] ?? [];
      if (record == null || digest == null) return undefined;
      const found = { record, digest, settledAt: numberOrNull(settledAt) };
      if (found.settledAt !== null || !lacksOfframp(record)) return found;
      const completed = await completeRecord(reads.readAs('message'), record);
      return completed === record ? found : { ...found, record: completed, digest: recordDigest(completed) };
    },

    async messageDigest(messageId) {
      const rows = await reads.readRows(
        'messageDigest',
        `select encode(digest, 'hex'), ${SETTLED_AT} from message
         where message_id = $1 and (status = ${statusRank('SUCCESS')} or strpos(record, '${OFFRAMP_MEMBER}') > 0)`,
        [Buffer.from(messageId, 'hex')],
      );
      const [digest, settledAt] = rows[0] ?? [];
      return digest === undefined ? undefined : { digest, settledAt: numberOrNull(settledAt) };
    },

    async findMessagesByPrefix(digits, limit) {
      const rows = await reads.readRows(
        'messagePrefix',
        'select record from message where message_id between $1 and $2 order by message_id limit $3',
        [Buffer.from(digits.padEnd(64, '0'), 'hex'), Buffer.from(digits.padEnd(64, 'f'), 'hex'), limit],
      );
      return rows.map(([record]) => record ?? '');
    },

    shortened: (text) => readShortened(reads.readAs('shortened'), statementForms[layout], text),
    shortenedBase58: (text) => readShortenedBase58(reads.readAs('shortened'), statementForms[layout], text),
    contractRoles: (bytes, spelling) => readContractRoles(reads.readAs('contracts'), bytes, spelling),

    async countMessages() {
      const rows = await reads.readRows(
        'count',
        `select (select count(*) from (select 1 from message limit $1) few)::text,
                (select coalesce(sum(messages), 0) from lane_total)::text`,
        [MAX_COUNTED_MESSAGES + 1],
        { isShort: false },
      );
      const [counted, estimated] = (rows[0] ?? []).map(Number);
      const count = counted ?? 0;
      return count <= MAX_COUNTED_MESSAGES
        ? { count, isExact: true }
        : { count: Math.max(count, estimated ?? 0), isExact: false };
    },

    messageHistory: (messageId) => readMessageHistory(reads.readAs('history'), messageId),
    messageExecutions: (messageId) => readExecutions(reads.readAs('executions'), messageId),
    latestExecutions: (messageIds) => readLatestExecutions(reads.readAs('executions'), messageIds),
    executionInputs: (messageId) => readExecutionInputs(reads.readAs('executionInputs'), messageId),
  };
}

function numberOrNull(value: string | null | undefined): number | null {
  return value == null ? null : Number(value);
}
