/** Reads of messages: the search, and single messages by id. */

import type { BytesHex } from '../../domain/addresses.ts';
import type { CursorCodec } from '../../domain/filters/cursor.ts';
import type { SearchQuery } from '../../domain/filters/query.ts';
import type { ShortenedText } from '../../domain/filters/search-text.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Layout } from '../cluster/layout.ts';
import { statementForms } from '../cluster/statement-forms.ts';
import { arrayFrame, type Page, type PageFrame, type Reads, readPage } from '../reads/reads.ts';
import { renderSql, type Sql } from '../sql.ts';
import { recordDigest } from '../write/message-row.ts';
import { readExecutions, readLatestExecutions } from './attempts.ts';
import { readExecutionInputs } from './execution-inputs.ts';
import { readMessageHistory } from './history.ts';
import { readContractRoles, readShortened, readShortenedBase58 } from './lookup.ts';
import { completeRecord, lacksOfframp, OFFRAMP_MEMBER } from './record-completion.ts';
import { distributedSearchSql, isShort, pageBound, readLookups, searchSql } from './search.ts';

export interface StoredRecord {
  readonly record: string;
  /** Changes exactly when the record does. */
  readonly digest: string;
  /** When it was executed (ms since 1970), for a message that succeeded; null while it may still change. */
  readonly settledAt: number | null;
}

/** Counting visits every row, so of a larger store the statistics tell. */
const MAX_COUNTED_MESSAGES = 100_000;

/** SQL of `StoredRecord.settledAt`. */
const SETTLED_AT = `case when status = ${statusRank('SUCCESS')}
  then (extract(epoch from sent_at) * 1000 + coalesce(delivery_ms, 0))::bigint::float8 end as "settledAt"`;

/** Message ids are 64 hexadecimal digits. */
export function createMessageReads(reads: Reads, cursors: CursorCodec, layout: Layout) {
  /** For statements that every search repeats. */
  const readPrepared = reads.readPreparedAs('search', false);
  return {
    /** Encodes and decodes cursors with the key of this database. */
    cursors,
    search(query: SearchQuery, frame: PageFrame = arrayFrame) {
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

    async findMessage(messageId: string): Promise<StoredRecord | undefined> {
      const [found] = await reads.readPreparedAs('message')<StoredRecord>(
        `select encode(digest, 'hex') as digest, ${SETTLED_AT}, record from message where message_id = $1`,
        [Buffer.from(messageId, 'hex')],
      );
      if (!found || found.settledAt !== null || !lacksOfframp(found.record)) return found;
      const record = await completeRecord(reads.readAs('message'), found.record);
      return record === found.record ? found : { ...found, record, digest: recordDigest(record) };
    },

    /** The same without the record; undefined also for a record that `findMessage` may complete. */
    async messageDigest(messageId: string): Promise<Omit<StoredRecord, 'record'> | undefined> {
      const [found] = await reads.readPreparedAs('messageDigest')<Omit<StoredRecord, 'record'>>(
        `select encode(digest, 'hex') as digest, ${SETTLED_AT} from message
         where message_id = $1 and (status = ${statusRank('SUCCESS')} or strpos(record, '${OFFRAMP_MEMBER}') > 0)`,
        [Buffer.from(messageId, 'hex')],
      );
      return found;
    },

    /** Records whose message ids begin with these hexadecimal digits, at most `limit`. */
    async findMessagesByPrefix(digits: string, limit: number): Promise<readonly string[]> {
      const rows = await reads.readPreparedAs('messagePrefix')<{ record: string }>(
        'select record from message where message_id between $1 and $2 order by message_id limit $3',
        [Buffer.from(digits.padEnd(64, '0'), 'hex'), Buffer.from(digits.padEnd(64, 'f'), 'hex'), limit],
      );
      return rows.map(({ record }) => record);
    },

    /** Message ids, transactions and addresses with these digits at their ends. */
    shortened: (text: ShortenedText) =>
      readShortened(reads.readAs('shortened'), statementForms[layout], text),
    /** The same in Base58. */
    shortenedBase58: (text: ShortenedText) =>
      readShortenedBase58(reads.readAs('shortened'), statementForms[layout], text),
    /** What a contract is to CCIP; `spelling` is its address as records have it. */
    contractRoles: (bytes: BytesHex, spelling: string) =>
      readContractRoles(reads.readAs('contracts'), bytes, spelling),

    /** Counts messages while they are few; beyond that, what the statistics have counted. */
    async countMessages(): Promise<{ readonly count: number; readonly isExact: boolean }> {
      const [row] = await reads.readPreparedAs('count', false)(
        `select (select count(*) from (select 1 from message limit $1) few) as counted,
                (select coalesce(sum(messages), 0) from lane_total) as estimated`,
        [MAX_COUNTED_MESSAGES + 1],
      );
      const [counted, estimated] = [Number(row?.counted ?? 0), Number(row?.estimated ?? 0)];
      return counted <= MAX_COUNTED_MESSAGES
        ? { count: counted, isExact: true }
        : { count: Math.max(counted, estimated), isExact: false };
    },

    /** The changes of one message; undefined for an unknown one. */
    messageHistory: (messageId: string) => readMessageHistory(reads.readAs('history'), messageId),
    /** What is known of its executions; undefined for an unknown message. */
    messageExecutions: (messageId: string) => readExecutions(reads.readAs('executions'), messageId),
    /** The same of several messages, the latest attempts only; unknown ones are left out. */
    latestExecutions: (messageIds: readonly string[]) =>
      readLatestExecutions(reads.readAs('executions'), messageIds),
    /** The inputs of a manual execution; undefined for an unknown message. */
    executionInputs: (messageId: string) => readExecutionInputs(reads.readAs('executionInputs'), messageId),
  };
}
