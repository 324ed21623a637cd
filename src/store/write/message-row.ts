/** The columns of a record: what `message` and `message_token` store beside the JSON, to find it by. */
import { hash } from 'node:crypto';
import {
  type BytesHex,
  type ChainFamily,
  parseAddress,
  parseTransactionHash,
} from '../../domain/addresses.ts';
import type { Observation } from '../../domain/facts.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import { type Message, wireRecord } from '../../domain/message.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import { BEGINNING_BYTES } from '../sql.ts';
import type { ColumnType } from './copy.ts';

/** Columns as COPY takes them: text, with bytes in hex, null as null. */
export type MessageRow = Readonly<ReturnType<typeof messageRow>>;
export type TokenRow = Readonly<ReturnType<typeof tokenRows>[number]>;

type ColumnsOf<Row> = Readonly<Record<keyof Row, readonly [column: string, type: ColumnType]>>;

/** The column of each member of `MessageRow`, and its type. A missing member does not compile. */
export const messageColumns: ColumnsOf<MessageRow> = {
  messageId: ['message_id', 'bytea'],
  sortKey: ['sort_key', 'bigint'],
  sentAt: ['sent_at', 'timestamptz'],
  sourceSelector: ['source_selector', 'bigint'],
  destSelector: ['dest_selector', 'bigint'],
  sequenceNumber: ['sequence_number', 'numeric'],
  deliveryMs: ['delivery_ms', 'bigint'],
  finality: ['finality', 'bigint'],
  summaryLength: ['summary_length', 'integer'],
  status: ['status', 'smallint'],
  ready: ['ready', 'boolean'],
  sender: ['sender', 'bytea'],
  receiver: ['receiver', 'bytea'],
  origin: ['origin', 'bytea'],
  onramp: ['onramp', 'bytea'],
  sendTransaction: ['send_transaction', 'bytea'],
  receiptTransaction: ['receipt_transaction', 'bytea'],
  digest: ['digest', 'bytea'],
  record: ['record', 'text'],
};

export const tokenColumns: ColumnsOf<TokenRow> = {
  messageId: ['message_id', 'bytea'],
  tokenIndex: ['token_index', 'smallint'],
  sortKey: ['sort_key', 'bigint'],
  sourceSelector: ['source_selector', 'bigint'],
  destSelector: ['dest_selector', 'bigint'],
  sourceToken: ['source_token', 'bytea'],
  destToken: ['dest_token', 'bytea'],
  sourcePool: ['source_pool', 'bytea'],
  senderBeginning: ['sender_beginning', 'bytea'],
  receiverBeginning: ['receiver_beginning', 'bytea'],
};

/** The columns that follow from the sending of a message alone. They change with a reorganisation, others with each status. */
const sendKeys = [
  'sortKey',
  'sourceSelector',
  'destSelector',
  'sequenceNumber',
  'finality',
  'sender',
  'receiver',
  'origin',
  'onramp',
  'sendTransaction',
] as const satisfies readonly (keyof MessageRow)[];

/** The columns that an update sets when only the outcome of a message has changed. */
export const outcomeKeys = (Object.keys(messageColumns) as (keyof MessageRow)[]).filter(
  (key) => key !== 'messageId' && key !== 'sentAt' && !(sendKeys as readonly string[]).includes(key),
);

const textSql = <Key extends string>(
  columns: Readonly<Record<Key, readonly [string, ColumnType]>>,
  keys: readonly Key[],
) =>
  keys
    .map((key) => columns[key])
    .map(([column, type]) => (type === 'bytea' ? `encode(${column}, 'hex')` : `${column}::text`))
    .join(` || ',' || `);

/** SQL of what `sendTextOf` makes of a row of `message`. */
export const SEND_TEXT = textSql(messageColumns, sendKeys);

/** Tells whether the columns of the sending have changed. */
export function sendTextOf(row: MessageRow): string {
  return sendKeys.map((key) => row[key]).join();
}

const tokenKeys = (Object.keys(tokenColumns) as (keyof TokenRow)[]).filter((key) => key !== 'messageId');

/** SQL of what `tokensTextOf` makes of the rows of a message in `message_token`. */
export const TOKENS_TEXT = `coalesce(string_agg(${textSql(tokenColumns, tokenKeys)}, ';' order by token_index), '')`;

export function tokensTextOf(rows: readonly TokenRow[]): string {
  return rows.map((row) => tokenKeys.map((key) => row[key]).join()).join(';');
}

