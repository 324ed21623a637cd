/** Reads of messages: the search, and single messages by id. */

import { type BytesHex, parseAddress } from '../../domain/addresses.ts';
import type { Sent } from '../../domain/facts.ts';
import type { CursorCodec } from '../../domain/filters/cursor.ts';
import type { SearchQuery } from '../../domain/filters/query.ts';
import type { ShortenedText } from '../../domain/filters/search-text.ts';
import { statusRank, usesVerifiers } from '../../domain/lifecycle.ts';
import { type Message, wireRecord } from '../../domain/message.ts';
import type { Layout } from '../cluster/layout.ts';
import { statementForms } from '../cluster/statement-forms.ts';
import { kindNumbers } from '../facts/kinds.ts';
import { factColumnsOf, RANGE_FACT_COLUMNS, readMessageFact, readRangeFact } from '../facts/stored-fact.ts';
import { arrayFrame, type Page, type PageFrame, type Read, type Reads, readPage } from '../reads/reads.ts';
import { renderSql, type Sql } from '../sql.ts';
import { addressColumn, recordDigest, storedSelector } from '../write/message-row.ts';
import { readExecutions, readLatestExecutions } from './attempts.ts';
import { readExecutionInputs } from './execution-inputs.ts';
import { readMessageHistory } from './history.ts';
import { readContractRoles, readShortened, readShortenedBase58 } from './lookup.ts';
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

// Completion of a record: members that a message in flight lacks in its record, but the index knows, such as the off-ramp of its
// lane before the commit names it, and the encoded message of a record that was stored by an older version of the program.
// Only single messages are completed, and only while they may have to be executed: the search sends records as they are stored.

/** The beginning of the member in the text of a record. */
const OFFRAMP_MEMBER = '"offramp":"';

/** A test on the text, because nearly every record needs no completion and no parsing. */
function lacksOfframp(record: string): boolean {
  return !record.includes(OFFRAMP_MEMBER);
}

/** The record with its off-ramp, and with the encoded message that is stored beside it; as it is where nothing is known. */
async function completeRecord(read: Read, record: string): Promise<string> {
  const message = JSON.parse(record) as Message;
  const members = (await readMaterial(read, message)) ?? (await readOfframp(read, message));
  return members ? wireRecord({ ...message, ...members }).json : record;
}

/** What the send event of 2.0 said. */
async function readMaterial(read: Read, { messageId, version }: Message) {
  if (!usesVerifiers(version)) return undefined;
  const digits = messageId.slice(2);
  const [row] = await read(
    `select ${factColumnsOf('fact')} from fact where message_id = $1 and kind = ${kindNumbers.Sent} limit 1`,
    [Buffer.from(digits, 'hex')],
  );
  const { execution } = row ? (readMessageFact(row, digits) as Sent) : {};
  if (!execution || !('encodedMessage' in execution)) return undefined;
  const { offramp, encodedMessage } = execution;
  return { offramp, encodedMessage };
}

/**
 * The off-ramp of the lane's latest commit or, before the first one, the only one of the lane's version that the destination
 * has for it. Off-ramps up to 1.5 serve one on-ramp, which is stored with them; later ones serve a whole source chain.
 */
async function readOfframp(read: Read, { sourceNetworkInfo, destNetworkInfo, onramp, version }: Message) {
  const source = storedSelector(sourceNetworkInfo.chainSelector);
  const dest = storedSelector(destNetworkInfo.chainSelector);
  const lane = [source, dest, Buffer.from(addressColumn(onramp, sourceNetworkInfo.chainFamily), 'hex')];
  const [commit] = await read(
    `select ${RANGE_FACT_COLUMNS} from lane_fact
     where source_selector = $1 and dest_selector = $2 and onramp = $3 order by to_sequence desc limit 1`,
    lane,
  );
  const told =
    (commit && readRangeFact(commit).offramp) ??
    (await readOnlyOfframp(read, source, dest, majorAndMinor(version), onramp.toLowerCase()));
  const offramp = told && parseAddress(told, destNetworkInfo.chainFamily)?.text;
  return offramp ? { offramp } : undefined;
}

async function readOnlyOfframp(read: Read, source: string, dest: string, version: string, onramp: string) {
  const [row] = await read(
    `select min(contract) as offramp from index_registration
     join index_contract on index_contract.network = index_registration.network and address = contract
     where index_registration.network = $2 and remote = $1 and role = 'offRamp'
       and coalesce(body::json ->> 'version', $3) like $3 || '%'
       and coalesce(lower(body::json ->> 'onRamp'), $4) = $4
     having count(*) = 1`,
    [source, dest, version, onramp],
  );
  return row?.offramp as string | undefined;
}

/** Of a lane, such as `1.6.`: patches have the same off-ramps. */
function majorAndMinor(version: string | null): string {
  return version === null ? '' : `${version.split('.', 2).join('.')}.`;
}