export function messageRow(message: Message) {
  const source = message.sourceNetworkInfo.chainFamily;
  const dest = message.destNetworkInfo.chainFamily;
  const { json, summaryLength } = wireRecord(message);
  return {
    messageId: message.messageId.slice(2),
    sortKey: sortKey(Date.parse(message.sendTimestamp), message.messageId.slice(2)),
    sentAt: message.sendTimestamp,
    sourceSelector: storedSelector(message.sourceNetworkInfo.chainSelector),
    destSelector: storedSelector(message.destNetworkInfo.chainSelector),
    sequenceNumber: message.sequenceNumber,
    deliveryMs: message.deliveryTime,
    finality: message.finality,
    summaryLength,
    status: statusRank(message.status),
    ready: message.readyForManualExecution,
    sender: addressColumn(message.sender, source),
    receiver: addressColumn(message.receiver, dest),
    origin: addressColumn(message.origin, source),
    onramp: addressColumn(message.onramp, source),
    sendTransaction: transactionColumn(message.sendTransactionHash, source),
    receiptTransaction:
      message.receiptTransactionHash === null
        ? null
        : transactionColumn(message.receiptTransactionHash, dest),
    digest: recordDigest(json),
    record: json,
  };
}

export function tokenRows(message: Message) {
  const source = message.sourceNetworkInfo.chainFamily;
  const dest = message.destNetworkInfo.chainFamily;
  return message.tokenAmounts.map((token, tokenIndex) => ({
    messageId: message.messageId.slice(2),
    tokenIndex,
    sortKey: sortKey(Date.parse(message.sendTimestamp), message.messageId.slice(2)),
    sourceSelector: storedSelector(message.sourceNetworkInfo.chainSelector),
    destSelector: storedSelector(message.destNetworkInfo.chainSelector),
    sourceToken: addressColumn(token.sourceTokenAddress, source),
    destToken: addressColumn(token.destTokenAddress, dest),
    sourcePool: addressColumn(token.sourcePoolAddress, source),
    senderBeginning: addressColumn(message.sender, source).slice(0, 2 * BEGINNING_BYTES),
    receiverBeginning: addressColumn(message.receiver, dest).slice(0, 2 * BEGINNING_BYTES),
  }));
}

/** Fifteen bits: a time of the year 9999 still leaves room for them in a bigint. */
const ID_BITS = 15n;

/**
 * What searches are ordered by, in eight bytes: the send time, then the beginning of the message id (hex). Where only the time
 * matters, '' gives the lowest key of its millisecond.
 */
export function sortKey(sentAtMs: number, messageId: BytesHex): string {
  const beginning = Number.parseInt(messageId.slice(0, 4).padEnd(4, '0'), 16) >> 1;
  return ((BigInt(sentAtMs) << ID_BITS) | BigInt(beginning)).toString();
}

/** The same in SQL, of columns. */
export function sortKeySql(sentAt: string, messageId: string): string {
  const beginning = `get_byte(${messageId}, 0) * 128 + get_byte(${messageId}, 1) / 2`;
  return `((extract(epoch from ${sentAt}) * 1000)::bigint * 32768 + ${beginning})`;
}

/** Milliseconds since 1970. */
export function sentAtOf(key: string): number {
  return Number(BigInt(key) >> ID_BITS);
}

/** An unsigned 64-bit selector in PostgreSQL's signed bigint. */
export function storedSelector(selector: string): string {
  return BigInt.asIntN(64, BigInt(selector)).toString();
}

export function addressColumn(text: string, family: ChainFamily): string {
  const spelling = parseAddress(text, family);
  if (!spelling) throw new Error(`A record reached the store with a malformed ${family} address: ${text}`);
  return spelling.bytes;
}

function transactionColumn(text: string, family: ChainFamily): string {
  const spelling = parseTransactionHash(text, family);
  if (!spelling) throw new Error(`A record reached the store with a malformed ${family} hash: ${text}`);
  return spelling.bytes;
}

/** The transaction of an observation; null if it has no transaction or the notation of its network is unknown. */
export function observedTransaction({ network, transactionHash }: Observation): string | null {
  const family = transactionHash === null ? undefined : networkBySelector(network)?.family;
  return (family && transactionHash && parseTransactionHash(transactionHash, family)?.bytes) || null;
}

/** Message ids as an array literal for a statement: the driver would convert each to bytes and back. */
export function messageIdArray(ids: readonly string[]): string {
  return ids.length === 0 ? '{}' : `{"\\\\x${ids.join('","\\\\x')}"}`;
}

/** Tells a change of a record without reading it. */
export function recordDigest(json: string): string {
  return hash('sha256', json, 'hex').slice(0, 32);
}

/** The unsigned selector that a stored bigint stands for. */
export function selectorOf(stored: string): string {
  return BigInt.asUintN(64, BigInt(stored)).toString();
}
